"""A table's columns as an Iceberg schema: the same ids, at every level."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from shelduck.borders.iceberg.iceberg_types import LAST_VERSION, Json, ShownType, default_json
from shelduck.borders.report import Loss, column_of, shown_parts
from shelduck.model.tables.schema import Field, FieldId, Kind, Path

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
    shown: ShownColumns, schema_id: int, version: int, comments: Mapping[FieldId | None, str]
) -> JsonObject:
    """Return the schema in the form of table metadata.

    Everything is optional except the keys of maps: NOT NULL concerns only writers. Defaults exist
    from version 3 on.
    """
    work = _Schema(shown, version, comments)
    return {
        "type": "struct",
        "schema-id": schema_id,
        "fields": [work.member(f) for f in shown.fields],
    }


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
            made |= self._defaults(field)
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

    def _defaults(self, field: Field) -> JsonObject:
        made: JsonObject = {}
        initial = initial_default(field, self.shown.types)
        if initial is not None:
            made["initial-default"] = initial
        default = write_default(field, self.shown.types, self.version)
        if default is not None:
            made["write-default"] = default
        return made
