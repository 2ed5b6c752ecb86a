"""Options of a lake, its schemas and its tables."""

from __future__ import annotations

from dataclasses import dataclass

from shelduck.catalog.commit.kept_places import write_setting
from shelduck.catalog.read.overview.lake_tables import owner_names
from shelduck.catalog.read.read import read_settings
from shelduck.lake.evolution.arrangement import skipped_ids
from shelduck.lake.results import Unchanged, table_name
from shelduck.lake.state import LakeState
from shelduck.lake.unit import UnitOfWork
from shelduck.model.tables.options import (
    SKIPPED,
    OptionSetting,
    OptionValue,
    Scope,
    option_text,
    table_options,
)
from shelduck.model.tables.schema import FieldId, TableId
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import quote_name, split_name


@dataclass(frozen=True, slots=True)
class Option:
    """An option that is set: its text, and the schema or ``schema.table`` that it is set for.

    ``owner`` is None for the whole lake, and for a schema or table that no longer exists.
    """

    name: str
    value: str
    scope: str
    owner: str | None


def set_option(
    state: LakeState,
    name: str,
    value: OptionValue,
    *,
    schema: str | None = None,
    table: str | None = None,
) -> Unchanged:
    """Set an option for a table, a schema or the whole lake; as in DuckDB, without a snapshot.

    Raises NotFound, with similar names, for an unknown option, schema or table, and InvalidRequest
    for a value that the option does not accept.
    """
    view = UnitOfWork(state).workspace
    scope = Scope.LAKE
    owner: int | None = None
    named: TableVersion | None = None
    if table is not None:
        default = state.current.schema if schema is None else view.word_of(schema)
        named = view.table(table_name(split_name(table), default))
        scope, owner = Scope.TABLE, named.id
    elif schema is not None:
        scope, owner = Scope.SCHEMA, view.schema(view.word_of(schema)).id
    known, text = option_text(name, value, scope)
    if known == SKIPPED:
        assert named is not None
        text = skipped_ids(named, text)
    with state.store.write() as connection:
        write_setting(connection, OptionSetting(known, text, scope, owner))
    return Unchanged(view.base.id)


def options(state: LakeState) -> list[Option]:
    """Return the options that are set, by name; all others have their default."""
    with state.store.read() as connection:
        found = read_settings(connection)
        names = owner_names(connection)
    return [
        Option(s.name, _shown(state, s), s.scope.name.lower(), names.get((s.scope, s.scope_id)))
        for s in found
    ]


def _shown(state: LakeState, setting: OptionSetting) -> str:
    """Return the value of an option as one sets it: columns by their names."""
    if setting.name != SKIPPED or setting.scope_id is None:
        return setting.value
    view = UnitOfWork(state).workspace
    table = view.table_of(TableId(setting.scope_id))
    if table is None:
        return setting.value
    ids = table_options([setting], table_id=table.id).skip_stats_columns
    found = [table.columns.by_id(FieldId(number)) for number in ids]
    return ", ".join(quote_name(column.name) for column in found if column is not None)
