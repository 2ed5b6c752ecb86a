"""A folder with the schema of a lake: one file of SQL for each table and view, one for options."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from shelduck.errors import InvalidRequest, ShelduckError
from shelduck.model.tables.view import ViewVersion
from shelduck.model.text.quoting import backticked, quote_text
from shelduck.rollups.rollup_tables import rollups_of
from shelduck.statements.describe import create_statement, pinned_statement, view_statement
from shelduck.statements.run.show import shown_columns
from shelduck.statements.run.views import spark_text
from shelduck.statements.targets import query_of
from shelduck.verbs.catalog_verbs import CatalogVerbs
from shelduck.verbs.set_options import Option, options
from shelduck.work.pinned_views import pinned_shape
from shelduck.work.results import TableName
from shelduck.work.state import LakeState
from shelduck.work.unit import UnitOfWork, view_of

_OPTIONS = "options.sql"


def pull(state: LakeState, folder: Path) -> list[Path]:
    """Write one file for each table and view of a lake; return the files. Others stay.

    Options of the lake and of its schemas are in ``options.sql``, if there are any. A view that
    only DuckDB can read has no file.
    """
    unit = view_of(state, None)
    folder.mkdir(parents=True, exist_ok=True)
    found = options(state)
    texts: dict[str, str] = {}
    for name in CatalogVerbs(state, None).tables():
        table = unit.workspace.table(name)
        text = create_statement(table, list(rollups_of(unit, table)), with_ids=True)
        mine = [replace(o, owner=str(name)) for o in found if is_of(o, name)]
        texts[_file(name)] = ";\n".join([text, *map(option_text, mine)])
    for name, view in views_of(unit):
        texts[_file(name)] = view_text(unit, view)
    shared = [
        option_text(o) for o in found if o.scope == "lake" or (o.scope == "schema" and o.owner)
    ]
    if shared:
        texts[_OPTIONS] = ";\n".join(shared)
    for file, text in texts.items():
        (folder / file).write_text(f"{text};\n", encoding="utf-8")
    return [folder / file for file in texts]


def read_folder(folder: Path) -> dict[str, str]:
    """Return the text of each ``.sql`` file of a folder, by path; InvalidRequest without any."""
    found = {
        str(place): place.read_text(encoding="utf-8") for place in sorted(folder.glob("*.sql"))
    }
    if not found:
        raise InvalidRequest(f"{folder} has no .sql file; write them with shelduck schema pull")
    return found


def views_of(unit: UnitOfWork) -> Iterator[tuple[TableName, ViewVersion]]:
    """Yield the views of a lake that Shelduck can read, by schema and name."""
    for schema in unit.workspace.schemas():
        for name in unit.workspace.view_names(schema):
            view = unit.workspace.view(TableName(schema.name, name))
            if view is None:
                continue
            try:
                query_of(unit, view, None)
            except ShelduckError:
                continue
            yield TableName(schema.name, name), view


def view_text(unit: UnitOfWork, view: ViewVersion) -> str:
    """Return the CREATE VIEW statement of a view."""
    made = view.definition
    if made.pin is not None:
        return pinned_statement(view, pinned_shape(unit, made.pin)[1])
    query = query_of(unit, view, None)
    for relation in query.relations:
        # A table's own name is its alias without saying so.
        named = f"{relation.placeholder} AS {backticked(relation.name.table)}"
        query = replace(query, text=query.text.replace(named, relation.placeholder))
    columns = shown_columns(unit, view) if made.column_comments else None
    return view_statement(view, columns, spark_text(unit, query, view.schema.name))


def option_text(option: Option) -> str:
    """Return the statement that sets an option."""
    text = f"CALL set_option({quote_text(option.name)}, {quote_text(option.value)}"
    if option.scope != "lake" and option.owner is not None:
        parameter = "schema" if option.scope == "schema" else "table_name"
        text += f", {parameter} => {quote_text(option.owner)}"
    return f"{text})"


def is_of(option: Option, name: TableName) -> bool:
    """Return whether an option is set for this table."""
    return option.scope == "table" and option.owner == f"{name.schema}.{name.name}"


def _file(name: TableName) -> str:
    schema = "+".join(quote(part, safe="") for part in name.parts[:-1])
    return f"{schema}.{quote(name.name, safe='')}.sql"
