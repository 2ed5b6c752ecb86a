"""CREATE and DROP of schemas."""

from __future__ import annotations

from shelduck.catalog.commit.draft import Draft
from shelduck.catalog.commit.kinds.kind import Kind
from shelduck.catalog.commit.names import Names
from shelduck.catalog.commit.rows.ending import ending
from shelduck.catalog.commit.work import Work
from shelduck.ducklake import tables
from shelduck.model.changes.change import CreateSchema, DropSchema, Entry, Verb
from shelduck.model.tables.schema import SchemaId
from shelduck.model.text.names import directory

_END = ending(tables.schema, "schema_id")


def tell_names(work: Work, names: Names) -> None:
    """Report which schemas begin and end; a check by name ensures that ended ones are empty."""
    names.new_schemas += [change.schema for change in work.of(CreateSchema)]
    names.dropped_schemas += [change.schema for change in work.of(DropSchema)]


def write(draft: Draft, work: Work) -> None:
    """Write new schemas and end dropped ones; one statement each, however many there are."""
    _create(draft, work.of(CreateSchema))
    _drop(draft, work.of(DropSchema))


KIND = Kind((CreateSchema, DropSchema), Work.keep, write, names=tell_names)


def _create(draft: Draft, changes: list[CreateSchema]) -> None:
    rows = []
    for change in changes:
        number = draft.schema_ids[change.schema.id] = SchemaId(draft.catalog_id())
        parent = change.schema.parent
        rows.append(
            {
                "schema_id": number,
                "schema_uuid": change.uuid,
                "begin_snapshot": draft.id,
                "end_snapshot": None,
                "schema_name": change.schema.own_name,
                "path": directory(change.schema.name, change.uuid),
                "path_is_relative": True,
                "parent_schema_id": parent if parent is None else draft.schema_id(parent),
            }
        )
        draft.entries.append(Entry(Verb.CREATED_SCHEMA, names=(change.schema.name,)))
    if rows:
        draft.insert(tables.schema, rows)
        draft.has_schema_change = True


def _drop(draft: Draft, changes: list[DropSchema]) -> None:
    if changes:
        ids = [change.schema.id for change in changes]
        draft.connection.execute(_END, {"in_schema_id": ids, "ended": draft.id})
        draft.entries.extend(Entry(Verb.DROPPED_SCHEMA, i) for i in ids)
        draft.has_schema_change = True
