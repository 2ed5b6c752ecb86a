"""What belongs to an object beside its columns: tags, partition and sort keys, options.

For each, the rows that it is, and what rows say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeVar

from sqlalchemy import Table

from shelduck.ducklake import tables
from shelduck.ducklake.checked import RESTORE
from shelduck.errors import CorruptLake
from shelduck.model.tables.options import OptionSetting, Scope
from shelduck.model.tables.partition import parse_sort_key
from shelduck.model.tables.schema import FieldId
from shelduck.model.tables.table_version import PartitionColumn

Row = Mapping[str, Any]
Rows = Iterator[tuple[Table, Row]]
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


def traits_of(found: Mapping[str, Sequence[Any]], snapshot: int, table: str) -> Traits:
    """Return what rows by the names of `shelduck.catalog.read.read.TRAITS` say about a table.

    ``table`` is its name. Raises CorruptLake for rows that contradict each other.
    """
    for what in ("table", "schema"):
        if len(found[what]) > 1:
            raise CorruptLake(
                f"ducklake_{what} has two rows of {table} for snapshot {snapshot}; end one of them"
            )
    tags = _distinct(((r.key, r.key, r.value) for r in found["tags"]), tables.tag, table)
    comments: dict[FieldId | None, str] = {
        **({None: tags.pop("comment")} if "comment" in tags else {}),
        **_distinct(
            ((FieldId(r.column_id), "comment", r.value) for r in found["comments"]),
            *(tables.column_tag, table),
        ),
    }
    partition = _in_order(found["partition"], "partition", "column", table)
    return Traits(
        comments,
        tags,
        partition[0].partition_id if partition else None,
        tuple(PartitionColumn(FieldId(r.column_id), r.transform) for r in partition),
        tuple(
            f"{r.expression} {r.sort_direction} {r.null_order.replace('_', ' ')}"
            for r in _in_order(found["sort"], "sort", "expression", table)
        ),
        settings_of(found["options"]),
    )


def _distinct(
    pairs: Iterable[tuple[_Key, str, str | None]], source: Table, table: str
) -> dict[_Key, str]:
    """Return the values of tags that have one, by what has them."""
    found: dict[_Key, str | None] = {}
    for owner, key, value in pairs:
        if found.setdefault(owner, value) != value:
            told = f"{source.name} has two values of {key!r} for {table}"
            raise CorruptLake(f"{told}; end one of the rows")
    return {owner: value for owner, value in found.items() if value is not None}


def _in_order(rows: Iterable[Any], what: str, keys: str, table: str) -> list[Any]:
    """Return the keys of a table's partitioning or sort order in their order."""
    place, number = attrgetter(f"{what}_key_index"), attrgetter(f"{what}_id")
    found = sorted(rows, key=place)
    if len(set(map(number, found))) > 1:
        told = f"ducklake_{what}_info has two rows for {table} in one snapshot"
        raise CorruptLake(f"{told}; end one of them")
    places = list(map(place, found))
    if places != list(range(len(found))):
        raise CorruptLake(
            f"ducklake_{what}_{keys} has the keys {places} of {table}, expected"
            f" {list(range(len(found)))}; {RESTORE}"
        )
    return found


def settings_of(rows: Iterable[Any]) -> list[OptionSetting]:
    """Return the options that rows set; CorruptLake for two values of one."""
    found: dict[tuple[str, str | None, int | None], str] = {}
    for row in rows:
        if found.setdefault((row.key, row.scope or None, row.scope_id), row.value) != row.value:
            raise CorruptLake(
                f"ducklake_metadata has two values of {row.key!r} for one scope; delete one"
            )
    return [setting_of(n, value, scope, owner) for (n, scope, owner), value in found.items()]


def setting_of(name: str, value: str, scope: str | None, scope_id: int | None) -> OptionSetting:
    """Return the option that a row of ``ducklake_metadata`` sets, or raise CorruptLake."""
    if scope not in _SCOPES or (scope is None) != (scope_id is None):
        raise CorruptLake(
            f"ducklake_metadata has {name!r} for scope {scope!r} with scope_id {scope_id!r};"
            f" {RESTORE}"
        )
    return OptionSetting(name, value, _SCOPES[scope], scope_id)
