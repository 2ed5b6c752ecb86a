"""Options in the catalog: rows of ``ducklake_metadata``, outside of snapshots."""

from __future__ import annotations

import sqlalchemy as sa

from shelduck.catalog.commit.kept_places import name_to_set
from shelduck.catalog.read.overview.lake_tables import named_tables
from shelduck.catalog.read.queries import live
from shelduck.catalog.read.read import OPTIONS
from shelduck.ducklake import tables
from shelduck.ducklake.checked import TEXT
from shelduck.ducklake.descriptions import setting_of
from shelduck.ducklake.format import schemas_of
from shelduck.model.tables.options import (
    OPTION_NAMES,
    OptionSetting,
    Scope,
    TableOptions,
    table_options,
)
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import shown_schema

_c = tables.metadata.c
_SETTINGS = sa.select(_c.key, _c.value, _c.scope, _c.scope_id)
_INSERT = sa.insert(tables.metadata)
_UPDATE = sa.update(tables.metadata).values(value=sa.bindparam("new", type_=TEXT))


def read_settings(connection: sa.Connection) -> list[OptionSetting]:
    """Return every option that is set, in any scope; one statement."""
    known = _SETTINGS.where(_c.key.in_(OPTION_NAMES)).order_by(_c.key, _c.scope, _c.scope_id)
    rows = connection.execute(known)
    return [setting_of(row) for row in rows]


def read_table_options(connection: sa.Connection, table: TableVersion) -> TableOptions:
    """Return what applies to a table; one statement."""
    rows = connection.execute(OPTIONS, {"schema": table.schema.id, "table": table.id})
    settings = [setting_of(row) for row in rows]
    return table_options(settings, schema_id=table.schema.id, table_id=table.id)


def write_setting(connection: sa.Connection, setting: OptionSetting) -> None:
    """Set an option, as DuckDB does: at most three statements, and no snapshot."""
    name = name_to_set(connection, setting)
    same_scope = _c.scope.is_not_distinct_from(setting.scope.value)
    same_owner = _c.scope_id.is_not_distinct_from(setting.scope_id)
    known = _UPDATE.where(_c.key == name, same_scope, same_owner)
    if connection.execute(known, {"new": setting.value}).rowcount == 0:
        connection.execute(
            _INSERT,
            {
                "key": name,
                "value": setting.value,
                "scope": setting.scope.value,
                "scope_id": setting.scope_id,
            },
        )


def owner_names(connection: sa.Connection) -> dict[tuple[Scope, int | None], str]:
    """Return the names of live schemas and tables, by scope and id; two statements."""
    every = schemas_of(connection)
    named = sa.select(every.c.schema_id, every.c.schema_name).where(live(every))
    schemas = {(Scope.SCHEMA, n): shown_schema(word) for n, word in connection.execute(named)}
    in_schemas = {(Scope.TABLE, n): name for n, name in named_tables(connection, None).items()}
    return {**schemas, **in_schemas}
