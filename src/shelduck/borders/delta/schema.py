"""Delta's schema text: its fields, and what each is called in files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from shelduck.borders.delta.log import Metadata
from shelduck.errors import CorruptLake, Unsupported
from shelduck.model.accepted import DELTA_WORDS
from shelduck.model.schema import Kind
from shelduck.model.types import Decimal, Leaf, Primitive

MAPPING_ID = "delta.columnMapping.id"
PHYSICAL_NAME = "delta.columnMapping.physicalName"
MODE = "delta.columnMapping.mode"
# Files with "int" exist beside the "integer" of the protocol.
_TYPE_NAMES = {word: name for name, word in DELTA_WORDS.items()} | {"int": "int32"}
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(-?\d+)\s*\)")
_TEXT = re.compile(r"(?:var)?char\(\d+\)|string collate \S+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class DeltaField:
    """One node of a Delta schema; a list has one child, a map two.

    ``mapping_id`` is None and ``physical`` the name where columns are not mapped.
    """

    name: str
    shape: Leaf | Kind
    physical: str
    children: tuple[DeltaField, ...] = ()
    nullable: bool = True
    mapping_id: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def walk(self) -> Iterator[DeltaField]:
        """Yield this field and all below it in pre-order."""
        yield self
        for child in self.children:
            yield from child.walk()


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
    """Return the columns that the metadata of a version tells.

    Raises Unsupported for a type that DuckLake has no place for, CorruptLake for what is no schema.
    """
    mode = metadata.configuration.get(MODE, "none")
    if mode not in ("none", "name", "id"):
        raise Unsupported(f"column mapping mode {mode!r} of the Delta table is not known")
    try:
        parts = json.loads(metadata.schema)["fields"]
        fields = tuple(_field(part, mode, ()) for part in parts)
    except (ValueError, KeyError, TypeError) as broken:
        raise CorruptLake(f"the schema in the Delta log cannot be read: {broken!r}") from broken
    return DeltaSchema(fields, mode, metadata.partition_columns)


def _field(part: Mapping[str, Any], mode: str, path: tuple[str, ...]) -> DeltaField:
    name, metadata = part["name"], part.get("metadata") or {}
    mapped = mode != "none" and MAPPING_ID in metadata
    shape, children = _type(part["type"], mode, (*path, name))
    return DeltaField(
        name,
        shape,
        metadata.get(PHYSICAL_NAME, name) if mode != "none" else name,
        children,
        bool(part.get("nullable", True)),
        int(metadata[MAPPING_ID]) if mapped else None,
        metadata,
    )


def _type(
    found: Any, mode: str, path: tuple[str, ...]
) -> tuple[Leaf | Kind, tuple[DeltaField, ...]]:
    if isinstance(found, str):
        return _leaf(found, path), ()
    kind = found["type"]
    if kind == "struct":
        return Kind.STRUCT, tuple(_field(part, mode, path) for part in found["fields"])
    if kind == "array":
        return Kind.LIST, (_part("element", found["elementType"], mode, path),)
    if kind == "map":
        key = _part("key", found["keyType"], mode, path)
        return Kind.MAP, (key, _part("value", found["valueType"], mode, path))
    raise Unsupported(_no_place(str(kind), path))


def _part(name: str, found: Any, mode: str, path: tuple[str, ...]) -> DeltaField:
    shape, children = _type(found, mode, (*path, name))
    return DeltaField(name, shape, name, children)


def _leaf(text: str, path: tuple[str, ...]) -> Leaf:
    known = _TYPE_NAMES.get(text)
    if known is not None:
        return Primitive(known)
    match = _DECIMAL.fullmatch(text)
    if match and 0 <= int(match[2]) <= int(match[1]) <= 38:
        return Decimal(int(match[1]), int(match[2]))
    if _TEXT.fullmatch(text):
        return Primitive("varchar")
    raise Unsupported(_no_place(text, path))


def _no_place(text: str, path: tuple[str, ...]) -> str:
    return (
        f"column {'.'.join(path)!r} of the Delta table is {text}, which is not imported; read the"
        " table with Spark and append its other columns, or drop the column there"
    )
