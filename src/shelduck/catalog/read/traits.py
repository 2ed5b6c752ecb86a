"""What to ask for what belongs to a table beside its columns: tags, keys, options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, Select, Table, and_, bindparam, or_, select

from shelduck.catalog.read.intervals import begin_of
from shelduck.catalog.read.queries import shown_or_broken
from shelduck.ducklake import tables
from shelduck.ducklake.column_types import BIGINT
from shelduck.model.tables.options import OPTION_NAMES

_TABLE: BindParameter[Any] = bindparam("table", type_=BIGINT)
_SCHEMA: BindParameter[Any] = bindparam("schema", type_=BIGINT)
_option = tables.metadata.c
OPTIONS = select(_option.key, _option.value, _option.scope, _option.scope_id).where(
    _option.key.in_(OPTION_NAMES),
    or_(
        _option.scope.is_(None),
        and_(_option.scope == "table", _option.scope_id == _TABLE),
        and_(_option.scope == "schema", _option.scope_id == _SCHEMA),
    ),
)
"""The options that apply to :table in :schema."""


def _shown(source: Table, owner: ColumnElement[bool], *names: str) -> Select[Any]:
    """Ask for columns of what :snapshot shows of an owner; fetching refuses broken rows."""
    seen = shown_or_broken(source, bindparam("snapshot", type_=BIGINT))
    return select(begin_of(source), *(source.c[name] for name in names)).where(owner, seen)


def _keys(info: Table, keys: Table, number: str) -> Select[Any]:
    found = _shown(info, info.c.table_id == _TABLE)
    named = [c for c in keys.c if c.name not in ("table_id", "dialect")]
    return found.add_columns(*named).join_from(info, keys, info.c[number] == keys.c[number])


_tag, _column_tag = tables.tag.c, tables.column_tag.c
_tags = and_(_tag.object_id == _TABLE, _tag.key.is_not(None))
_comments = and_(_column_tag.table_id == _TABLE, _column_tag.key == "comment")
TRAITS: Mapping[str, Select[Any]] = {
    "tags": _shown(tables.tag, _tags, "key", "value"),
    "comments": _shown(tables.column_tag, _comments, "column_id", "value"),
    "partition": _keys(tables.partition_info, tables.partition_column, "partition_id"),
    "sort": _keys(tables.sort_info, tables.sort_expression, "sort_id"),
    "table": _shown(tables.table, tables.table.c.table_id == _TABLE),
    "schema": _shown(tables.schema, tables.schema.c.schema_id == _SCHEMA),
    "options": OPTIONS,
}
"""Everything about :table at :snapshot; the rows of itself and of its :schema are counted."""
