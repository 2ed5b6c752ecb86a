"""``shelduck tables``, ``history`` and ``ui``: what the catalog says; no Spark starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from shelduck.cli.command_options import Catalog, Json, TableOrAll, console, print_rows
from shelduck.cli.config import wanted_lake
from shelduck.errors import InvalidRequest, missing_extra

if TYPE_CHECKING:
    from shelduck.model.tables.table_version import Snapshot

TABLES_EXAMPLE = "Example: shelduck tables -c sqlite:///lake.db --schema sales"
HISTORY_EXAMPLE = "Example: shelduck history events -c sqlite:///lake.db --limit 20 --json"
PORT = 8765
UI_EXAMPLE = "Example: shelduck ui -c sqlite:///lake.db"


def tables(
    catalog: Catalog,
    in_schema: Annotated[str | None, typer.Option("--schema", help="only its tables")] = None,
    json: Json = False,
) -> None:
    """List the tables of a lake."""
    from shelduck.cli.reading import reading

    with reading(catalog) as lake:
        rows = [{"schema": t.schema, "table": t.name} for t in lake.tables(in_schema)]
    print_rows(rows, ["schema", "table"], as_json=json)


def history(
    catalog: Catalog,
    table: TableOrAll = None,
    limit: Annotated[int | None, typer.Option(min=1, help="only so many, the newest")] = None,
    before: Annotated[int | None, typer.Option(help="only older than this snapshot")] = None,
    json: Json = False,
) -> None:
    """Show the snapshots of a lake, or those that changed one table."""
    from shelduck.cli.reading import reading

    with reading(catalog) as lake:
        found = lake.history(table, limit=limit, before=before)
    keys = ["snapshot", "time", "schema_version", "changes", "author", "message"]
    print_rows([_snapshot_row(s) for s in found], keys, as_json=json)


def _snapshot_row(found: Snapshot) -> dict[str, Any]:
    return {
        "snapshot": found.id,
        "time": found.time.isoformat(sep=" "),
        "schema_version": found.schema_version,
        "changes": found.changes_made,
        "author": found.author,
        "message": found.commit_message,
    }


def ui(
    catalog: Catalog,
    port: Annotated[int, typer.Option(help="port on 127.0.0.1; 0 takes any free one")] = PORT,
    *,
    allow_changes: Annotated[
        bool, typer.Option("--allow-changes", help="show buttons that change the lake")
    ] = False,
    rows: Annotated[
        bool, typer.Option("--rows", help="show some rows of each table; DuckDB reads them")
    ] = False,
) -> None:
    """Show the lake in a browser: tables, schemas through time, files, snapshots and jobs."""
    show(wanted_lake(catalog).catalog, port, allow_changes=allow_changes, rows=rows)


def show(url: str, port: int = PORT, *, allow_changes: bool = False, rows: bool = False) -> None:
    """Serve the page of a lake until Ctrl-C, and print its address."""
    try:
        from shelduck.web.application import serve
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("shelduck"):
            raise
        raise InvalidRequest(missing_extra(error.name, "ui")) from error

    def tell(address: str) -> None:
        how = "changes allowed" if allow_changes else "read-only"
        console.print(f"{address} ({how}; stop with Ctrl-C)", markup=False, soft_wrap=True)

    serve(url, port, allow_changes=allow_changes, shows_rows=rows, tell=tell)
