"""``shelduck sql``: statements from the command line, from a file or from a pipe."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shelduck.cli.command_options import Catalog, Conf, DataPath, DuckLakeVersion, Json, print_told
from shelduck.cli.config import connect
from shelduck.errors import InvalidRequest

if TYPE_CHECKING:
    from shelduck.doors.connect import NewLake

STDIN = "-"
EXAMPLE = """Example: shelduck sql "SELECT * FROM events" -c sqlite:///lake.db

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
