"""``shelduck branch``: branches made, listed, compared, merged, taken back and dropped."""

from __future__ import annotations

import json as json_text
from collections.abc import Sequence
from dataclasses import asdict
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from shelduck.cli.command_options import Catalog, Conf, Json, console, print_rows
from shelduck.cli.config import connect_existing

if TYPE_CHECKING:
    # --help loads nothing of the lake.
    from shelduck.branches.merging import MergeConflict
    from shelduck.lake.results import Result

DIFFERS, CONFLICTS = 2, 3
"""The exit status of a diff of a branch that differs, and of one that a merge refuses."""
Name = Annotated[str, typer.Argument(help="the branch")]
branches = typer.Typer(help="Make, list, compare, merge and drop branches.", no_args_is_help=True)


class DiffFormat(Enum):
    """What a diff is printed as."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"


@branches.command(epilog="Example: shelduck branch create audit -c prod --if-not-exists")
def create(
    name: Name,
    catalog: Catalog,
    *,
    source: Annotated[str, typer.Option("--from", help="the schema to begin with")] = "main",
    version: Annotated[int | None, typer.Option(help="as of this snapshot")] = None,
    timestamp: Annotated[str | None, typer.Option(help="as of this time")] = None,
    table: Annotated[list[str] | None, typer.Option(help="only it; can be repeated")] = None,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists")] = False,
) -> None:
    """Make a branch."""
    with connect_existing(catalog) as lake:
        done = lake.create_branch(
            *(name, source),
            version=version,
            timestamp=timestamp,
            tables=table or None,
            if_not_exists=if_not_exists,
        )
        _print_done(name, done)


@branches.command("list", epilog="Example: shelduck branch list -c prod")
def list_branches(catalog: Catalog, json: Json = False) -> None:
    """List branches."""
    with connect_existing(catalog) as lake:
        rows = [
            {"branch": b.name, "source": b.source, "base": b.base, "tables": b.tables}
            for b in lake.branches()
        ]
    print_rows(rows, ["branch", "source", "base", "tables"], as_json=json)


@branches.command(epilog="Example: shelduck branch diff audit -c prod --rows 50 --format markdown")
def diff(
    name: Name,
    catalog: Catalog,
    rows: Annotated[int, typer.Option(help="show so many rows of each table, and count all")] = 0,
    form: Annotated[
        DiffFormat, typer.Option("--format", help="markdown for a pull request")
    ] = DiffFormat.TEXT,
    conf: Conf = None,
) -> None:
    """Show what happened on a branch; exit with 2 for differences, 3 for conflicts."""
    with connect_existing(catalog, conf or ()) as lake:
        found = lake.branch_diff(name, rows)
    match form:
        case DiffFormat.JSON:
            typer.echo(json_text.dumps(found.as_json(), ensure_ascii=False))
        case DiffFormat.MARKDOWN:
            typer.echo(found.markdown(), nl=False)
        case _:
            console.print(str(found), markup=False, highlight=False, soft_wrap=True)
    if not found.is_empty:
        raise typer.Exit(DIFFERS if found.is_mergeable else CONFLICTS)


@branches.command(epilog="Example: shelduck branch conflicts audit -c prod --json")
def conflicts(name: Name, catalog: Catalog, json: Json = False, conf: Conf = None) -> None:
    """List what both sides changed; exit with 3 if they did."""
    with connect_existing(catalog, conf or ()) as lake:
        _print_conflicts(lake.merge_conflicts(name), json=json)


def _print_conflicts(found: Sequence[MergeConflict], *, json: bool) -> None:
    rows = [asdict(one) for one in found]
    print_rows(rows, ["table", "kind", "item", "base", "ours", "theirs"], as_json=json)
    if found:
        raise typer.Exit(CONFLICTS)


@branches.command(epilog="Example: shelduck branch merge audit -c prod")
def merge(name: Name, catalog: Catalog, conf: Conf = None) -> None:
    """Merge a branch into its source."""
    with connect_existing(catalog, conf or ()) as lake:
        _print_done(name, lake.merge_branch(name))


@branches.command(epilog='Example: shelduck branch resolve audit "t.v USING THEIRS" -c prod')
def resolve(
    name: Name,
    using: Annotated[list[str], typer.Argument(help="as behind RESOLVE in SQL")],
    catalog: Catalog,
    json: Json = False,
    conf: Conf = None,
) -> None:
    """Merge, and say which side decides; exit with 3 for other conflicts."""
    from shelduck.branches.statement import resolution_of

    chosen = [resolution_of(text) for text in using]
    with connect_existing(catalog, conf or ()) as lake:
        left = lake.merge_conflicts(name, chosen)
        if left:
            _print_conflicts(left, json=json)
        _print_done(name, lake.merge_branch(name, chosen))


@branches.command(epilog="Example: shelduck branch undo audit -c prod")
def undo(name: Name, catalog: Catalog, conf: Conf = None) -> None:
    """Take back the last merge."""
    with connect_existing(catalog, conf or ()) as lake:
        _print_done(name, lake.undo_merge(name))


@branches.command(epilog="Example: shelduck branch drop audit -c prod --if-exists")
def drop(
    name: Name, catalog: Catalog, if_exists: Annotated[bool, typer.Option("--if-exists")] = False
) -> None:
    """Drop a branch with its tables."""
    with connect_existing(catalog) as lake:
        _print_done(name, lake.drop_branch(name, if_exists=if_exists))


def _print_done(name: str, done: Result) -> None:
    console.print(f"branch {name}: {done}", markup=False, highlight=False, soft_wrap=True)
