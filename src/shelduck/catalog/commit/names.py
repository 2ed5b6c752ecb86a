"""Names in use: how a commit changes them, checked against the catalog inside its lock."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from sqlalchemy import Connection, func, literal, select, true, union_all

from shelduck.catalog.read.queries import has_columns, live
from shelduck.ducklake import tables
from shelduck.ducklake.format import format_of, schemas_of
from shelduck.errors import AlreadyExists, Conflict, InvalidRequest
from shelduck.model.tables.schema import SchemaId
from shelduck.model.tables.table import SchemaInfo
from shelduck.model.text.names import require_storable

Named = tuple[str, int]
"""What has a name: 'table' or 'view', and its id."""


@dataclass
class Names:
    """The changes of a commit to the names of schemas, and to the names of tables and views."""

    given: list[tuple[SchemaInfo, str]] = field(default_factory=list)
    used_schemas: list[SchemaInfo] = field(default_factory=list)
    """Schemas that get something whose name is not a table's."""
    renamed: set[Named] = field(default_factory=set)
    dropped: set[Named] = field(default_factory=set)
    new_schemas: list[SchemaInfo] = field(default_factory=list)
    dropped_schemas: list[SchemaInfo] = field(default_factory=list)


def check_names(connection: Connection, names: Names) -> None:
    """Raise AlreadyExists, Conflict or InvalidRequest unless the names fit the catalog.

    Two statements if there are new names, one more if a schema ends.
    """
    _require_storable(names)
    _require_unique(names)
    if names.given or names.used_schemas or names.new_schemas or names.dropped_schemas:
        _check_schemas(connection, names)
    if names.given:
        _check_given(connection, names)
    if names.dropped_schemas:
        _check_emptiness(connection, names)


def _require_storable(names: Names) -> None:
    for schema in names.new_schemas:
        require_storable("schema", schema.own_name)
    for _, name in names.given:
        require_storable("table or view", name)


def _require_unique(names: Names) -> None:
    twice = Counter((schema.id, name.lower()) for schema, name in names.given)
    for (_, name), count in twice.items():
        if count > 1:
            raise AlreadyExists(
                f"one commit gives the name {name!r} to {count} tables or views", about="table"
            )


def _check_schemas(connection: Connection, names: Names) -> None:
    every = schemas_of(connection)
    rows = connection.execute(select(every.c.schema_id, every.c.schema_name).where(live(every)))
    alive = {row.schema_id: row.schema_name for row in rows}
    used = {*names.used_schemas, *(schema for schema, _ in names.given)}
    created = {schema.id for schema in names.new_schemas}
    for schema in used.union(names.dropped_schemas):
        if schema.id not in alive and schema.id not in created:
            raise Conflict(f"schema {schema.text!r} was dropped by another commit")
    for schema in names.new_schemas:
        if schema.parent is not None and schema.parent not in alive.keys() | created:
            raise Conflict(f"the schema around {schema.text!r} was dropped by another commit")
    ending = {schema.id for schema in names.dropped_schemas}
    for schema in used:
        if schema.id in ending:
            raise InvalidRequest(
                f"one commit drops schema {schema.text!r} and fills it; do one of them"
            )
    taken = {name.lower() for number, name in alive.items() if number not in ending}
    for schema in names.new_schemas:
        if schema.name.lower() in taken:
            raise AlreadyExists(f"schema {schema.text!r} already exists", about="schema")
        taken.add(schema.name.lower())


def _check_given(connection: Connection, names: Names) -> None:
    schema_ids = {schema.id for schema, _ in names.given if schema.id >= 0}
    if not schema_ids:
        return
    wanted = [func.lower(name) for _, name in names.given]
    t, v = tables.table.c, tables.view.c
    taken = connection.execute(
        union_all(
            select(literal("table"), t.table_id, t.schema_id, t.table_name).where(
                live(tables.table),
                has_columns(),
                t.schema_id.in_(schema_ids),
                func.lower(t.table_name).in_(wanted),
            ),
            select(literal("view"), v.view_id, v.schema_id, v.view_name).where(
                live(tables.view), v.schema_id.in_(schema_ids), func.lower(v.view_name).in_(wanted)
            ),
        )
    ).all()
    given = {(schema.id, name.lower()): schema for schema, name in names.given}
    for kind, number, schema_id, name in taken:
        schema = given.get((SchemaId(schema_id), name.lower()))
        if schema is not None and (kind, number) not in names.dropped | names.renamed:
            raise AlreadyExists(
                f"{kind} {name!r} already exists in schema {schema.text!r}", about=kind
            )


def _check_emptiness(connection: Connection, names: Names) -> None:
    ids = [schema.id for schema in names.dropped_schemas]
    parts = [
        select(
            literal(kind), source.c[f"{kind}_id"], source.c.schema_id, source.c[f"{kind}_name"]
        ).where(live(source), source.c.schema_id.in_(ids), is_there)
        for kind, source, is_there in (
            ("table", tables.table, has_columns()),
            ("view", tables.view, true()),
            ("macro", tables.macro, true()),
        )
    ]
    if format_of(connection).nests:
        every = schemas_of(connection)
        s = every.c
        inside = select(literal("schema"), s.schema_id, s.parent_schema_id, s.schema_name)
        parts.append(inside.where(live(every), s.parent_schema_id.in_(ids)))
    ended = names.dropped.union(("schema", number) for number in ids)
    for kind, number, _, name in connection.execute(union_all(*parts)):
        if (kind, number) not in ended:
            raise InvalidRequest(
                f"a schema cannot be dropped while {kind} {name!r} is in it; drop that first"
            )
