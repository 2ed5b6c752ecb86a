"""As which Delta type a column is shown, by what the files physically hold.

Delta's readers accept a stored value of exactly this type, or of a type that Delta's type widening
lists as narrower. If a file holds anything else, it must be rewritten.
"""

from __future__ import annotations

from dataclasses import dataclass

from shelduck.model.files.layout import PhysicalField
from shelduck.model.tables.schema import Kind
from shelduck.model.types.accepted import delta_widens, delta_word
from shelduck.model.types.data_types import Decimal, Leaf, Primitive

_WHOLE = "integers are shown as {}"
_TEXT = "Delta has no such type: shown as text"
_HUGE = Decimal(38, 0)
_NULL = "a variant that is null, as which DuckDB stores NULL, is a value to Delta"


@dataclass(frozen=True, slots=True)
class DeltaType:
    """How a leaf is shown: a Delta type, and the differences that readers will see.

    ``stored`` are the types, and their encodings, that readers accept for it unchanged.
    """

    type: str
    leaf: Leaf
    stored: frozenset[tuple[str, str]]
    loss: str = ""

    def holds(self, stored: PhysicalField) -> bool:
        """Return whether a stored leaf is of this type."""
        return (str(stored.shape), stored.encoding) in self.stored

    def narrower(self, stored: PhysicalField) -> str | None:
        """Return the Delta type of a stored leaf that can be widened to this one, or None."""
        if isinstance(stored.shape, Kind) or stored.encoding:
            return None
        return delta_word(stored.shape) if delta_widens(stored.shape, self.leaf) else None


def shown_as(leaf: Leaf) -> DeltaType | None:
    """Return how Delta shows a type; None if Delta has no type for it."""
    if isinstance(leaf, Decimal):
        return _shown(str(leaf), leaf, (str(leaf), ""))
    name = leaf.name
    if name in ("timestamp_s", "timestamp_ms"):
        leaf = Primitive("timestamp")
        return _shown("timestamp_ntz", leaf, ("timestamp", ""))
    if name == "timestamptz":
        return _shown("timestamp", leaf, (name, ""), ("timestamp", "int96"))
    if name in _OTHERS:
        return _OTHERS[name]
    if name == "variant":
        return _shown(name, leaf, (name, ""), loss=_NULL)
    text = delta_word(leaf)
    if text is None:
        return None
    also = (("json", ""),) if name == "varchar" else ()
    return _shown(text, leaf, (name, ""), *also)


def _shown(text: str, leaf: Leaf, *stored: tuple[str, str], loss: str = "") -> DeltaType:
    return DeltaType(text, leaf, frozenset(stored), loss)


# Files hold these as Spark wrote them or, for the small unsigned ones, as DuckDB wrote them. The
# values are the same for every reader that respects the type of the file.
_OTHERS: dict[str, DeltaType] = {
    "uint8": _shown(
        "short", Primitive("int16"), *(("int16", ""), ("uint8", "")), loss=_WHOLE.format("short")
    ),
    "uint16": _shown(
        "integer",
        Primitive("int32"),
        *(("int32", ""), ("uint16", "")),
        loss=_WHOLE.format("integer"),
    ),
    "uint32": _shown(
        "long", Primitive("int64"), *(("int64", ""), ("uint32", "")), loss=_WHOLE.format("long")
    ),
    "uint64": _shown(
        "decimal(20,0)", Decimal(20, 0), ("decimal(20,0)", ""), loss=_WHOLE.format("decimal(20,0)")
    ),
    **dict.fromkeys(
        ("int128", "uint128"),
        _shown(str(_HUGE), _HUGE, (str(_HUGE), ""), loss=_WHOLE.format(_HUGE)),
    ),
    **dict.fromkeys(
        ("time", "timetz", "json", "uuid"),
        _shown(
            "string",
            Primitive("varchar"),
            *(("varchar", ""), ("json", ""), ("uuid", "utf8")),
            loss=_TEXT,
        ),
    ),
}
