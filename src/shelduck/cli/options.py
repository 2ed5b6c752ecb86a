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
    typer.Option(
        "--catalog", "-c", envvar="SHELDUCK_CATALOG", help="catalog URL, such as sqlite:////a.db"
    ),
]
Json = Annotated[bool, typer.Option("--json", help="print JSON lines")]


def print_told(names: Sequence[str], rows: Sequence[Sequence[object]], *, as_json: bool) -> None:
    """Print the answer of a statement as Spark prints rows, or as JSON lines."""
    if as_json:
        for row in rows:
            line = dict(zip(names, row, strict=True))
            typer.echo(json.dumps(line, ensure_ascii=False, separators=(",", ":")))
        return
    texts = [[_text(value) for value in row] for row in rows]
    widths = [max(3, *map(len, column)) for column in zip(names, *texts, strict=True)]
    edge = "+".join(["", *("-" * w for w in widths), ""])
    lines = [
        "|".join(["", *(t.ljust(w) for t, w in zip(row, widths, strict=True)), ""])
        for row in [list(names), *texts]
    ]
    typer.echo("\n".join([edge, lines[0], edge, *lines[1:], edge]) + "\n")


def _text(value: object) -> str:
    if value is None:
        return "NULL"
    return str(value).lower() if isinstance(value, bool) else str(value)


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
