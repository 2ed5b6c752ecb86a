"""What describes a table, as rows of the catalog, and back: columns, tags, keys, options."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, TypeVar

import sqlalchemy as sa

from shelduck.ducklake import tables
from shelduck.ducklake.checked import RESTORE, two_rows
from shelduck.ducklake.rules import COUNTED
from shelduck.errors import CorruptLake, InvalidRequest
from shelduck.model.tables.options import OptionSetting, Scope
from shelduck.model.tables.partition import parse_sort_key
from shelduck.model.tables.schema import (
    NO_DEFAULT,
    ColumnRow,
    Default,
    Field,
    FieldId,
    Kind,
    Schema,
)
from shelduck.model.tables.table_version import PartitionColumn
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


Row = Mapping[str, Any]
Rows = Iterator[tuple[sa.Table, Row]]
"""The rows of an object, each with its table; of those with snapshots, without them."""
_Key = TypeVar("_Key")
_SCOPES: Mapping[str | None, Scope] = {one.value: one for one in Scope}


@dataclass(frozen=True, slots=True)
class Described:
    """What a snapshot says of a table beside its columns.

    Comments are by field id, the table's own by None. RESET PARTITIONED BY leaves a spec without
    keys, to which new files do not refer.
    """

    comments: dict[FieldId | None, str]
    properties: dict[str, str]
    partition_id: int | None
    partition: tuple[PartitionColumn, ...]
    sort: tuple[str, ...]
    options: Sequence[OptionSetting]


def tag_rows(owner: int, tags: Mapping[str, str]) -> Rows:
    """Return the rows of the tags of a table, a view or a macro."""
    for key, value in tags.items():
        yield tables.tag, {"object_id": owner, "key": key, "value": value}


def comment_rows(table: int, comments: Mapping[FieldId, str]) -> Rows:
    """Return the rows of the comments on columns of a table."""
    for number, text in comments.items():
        row = {"table_id": table, "column_id": number, "key": "comment", "value": text}
        yield tables.column_tag, row


def partition_rows(table: int, number: int, keys: Iterable[PartitionColumn]) -> Rows:
    """Return the rows of a partitioning with this id."""
    mine = {"partition_id": number, "table_id": table}
    yield tables.partition_info, mine
    for at, key in enumerate(keys):
        told = {"column_id": key.column_id, "transform": key.transform}
        yield tables.partition_column, {**mine, "partition_key_index": at, **told}


def sort_rows(table: int, number: int, keys: Iterable[str]) -> Rows:
    """Return the rows of a sort order with this id."""
    mine = {"sort_id": number, "table_id": table}
    yield tables.sort_info, mine
    for at, key in enumerate(map(parse_sort_key, keys)):
        told = {"sort_direction": key.direction, "null_order": key.null_order}
        told |= {"expression": key.expression, "dialect": "duckdb"}
        yield tables.sort_expression, {**mine, "sort_key_index": at, **told}


def sort_key_of(row: Any) -> str:
    """Return a key of a sort order as `parse_sort_key` reads it."""
    return f"{row.expression} {row.sort_direction} {row.null_order.replace('_', ' ')}"


def description_of(found: Mapping[str, Sequence[Any]], snapshot: int, table: str) -> Described:
    """Return what rows by the names of `shelduck.catalog.read.read.TRAITS` say about a table.

    ``table`` is its name. Raises CorruptLake for rows that contradict each other.
    """
    for what, source in (("table", tables.table), ("schema", tables.schema)):
        if len(found[what]) > 1:
            raise two_rows(source, table, snapshot)
    tags = _distinct(((r.key, r.value) for r in found["tags"]), tables.tag, table, snapshot)
    of_columns = ((FieldId(r.column_id), r.value) for r in found["comments"])
    comments: dict[FieldId | None, str] = {
        **({None: tags.pop("comment")} if "comment" in tags else {}),
        **_distinct(of_columns, tables.column_tag, table, snapshot),
    }
    partition = _in_order(found["partition"], tables.partition_info, table, snapshot)
    return Described(
        comments,
        tags,
        partition[0].partition_id if partition else None,
        tuple(PartitionColumn(FieldId(r.column_id), r.transform) for r in partition),
        tuple(map(sort_key_of, _in_order(found["sort"], tables.sort_info, table, snapshot))),
        settings_of(found["options"]),
    )


def _distinct(
    pairs: Iterable[tuple[_Key, str | None]], source: sa.Table, table: str, snapshot: int
) -> dict[_Key, str]:
    """Return the values of tags that have one, by their keys or what has them."""
    found: dict[_Key, str | None] = {}
    for key, value in pairs:
        if found.setdefault(key, value) != value:
            told = f"{key!r}" if isinstance(key, str) else f"the comment on column id {key}"
            raise two_rows(source, f"{told} of {table}", snapshot)
    return {key: value for key, value in found.items() if value is not None}


def _in_order(rows: Iterable[Any], info: sa.Table, table: str, snapshot: int) -> list[Any]:
    """Return the keys of a table's partitioning or sort order in their order."""
    keys, number, at = next(rule for rule in COUNTED if rule[1] in info.c)
    place = attrgetter(at)
    found = sorted(rows, key=place)
    if len(set(map(attrgetter(number), found))) > 1:
        raise two_rows(info, table, snapshot)
    places, wanted = list(map(place, found)), list(range(len(found)))
    if places != wanted:
        raise CorruptLake(
            f"ducklake_{keys} has the keys {places} of {table}, expected {wanted}; {RESTORE}"
        )
    return found


def settings_of(rows: Iterable[Any]) -> list[OptionSetting]:
    """Return the options that rows set; CorruptLake for two values of one."""
    found: dict[tuple[Any, ...], OptionSetting] = {}
    for made in (setting_of(row) for row in rows):
        if found.setdefault((made.name, made.scope, made.scope_id), made) != made:
            raise CorruptLake(
                f"ducklake_metadata has two values of {made.name!r} for one scope; delete one"
            )
    return list(found.values())


def setting_of(row: Any) -> OptionSetting:
    """Return the option that a row of ``ducklake_metadata`` sets, or raise CorruptLake."""
    scope = row.scope or None
    if (scope is None) != (row.scope_id is None):
        raise CorruptLake(
            f"ducklake_metadata has {row.key!r} for scope {row.scope!r} with scope_id"
            f" {row.scope_id!r}; {RESTORE}"
        )
    return OptionSetting(row.key, row.value, _SCOPES[scope], row.scope_id)
