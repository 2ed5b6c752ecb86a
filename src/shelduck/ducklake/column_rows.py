"""Columns of a table: the rows of ``ducklake_column`` that a schema is, and back."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from shelduck.errors import CorruptLake, InvalidRequest
from shelduck.model.tables.schema import (
    NO_DEFAULT,
    ColumnRow,
    Default,
    Field,
    FieldId,
    Kind,
    Schema,
)
from shelduck.model.types.data_types import Leaf, ducklake_type

_KINDS = {kind.value: kind for kind in Kind}
_CHILDREN = {Kind.LIST: 1, Kind.MAP: 2}


def schema_of(rows: Iterable[Any], table: str) -> Schema:
    """Return the columns that the rows of one snapshot describe, or raise CorruptLake."""
    below: dict[int | None, list[Any]] = defaultdict(list)
    ids: set[int] = set()
    for row in rows:
        if row.column_id in ids:
            raise CorruptLake(f"{table} has column id {row.column_id} twice in one snapshot")
        ids.add(row.column_id)
        below[row.parent_column].append(row)
    for parent, children in below.items():
        if parent is not None and parent not in ids:
            names = ", ".join(repr(r.column_name) for r in children)
            raise CorruptLake(f"{table} has {names} below column id {parent}, which does not exist")
        counts = Counter(row.column_name.lower() for row in children)
        twice = next((name for name, count in counts.items() if count > 1), None)
        if twice is not None:
            raise CorruptLake(f"{table} has two columns {twice!r} in one snapshot")
    found = Schema(_fields(below, None, table))
    if len(list(found.walk())) != len(ids):
        lost = sorted(ids - {f.id for f in found.walk()})
        raise CorruptLake(f"{table} has column id {lost[0]} below itself")
    return found


def _fields(
    below: Mapping[int | None, list[Any]], parent: int | None, table: str
) -> tuple[Field, ...]:
    rows = sorted(below.get(parent, ()), key=lambda r: (r.column_order or 0, r.column_id))
    return tuple(_field(row, _fields(below, row.column_id, table), table) for row in rows)


def _field(row: Any, children: tuple[Field, ...], table: str) -> Field:
    found = column_of(row, table).field
    shape = found.shape
    wanted = _CHILDREN.get(shape, len(children)) if isinstance(shape, Kind) else 0
    if len(children) != wanted or (isinstance(shape, Kind) and not children):
        raise CorruptLake(
            f"column {row.column_name!r} of {table} has type {row.column_type}, but"
            f" {len(children)} child columns"
        )
    return replace(found, children=children) if children else found


def column_of(row: Any, table: str) -> ColumnRow:
    """Return the column of one row, or raise CorruptLake; ``table`` is the name of its table."""
    found = Field(
        FieldId(row.column_id),
        row.column_name,
        _shape(row, table),
        # DuckLake writes false on nested rows, where it means nothing.
        nullable=row.nulls_allowed is not False or row.parent_column is not None,
        initial_default=row.initial_default,
        default=_default(row),
        order=row.column_id if row.column_order is None else row.column_order,
    )
    return ColumnRow(found, row.parent_column)


def _shape(row: Any, table: str) -> Leaf | Kind:
    kind = _KINDS.get(row.column_type.lower())
    if kind is not None:
        return kind
    try:
        return ducklake_type(row.column_type)
    except InvalidRequest as error:
        raise CorruptLake(f"column {row.column_name!r} of {table}: {error}") from error


def _default(row: Any) -> Default | None:
    if row.default_value is None or row.default_value == NO_DEFAULT:
        return None
    return Default(row.default_value, literal=row.default_value_type != "expression")


def rows_of(table_id: int, columns: Iterable[ColumnRow]) -> list[dict[str, Any]]:
    """Return the rows of columns."""
    return [
        {
            "table_id": table_id,
            "column_id": f.id,
            "column_order": f.order,
            "column_name": f.name,
            "column_type": str(f.shape),
            "initial_default": f.initial_default,
            "default_value": f.default.text if f.default else NO_DEFAULT,
            "nulls_allowed": f.nullable,
            "parent_column": parent,
            "default_value_type": _default_type(f),
            "default_value_dialect": "duckdb",
        }
        for f, parent in columns
    ]


def _default_type(f: Field) -> str:
    if not f.is_leaf:
        return ""
    return "expression" if f.default is not None and not f.default.literal else "literal"


def begin_under(begins: Iterable[Any], schema_version: int) -> int | None:
    """Return the snapshot that gave a table its columns under a schema version.

    ``begins`` are rows of schema versions of the table and the snapshots in which they began.
    """
    return max((b for v, b in begins if v <= schema_version), default=None)


def rows_at(versions: Iterable[Any], snapshot: int) -> list[Any]:
    """Return the versions of columns that a snapshot sees."""
    return [
        row
        for row in versions
        if row.begin_snapshot <= snapshot
        and (row.end_snapshot is None or row.end_snapshot > snapshot)
    ]
