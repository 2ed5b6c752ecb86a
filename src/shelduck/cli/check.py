"""``shelduck check``: what is wrong in a lake; Spark starts only to read its rows."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from shelduck.cli.options import Catalog, Json, TableOrAll, print_rows

EXAMPLE = """Example: shelduck check -c sqlite:///lake.db --json

Example: shelduck check -c prod --repair"""


Rows = Annotated[
    bool, typer.Option("--rows", help="read every row too; this starts Spark, and takes long")
]
Repair = Annotated[
    bool, typer.Option("--repair", help="repair what needs no decision, and list the repairs")
]


def check(
    catalog: Catalog,
    table: TableOrAll = None,
    *,
    rows: Rows = False,
    repair: Repair = False,
    json: Json = False,
) -> None:
    """Check a lake; exit status 2 if something is wrong, 1 if the check cannot look.

    The status is 0 if nothing is wrong, or if all of it was repaired.
    """
    from shelduck.cli.lakes import connect_existing

    with connect_existing(catalog) as lake:
        found = lake.check(table, rows=rows, repair=repair)
    if json:
        told = [asdict(problem) | {"level": level} for level, problem in found.rows]
        print_rows(told, [], as_json=True)
    else:
        typer.echo(str(found))
    if not found.is_sound:
        raise typer.Exit(2)
