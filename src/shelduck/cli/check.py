"""``shelduck check``: what is wrong in a lake, without reading its rows; no Spark starts."""

from __future__ import annotations

from dataclasses import asdict

import typer

from shelduck.cli.options import Catalog, Json, TableOrAll, print_rows

EXAMPLE = "Example: shelduck check -c sqlite:///lake.db --json"


def check(catalog: Catalog, table: TableOrAll = None, json: Json = False) -> None:
    """Check a lake without reading rows; exit status 2 if something is wrong, 1 for an error."""
    from shelduck.cli.lakes import connect_existing

    with connect_existing(catalog) as lake:
        found = lake.check(table)
    if json:
        print_rows([asdict(problem) for problem in found.problems], [], as_json=True)
    else:
        typer.echo(str(found))
    if not found.is_sound:
        raise typer.Exit(2)
