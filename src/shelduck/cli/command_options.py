"""The parts that commands share: options, and rows printed as a table or as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from shelduck.cli.config import config_file, lake_names
from shelduck.model.text.names import quote_name

console = Console()


def _complete_lakes(ctx: typer.Context) -> list[str]:
    """Return the names of shelduck.toml for the shell."""
    try:
        return lake_names(_config(ctx))
    except Exception:  # noqa: BLE001 - a shell that completes a word shows no error
        return []


def _complete_tables(ctx: typer.Context) -> list[str]:
    """Return the tables of the lake that the options before them name, for the shell."""
    from shelduck.cli.reading import reading

    try:
        config_file.set(_config(ctx))
        with reading(ctx.params["catalog"]) as lake:
            names = lake.tables()
        return [quote_name(t.name) if t.schema == "main" else str(t) for t in names]
    except Exception:  # noqa: BLE001 - as above
        return []


def _config(ctx: typer.Context) -> Path | None:
    found = ctx.find_root().params.get("config")
    return None if found is None else Path(found)


Catalog = Annotated[
    str,
    typer.Option(
        "--catalog",
        "-c",
        envvar="SHELDUCK_CATALOG",
        help="address of the catalog, such as sqlite:////data/lake.db, or a name in shelduck.toml",
        autocompletion=_complete_lakes,
    ),
]
DataPath = Annotated[
    str | None,
    typer.Option(
        "--data-path", "-d", envvar="SHELDUCK_DATA_PATH", help="where a new lake's files go"
    ),
]
DuckLakeVersion = Annotated[
    str | None,
    typer.Option(help="version of DuckLake that a new lake gets, such as 1.1; by default 1.0"),
]
TableOrAll = Annotated[
    str | None,
    typer.Argument(
        help="table or schema.table; by default the whole lake", autocompletion=_complete_tables
    ),
]
OneTable = Annotated[
    str,
    typer.Argument(
        help="table or schema.table, or pull with --output", autocompletion=_complete_tables
    ),
]
Conf = Annotated[
    list[str] | None,
    typer.Option(
        "--conf", metavar="KEY=VALUE", help="setting of the Spark session; can be repeated"
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
