"""``shelduck check``: what is wrong in a lake, without reading its rows."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from shelduck.api.connect import connect_existing
from shelduck.cli.options import Catalog, Json, print_rows


def check(
    catalog: Catalog,
    table: Annotated[str | None, typer.Argument(help="one table; by default the lake")] = None,
    json: Json = False,
) -> None:
    """Check a lake without reading rows; exit status 2 if something is wrong, 1 for an error."""
    with connect_existing(catalog) as lake:
        found = lake.check(table)
    if json:
        print_rows([asdict(problem) for problem in found.problems], [], as_json=True)
    else:
        typer.echo(str(found))
    if not found.is_sound:
        raise typer.Exit(2)
