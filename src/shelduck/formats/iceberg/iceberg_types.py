"""As which Iceberg type a column is shown, by what files physically hold, and the whole schema.

Iceberg's readers read a stored value exactly as Iceberg defines the type, and support few
promotions: int to long, float to double, more digits of a decimal. A column gets the first type in
which all files hold it. If there is none, it gets the last one, which is what Shelduck writes. The
schema has the ids of the table at every level.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from shelduck.errors import InvalidRequest
from shelduck.formats.report import Loss, column_of, shown_parts
from shelduck.model.files.data_file import ColumnStats, PhysicalField
from shelduck.model.tables.schema import Field, FieldId, Kind, Path
from shelduck.model.types.data_types import FLOATS, SIGNED, UNSIGNED, Decimal, Leaf, Primitive
from shelduck.model.types.literals import Comparable, blob_bytes, bound, canonical_text
from shelduck.model.types.temporal import INFINITE_DATE

FIRST_VERSION, LAST_VERSION = 2, 3
_HUGE = "integers are shown as decimal(38, 0)"
Json = bool | int | float | str
_WHOLE = frozenset({*SIGNED, *UNSIGNED}) - {"int128", "uint128", "uint64"}
_YEAR = 4  # digits; dates of other years have no ISO text
_INFINITE_MICROS = 2**63 - 1


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

_SHOWN: dict[str, tuple[ShownType, ...]] = {
    **{name: (ShownType(name, _among(name)),) for name in ("boolean", "date", "timestamptz")},
    **dict.fromkeys(("int8", "int16", "int32", "uint8", "uint16"), (_INT,)),
    **dict.fromkeys(("int64", "uint32"), (_LONG,)),
    "uint64": (_decimal(20, 0, "integers are shown as decimal(20, 0)"),),
    **dict.fromkeys(("int128", "uint128"), (_decimal(38, 0, _HUGE),)),
    "float32": (ShownType("float", _among("float32")),),
    "float64": (ShownType("double", _among("float32", "float64")),),
    **dict.fromkeys(("timestamp", "timestamp_s", "timestamp_ms"), (_TIMESTAMP,)),
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


def default_json(leaf: Leaf, text: str, shown: str) -> Json | None:
    """Return a default as Iceberg writes one of the type ``shown``; None if it cannot.

    ``text`` is DuckDB's. NaN, infinity and dates beyond the years 1 to 9999 have no JSON.
    """
    try:
        canonical = canonical_text(leaf, text)
    except InvalidRequest:
        return None
    if isinstance(leaf, Decimal) or shown.startswith("decimal") or shown in ("string", "uuid"):
        return canonical
    if shown == "boolean":
        return canonical == "true"
    if shown in ("int", "long"):
        return int(canonical)
    if shown in ("float", "double"):
        return None if canonical.lstrip("-") in ("nan", "inf") else float(canonical)
    if shown == "binary":
        value = blob_bytes(canonical)
        return None if value is None else value.hex()
    if shown == "time":
        # DuckDB has a midnight at the end of the day.
        return None if canonical.startswith("24") else canonical
    return _moment(canonical, shown)


def certain_bounds(
    field: Field, stored: PhysicalField, stats: ColumnStats
) -> tuple[Comparable, Comparable] | None:
    """Return the bounds of a leaf in a file, in the current type; None if they are not certain.

    This excludes floats that were narrower or may hold NaN (readers order it differently), and
    types whose texts or order differ between writers.
    """
    leaf, kept = field.shape, stored.shape
    if isinstance(leaf, Kind) or isinstance(kept, Kind):
        return None
    if not _compares_alike(leaf, kept, stats):
        return None
    low, high = (bound(kept, text) for text in (stats.min_value, stats.max_value))
    if low is None or high is None:
        return None
    if isinstance(low, float) and isinstance(high, float):
        # Iceberg orders the zeros: a bound must include both.
        return (-0.0 if low == 0 else low), high + 0.0
    if not isinstance(low, bool) and isinstance(low, int) and _is_infinite(leaf, low, high):
        return None
    return low, high


def _compares_alike(leaf: Leaf, kept: Leaf, stats: ColumnStats) -> bool:
    if isinstance(leaf, Decimal):
        return isinstance(kept, Decimal) and kept.scale == leaf.scale
    name, written = leaf.name, str(kept)
    if name in FLOATS:
        return name == written and stats.contains_nan is False
    if name in _WHOLE:
        return written in _WHOLE
    if name in ("timestamp", "timestamp_s", "timestamp_ms"):
        return kept == Primitive("timestamp")
    if name in ("varchar", "json"):
        return written in ("varchar", "json")
    return name == written and name in ("boolean", "date", "timestamptz", "timestamp_ns")


def _is_infinite(leaf: Leaf, low: Comparable, high: Comparable) -> bool:
    ends = (INFINITE_DATE, _INFINITE_MICROS)
    return str(leaf) not in _WHOLE and any(abs(int(v)) in ends for v in (low, high))


def _moment(canonical: str, shown: str) -> Json | None:
    """Return a date or timestamp of the years 1 to 9999 in ISO's form."""
    date, _, clock = canonical.partition(" ")
    if len(date.partition("-")[0]) != _YEAR or "(BC)" in canonical:
        return None
    if shown == "date":
        return date
    if shown == "timestamp":
        return f"{date}T{clock}"
    if shown == "timestamptz":
        return f"{date}T{clock.removesuffix('+00')}+00:00"
    # PyIceberg cannot read metadata with a default of nanoseconds.
    return None


JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ShownColumns:
    """The columns that readers will see; ``types`` has the exported type of each leaf."""

    fields: tuple[Field, ...]
    types: Mapping[FieldId, ShownType]
    losses: tuple[Loss, ...] = ()


def shown_columns(
    fields: Iterable[Field], types: Mapping[FieldId, ShownType | None]
) -> ShownColumns:
    """Return the columns without those for which Iceberg has no type, and the losses."""
    losses: list[Loss] = []

    def look(leaf: Field, path: Path) -> bool:
        shown = types.get(leaf.id)
        told = _why_left_out(str(leaf.shape)) if shown is None else shown.loss
        if told:
            losses.append(Loss(column_of(path), told))
        return shown is not None

    kept = list(shown_parts(fields, look, losses))
    known = {i: shown for i, shown in types.items() if shown is not None}
    live = {leaf.id for top in kept for leaf in top.leaves()}
    return ShownColumns(tuple(kept), {i: s for i, s in known.items() if i in live}, tuple(losses))


def schema_json(
    shown: ShownColumns, version: int, comments: Mapping[FieldId | None, str]
) -> JsonObject:
    """Return the schema in the form of table metadata.

    Everything is optional except the keys of maps: NOT NULL concerns only writers. Defaults exist
    from version 3 on.
    """
    work = _Schema(shown, version, comments)
    return {"type": "struct", "schema-id": 0, "fields": [work.member(f) for f in shown.fields]}


def initial_default(field: Field, types: Mapping[FieldId, ShownType]) -> Json | None:
    """Return what rows of files without a leaf show, None if NULL or if Iceberg cannot say it."""
    if field.initial_default is None:
        return None
    return _json(field, field.initial_default, types)


def write_default(field: Field, types: Mapping[FieldId, ShownType], version: int) -> Json | None:
    """Return the default for new rows, None if there is none or Iceberg cannot say it."""
    if version < LAST_VERSION or field.default is None or not field.default.literal:
        return None
    return _json(field, field.default.text, types)


def _why_left_out(name: str) -> str:
    if name == "timestamp_ns":
        return "left out: nanoseconds need format_version=3"
    if name == "variant":
        return (
            "left out: it is not in Iceberg's form, and PyIceberg cannot open files with a variant"
        )
    return f"left out: Iceberg has no type for {name}"


def _json(field: Field, text: str, types: Mapping[FieldId, ShownType]) -> Json | None:
    shown = types.get(field.id)
    if shown is None or isinstance(field.shape, Kind):
        return None
    return default_json(field.shape, text, shown.type)


@dataclass(frozen=True, slots=True)
class _Schema:
    shown: ShownColumns
    version: int
    comments: Mapping[FieldId | None, str]

    def member(self, field: Field) -> JsonObject:
        made: JsonObject = {
            "id": int(field.id),
            "name": field.name,
            "required": False,
            "type": self.type(field),
        }
        comment = self.comments.get(field.id)
        if comment is not None:
            made["doc"] = comment
        if self.version >= LAST_VERSION and field.is_leaf:
            types = self.shown.types
            defaults = {
                "initial-default": initial_default(field, types),
                "write-default": write_default(field, types, self.version),
            }
            made |= {name: default for name, default in defaults.items() if default is not None}
        return made

    def type(self, field: Field) -> str | JsonObject:
        if not isinstance(field.shape, Kind):
            return self.shown.types[field.id].type
        if field.shape is Kind.STRUCT:
            return {"type": "struct", "fields": [self.member(c) for c in field.children]}
        if field.shape is Kind.LIST:
            [element] = field.children
            return {
                "type": "list",
                "element-id": int(element.id),
                "element": self.type(element),
                "element-required": False,
            }
        key, value = field.children
        return {
            "type": "map",
            "key-id": int(key.id),
            "key": self.type(key),
            "value-id": int(value.id),
            "value": self.type(value),
            "value-required": False,
        }
