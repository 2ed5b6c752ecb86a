"""``shelduck``: run SQL on a lake, look at it, see the demo."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape

from shelduck.api.connect import connect, connect_existing
from shelduck.cli import check, jobs, schema
from shelduck.cli.demo import ROWS, run_demo
from shelduck.cli.options import Catalog, Json, console, print_rows, print_told
from shelduck.errors import ShelduckError
from shelduck.model.tables.table import Snapshot
from shelduck.spark.session import PySparkException
from shelduck.work.results import PlainRows

app = typer.Typer(
    help="A lakehouse engine for Spark that changes the shape of tables while they are used.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
DataPath = Annotated[
    str | None,
    typer.Option(
        "--data-path", "-d", envvar="SHELDUCK_DATA_PATH", help="where a new lake's files go"
    ),
]
app.add_typer(jobs.app, name="jobs")
for command in (schema.schema, schema.plan, schema.apply, check.check):
    app.command()(command)


@app.command()
def sql(
    text: Annotated[str, typer.Argument(help="one or more statements")],
    catalog: Catalog,
    data_path: DataPath = None,
    limit: Annotated[int, typer.Option(help="maximum number of rows to print")] = 50,
    json: Json = False,
) -> None:
    """Run SQL and print the rows of the last statement."""
    with connect(catalog, data_path) as lake:
        found = lake.execute(text)
        if isinstance(found, PlainRows):
            print_told(found.names, found.rows[:limit], as_json=json)
        elif json:
            text = "to_json(struct(*), map('ignoreNullFields', 'false')) AS line"
            for row in found.limit(limit).selectExpr(text).collect():
                typer.echo(row.line)
        else:
            found.show(limit, truncate=False)


@app.command()
def tables(
    catalog: Catalog,
    in_schema: Annotated[str | None, typer.Option("--schema", help="only its tables")] = None,
    json: Json = False,
) -> None:
    """List the tables of a lake."""
    with connect_existing(catalog) as lake:
        rows = [{"schema": t.schema, "table": t.name} for t in lake.tables(in_schema)]
    print_rows(rows, ["schema", "table"], as_json=json)


@app.command()
def history(
    catalog: Catalog,
    table: Annotated[
        str | None, typer.Argument(help="one table; by default the whole lake")
    ] = None,
    json: Json = False,
) -> None:
    """Show the snapshots of a lake, or those that changed one table."""
    with connect_existing(catalog) as lake:
        found = lake.table(table).history() if table else lake.snapshots()
    keys = ["snapshot", "time", "schema_version", "changes", "author", "message"]
    print_rows([_snapshot_row(s) for s in found], keys, as_json=json)


@app.command()
def demo(
    rows: Annotated[int, typer.Option(help="rows to begin with")] = ROWS,
    keep: Annotated[Path | None, typer.Option(help="keep the lake in this new folder")] = None,
) -> None:
    """Change the type of a column of a large table while others write and read."""
    url = run_demo(console, rows, keep)
    if keep is not None:
        console.print(f"The lake is kept. Try: shelduck history -c {url}", highlight=False)


def main() -> None:
    """Run the command line; errors are told on stderr, with exit status 1."""
    # PySpark logs each error to stderr as a line of JSON; it is told once, in words.
    logging.disable(logging.CRITICAL)
    try:
        app()
    except ShelduckError as error:
        _fail(error, str(error))
    except PySparkException as error:
        # Spark appends its plan or a Java trace; the first line says what is wrong.
        _fail(error, str(error).strip().split("\n", 1)[0])
    finally:
        logging.disable(logging.NOTSET)


def _fail(error: Exception, text: str) -> NoReturn:
    told = f"[bold red]{type(error).__name__}[/]: {escape(text)}"
    Console(stderr=True).print(told, highlight=False, soft_wrap=True)
    sys.exit(1)


def _snapshot_row(found: Snapshot) -> dict[str, Any]:
    return {
        "snapshot": found.id,
        "time": found.time.isoformat(sep=" "),
        "schema_version": found.schema_version,
        "changes": found.changes_made,
        "author": found.author,
        "message": found.commit_message,
    }
