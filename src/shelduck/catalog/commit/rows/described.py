"""What describes a table: its columns, comments, properties, partition keys and sort order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import sqlalchemy as sa

from shelduck.catalog.commit.draft import Draft
from shelduck.catalog.commit.kept_places import put_back
from shelduck.catalog.commit.rows.versions import begin, change, end
from shelduck.catalog.read.queries import live
from shelduck.catalog.read.together import OF_TABLES, Questions
from shelduck.ducklake import tables
from shelduck.ducklake.column_rows import flattened, rows_of
from shelduck.ducklake.traits import comment_rows, partition_rows, sort_rows, tag_rows
from shelduck.errors import Conflict
from shelduck.model.changes.change import AlterTable, CreateTable
from shelduck.model.tables.schema import Field, FieldId, Schema, TableId
from shelduck.model.tables.table_version import TableVersion

Comments = Mapping[FieldId | None, str]
"""By the ids of the columns; the table's own is under None."""
Properties = Mapping[str, str]

_tag = tables.column_tag
_TAGGED = sa.select(_tag.c.table_id).where(_tag.c.table_id.in_(OF_TABLES), live(_tag)).distinct()
ASK_TAGGED: Questions = (("tagged", _TAGGED),)


def begin_columns(draft: Draft, table: TableId, columns: Schema) -> None:
    """Write the columns of a new table; one statement."""
    begin(draft, ((tables.column, row) for row in rows_of(table, flattened(columns))))


def change_columns(
    draft: Draft, old: TableVersion, was: Sequence[Field], now: Sequence[Field]
) -> bool:
    """Write the columns that differ among these, and return whether any does.

    Raises Conflict if others changed them. Two statements, and one each if a column ends that has
    tags, or returns to the place of its id.
    """
    before, after = ({c.field.id: c for c in flattened(fields)} for fields in (was, now))
    done = change(
        *(draft, tables.column, before, after),
        lambda found: ((tables.column, row) for row in rows_of(old.id, found.values())),
        by="column_id",
        table_id=[old.id],
    )
    if done.rows != len(done.ended):
        raise Conflict(f"another commit changed the columns of table {old.full_name}")
    put_back(draft, old.id, old.columns, [after[i].field for i in done.begun], old.max_column_id)
    gone = [i for i in done.ended if i not in after]
    if gone and draft.opening.rows("tagged", old.id) != []:
        end(draft, tables.column_tag, table_id=[old.id], column_id=gone)
    return bool(done.ended or done.begun)


def reserve_columns(draft: Draft, table: TableId, fields: Sequence[Field]) -> None:
    """Take the ids of columns that nobody sees; at most one statement."""
    # Nobody sees a row that begins and ends at once, and its id is never assigned again.
    at_once = {"begin_snapshot": draft.id, "end_snapshot": draft.id}
    draft.insert(tables.column, [{**row, **at_once} for row in rows_of(table, flattened(fields))])


def begin_tags(draft: Draft, table: TableId, comments: Comments, properties: Properties) -> None:
    """Write the comments and properties of a new table; one statement for columns, one for it."""
    begin(draft, tag_rows(table, _own(comments, properties)))
    begin(draft, comment_rows(table, _of_columns(comments)))


def change_tags(
    draft: Draft, old: TableVersion, comments: Comments, properties: Properties | None
) -> None:
    """Write the comments and properties that differ; two statements for columns, two for both.

    New ones end rows too: DuckDB's COMMENT ... IS NULL leaves a tag without a value.
    """
    kept = old.properties if properties is None else properties
    own, new = _own(old.comments, old.properties), _own(comments, kept)
    rows = partial(tag_rows, old.id)
    change(draft, tables.tag, dict.fromkeys(new) | own, new, rows, by="key", object_id=[old.id])
    was, now = _of_columns(old.comments), _of_columns(comments)
    change(
        *(draft, tables.column_tag, dict.fromkeys(now) | was, now),
        partial(comment_rows, old.id),
        by="column_id",
        table_id=[old.id],
        key=["comment"],
    )


def _own(comments: Comments, properties: Properties) -> dict[str, str]:
    return {**properties, "comment": comments[None]} if None in comments else dict(properties)


def _of_columns(comments: Comments) -> dict[FieldId, str]:
    return {number: text for number, text in comments.items() if number is not None}


def set_keys(draft: Draft, table: TableId, made: CreateTable | AlterTable) -> None:
    """Write new partition keys and a new sort order, if there are any; three statements each.

    If a table is no longer partitioned, it gets a partitioning without keys, as in the extension.
    """
    is_new = isinstance(made, CreateTable)
    if made.partition or (made.partition is not None and not is_new):
        if not is_new:
            end(draft, tables.partition_info, table_id=[table])
        number = draft.catalog_id()
        if made.partition_id is not None:
            draft.partition_ids[made.partition_id] = number
        begin(draft, partition_rows(table, number, made.partition))
        draft.note_version(table)
    if made.sort is not None and not is_new:
        end(draft, tables.sort_info, table_id=[table])
    if made.sort:
        begin(draft, sort_rows(table, draft.catalog_id(), made.sort))
