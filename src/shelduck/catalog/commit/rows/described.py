"""The comments and properties of tables and their columns, stored as DuckLake's tags."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlalchemy import insert, select

from shelduck.catalog.commit.asking import OF_TABLES, Questions
from shelduck.catalog.commit.draft import Draft
from shelduck.catalog.commit.rows.ending import ending
from shelduck.catalog.read.queries import live
from shelduck.ducklake import tables
from shelduck.model.tables.schema import FieldId, TableId

Comments = Mapping[FieldId | None, str]
"""By the ids of the columns; the table's own is under None."""

_tag = tables.column_tag
_TAGGED = select(_tag.c.table_id).where(_tag.c.table_id.in_(OF_TABLES), live(_tag)).distinct()
ASK_TAGGED: Questions = (("tagged", _TAGGED),)
_INSERT_TAGS = insert(tables.tag)
_INSERT_COLUMN_TAGS = insert(tables.column_tag)
_END_KEYS = ending(tables.tag, "object_id", "key")
_END_COLUMN_KEYS = ending(tables.column_tag, "table_id", "column_id", "key")
_END_COLUMNS = ending(tables.column_tag, "table_id", "column_id")


def change_comments(draft: Draft, table: TableId, old: Comments, new: Comments) -> None:
    """Write the comments that differ; two statements for columns, two for the table."""
    own = [{"comment": c[None]} if None in c else {} for c in (old, new)]
    change_tags(draft, table, *own)
    changed = [k for k in {*old, *new} if k is not None and old.get(k) != new.get(k)]
    if changed:
        # New ones too: DuckDB's COMMENT ... IS NULL leaves a tag without a value.
        ended = {"in_table_id": [table], "in_column_id": changed, "in_key": ["comment"]}
        draft.connection.execute(_END_COLUMN_KEYS, ended | {"ended": draft.id})
    begun = {"begin_snapshot": draft.id, "end_snapshot": None, "key": "comment"}
    rows = [
        begun | {"table_id": table, "column_id": k, "value": new[k]} for k in changed if k in new
    ]
    if rows:
        draft.connection.execute(_INSERT_COLUMN_TAGS, rows)


def change_tags(
    draft: Draft, table: TableId, old: Mapping[str, str], new: Mapping[str, str]
) -> None:
    """End the tags of a table that differ, and begin the new ones; one statement each."""
    changed = sorted(k for k in {*old, *new} if old.get(k) != new.get(k))
    if changed:
        draft.connection.execute(
            _END_KEYS, {"in_object_id": [table], "in_key": changed, "ended": draft.id}
        )
    begun = {"object_id": table, "begin_snapshot": draft.id, "end_snapshot": None}
    rows = [begun | {"key": k, "value": new[k]} for k in changed if k in new]
    if rows:
        draft.connection.execute(_INSERT_TAGS, rows)


def end_column_tags(draft: Draft, table: TableId, columns: Iterable[FieldId]) -> None:
    """End all tags of columns; no statement if no column of the table has one."""
    ids = list(columns)
    if ids and draft.opening.rows("tagged", table) != []:
        ended = {"in_table_id": [table], "in_column_id": ids, "ended": draft.id}
        draft.connection.execute(_END_COLUMNS, ended)
