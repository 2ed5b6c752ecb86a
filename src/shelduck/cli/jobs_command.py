"""``shelduck jobs``: work on the jobs of a lake, list, pause, cancel and undo them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from shelduck.cli.command_options import Catalog, Conf, Json, console, print_rows
from shelduck.cli.config import connect_existing

if TYPE_CHECKING:
    from collections.abc import Callable

    from shelduck.jobs.jobs import SchemaChangeJob
    from shelduck.model.changes.job import Job

app = typer.Typer(help="Run, list, pause, cancel and undo heavy changes.", no_args_is_help=True)


@app.command(epilog="Example: shelduck jobs run -c prod --once --conf spark.master=local[4]")
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


@app.command("list", epilog="Example: shelduck jobs list -c sqlite:///lake.db --open --json")
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


@app.command(epilog="Example: shelduck jobs cancel 3 -c sqlite:///lake.db")
def cancel(number: Annotated[int, typer.Argument(help="the job's id")], catalog: Catalog) -> None:
    """Cancel a job and leave its table as it was."""
    _change(catalog, number, lambda job: job.cancel())


@app.command(epilog="Example: shelduck jobs pause 3 -c sqlite:///lake.db")
def pause(number: Annotated[int, typer.Argument(help="the job's id")], catalog: Catalog) -> None:
    """Pause a job; what it has converted stays."""
    _change(catalog, number, lambda job: job.pause())


@app.command(epilog="Example: shelduck jobs resume 3 -c sqlite:///lake.db")
def resume(number: Annotated[int, typer.Argument(help="the job's id")], catalog: Catalog) -> None:
    """Let a paused job go on."""
    _change(catalog, number, lambda job: job.resume())


@app.command(epilog="Example: shelduck jobs undo 3 -c sqlite:///lake.db --wait")
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
