"""What belongs to a table beside its columns: tags, partition and sort keys, options."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    CompoundSelect,
    Select,
    Table,
    and_,
    bindparam,
    case,
    cast,
    func,
    literal,
    null,
    or_,
    select,
    union_all,
)

from shelduck.catalog.read.intervals import BrokenInterval, is_broken
from shelduck.catalog.read.queries import shown_or_broken
from shelduck.ducklake import tables
from shelduck.ducklake.checked import RESTORE
from shelduck.ducklake.column_types import BIGINT, TEXT
from shelduck.errors import CorruptLake
from shelduck.model.tables.options import OPTION_NAMES, OptionSetting, Scope
from shelduck.model.tables.schema import FieldId
from shelduck.model.tables.table import PartitionColumn

_BROKEN = "broken "
_KEYS = {
    "partition": ("ducklake_partition_info", "ducklake_partition_column"),
    "sort": ("ducklake_sort_info", "ducklake_sort_expression"),
}


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


def traits_of(rows: Sequence[Any], snapshot: int, table: str) -> Traits:
    """Return what rows of `traits_at` say about a table; ``table`` is its name.

    Raises CorruptLake for rows that contradict each other.
    """
    broken = next((row.what for row in rows if row.what and row.what.startswith(_BROKEN)), None)
    if broken is not None:
        raise BrokenInterval(tables.DUCKLAKE.tables[broken.removeprefix(_BROKEN)])
    for what in ("ducklake_table", "ducklake_schema"):
        if sum(row.what == what for row in rows) > 1:
            raise CorruptLake(
                f"{what} has two rows of {table} for snapshot {snapshot}; end one of them"
            )
    tags = _tags(rows, table)
    partition = _in_order(rows, "partition", table)
    return Traits(
        {owner: text for (owner, key), text in tags.items() if key == "comment"},
        {key: text for (owner, key), text in tags.items() if owner is None and key != "comment"},
        partition[0].owner if partition else None,
        tuple(PartitionColumn(FieldId(p.column_id), p.text) for p in partition),
        tuple(s.text for s in _in_order(rows, "sort", table)),
        settings_of(rows),
    )


def _tags(rows: Iterable[Any], table: str) -> dict[tuple[FieldId | None, str], str]:
    found: dict[tuple[FieldId | None, str], str | None] = {}
    for row in rows:
        word, _, key = (row.what or "").partition(" ")
        if word not in ("tag", "column"):
            continue
        if (word == "column") != (type(row.column_id) is int):
            raise CorruptLake(
                f"ducklake_column_tag has a comment of {table} for column id {row.column_id!r};"
                f" {RESTORE}"
            )
        if found.setdefault((row.column_id, key), row.text) != row.text:
            kind = "ducklake_tag" if row.column_id is None else "ducklake_column_tag"
            raise CorruptLake(f"{kind} has two values of {key!r} for {table}; end one of the rows")
    return {of: text for of, text in found.items() if text is not None}


def _in_order(rows: Iterable[Any], what: str, table: str) -> list[Any]:
    """Return the keys of one kind in their order."""
    found = [row for row in rows if row.what == what]
    infos, keys = _KEYS[what]
    for row in found:
        if type(row.position) is not int or type(row.text) is not str:
            raise CorruptLake(f"{keys} has an invalid key of {table}: {tuple(row)[1:4]}; {RESTORE}")
    if len({row.owner for row in found}) > 1:
        raise CorruptLake(f"{infos} has two rows for {table} in one snapshot; end one of them")
    found.sort(key=lambda row: row.position)
    if [row.position for row in found] != list(range(len(found))):
        raise CorruptLake(
            f"{keys} has the keys {[row.position for row in found]} of {table}, expected"
            f" {list(range(len(found)))}; {RESTORE}"
        )
    return found


def settings_of(rows: Iterable[Any]) -> list[OptionSetting]:
    """Return the options among rows of `options_of`; CorruptLake for two values of one."""
    found: dict[tuple[str, str, Any], str] = {}
    for row in rows:
        what, _, scope = (row.what or "").partition(" ")
        if what != "option":
            continue
        name, _, value = row.text.partition("=")
        if found.setdefault((name, scope, row.owner), value) != value:
            raise CorruptLake(
                f"ducklake_metadata has two values of {name!r} for one scope; delete one"
            )
    return [setting_of(n, v, scope or None, o) for (n, scope, o), v in found.items()]


def setting_of(name: str, value: str, scope: str | None, scope_id: int | None) -> OptionSetting:
    """Return the option that a row of ``ducklake_metadata`` sets, or raise CorruptLake."""
    known = {one.value: one for one in Scope}
    if scope not in known or (scope is None) != (scope_id is None):
        raise CorruptLake(
            f"ducklake_metadata has {name!r} for scope {scope!r} with scope_id {scope_id!r};"
            f" {RESTORE}"
        )
    return OptionSetting(name, value, known[scope], scope_id)


@cache
def traits_at() -> CompoundSelect[Any]:
    """Ask for everything about :table at :snapshot in one query.

    Rows are (what, column_id, position, text, owner); a tag is ``tag key``, its text the value; an
    option of :table, of :schema or of all is ``option table``, ``option schema`` or ``option``, its
    text ``name=value``. The rows of the table and its schema themselves are counted, too.
    """
    table_id, schema_id = bindparam("table", type_=BIGINT), bindparam("schema", type_=BIGINT)
    tag, column_tag = tables.tag, tables.column_tag
    nothing = cast(null(), BIGINT)
    tags = select(
        _what(tag, literal("tag ") + tag.c.key).label("what"),
        nothing.label("column_id"),
        nothing.label("position"),
        tag.c.value.label("text"),
        nothing.label("owner"),
    ).where(tag.c.object_id == table_id, _seen(tag))
    column_comment = select(
        *(_what(column_tag, literal("column comment")), column_tag.c.column_id, nothing),
        *(column_tag.c.value, nothing),
    ).where(column_tag.c.table_id == table_id, column_tag.c.key == "comment", _seen(column_tag))
    partition, sorting = _keys(table_id)
    own = [
        select(
            _what(source, literal(source.name)), nothing, nothing, cast(null(), TEXT), nothing
        ).where(source.c[f"{name}_id"] == number, _seen(source))
        for name, source, number in (
            ("table", tables.table, table_id),
            ("schema", tables.schema, schema_id),
        )
    ]
    return union_all(tags, column_comment, partition, sorting, *own, options_of(table_id))


def _keys(table_id: BindParameter[int]) -> tuple[Select[Any], Select[Any]]:
    info, key = tables.partition_info, tables.partition_column
    sort, expression = tables.sort_info, tables.sort_expression
    nothing = cast(null(), BIGINT)
    partition = (
        select(
            *(_what(info, literal("partition")), key.c.column_id, key.c.partition_key_index),
            *(key.c.transform, key.c.partition_id),
        )
        .join_from(info, key, info.c.partition_id == key.c.partition_id)
        .where(info.c.table_id == table_id, _seen(info))
    )
    words = func.replace(expression.c.null_order, "_", " ")
    sorting = (
        select(
            *(_what(sort, literal("sort")), nothing, expression.c.sort_key_index),
            expression.c.expression + " " + expression.c.sort_direction + " " + words,
            sort.c.sort_id,
        )
        .join_from(sort, expression, sort.c.sort_id == expression.c.sort_id)
        .where(sort.c.table_id == table_id, _seen(sort))
    )
    return partition, sorting


def _seen(source: Table) -> ColumnElement[bool]:
    return shown_or_broken(source, bindparam("snapshot", type_=BIGINT))


def _what(source: Table, word: ColumnElement[str]) -> ColumnElement[str]:
    return case((is_broken(source), literal(_BROKEN + source.name)), else_=word)


def options_of(table_id: BindParameter[int]) -> Select[Any]:
    """Ask for the options that apply to a table in :schema, as `traits_at` does."""
    o, nothing = tables.metadata.c, cast(null(), BIGINT)
    of_this = or_(
        o.scope.is_(None),
        and_(o.scope == "table", o.scope_id == table_id),
        and_(o.scope == "schema", o.scope_id == bindparam("schema", type_=BIGINT)),
    )
    scope = func.coalesce(literal(" ") + o.scope, "")
    return select(
        (literal("option") + scope).label("what"),
        nothing.label("column_id"),
        nothing.label("position"),
        (o.key + "=" + o.value).label("text"),
        o.scope_id.label("owner"),
    ).where(o.key.in_(OPTION_NAMES), of_this)
