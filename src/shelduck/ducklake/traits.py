"""What belongs to an object beside its columns: tags, partition and sort keys, options.

For each, the rows that it is, and what rows say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeVar

import sqlalchemy as sa

from shelduck.ducklake import tables
from shelduck.ducklake.checked import RESTORE, two_rows
from shelduck.ducklake.rules import COUNTED
from shelduck.errors import CorruptLake
from shelduck.model.tables.options import OptionSetting, Scope
from shelduck.model.tables.partition import parse_sort_key
from shelduck.model.tables.schema import FieldId
from shelduck.model.tables.table_version import PartitionColumn

Row = Mapping[str, Any]
Rows = Iterator[tuple[sa.Table, Row]]
"""The rows of an object, each with its table; of those with snapshots, without them."""
_Key = TypeVar("_Key")
_SCOPES: Mapping[str | None, Scope] = {one.value: one for one in Scope}


@dataclass(frozen=True, slots=True)
class Traits:
    """What belongs to a table at a snapshot; comments by field id, the table's own by None.

    RESET PARTITIONED BY leaves a spec without keys, to which new files do not refer.
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


def traits_of(found: Mapping[str, Sequence[Any]], snapshot: int, table: str) -> Traits:
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
    return Traits(
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
