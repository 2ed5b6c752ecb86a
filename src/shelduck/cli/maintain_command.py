"""``shelduck check``, ``maintain``, ``migrate`` and ``jobs``: what is wrong, due, newer or open."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from shelduck.cli.command_options import Catalog, Conf, Json, TableOrAll, console, print_rows
from shelduck.cli.config import connect_existing
from shelduck.errors import CatalogUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from shelduck.doors.lake import Lake
    from shelduck.jobs.jobs import SchemaChangeJob
    from shelduck.model.changes.job import Job
    from shelduck.upkeep.maintain import MaintenanceStep

EXAMPLE = """Example: shelduck maintain -c prod --every 5m

Example: shelduck maintain -c sqlite:///lake.db --dry-run"""
MIGRATE_EXAMPLE = """Example: shelduck migrate -c prod --to 1.1 --plan

Example: shelduck migrate -c sqlite:///lake.db --to 1.1"""
CHECKING = """Example: shelduck check -c sqlite:///lake.db --json

Example: shelduck check -c prod --repair"""
Rows = Annotated[
    bool, typer.Option("--rows", help="read every row too; this starts Spark, and takes long")
]
Repair = Annotated[
    bool, typer.Option("--repair", help="repair what needs no decision, and list the repairs")
]
jobs = typer.Typer(help="Run, list, pause, cancel and undo heavy changes.", no_args_is_help=True)


def maintain(
    catalog: Catalog,
    *,
    every: Annotated[
        str | None, typer.Option(help="run again and again, such as every 5m; without it, run once")
    ] = None,
    max_bytes: Annotated[str, typer.Option(help="rewrite at most this much in one run")] = "8GB",
    max_time: Annotated[
        str, typer.Option(help="begin no further step after this time in one run")
    ] = "10m",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="show what is worth it and why, and change nothing")
    ] = False,
    json: Json = False,
    conf: Conf = None,
) -> None:
    """Compact, flush, expire and clean up what is worth it; exit status 2 if a table fails.

    You can run any number of processes: they share the tables.
    """
    from shelduck.lake.lookup import seconds_of

    pause = None if every is None else seconds_of("--every", every)

    def show(step: MaintenanceStep) -> None:
        if json:
            table = None if step.table is None else str(step.table)
            print_rows([asdict(step) | {"table": table}], [], as_json=True)
        else:
            typer.echo(str(step))

    def run(lake: Lake) -> bool:
        done = lake.maintain(max_bytes=max_bytes, max_time=max_time, dry_run=dry_run, report=show)
        if not done.steps and not json and pause is None:
            typer.echo(str(done))
        return not done.failed

    with connect_existing(catalog, conf or ()) as lake:
        while pause is not None:
            began = time.monotonic()
            try:
                run(lake)
            except CatalogUnavailable as error:
                typer.echo(f"lake: tried again in {every}: {error}", err=True)
            time.sleep(max(0.0, pause - (time.monotonic() - began)))
        if not run(lake):
            raise typer.Exit(2)


def migrate(
    catalog: Catalog,
    *,
    to: Annotated[str, typer.Option(help="the version of DuckLake that the lake gets")],
    plan: Annotated[
        bool, typer.Option("--plan", help="show what would be done or refused, and change nothing")
    ] = False,
    json: Json = False,
) -> None:
    """Give a lake a newer version of DuckLake; exit status 2 if the plan is refused.

    Back up the catalog before: there is no way back.
    """
    with connect_existing(catalog) as lake:
        done = lake.migrate(to, plan=plan)
    if json:
        print_rows([asdict(step) for step in done.steps], [], as_json=True)
    else:
        typer.echo(str(done))
    if done.is_refused:
        raise typer.Exit(2)


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
    with connect_existing(catalog) as lake:
        found = lake.check(table, rows=rows, repair=repair)
    if json:
        told = [asdict(problem) | {"level": level} for level, problem in found.rows]
        print_rows(told, [], as_json=True)
    else:
        typer.echo(str(found))
    if not found.is_sound:
        raise typer.Exit(2)


@jobs.command(epilog="Example: shelduck jobs run -c prod --once --conf spark.master=local[4]")
def run(
    catalog: Catalog,
    once: Annotated[bool, typer.Option("--once", help="exit when no job is left")] = False,
    poll: Annotated[float, typer.Option(help="seconds between checks for new jobs")] = 5.0,
    conf: Conf = None,
) -> None:
    """Run every open job that no other worker runs, until interrupted.

    You can run any number of workers, on any machine that reaches the catalog and the files. They
    share the files of a table of more than 1 GB.
    """
    with connect_existing(catalog, conf or ()) as lake:
        while True:
            done = lake.run_jobs()
            for job in done:
                console.print(str(job), markup=False, highlight=False, soft_wrap=True)
            if once:
                if not done:
                    console.print("no open job")
                return
            time.sleep(poll)


@jobs.command("list", epilog="Example: shelduck jobs list -c sqlite:///lake.db --open --json")
def list_jobs(
    catalog: Catalog,
    is_open: Annotated[bool, typer.Option("--open", help="only those that have not ended")] = False,
    json: Json = False,
) -> None:
    """List jobs, newest first."""
    from shelduck.cli.reading import reading

    with reading(catalog) as lake:
        rows = [_row(job) for job in lake.jobs() if not is_open or job.is_open]
    print_rows(rows, ["job", "table", "state", "files", "created", "message"], as_json=json)


@jobs.command(epilog="Example: shelduck jobs cancel 3 -c sqlite:///lake.db")
def cancel(number: Annotated[int, typer.Argument(help="the job's id")], catalog: Catalog) -> None:
    """Cancel a job and leave its table as it was."""
    _change(catalog, number, lambda job: job.cancel())


@jobs.command(epilog="Example: shelduck jobs pause 3 -c sqlite:///lake.db")
def pause(number: Annotated[int, typer.Argument(help="the job's id")], catalog: Catalog) -> None:
    """Pause a job; what it has converted stays."""
    _change(catalog, number, lambda job: job.pause())


@jobs.command(epilog="Example: shelduck jobs resume 3 -c sqlite:///lake.db")
def resume(number: Annotated[int, typer.Argument(help="the job's id")], catalog: Catalog) -> None:
    """Let a paused job go on."""
    _change(catalog, number, lambda job: job.resume())


@jobs.command(epilog="Example: shelduck jobs undo 3 -c sqlite:///lake.db --wait")
def undo(
    number: Annotated[int, typer.Argument(help="the id of the job to take back")],
    catalog: Catalog,
    wait: Annotated[bool, typer.Option("--wait", help="run the new job to its end")] = False,
    conf: Conf = None,
) -> None:
    """Take back what a finished job converted, by a new job that keeps all writes since."""
    with connect_existing(catalog, conf or ()) as lake:
        job = lake.undo(number)
        if wait:
            job.wait()
        console.print(str(job), markup=False, highlight=False, soft_wrap=True)


def _change(catalog: str, number: int, change: Callable[[SchemaChangeJob], None]) -> None:
    """Change a job, and print what it is now."""
    with connect_existing(catalog) as lake:
        job = lake.job(number)
        change(job)
        console.print(str(job), markup=False, highlight=False, soft_wrap=True)


def _row(found: Job) -> dict[str, object]:
    return {
        "job": found.id,
        "table": found.table_name,
        "state": found.state.value,
        "files": f"{found.done}/{found.total}",
        "created": found.created.isoformat(sep=" ", timespec="seconds"),
        "message": found.message,
    }
