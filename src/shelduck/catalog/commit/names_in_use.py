"""Names in use: how a commit changes them, checked against the catalog inside its lock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

import sqlalchemy as sa

from shelduck.catalog.commit.opening import Work
from shelduck.catalog.read.queries import has_columns, live
from shelduck.ducklake import tables
from shelduck.ducklake.format import format_of, schemas_of
from shelduck.errors import AlreadyExists, Conflict, InvalidRequest
from shelduck.model.changes.change import CreateSchema, CreateView, DropSchema, DropView, RenameView
from shelduck.model.changes.definition import CreateMacro, DropMacro
from shelduck.model.tables.schema import SchemaId
from shelduck.model.tables.table_version import SchemaInfo
from shelduck.model.text.names import require_storable

_OBJECTS = {"table": tables.table, "view": tables.view, "macro": tables.macro}


def check_names(connection: sa.Connection, work: Work) -> None:
    """Raise AlreadyExists, Conflict or InvalidRequest unless the names fit the catalog.

    Two statements if there are new names, one more if a schema ends.
    """
    given = _given(work)
    new = [change.schema for change in work.of(CreateSchema)]
    dropped = [change.schema for change in work.of(DropSchema)]
    used = {*(c.macro.schema for c in work.of(CreateMacro)), *(schema for schema, _ in given)}
    for schema in new:
        require_storable("schema", schema.own_name)
    for _, name in given:
        require_storable("table or view", name)
    _require_unique(given)
    if used or new or dropped:
        _check_schemas(connection, used, new, dropped)
    if given:
        _check_given(connection, given, work)
    if dropped:
        _check_emptiness(connection, dropped, work)


def _given(work: Work) -> list[tuple[SchemaInfo, str]]:
    """Return the names that tables and views get, each with its schema."""
    renamed = [(t.old, t.new_name) for t in work.existing() if t.old and t.new_name is not None]
    made = [(t.created, t.new_name) for t in work.tables.values() if t.created is not None]
    return [
        *((table.schema, name or table.name) for table, name in made),
        *((table.schema, name) for table, name in renamed),
        *((change.schema, change.name) for change in work.of(CreateView)),
        *((change.view.schema, change.new_name) for change in work.of(RenameView)),
    ]


def _ended(work: Work) -> set[tuple[str, int]]:
    """Return what ends: 'table', 'view' or 'macro', and its id."""
    return {
        *(("table", table.id) for table in work.existing() if table.dropped),
        *(("view", change.view.id) for change in work.of(DropView)),
        *(("macro", change.macro.id) for change in work.of(DropMacro)),
    }


def _require_unique(given: Sequence[tuple[SchemaInfo, str]]) -> None:
    twice = Counter((schema.id, name.lower()) for schema, name in given)
    for (_, name), count in twice.items():
        if count > 1:
            raise AlreadyExists(
                f"one commit gives the name {name!r} to {count} tables or views", about="table"
            )


def _check_schemas(
    connection: sa.Connection,
    used: Collection[SchemaInfo],
    new: Sequence[SchemaInfo],
    dropped: Sequence[SchemaInfo],
) -> None:
    every = schemas_of(connection)
    rows = connection.execute(sa.select(every.c.schema_id, every.c.schema_name).where(live(every)))
    alive = {row.schema_id: row.schema_name for row in rows}
    created = {schema.id for schema in new}
    for schema in {*used, *dropped}:
        if schema.id not in alive and schema.id not in created:
            raise Conflict(f"schema {schema.text!r} was dropped by another commit")
    for schema in new:
        if schema.parent is not None and schema.parent not in alive.keys() | created:
            raise Conflict(f"the schema around {schema.text!r} was dropped by another commit")
    ending = {schema.id for schema in dropped}
    for schema in used:
        if schema.id in ending:
            raise InvalidRequest(
                f"one commit drops schema {schema.text!r} and fills it; do one of them"
            )
    taken = {name.lower() for number, name in alive.items() if number not in ending}
    for schema in new:
        if schema.name.lower() in taken:
            raise AlreadyExists(f"schema {schema.text!r} already exists", about="schema")
        taken.add(schema.name.lower())


def _check_given(
    connection: sa.Connection, names: Sequence[tuple[SchemaInfo, str]], work: Work
) -> None:
    schema_ids = {schema.id for schema, _ in names if schema.id >= 0}
    if not schema_ids:
        return
    wanted = [sa.func.lower(name) for _, name in names]
    parts = [
        _living(kind, schema_ids).where(sa.func.lower(_OBJECTS[kind].c[f"{kind}_name"]).in_(wanted))
        for kind in ("table", "view")
    ]
    taken = connection.execute(sa.union_all(*parts)).all()
    freed = {
        *_ended(work),
        *(("table", table.id) for table in work.existing() if table.new_name is not None),
        *(("view", change.view.id) for change in work.of(RenameView)),
    }
    given = {(schema.id, name.lower()): schema for schema, name in names}
    for kind, number, schema_id, name in taken:
        schema = given.get((SchemaId(schema_id), name.lower()))
        if schema is not None and (kind, number) not in freed:
            raise AlreadyExists(
                f"{kind} {name!r} already exists in schema {schema.text!r}", about=kind
            )


def _living(kind: str, schema_ids: Collection[int]) -> sa.Select[Any]:
    """Select the kind, the id, the schema and the name of what is in these schemas now."""
    source = _OBJECTS[kind]
    c = source.c
    query = sa.select(sa.literal(kind), c[f"{kind}_id"], c.schema_id, c[f"{kind}_name"])
    query = query.where(live(source), c.schema_id.in_(schema_ids))
    return query.where(has_columns()) if source is tables.table else query


def _check_emptiness(connection: sa.Connection, dropped: Sequence[SchemaInfo], work: Work) -> None:
    ids = [schema.id for schema in dropped]
    parts = [_living(kind, ids) for kind in _OBJECTS]
    if format_of(connection).nests:
        every = schemas_of(connection)
        s = every.c
        inside = sa.select(sa.literal("schema"), s.schema_id, s.parent_schema_id, s.schema_name)
        parts.append(inside.where(live(every), s.parent_schema_id.in_(ids)))
    ended = _ended(work) | {("schema", number) for number in ids}
    for kind, number, _, name in connection.execute(sa.union_all(*parts)):
        if (kind, number) not in ended:
            raise InvalidRequest(
                f"a schema cannot be dropped while {kind} {name!r} is in it; drop that first"
            )
