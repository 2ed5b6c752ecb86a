"""``shelduck check``: what is wrong in a lake; Spark starts only to read its rows."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from shelduck.cli.options import Catalog, Json, TableOrAll, print_rows

EXAMPLE = "Example: shelduck check -c sqlite:///lake.db --json"


Rows = Annotated[
    bool, typer.Option("--rows", help="read every row too; this starts Spark, and takes long")
]


def check(
    catalog: Catalog, table: TableOrAll = None, rows: Rows = False, json: Json = False
) -> None:
    """Check a lake; exit status 2 if something is wrong, 1 for an error."""
    from shelduck.cli.lakes import connect_existing

    with connect_existing(catalog) as lake:
        found = lake.check(table, rows=rows)
    if json:
        print_rows([asdict(problem) for problem in found.problems], [], as_json=True)
    else:
        typer.echo(str(found))
    if not found.is_sound:
        raise typer.Exit(2)
