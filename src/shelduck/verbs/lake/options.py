"""Options of a lake, its schemas and its tables."""

from __future__ import annotations

from dataclasses import dataclass

from shelduck.catalog.upkeep.options import owner_names, read_settings, write_setting
from shelduck.model.tables.options import OptionSetting, OptionValue, Scope, option_text
from shelduck.model.text.names import split_name
from shelduck.work.results import Unchanged, table_name
from shelduck.work.state import LakeState
from shelduck.work.unit import UnitOfWork


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
    view = UnitOfWork(state, state.commit_info()).workspace
    scope = Scope.LAKE
    owner: int | None = None
    if table is not None:
        default = state.default_schema if schema is None else view.word_of(schema)
        named = table_name(split_name(table), default)
        scope, owner = Scope.TABLE, view.table(named).id
    elif schema is not None:
        scope, owner = Scope.SCHEMA, view.schema(view.word_of(schema)).id
    known, text = option_text(name, value, scope)
    with state.store.write() as connection:
        write_setting(connection, OptionSetting(known, text, scope, owner))
    return Unchanged(view.base.id)


def options(state: LakeState) -> list[Option]:
    """Return the options that are set, by name; all others have their default."""
    with state.store.read() as connection:
        found = read_settings(connection)
        names = owner_names(connection)
    return [
        Option(s.name, s.value, s.scope.name.lower(), names.get((s.scope, s.scope_id)))
        for s in found
    ]
