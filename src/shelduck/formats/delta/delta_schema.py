"""Delta's schema text: its fields, their names in files, their defaults and lengths."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shelduck.engine.values import default_sql
from shelduck.errors import CorruptLake, ShelduckError, Unsupported
from shelduck.formats.delta.delta_types import leaf_of, require_known_changes
from shelduck.formats.delta.log import Metadata
from shelduck.model.changes.definition import with_default
from shelduck.model.tables.schema import Default, Field, Kind
from shelduck.model.types.data_types import Leaf, Primitive, Text, type_text
from shelduck.text.ddl.defaults import read_default

MAPPING_ID = "delta.columnMapping.id"
PHYSICAL_NAME = "delta.columnMapping.physicalName"
DEFAULT = "CURRENT_DEFAULT"
LENGTH = "__CHAR_VARCHAR_TYPE_STRING"
FEATURE, INVARIANTS = "allowColumnDefaults", "invariants"
"""The features that writers must know for a table with defaults, and for NOT NULL."""
_CHARS = re.compile(r"(?:var)?char\((\d+)\)", re.IGNORECASE)


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

    def walk(self) -> Iterator[DeltaField]:
        """Yield this field and all fields below it in pre-order."""
        yield self
        for child in self.children:
            yield from child.walk()

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

    def walk(self) -> Iterator[DeltaField]:
        """Yield every field in pre-order."""
        for top in self.fields:
            yield from top.walk()


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
