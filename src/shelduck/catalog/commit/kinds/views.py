"""CREATE, DROP and RENAME of views."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Table, bindparam, func, insert, select, update

from shelduck.catalog.commit.draft import Draft
from shelduck.catalog.commit.kinds.kind import Kind
from shelduck.catalog.commit.names import Names
from shelduck.catalog.commit.rows.ending import ending
from shelduck.catalog.commit.work import Work
from shelduck.catalog.read.queries import live
from shelduck.catalog.read.views import column_names_text
from shelduck.ducklake import tables
from shelduck.errors import Conflict, Unsupported
from shelduck.model.changes.change import (
    CreateView,
    DropView,
    Entry,
    RenameView,
    Verb,
)
from shelduck.model.changes.conflict import describe
from shelduck.model.changes.macro_change import CommentViewColumns
from shelduck.model.tables.view import PINNED, SPARK_SQL, STORED_PIN

_INSERT = insert(tables.view)
_INSERT_TAGS = insert(tables.tag)
_LIVE = select(tables.view).where(
    tables.view.c.view_id.in_(bindparam("ids", expanding=True)), live(tables.view)
)
_END = ending(tables.view, "view_id")
_END_TAGS = ending(tables.tag, "object_id")


def tell_names(work: Work, names: Names) -> None:
    """Report which names views get, and which ones dropped and renamed views free."""
    names.given += [(change.schema, change.name) for change in work.of(CreateView)]
    names.given += [(change.view.schema, change.new_name) for change in work.of(RenameView)]
    names.renamed.update(("view", change.view.id) for change in work.of(RenameView))
    names.dropped.update(("view", change.view.id) for change in work.of(DropView))


def check(draft: Draft, work: Work) -> None:
    """Raise Conflict if another commit dropped or renamed a view; at most one statement."""
    changes: list[DropView | RenameView | CommentViewColumns] = [
        *work.of(DropView),
        *work.of(RenameView),
        *work.of(CommentViewColumns),
    ]
    if not changes:
        return
    ids = [change.view.id for change in changes]
    rows = draft.connection.execute(_LIVE, {"ids": ids}).mappings()
    draft.found.update((row["view_id"], dict(row)) for row in rows)
    for change in changes:
        view = change.view
        row = draft.found.get(view.id)
        if row is None:
            raise Conflict(f"cannot {describe(change)}: another commit dropped or replaced it")
        if row["view_name"] != view.name:
            raise Conflict(
                f"cannot {describe(change)}: another commit renamed it to {row['view_name']!r}"
            )


def write(draft: Draft, work: Work) -> None:
    """Write dropped, renamed and new views; six statements, and three for comments on columns."""
    _drop(draft, work.of(DropView))
    _rename(draft, work.of(RenameView))
    _create(draft, work.of(CreateView))
    for change in work.of(CommentViewColumns):
        _comment(draft, change)


KIND = Kind(
    (CreateView, DropView, RenameView, CommentViewColumns),
    Work.keep,
    write,
    names=tell_names,
    check=check,
)


def _drop(draft: Draft, changes: Sequence[DropView]) -> None:
    if not changes:
        return
    ids = [change.view.id for change in changes]
    draft.connection.execute(_END, {"in_view_id": ids, "ended": draft.id})
    draft.connection.execute(_END_TAGS, {"in_object_id": ids, "ended": draft.id})
    of_columns = draft.format.view_column_tag
    if of_columns is not None:
        draft.connection.execute(
            ending(of_columns, "view_id"), {"in_view_id": ids, "ended": draft.id}
        )
    draft.entries.extend(Entry(Verb.DROPPED_VIEW, number) for number in ids)
    draft.has_schema_change = True


def _rename(draft: Draft, changes: Sequence[RenameView]) -> None:
    if not changes:
        return
    ids = [change.view.id for change in changes]
    draft.connection.execute(_END, {"in_view_id": ids, "ended": draft.id})
    begun = {"begin_snapshot": draft.id, "end_snapshot": None}
    rows = [{**draft.found[c.view.id], **begun, "view_name": c.new_name} for c in changes]
    draft.connection.execute(_INSERT, rows)
    # DuckLake logs a rename as the creation of the new name.
    draft.entries.extend(
        Entry(Verb.CREATED_VIEW, names=(c.view.schema.name, c.new_name)) for c in changes
    )
    draft.has_schema_change = True


def _comment(draft: Draft, change: CommentViewColumns) -> None:
    """Write comments on columns of one view; one without a text is a row too, as in DuckDB."""
    number, table = change.view.id, _tags_of_columns(draft)
    c = table.c
    named = func.lower(c.column_name).in_([func.lower(name) for name, _ in change.comments])
    mine = (c.view_id == number, c.key == "comment", named, live(table))
    draft.connection.execute(update(table).where(*mine).values(end_snapshot=draft.id))
    draft.insert(table, _column_tags(draft, number, change.comments))
    draft.entries.append(Entry(Verb.ALTERED_VIEW, number))
    draft.has_schema_change = True


def _tags_of_columns(draft: Draft) -> Table:
    table = draft.format.view_column_tag
    if table is None:
        raise Unsupported(draft.format.lacking("comments on columns of views"))
    return table


def _column_tags(
    draft: Draft, view: int, comments: Iterable[tuple[str, str | None]]
) -> list[dict[str, Any]]:
    begun = {"view_id": view, "begin_snapshot": draft.id, "end_snapshot": None, "key": "comment"}
    return [begun | {"column_name": name, "value": text} for name, text in comments]


def _create(draft: Draft, changes: Sequence[CreateView]) -> None:
    rows: list[dict[str, Any]] = []
    column_tags: list[dict[str, Any]] = []
    tags: list[dict[str, Any]] = []
    for change in changes:
        number, made = draft.catalog_id(), change.definition
        schema = change.schema
        rows.append(
            {
                "view_id": number,
                "view_uuid": change.uuid,
                "begin_snapshot": draft.id,
                "end_snapshot": None,
                "schema_id": draft.schema_id(schema.id),
                "view_name": change.name,
                "dialect": "duckdb",
                "sql": made.sql,
                "column_aliases": column_names_text(made.columns),
            }
        )
        pin = None if made.pin is None else STORED_PIN.write(made.pin)
        kept = {SPARK_SQL: made.spark_sql, "comment": made.comment, PINNED: pin}
        tags += [
            {
                "object_id": number,
                "begin_snapshot": draft.id,
                "end_snapshot": None,
                "key": key,
                "value": value,
            }
            for key, value in kept.items()
            if value is not None
        ]
        column_tags += _column_tags(draft, number, made.column_comments)
        draft.entries.append(Entry(Verb.CREATED_VIEW, names=(schema.name, change.name)))
    if rows:
        draft.connection.execute(_INSERT, rows)
        draft.has_schema_change = True
    if tags:
        draft.connection.execute(_INSERT_TAGS, tags)
    if column_tags:
        draft.insert(_tags_of_columns(draft), column_tags)
