"""One table or view: its definition, its layouts, what an ALTER would do, and some of its rows.

Nothing runs of an ALTER. DuckDB reads the rows; only if the server was started for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from shelduck.alter.statement import AlterTableStatement
from shelduck.catalog.databases.duckdb_view import DuckDBMissing, duckdb_rows
from shelduck.catalog.read import read
from shelduck.catalog.read.overview.lake_tables import RowsInCatalog, kept_rows
from shelduck.catalog.read.overview.table_files import LayoutCount, SizeSums, by_layout
from shelduck.doors.sql.parse import parse
from shelduck.errors import InvalidRequest, NotFound, ShelduckError, Unsupported
from shelduck.lake.evolution.alter_plan import AlterPlan
from shelduck.lake.results import TableName, table_name
from shelduck.lake.unit import UnitOfWork
from shelduck.model.changes.modify import RewriteOlderFiles, TableChange
from shelduck.model.files.data_file import ROW_ID_FIELD, SNAPSHOT_FIELD, NameMapping, PhysicalField
from shelduck.model.files.place import split_address
from shelduck.model.files.resolve import Node, resolve
from shelduck.model.shadows.type_changes import older_types
from shelduck.model.tables.rollup import rollup_of
from shelduck.model.tables.schema import Path, path_text
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import double_quoted
from shelduck.objects.catalog_verbs import CatalogVerbs
from shelduck.objects.statement.describe import create_statement, sections
from shelduck.objects.statement.show import view_text
from shelduck.rollups.following import base_of
from shelduck.rollups.rollup_tables import rollups_of
from shelduck.web.site import Site, asked_number, attempted, parts

LISTED = 50
LONGEST = 200
"""Characters of a value that are shown."""
_OF_ROWS = (ROW_ID_FIELD, SNAPSHOT_FIELD)


def show_definition(site: Site, request: Request) -> Response:
    """Return the page of the definition of a table."""
    with site.reading() as (connection, head):
        table = site.table(connection, head, int(request.path_params["table"]))
    # It asks nothing of a table that neither has rollups nor is one.
    unit = UnitOfWork(site.state)
    rollups = list(rollups_of(unit, table))
    return site.render(
        request,
        "definition.html",
        table=table,
        tab="definition",
        sections=sections(table),
        rollups=[(rollup.name, one) for one in rollups if (rollup := rollup_of(one))],
        rollup=rollup_of(table),
        base=base_of(unit, table),
        statement=create_statement(table, rollups),
    )


def show_view(site: Site, request: Request) -> Response:
    """Return the page of a view."""
    with site.reading() as (connection, head):
        view = site.view(connection, head, int(request.path_params["view"]))
    statement, why = None, ""
    try:
        statement = view_text(UnitOfWork(site.state), view)
    except NotFound as error:
        why = str(error)
    return site.render(request, "view.html", view=view, statement=statement, why=why)


def show_plan(site: Site, request: Request) -> Response:
    """Return the form, and the plan of what was typed."""
    text = request.query_params.get("sql", "").strip()
    plan, why = attempted(lambda: plan_of(site, text) if text else None)
    text = text or _beginning(site, asked_number(request, "table"))
    return site.render(request, "plan.html", text=text, plan=plan, why=why)


def _beginning(site: Site, number: int | None) -> str:
    if number is None:
        return ""
    with site.reading() as (connection, head):
        return f"ALTER TABLE {TableName.of(site.table(connection, head, number))} "


def plan_of(site: Site, text: str) -> AlterPlan:
    """Return the plan of one ALTER TABLE; InvalidRequest for any other text."""
    found = parse(text, ntz=site.state.ntz)
    if len(found) != 1 or not isinstance(found[0], AlterTableStatement):
        raise InvalidRequest(
            "only one ALTER TABLE that changes columns, properties or the layout of files can be"
            " planned; write ALTER TABLE t ADD COLUMN c INT, or the like"
        )
    name = table_name(found[0].name.parts, site.state.current.schema)
    return _plan(site, name, *found[0].changes)


def show_rows(site: Site, request: Request) -> Response:
    """Return some rows of a table; NotFound if the server shows none."""
    if site.rows_from is None:
        raise NotFound("this server shows no rows; start it with shelduck ui --rows", about="page")
    with site.opened(), site.reading() as (connection, head):
        table = site.table(connection, head, int(request.path_params["table"]))
    if split_address(table.path)[0]:
        raise Unsupported(
            f"the page does not read rows of {table.full_name}, whose files are in an object"
            " store; read the table with Spark or DuckDB"
        )
    if not site.is_shared:
        site.state.store.close()
    try:
        found = list(duckdb_rows(site.rows_from, "SET TimeZone = 'UTC'", _query(table)))
    except DuckDBMissing as error:
        raise Unsupported(f"DuckDB reads the rows, and is not installed; run {error}") from error
    return site.render(
        request,
        "rows.html",
        table=table,
        tab="rows",
        rows=found[:LISTED],
        has_more=len(found) > LISTED,
        longest=LONGEST,
    )


def _query(table: TableVersion) -> str:
    """Return the query of the rows as texts, one row and one character more than are shown."""
    names = map(double_quoted, table.columns.names)
    texts = ", ".join(f"left(CAST({name} AS VARCHAR), {LONGEST + 1})" for name in names)
    place = f"{double_quoted(table.schema.name)}.{double_quoted(table.name)}"
    return f"SELECT {texts} FROM {place} AT (VERSION => {table.snapshot.id}) LIMIT {LISTED + 1}"


def show_moult(site: Site, request: Request) -> Response:
    """Return the page of the layouts of a table."""
    number = int(request.path_params["table"])
    with site.reading() as (connection, head):
        table = site.table(connection, head, number)
        groups = by_layout(connection, number)
        mappings = read.name_mappings(connection, (g.mapping_id for g in groups))
        kept = kept_rows(connection, [number]).get(number, RowsInCatalog())
    found = coats(groups, table, mappings)
    older = [c for c in found if not c.is_current]
    plan, why = attempted(lambda: _plan(site, TableName.of(table), RewriteOlderFiles()))
    return site.render(
        request,
        "moult.html",
        table=table,
        tab="moult",
        coats=found,
        shares=parts([(str(c.number), c.sums.bytes) for c in found]),
        older=older,
        kept=kept,
        plan=plan,
        why=why,
    )


def _plan(site: Site, name: TableName, *changes: TableChange) -> AlterPlan:
    return CatalogVerbs(site.state, None).table(str(name)).plan_alter(*changes)


@dataclass(frozen=True, slots=True)
class Coat:
    """Files with one layout: what they hold in older types, what they lack and what is left over.

    ``is_known`` is False if the catalog does not know the layout, so that only footers tell.
    ``failure`` says why Shelduck cannot read such a file.
    """

    number: int
    sums: SizeSums
    first: int
    last: int
    is_known: bool = True
    older: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    left_over: tuple[str, ...] = ()
    failure: str = ""

    @property
    def is_current(self) -> bool:
        """True if a rewrite would change nothing about the columns."""
        return self.is_known and not (self.older or self.missing or self.left_over or self.failure)


def coats(
    groups: Iterable[LayoutCount], table: TableVersion, mappings: dict[int, NameMapping]
) -> list[Coat]:
    """Return what each group of files is like, the newest first."""
    return [_coat(at, group, table, mappings) for at, group in enumerate(groups, 1)]


def _coat(
    number: int, group: LayoutCount, table: TableVersion, mappings: dict[int, NameMapping]
) -> Coat:
    same = (number, group.sums, group.first, group.last)
    if group.layout is None:
        return Coat(*same, is_known=False)
    fields = table.columns.fields
    mapping = None if group.mapping_id is None else mappings[group.mapping_id]
    try:
        nodes = resolve(group.layout, fields, mapping, fields).nodes
    except ShelduckError as error:
        return Coat(*same, failure=str(error))
    older = tuple(
        f"{path_text(o.path)}: {o.stored} instead of {o.column}"
        for o in older_types(nodes, group.layout.fields)
    )
    left_over = () if mapping is not None else tuple(_left_over(group.layout.fields, table))
    return Coat(*same, True, older, tuple(_missing(nodes, ())), left_over)


def _missing(nodes: Sequence[Node], above: Path) -> Iterable[str]:
    for node in nodes:
        path = (*above, node.field.name)
        if node.is_read:
            yield from _missing(node.children, path)
        elif node.constant is None:
            yield path_text(path)


def _left_over(fields: Iterable[PhysicalField], table: TableVersion) -> Iterable[str]:
    for field in fields:
        if field.id in _OF_ROWS or field.id is None:
            continue
        if table.columns.by_id(field.id) is None:
            yield f"{field.name} (column {field.id})"
        else:
            yield from _left_over(field.children, table)
