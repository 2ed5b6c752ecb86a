"""A folder with the schema of a lake: one file of SQL for each table and view, one for options.

`pull` writes it. `plan_schema` has the plan by which a lake becomes what such files declare: the
steps of `schema_plan`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from shelduck.branches.branch_tables import branches_of
from shelduck.catalog.running import job_rows as catalog_jobs
from shelduck.catalog.running.job_rows import published_conversions
from shelduck.doors.schema_files.schema_diff import difference, light_and_heavy
from shelduck.doors.schema_files.schema_plan import Action, SchemaPlan, TablePlan
from shelduck.doors.schema_files.schema_text import TableFile, ViewFile, read_schema_file
from shelduck.doors.sql.call_arguments import bind
from shelduck.doors.sql.calls.exchange import set_option
from shelduck.errors import InvalidRequest, ShelduckError
from shelduck.lake.pinned_views import pinned_shape
from shelduck.lake.results import TableName, table_name
from shelduck.lake.state import LakeState
from shelduck.lake.unit import UnitOfWork, view_of
from shelduck.model.changes.job import Job, successors
from shelduck.model.changes.modify import TableChange
from shelduck.model.changes.schema_change import ChangeType, RenameColumn, SetNullable
from shelduck.model.tables.options import Scope
from shelduck.model.tables.options import option_text as stored_option
from shelduck.model.tables.schema import path_text
from shelduck.model.tables.table_version import DEFAULT_SCHEMA, TableVersion
from shelduck.model.tables.view import ViewVersion
from shelduck.model.text.names import backticked, quote_text, split_name
from shelduck.objects.catalog_verbs import CatalogVerbs
from shelduck.objects.set_options import Option, options
from shelduck.objects.statement.describe import create_statement, pinned_statement, view_statement
from shelduck.objects.statement.show import shown_columns
from shelduck.objects.statement.views import CreateViewStatement, PinView, spark_text
from shelduck.objects.targets import query_of
from shelduck.rollups.rollup_plan import spec_of
from shelduck.rollups.rollup_tables import rollups_of
from shelduck.text.ddl.render import has_text
from shelduck.text.tokens.parts import Call

_OPTIONS = "options.sql"


def pull(state: LakeState, folder: Path) -> list[Path]:
    """Write one file for each table and view of a lake; return the files. Others stay.

    Tables of branches and tags have none: they come from others.
    Options of the lake and of its schemas are in ``options.sql``, if there are any. A view that
    only DuckDB can read has no file.
    """
    unit = view_of(state, None)
    folder.mkdir(parents=True, exist_ok=True)
    found = options(state)
    texts: dict[str, str] = {}
    branches = _branches(unit)
    for name in CatalogVerbs(state, None).tables():
        if name.home in branches:
            continue
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


def _branches(unit: UnitOfWork) -> set[str]:
    return {schema.name for schema, _ in branches_of(unit)}


def _file(name: TableName) -> str:
    schema = "+".join(quote(part, safe="") for part in name.parts[:-1])
    return f"{schema}.{quote(name.name, safe='')}.sql"


_Key = tuple[str, str]


@dataclass(frozen=True)
class _Declared:
    """The declarations of all files together, by the names of tables and views without case."""

    tables: dict[_Key, tuple[TableName, TableFile]] = field(default_factory=dict)
    views: dict[_Key, tuple[TableName, ViewFile]] = field(default_factory=dict)
    options: list[tuple[str, Call]] = field(default_factory=list)


def plan_schema(state: LakeState, texts: Mapping[str, str]) -> SchemaPlan:
    """Return what leads from a lake to texts of SQL; each declares a table, a view, or options.

    ``texts`` are by what errors call them. Raises InvalidRequest for a text that declares none of
    these, and what `difference` raises.
    """
    unit = view_of(state, None)
    files = _declared(texts)
    there = {_key(name): name for name in CatalogVerbs(state, None).tables()}
    views, branches = {_key(n): (n, view) for n, view in views_of(unit)}, _branches(unit)
    done = [j for j in state.store.ask(catalog_jobs.jobs) if j.published is not None]
    plans = [
        TablePlan(name, Action.DROP_VIEW, f"DROP VIEW {name}", None, _gone(name), (str(name),))
        for key, (name, _) in views.items()
        if key not in files.views
    ]
    plans += [
        TablePlan(name, Action.DROP, f"DROP TABLE {name}", None, _gone(name), (str(name),))
        for key, name in there.items()
        if key not in files.tables and name.home not in branches
    ]
    for key, (name, file) in files.tables.items():
        if key not in there:
            plans.append(TablePlan(name, Action.CREATE, file.text.strip().rstrip(";")))
            continue
        plans += _altered(state, there[key], file, done)
    plans += _views(unit, {key: view for key, (_, view) in views.items()}, files.views)
    plans += _options(options(state), files.options)
    return SchemaPlan(unit.workspace.base.schema_version, tuple(plans), state)


def _declared(texts: Mapping[str, str]) -> _Declared:
    found = _Declared()
    for where, text in texts.items():
        file = read_schema_file(text, where)
        if isinstance(file, TableFile):
            name = table_name(file.table.name.parts, DEFAULT_SCHEMA)
            _require_new(found, name, where)
            found.tables[_key(name)] = name, file
        elif isinstance(file, ViewFile):
            name = table_name(file.view.name.parts, DEFAULT_SCHEMA)
            _require_new(found, name, where)
            found.views[_key(name)] = name, file
            continue
        found.options.extend((where, call) for call in file.options)
    return found


def _require_new(found: _Declared, name: TableName, where: str) -> None:
    for what, known in (("table", found.tables), ("view", found.views)):
        if _key(name) in known:
            raise InvalidRequest(f"{where}: another file declares {what} {name} too")


def _key(name: TableName) -> _Key:
    return name.home.lower(), name.name.lower()


def _gone(name: TableName) -> tuple[str, ...]:
    return (f"queries of {name} fail",)


def _altered(
    state: LakeState, name: TableName, file: TableFile, done: Sequence[Job]
) -> Iterator[TablePlan]:
    """Yield the light changes of a table, then those of a job, planned as if the light ones were.

    A table with rollups has one statement: what is light for it may rebuild a rollup.
    """
    unit = view_of(state, None)
    table = unit.workspace.table(name)
    rollups = list(rollups_of(unit, table))
    specs = [s for r in rollups if (s := spec_of(table, r)) is not None]
    found = difference(table, file, specs, has_text, _replaced(table, done))
    if not found.changes:
        return
    light, heavy = (found.changes, ()) if rollups else light_and_heavy(table, found.changes)
    lost = tuple(f"{name}.{column}" for column in found.lost)
    gone = [f"queries that name {n} fail" for n in found.lost] if light else []
    for part in filter(None, (light, heavy)):
        plan = CatalogVerbs(state, unit).table(str(name)).plan_alter(*part)
        text = f"ALTER TABLE {name} {', '.join(map(str, part))}"
        yield TablePlan(name, Action.ALTER, text, plan, (*gone, *_felt(part)), lost, part)
        gone, lost = [], ()
        if heavy and part is light and plan.change is not None:
            unit.workspace.alter_table(plan.change)


def _replaced(table: TableVersion, done: Sequence[Job]) -> dict[int, int]:
    """Return the columns that jobs converted, with their replacements: files may have older ids."""
    found = successors(published_conversions(done, table.id))
    return {int(old): int(last) for old, last in found.items()}


def _felt(changes: Sequence[TableChange]) -> Iterator[str]:
    for change in changes:
        match change:
            case RenameColumn(path=path):
                yield f"queries that name {path_text(path)} fail; the column keeps its values"
            case ChangeType(path=path, type=kind):
                yield f"{path_text(path)} is read as {kind}"
            case SetNullable(path=path, nullable=False):
                yield f"writes of NULL into {path_text(path)} fail"
            case _:
                continue


def _views(
    unit: UnitOfWork,
    there: Mapping[_Key, ViewVersion],
    files: Mapping[_Key, tuple[TableName, ViewFile]],
) -> Iterator[TablePlan]:
    """Yield the views to create and to replace; a view comes after those that it reads."""
    for key in _in_order(files):
        name, file = files[key]
        view = there.get(key)
        if view is None:
            yield TablePlan(name, Action.CREATE_VIEW, file.text)
        elif not _is_same(unit, view, file):
            text = file.text if file.view.or_replace else _replacing(file.text)
            felt = (f"queries of {name} see another query",)
            yield TablePlan(name, Action.REPLACE_VIEW, text, None, felt)


def _replacing(text: str) -> str:
    """Return CREATE VIEW as CREATE OR REPLACE VIEW."""
    rest = text.lstrip()[len("CREATE") :]
    return f"CREATE OR REPLACE{rest}"


def _is_same(unit: UnitOfWork, view: ViewVersion, file: ViewFile) -> bool:
    now, wanted, schema = view.definition, file.view, view.schema.name
    if isinstance(wanted, PinView) or now.pin is not None:
        return _is_same_pin(unit, view, wanted)
    return (
        _is_same_list(unit, view, wanted)
        and now.comment == wanted.comment
        and spark_text(unit, query_of(unit, view, None), schema)
        == spark_text(unit, wanted.query, schema)
    )


def _is_same_list(unit: UnitOfWork, view: ViewVersion, wanted: CreateViewStatement) -> bool:
    """Return whether the names and comments of columns are those that a file lists."""
    listed = [(c.name, c.comment) for c in wanted.columns]
    if not view.definition.column_comments:
        return listed == [(name, None) for name in view.definition.columns]
    return listed == [(name, text) for name, _, text in shown_columns(unit, view)]


def _is_same_pin(
    unit: UnitOfWork, view: ViewVersion, wanted: CreateViewStatement | PinView
) -> bool:
    pin = view.definition.pin
    if pin is None or not isinstance(wanted, PinView):
        return False
    parts = wanted.table.parts
    name = table_name(parts if unit.state.store.format.nests else parts[-2:], view.schema.name)
    found = unit.workspace.find_table(name)
    return (
        found is not None
        and found.id == pin.table_id
        and wanted.version == pin.snapshot
        and wanted.comment == view.definition.comment
    )


def _in_order(files: Mapping[_Key, tuple[TableName, ViewFile]]) -> list[_Key]:
    """Return the views of files, each after those that it reads."""
    ordered: list[_Key] = []

    def visit(key: _Key, above: tuple[_Key, ...]) -> None:
        if key in ordered or key in above:
            return
        name, file = files[key]
        read = file.view.query.relations if isinstance(file.view, CreateViewStatement) else ()
        for relation in read:
            parts = relation.name.parts
            # The first ones may be those of a catalog or of schemas around.
            for at in range(max(1, len(parts) - 1)):
                below = _key(table_name(parts[at:], name.home))
                if below in files:
                    visit(below, (*above, key))
        ordered.append(key)

    for key in files:
        visit(key, ())
    return ordered


def _options(found: list[Option], files: list[tuple[str, Call]]) -> Iterator[TablePlan]:
    """Yield the options whose value differs; those that no file sets stay."""
    for where, call in files:
        given = bind(set_option, call)
        table, schema = given.get("table_name"), given.get("schema")
        wanted = _option(given, table, schema, where)
        now = next((o.value for o in found if _is_set_for(o, wanted)), None)
        if now is None or now.lower() != wanted.value.lower():
            yield TablePlan(wanted.owner or "lake", Action.SET_OPTION, option_text(wanted))


def _option(given: Mapping[str, Any], table: Any, schema: Any, where: str) -> Option:
    scope = Scope.TABLE if table is not None else Scope.LAKE if schema is None else Scope.SCHEMA
    value = given["value"]
    try:
        name, text = stored_option(str(given["option"]), getattr(value, "text", value), scope)
    except InvalidRequest as error:
        raise InvalidRequest(f"{where}: {error}") from error
    owner = schema
    if table is not None:
        owner = str(table_name(split_name(str(table)), str(schema or DEFAULT_SCHEMA)))
    return Option(name, text, scope.name.lower(), owner)


def _is_set_for(option: Option, wanted: Option) -> bool:
    if option.name != wanted.name or option.scope != wanted.scope:
        return False
    if wanted.scope == "table" and wanted.owner is not None:
        return is_of(option, table_name(split_name(wanted.owner), DEFAULT_SCHEMA))
    return option.owner == wanted.owner
