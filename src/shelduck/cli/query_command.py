"""``shelduck sql``, ``tables``, ``history`` and ``ui``: what a lake holds; Spark starts for SQL."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shelduck.cli.command_options import (
    Catalog,
    Conf,
    DataPath,
    DuckLakeVersion,
    Json,
    TableOrAll,
    console,
    print_rows,
    print_told,
)
from shelduck.cli.config import connect, wanted_lake
from shelduck.errors import InvalidRequest, missing_extra

if TYPE_CHECKING:
    from shelduck.doors.connect import NewLake
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


STDIN = "-"
SQL_EXAMPLE = """Example: shelduck sql "SELECT * FROM events" -c sqlite:///lake.db

Example: shelduck sql -f daily.sql -c prod --conf spark.driver.memory=4g

Example: echo "SHOW TABLES" | shelduck sql - -c sqlite:///lake.db"""


def sql(
    catalog: Catalog,
    text: Annotated[
        str | None, typer.Argument(help="one or more statements, or - for those of stdin")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="run the statements of this file")
    ] = None,
    *,
    data_path: DataPath = None,
    ducklake_version: DuckLakeVersion = None,
    encrypted: Annotated[bool, typer.Option(help="encrypt the files of a new lake")] = False,
    limit: Annotated[int, typer.Option(help="maximum number of rows to print")] = 50,
    json: Json = False,
    conf: Conf = None,
) -> None:
    """Run SQL and print the rows of the last statement."""
    statements = _statements(text, file)
    made: NewLake = {"ducklake_version": ducklake_version, "encrypted": encrypted}
    with connect(catalog, data_path, conf or (), made) as lake:
        from shelduck.engine.failures import telling_spark
        from shelduck.engine.stopping import stopped_on_error
        from shelduck.lake.results import PlainRows

        found = lake.execute(statements)
        if isinstance(found, PlainRows):
            print_told(found.names, found.rows[:limit], as_json=json)
            return
        with telling_spark(lambda: "the query"), stopped_on_error(found.sparkSession):
            if json:
                line = "to_json(struct(*), map('ignoreNullFields', 'false')) AS line"
                for row in found.limit(limit).selectExpr(line).collect():
                    typer.echo(row.line)
            else:
                found.show(limit, truncate=False)


def _statements(text: str | None, file: Path | None) -> str:
    if (text is None) == (file is None):
        raise typer.BadParameter("pass statements, - for stdin, or --file, and only one of them")
    if text == STDIN:
        return sys.stdin.read()
    if text is not None:
        return text
    assert file is not None
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"cannot read {file}: {error}") from error
