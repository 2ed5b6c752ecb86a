"""``shelduck schema``, ``plan`` and ``apply``: tables as files of SQL."""

from __future__ import annotations

import json as json_text
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shelduck.cli.command_options import Catalog, Conf, Json, OneTable, console, print_rows
from shelduck.cli.config import connect_existing
from shelduck.errors import Conflict, InvalidRequest
from shelduck.model.text.names import quote_name
from shelduck.model.types.data_types import type_text

if TYPE_CHECKING:
    from shelduck.doors.schema_files.schema_plan import SchemaPlan

PULL = "pull"
CHANGES = 2
"""The exit status of a plan that changes something."""
Folder = Annotated[Path, typer.Argument(help="a folder with one .sql file for each table")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="with pull: the folder for the files")
]
PlanFile = Annotated[
    Path | None, typer.Option("--plan", help="apply only what this output of plan --json says")
]


SCHEMA_EXAMPLE = """Example: shelduck schema events -c sqlite:///lake.db

Example: shelduck schema pull -o schema/ -c sqlite:///lake.db"""
PLAN_EXAMPLE = "Example: shelduck plan schema/ -c sqlite:///lake.db --markdown"
APPLY_EXAMPLE = "Example: shelduck apply schema/ -c sqlite:///lake.db --yes --wait"


def schema(
    table: OneTable,
    catalog: Catalog,
    output: Output = None,
    ducklake: Annotated[
        bool, typer.Option("--ducklake", help="show DuckLake's names of the types")
    ] = False,
    json: Json = False,
) -> None:
    """Show a table's columns; `schema pull -o FOLDER` writes every table as a .sql file."""
    if table == PULL and output is not None:
        with connect_existing(catalog) as lake:
            for place in lake.pull_schema(output):
                console.print(str(place), markup=False, highlight=False, soft_wrap=True)
        return
    if output is not None:
        raise InvalidRequest("--output belongs to schema pull, which writes all tables")
    from shelduck.cli.reading import reading

    with reading(catalog) as found:
        columns = found.table(table).columns
    rows = [
        {
            "id": f.id,
            "column": quote_name(f.name),
            "type": str(f.type) if ducklake else type_text(f.type),
            "nullable": f.nullable,
            "initial_default": f.initial_default,
            "default": f.default.text if f.default else None,
        }
        for f in columns
    ]
    print_rows(
        rows, ["id", "column", "type", "nullable", "initial_default", "default"], as_json=json
    )


def plan(
    folder: Folder,
    catalog: Catalog,
    json: Json = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="print a table for a pull request")
    ] = False,
) -> None:
    """Show what leads from the lake to files of SQL; exit with 2 if something differs."""
    with connect_existing(catalog) as lake:
        found = lake.plan(folder)
        if json:
            typer.echo(json_text.dumps(found.as_json(), ensure_ascii=False))
        elif markdown:
            typer.echo(found.markdown(), nl=False)
        else:
            console.print(str(found), markup=False, highlight=False, soft_wrap=True)
    if not found.is_empty:
        raise typer.Exit(CHANGES)


def apply(
    folder: Folder,
    catalog: Catalog,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="do not ask")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="run the jobs of heavy changes")] = False,
    only_light: Annotated[
        bool, typer.Option("--only-light", help="leave out changes that need a job")
    ] = False,
    allow_drop: Annotated[
        bool, typer.Option("--allow-drop", help="drop tables and columns that no file has")
    ] = False,
    planned: PlanFile = None,
    conf: Conf = None,
) -> None:
    """Make the lake what files of SQL say; light changes are one snapshot, heavy ones jobs."""
    with connect_existing(catalog, conf or ()) as lake:
        found = lake.plan(folder)
        if planned is not None:
            _require_planned(found, planned)
        console.print(str(found), markup=False, highlight=False, soft_wrap=True)
        if found.is_empty:
            return
        if not yes and not typer.confirm("Apply this?"):
            raise typer.Exit(1)
        jobs = found.apply(allow_drop=allow_drop, only_light=only_light)
        for job in jobs:
            if wait:
                job.wait()
            console.print(str(job), markup=False, highlight=False, soft_wrap=True)
        if jobs and not wait:
            console.print("run the jobs with: shelduck jobs run", markup=False, highlight=False)


def _require_planned(found: SchemaPlan, place: Path) -> None:
    try:
        told = json_text.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        told = f"{place} is not a plan; write it with plan --json: {error}"
        raise InvalidRequest(told) from error
    now = found.as_json()

    def essence(plan: object) -> object:
        tables = plan.get("tables", []) if isinstance(plan, dict) else []
        return [(t.get("table"), t.get("sql")) for t in tables]

    moved = not isinstance(told, dict) or told.get("schema_version") != now["schema_version"]
    if moved or essence(told) != essence(now):
        raise Conflict(f"the lake or the files changed since {place} was written; make a new plan")
