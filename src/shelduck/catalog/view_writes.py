"""The rows that each kind of change of views writes, and what must hold before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import BindParameter, Connection, bindparam, insert, select, update

from shelduck.catalog import tables
from shelduck.catalog.draft import Draft
from shelduck.catalog.queries import live
from shelduck.catalog.read_views import column_names_text
from shelduck.catalog.work import Work
from shelduck.errors import Conflict
from shelduck.model.change import CreateView, DropView, Entry, RenameView, Verb
from shelduck.model.conflict import describe
from shelduck.model.schema import SchemaId
from shelduck.model.view import SPARK_SQL

_INSERT = insert(tables.view)
_INSERT_TAGS = insert(tables.tag)
_IDS: BindParameter[Any] = bindparam("ids", expanding=True)
_LIVE = select(tables.view).where(tables.view.c.view_id.in_(_IDS), live(tables.view))
_END = (
    update(tables.view)
    .where(tables.view.c.view_id.in_(_IDS), live(tables.view))
    .values(end_snapshot=bindparam("ended"))
)
_END_TAGS = (
    update(tables.tag)
    .where(tables.tag.c.object_id.in_(_IDS), live(tables.tag))
    .values(end_snapshot=bindparam("ended"))
)


def live_views(connection: Connection, work: Work) -> dict[int, Mapping[Any, Any]]:
    """Return the rows of the views that the commit ends or renames; at most one statement.

    Raises Conflict when another commit dropped or renamed one.
    """
    changes: list[DropView | RenameView] = [*work.dropped_views, *work.renamed_views]
    touched = [change.view for change in changes]
    if not touched:
        return {}
    ids = [view.id for view in touched]
    found = connection.execute(_LIVE, {"ids": ids}).mappings()
    rows: dict[int, Mapping[Any, Any]] = {row["view_id"]: row for row in found}
    for change in changes:
        view = change.view
        row = rows.get(view.id)
        if row is None:
            raise Conflict(f"cannot {describe(change)}: another commit dropped or replaced it")
        if row["view_name"] != view.name:
            raise Conflict(
                f"cannot {describe(change)}: another commit renamed it to {row['view_name']!r}"
            )
    return rows


def write_views(
    draft: Draft,
    work: Work,
    rows: Mapping[int, Mapping[Any, Any]],
    schema_ids: Mapping[SchemaId, SchemaId],
) -> None:
    """Write what happens to views; ``rows`` are those of `live_views`. At most six statements."""
    _drop(draft, work.dropped_views)
    _rename(draft, work.renamed_views, rows)
    _create(draft, work.created_views, schema_ids)


def _drop(draft: Draft, changes: Sequence[DropView]) -> None:
    if not changes:
        return
    ids = [change.view.id for change in changes]
    for statement in (_END, _END_TAGS):
        draft.connection.execute(statement, {"ids": ids, "ended": draft.id})
    draft.entries.extend(Entry(Verb.DROPPED_VIEW, number) for number in ids)
    draft.has_schema_change = True


def _rename(
    draft: Draft, changes: Sequence[RenameView], rows: Mapping[int, Mapping[Any, Any]]
) -> None:
    if not changes:
        return
    ids = [change.view.id for change in changes]
    draft.connection.execute(_END, {"ids": ids, "ended": draft.id})
    begun = [
        {
            **rows[change.view.id],
            "begin_snapshot": draft.id,
            "end_snapshot": None,
            "view_name": change.new_name,
        }
        for change in changes
    ]
    draft.connection.execute(_INSERT, begun)
    # DuckLake logs a rename as the creation of the new name.
    draft.entries.extend(
        Entry(Verb.CREATED_VIEW, names=(c.view.schema.name, c.new_name)) for c in changes
    )
    draft.has_schema_change = True


def _create(
    draft: Draft, changes: Iterable[CreateView], schema_ids: Mapping[SchemaId, SchemaId]
) -> None:
    rows: list[dict[str, Any]] = []
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
                "schema_id": schema_ids.get(schema.id, schema.id),
                "view_name": change.name,
                "dialect": "duckdb",
                "sql": made.sql,
                "column_aliases": column_names_text(made.columns),
            }
        )
        kept = {SPARK_SQL: made.spark_sql, "comment": made.comment}
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
        draft.entries.append(Entry(Verb.CREATED_VIEW, names=(schema.name, change.name)))
    if rows:
        draft.connection.execute(_INSERT, rows)
        draft.has_schema_change = True
    if tags:
        draft.connection.execute(_INSERT_TAGS, tags)
