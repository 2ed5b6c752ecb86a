"""A look at some rows of a table, which DuckDB reads; only if the server was started for that."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from shelduck.catalog.databases.duckdb_view import DuckDBMissing, duckdb_rows
from shelduck.errors import NotFound, Unsupported
from shelduck.model.files.place import split_address
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import double_quoted
from shelduck.web.site import Site

LISTED = 50
LONGEST = 200
"""Characters of a value that are shown."""


def show(site: Site, request: Request) -> Response:
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
