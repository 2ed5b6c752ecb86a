"""What describes a table: its columns, comments, properties, partition keys and sort order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import sqlalchemy as sa

from shelduck.catalog.commit.draft import Draft
from shelduck.catalog.commit.kept_places import put_back
from shelduck.catalog.read.queries import live
from shelduck.catalog.read.together import OF_TABLES, Questions
from shelduck.ducklake import tables
from shelduck.ducklake.descriptions import (
    comment_rows,
    partition_rows,
    rows_of,
    sort_rows,
    tag_rows,
)
from shelduck.errors import Conflict
from shelduck.model.changes.change import AlterTable, CreateTable
from shelduck.model.tables.schema import Field, FieldChange, FieldId, Schema, TableId, flattened
from shelduck.model.tables.table_version import TableVersion

Comments = Mapping[FieldId | None, str]
"""By the ids of the columns; the table's own is under None."""
Properties = Mapping[str, str]
K = TypeVar("K")
T = TypeVar("T")

_tag = tables.column_tag
_TAGGED = sa.select(_tag.c.table_id).where(_tag.c.table_id.in_(OF_TABLES), live(_tag)).distinct()
ASK_TAGGED: Questions = (("tagged", _TAGGED),)


def begin_columns(draft: Draft, table: TableId, columns: Schema) -> None:
    """Write the columns of a new table; one statement."""
    draft.begin((tables.column, row) for row in rows_of(table, flattened(columns)))


def change_columns(draft: Draft, old: TableVersion, changed: Sequence[FieldChange]) -> None:
    """Write the columns that change.

    Raises Conflict if others changed them. Two statements, and one each if a column ends that has
    tags, or returns to the place of its id.
    """
    ended = [change.before.field.id for change in changed if change.before is not None]
    begun = [change.after for change in changed if change.after is not None]
    if draft.end(tables.column, table_id=[old.id], column_id=ended) != len(ended):
        raise Conflict(f"another commit changed the columns of table {old.full_name}")
    draft.begin((tables.column, row) for row in rows_of(old.id, begun))
    put_back(draft, old.id, changed, old.max_column_id)
    gone = [c.before.field.id for c in changed if c.before is not None and c.after is None]
    if gone and draft.opening.rows("tagged", old.id) != []:
        draft.end(tables.column_tag, table_id=[old.id], column_id=gone)


def reserve_columns(draft: Draft, table: TableId, fields: Sequence[Field]) -> None:
    """Take the ids of columns that nobody sees; at most one statement."""
    # Nobody sees a row that begins and ends at once, and its id is never assigned again.
    at_once = {"begin_snapshot": draft.id, "end_snapshot": draft.id}
    draft.insert(tables.column, [{**row, **at_once} for row in rows_of(table, flattened(fields))])


def begin_tags(draft: Draft, table: TableId, comments: Comments, properties: Properties) -> None:
    """Write the comments and properties of a new table; one statement for columns, one for it."""
    draft.begin(tag_rows(table, _own(comments, properties)))
    draft.begin(comment_rows(table, _of_columns(comments)))


def change_tags(
    draft: Draft,
    table: TableId,
    comments: Mapping[FieldId | None, str | None],
    properties: Mapping[str, str | None],
) -> None:
    """Write the comments and properties that change; two statements for columns, two for both.

    New ones end rows too: DuckDB's COMMENT ... IS NULL leaves a tag without a value.
    """
    own, of_columns = _own(comments, properties), _of_columns(comments)
    draft.end(tables.tag, object_id=[table], key=list(own))
    draft.begin(tag_rows(table, _texts(own)))
    draft.end(tables.column_tag, table_id=[table], key=["comment"], column_id=list(of_columns))
    draft.begin(comment_rows(table, _texts(of_columns)))


def _own(comments: Mapping[FieldId | None, T], properties: Mapping[str, T]) -> dict[str, T]:
    return {**properties, "comment": comments[None]} if None in comments else dict(properties)


def _of_columns(comments: Mapping[FieldId | None, T]) -> dict[FieldId, T]:
    return {number: text for number, text in comments.items() if number is not None}


def _texts(changed: Mapping[K, str | None]) -> dict[K, str]:
    return {key: text for key, text in changed.items() if text is not None}


def set_keys(draft: Draft, table: TableId, made: CreateTable | AlterTable) -> None:
    """Write new partition keys and a new sort order, if there are any; three statements each.

    If a table is no longer partitioned, it gets a partitioning without keys, as in the extension.
    """
    is_new = isinstance(made, CreateTable)
    if made.partition or (made.partition is not None and not is_new):
        if not is_new:
            draft.end(tables.partition_info, table_id=[table])
        number = draft.catalog_id()
        if made.partition_id is not None:
            draft.partition_ids[made.partition_id] = number
        draft.begin(partition_rows(table, number, made.partition))
        draft.note_version(table)
    if made.sort is not None and not is_new:
        draft.end(tables.sort_info, table_id=[table])
    if made.sort:
        draft.begin(sort_rows(table, draft.catalog_id(), made.sort))
