"""As which Iceberg type a column is shown, by what the files physically hold.

Iceberg's readers read a stored value exactly as Iceberg defines the type, and support few
promotions: int to long, float to double, more digits of a decimal. A column gets the first type in
which all files hold it. If there is none, it gets the last one, which is what Shelduck writes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from shelduck.model.files.layout import PhysicalField
from shelduck.model.types.data_types import Decimal, Leaf

FIRST_VERSION, LAST_VERSION = 2, 3


@dataclass(frozen=True, slots=True)
class ShownType:
    """One Iceberg type as which a leaf can be shown.

    ``holds`` says whether a stored leaf reads correctly as this type. ``version`` is the first
    version of the format that has it. ``loss`` says what readers will see differently; it is empty
    if nothing.
    """

    type: str
    holds: Callable[[PhysicalField], bool]
    version: int = FIRST_VERSION
    loss: str = ""


def shown_as(leaf: Leaf) -> tuple[ShownType, ...]:
    """Return the Iceberg types that can show a leaf, the closest one first."""
    if isinstance(leaf, Decimal):
        return (_decimal(leaf.precision, leaf.scale),)
    return _SHOWN.get(leaf.name, ())


def choose(leaf: Leaf, stored: Collection[PhysicalField], version: int) -> ShownType | None:
    """Return how a leaf is shown if files hold it as ``stored``; None if it is left out."""
    known = [s for s in shown_as(leaf) if s.version <= version]
    held = (s for s in known if stored and all(s.holds(f) for f in stored))
    return next(held, known[-1] if known else None)


def _among(*names: str, encodings: Collection[str] = ("",)) -> Callable[[PhysicalField], bool]:
    return lambda stored: str(stored.shape) in names and stored.encoding in encodings


def _decimal(precision: int, scale: int, loss: str = "") -> ShownType:
    def holds(stored: PhysicalField) -> bool:
        leaf = stored.shape
        if not isinstance(leaf, Decimal) or stored.encoding:
            return False
        return leaf.scale == scale and leaf.precision <= precision

    return ShownType(f"decimal({precision}, {scale})", holds, loss=loss)


def _holds_long(stored: PhysicalField) -> bool:
    """Return whether readers read a stored leaf as a long.

    Iceberg's Spark reader makes vectors by the annotation in a file, if there is one. It then reads
    an INT32 with an annotation as an int, whatever the column's type is.
    """
    name = str(stored.shape)
    return name == "int64" or (name == "int32" and not stored.is_annotated)


# No reader can be expected to read unsigned integers: Iceberg has none, and its own reader refuses
# them.
_INT = ShownType("int", _among("int8", "int16", "int32"))
_LONG = ShownType("long", _holds_long)
_TIMESTAMP = ShownType("timestamp", _among("timestamp"))
_TEXT = _among("varchar", "json")
_HUGE = "integers are shown as decimal(38, 0)"

_SHOWN: dict[str, tuple[ShownType, ...]] = {
    "boolean": (ShownType("boolean", _among("boolean")),),
    **dict.fromkeys(("int8", "int16", "int32", "uint8", "uint16"), (_INT,)),
    "int64": (_LONG,),
    "uint32": (_LONG,),
    "uint64": (_decimal(20, 0, "integers are shown as decimal(20, 0)"),),
    "int128": (_decimal(38, 0, _HUGE),),
    "uint128": (_decimal(38, 0, _HUGE),),
    "float32": (ShownType("float", _among("float32")),),
    "float64": (ShownType("double", _among("float32", "float64")),),
    "date": (ShownType("date", _among("date")),),
    "timestamp": (_TIMESTAMP,),
    "timestamp_s": (_TIMESTAMP,),
    "timestamp_ms": (_TIMESTAMP,),
    "timestamptz": (ShownType("timestamptz", _among("timestamptz")),),
    "timestamp_ns": (ShownType("timestamp_ns", _among("timestamp_ns"), LAST_VERSION),),
    "time": (
        ShownType("time", _among("time")),
        ShownType(
            "string", _among("varchar"), loss="times are shown as text, as the files hold them"
        ),
    ),
    "timetz": (
        ShownType(
            "string", _among("varchar"), loss="Iceberg has no time with an offset: shown as text"
        ),
    ),
    "uuid": (
        ShownType("uuid", _among("uuid", encodings=("fixed",))),
        ShownType(
            "string",
            _among("varchar", "uuid", encodings=("", "utf8")),
            loss="UUIDs are shown as text, as the files hold them",
        ),
    ),
    "varchar": (ShownType("string", _TEXT),),
    "json": (ShownType("string", _TEXT, loss="Iceberg has no JSON: shown as text"),),
    "blob": (ShownType("binary", _among("blob")),),
}
