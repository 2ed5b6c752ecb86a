"""What the commands share: options, and rows printed as a table or as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

console = Console()

Catalog = Annotated[
    str,
    typer.Option("--catalog", "-c", envvar="SHELDUCK_CATALOG", help="catalog URL, sqlite:////a.db"),
]
Json = Annotated[bool, typer.Option("--json", help="print JSON lines")]


def print_rows(rows: Sequence[Mapping[str, object]], keys: Sequence[str], *, as_json: bool) -> None:
    """Print rows as a table with these columns, or as JSON lines with all that they have."""
    if as_json:
        for row in rows:
            typer.echo(json.dumps(row))
        return
    grid = Grid(*keys)
    for row in rows:
        grid.add_row(*("" if row[k] is None else escape(str(row[k])) for k in keys))
    console.print(grid)
