"""Delta's schema text: its fields, their names in files, their defaults, lengths and types.

A column is shown as a type by what the files physically hold, and which it had. Delta's readers
accept a stored value of exactly this type, or of a type that Delta's type widening lists as
narrower. If a file holds anything else, it must be rewritten. They must refuse a table with a
change of types (``delta.typeChanges``) that they do not know, because they cannot know what older
files hold.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shelduck.engine.types import default_sql
from shelduck.errors import CorruptLake, ShelduckError, Unsupported
from shelduck.formats.delta.log import Metadata
from shelduck.formats.report import column_of
from shelduck.model.changes.definition import with_default
from shelduck.model.files.data_file import PhysicalField
from shelduck.model.tables.schema import Default, Field, Kind
from shelduck.model.types.accepted import DELTA_WORDS, delta_widens, delta_word
from shelduck.model.types.data_types import Decimal, Leaf, Primitive, Text, type_text
from shelduck.text.ddl.defaults import read_default

MAPPING_ID = "delta.columnMapping.id"
PHYSICAL_NAME = "delta.columnMapping.physicalName"
DEFAULT = "CURRENT_DEFAULT"
LENGTH = "__CHAR_VARCHAR_TYPE_STRING"
FEATURE, INVARIANTS = "allowColumnDefaults", "invariants"
"""The features that writers must know for a table with defaults, and for NOT NULL."""
_CHARS = re.compile(r"(?:var)?char\((\d+)\)", re.IGNORECASE)
TYPE_CHANGES = "delta.typeChanges"
# Files with "int" exist beside the "integer" of the protocol.
_TYPE_NAMES = {word: name for name, word in DELTA_WORDS.items()} | {"int": "int32"}
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(-?\d+)\s*\)")
_ANY_TEXT = re.compile(r"(?:var)?char\(\d+\)|string collate \S+", re.IGNORECASE)
_WHOLE = "integers are shown as {}"
_TEXT = "Delta has no such type: shown as text"
_HUGE = Decimal(38, 0)
_NULL = "a variant that is null, as which DuckDB stores NULL, is a value to Delta"


@dataclass(frozen=True, slots=True)
class DeltaField:
    """One node of a Delta schema; a list has one child, a map two.

    If columns are not mapped, ``mapping_id`` is None and ``physical`` is the name. ``declared`` is
    the type of a leaf in Delta's words.
    """

    name: str
    shape: Leaf | Kind
    physical: str
    children: tuple[DeltaField, ...] = ()
    nullable: bool = True
    mapping_id: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, compare=False)
    declared: str = field(default="", compare=False)

    def leaf_paths(self) -> Iterator[tuple[str, ...]]:
        """Yield the paths of leaves below this field outside of structs, as ``fieldPath``."""
        if not isinstance(self.shape, Kind):
            yield ()
        elif self.shape is not Kind.STRUCT:
            for child in self.children:
                yield from ((child.name, *path) for path in child.leaf_paths())


@dataclass(frozen=True, slots=True)
class DeltaSchema:
    """The columns of a Delta version; ``mode`` of column mapping is none, name or id."""

    fields: tuple[DeltaField, ...]
    mode: str
    partition_columns: tuple[str, ...]


def delta_schema(metadata: Metadata) -> DeltaSchema:
    """Return the columns in the metadata of a version.

    Raises Unsupported for a type that DuckLake does not have and for a type change that Delta's
    type widening does not have, CorruptLake for a text that is not a schema.
    """
    mode = metadata.mode
    if mode not in ("none", "name", "id"):
        raise Unsupported(f"unknown column mapping mode {mode!r} of the Delta table")
    try:
        parts = json.loads(metadata.schema)["fields"]
        fields = tuple(_field(part, mode, ()) for part in parts)
    except (ValueError, KeyError, TypeError) as broken:
        raise CorruptLake(f"cannot read the schema in the Delta log: {broken!r}") from broken
    return DeltaSchema(fields, mode, metadata.partition_columns)


def _field(part: Mapping[str, Any], mode: str, path: tuple[str, ...]) -> DeltaField:
    name, metadata = part["name"], part.get("metadata") or {}
    is_mapped = mode != "none"
    below = (*path, name)
    if is_mapped and not {MAPPING_ID, PHYSICAL_NAME} <= metadata.keys():
        raise CorruptLake(
            f"column {'.'.join(below)!r} of the Delta table has no {MAPPING_ID} or"
            f" {PHYSICAL_NAME}, although its column mapping mode is {mode}, so its values cannot"
            " be found; restore the schema in the log"
        )
    shape, children = _type(part["type"], mode, below)
    made = DeltaField(
        name,
        shape,
        metadata[PHYSICAL_NAME] if is_mapped else name,
        children,
        bool(part.get("nullable", True)),
        int(metadata[MAPPING_ID]) if is_mapped else None,
        metadata,
        part["type"] if isinstance(part["type"], str) else "",
    )
    require_known_changes(metadata, made.leaf_paths(), below)
    return made


def _type(
    found: Any, mode: str, path: tuple[str, ...]
) -> tuple[Leaf | Kind, tuple[DeltaField, ...]]:
    if isinstance(found, str):
        return _leaf(found, path), ()
    kind = found["type"]
    if kind == "struct":
        return Kind.STRUCT, tuple(_field(part, mode, path) for part in found["fields"])
    if kind == "array":
        takes_null = bool(found.get("containsNull", True))
        return Kind.LIST, (_part("element", found["elementType"], mode, path, takes_null),)
    if kind == "map":
        takes_null = bool(found.get("valueContainsNull", True))
        key = _part("key", found["keyType"], mode, path, True)
        return Kind.MAP, (key, _part("value", found["valueType"], mode, path, takes_null))
    raise Unsupported(_no_place(str(kind), path))


def _part(name: str, found: Any, mode: str, path: tuple[str, ...], nullable: bool) -> DeltaField:
    shape, children = _type(found, mode, (*path, name))
    declared = found if isinstance(found, str) else ""
    return DeltaField(name, shape, name, children, nullable, declared=declared)


def _leaf(text: str, path: tuple[str, ...]) -> Leaf:
    found = leaf_of(text)
    if found is None:
        raise Unsupported(_no_place(text, path))
    return found


def _no_place(text: str, path: tuple[str, ...]) -> str:
    return (
        f"column {'.'.join(path)!r} of the Delta table is {text}, which cannot be imported; read"
        " the table with Spark and append its other columns, or drop the column there"
    )


def shape_of(part: DeltaField) -> Leaf | Kind:
    """Return the shape of a Delta field; text with the length that it has."""
    declared = part.declared if _CHARS.fullmatch(part.declared) else part.metadata.get(LENGTH, "")
    match = _CHARS.fullmatch(str(declared))
    if match is None or part.shape != Primitive("varchar"):
        return part.shape
    return Text(length=int(match[1]))


def default_of(part: DeltaField, made: Field) -> Default | None:
    """Return the default that new rows get in Delta, None where there is none to carry over."""
    text = part.metadata.get(DEFAULT)
    if not isinstance(text, str) or not made.is_leaf:
        return None
    try:
        found = read_default(text)
        return None if found is None else with_default(made, found, part.name).default
    except ShelduckError:
        return None


def is_lost(part: DeltaField, made: Field) -> bool:
    """Return whether the import loses the default of a Delta column."""
    text = part.metadata.get(DEFAULT)
    return text is not None and made.default is None and str(text).strip().upper() != "NULL"


def told_default(field: Field) -> str | None:
    """Return the SQL of a default as Delta keeps it, None where Spark would not understand it."""
    try:
        return default_sql(field)
    except ShelduckError:
        return None


def told_of(field: Field, *, is_top: bool) -> Mapping[str, Any]:
    """Return what the metadata of a column says of its default and its length."""
    told: dict[str, Any] = {}
    default = told_default(field) if is_top else None
    if default is not None:
        told[DEFAULT] = default
    if isinstance(field.shape, Text):
        told[LENGTH] = type_text(field.shape).lower()
    return told


def writer_features(fields: Sequence[Field]) -> set[str]:
    """Return what writers must know because of the defaults of columns, and of NOT NULL."""
    found = {FEATURE} if any(told_default(field) is not None for field in fields) else set()
    is_bound = any(not part.nullable for field in fields for part in field.walk())
    return found | ({INVARIANTS} if is_bound else set())


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
    **{
        name: _shown(word, Primitive(held), *((held, ""), (name, "")), loss=_WHOLE.format(word))
        for name, held, word in (
            ("uint8", "int16", "short"),
            ("uint16", "int32", "integer"),
            ("uint32", "int64", "long"),
        )
    },
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


def leaf_of(text: str) -> Leaf | None:
    """Return the type that Delta calls ``text``, None for a type that DuckLake does not have."""
    known = _TYPE_NAMES.get(text)
    if known is not None:
        return Primitive(known)
    match = _DECIMAL.fullmatch(text)
    if match and 0 <= int(match[2]) <= int(match[1]) <= 38:
        return Decimal(int(match[1]), int(match[2]))
    return Primitive("varchar") if _ANY_TEXT.fullmatch(text) else None


def require_known_changes(
    metadata: Mapping[str, Any], leaves: Iterable[tuple[str, ...]], path: tuple[str, ...]
) -> None:
    """Raise Unsupported for a type change of a field that Delta's type widening does not have.

    ``leaves`` are the field paths of the field's leaves outside of structs: ``()`` for a field that
    is a leaf itself, ``("element",)`` for a list of leaves. Raises CorruptLake for an entry that
    cannot be read or whose path does not exist.
    """
    here = f"{column_of(path)} of the Delta table"
    known = set(leaves)
    for entry in _entries(metadata, here):
        place = tuple(entry.get("fieldPath", "").split(".")) if entry.get("fieldPath") else ()
        if place not in known:
            raise CorruptLake(
                f"{here} has a type change ({TYPE_CHANGES}) at {'.'.join(place)!r}, where it has no"
                " value; restore the schema in the log"
            )
        if not _is_known(entry["fromType"], entry["toType"]):
            raise Unsupported(
                f"{here} was changed from {entry['fromType']} to {entry['toType']}"
                f" ({TYPE_CHANGES}), which is not a change of Delta's type widening, so the types"
                " in its files are unknown; rewrite the table there without the feature"
                " typeWidening"
            )


def told_changes(narrow: Iterable[str], shown: str) -> list[tuple[str, str]]:
    """Return the changes of a leaf that files hold in these narrower types, the oldest first.

    Each type leads to the next wider one, as the column changed, and the last one to the current
    type.
    """
    ordered = _narrowest_first(narrow)
    wider = [*ordered, shown]
    return [
        (old, next(new for new in wider[n + 1 :] if new == shown or _widens(old, new)))
        for n, old in enumerate(ordered)
    ]


def words_of(had: Iterable[Leaf], shown: str) -> tuple[str, ...]:
    """Return the Delta types of a column's earlier types from which Delta can widen to ``shown``.

    DuckLake has more types and more promotions than Delta: a ``uint8`` was shown as another type,
    and some steps are none of Delta's.
    """
    words = (found.type for leaf in had if (found := shown_as(leaf)) is not None)
    return tuple(word for word in words if _widens(word, shown))


def _entries(metadata: Mapping[str, Any], here: str) -> list[Mapping[str, Any]]:
    told = metadata.get(TYPE_CHANGES) or []
    is_right = isinstance(told, list) and all(
        isinstance(e, dict)
        and isinstance(e.get("fromType"), str)
        and isinstance(e.get("toType"), str)
        and isinstance(e.get("fieldPath", ""), str)
        for e in told
    )
    if not is_right:
        raise CorruptLake(f"cannot read the type changes ({TYPE_CHANGES}) of {here}")
    return list(told)


def _is_known(old: str, new: str) -> bool:
    source = leaf_of(old)
    # Lengths and collations of texts change no value.
    return _widens(old, new) or (source is not None and source == leaf_of(new))


def _widens(old: str, new: str) -> bool:
    source, target = leaf_of(old), leaf_of(new)
    return source is not None and target is not None and delta_widens(source, target)


def _narrowest_first(types: Iterable[str]) -> list[str]:
    left, ordered = sorted(types), []
    while left:
        first = next(one for one in left if not any(_widens(other, one) for other in left))
        ordered.append(first)
        left.remove(first)
    return ordered
