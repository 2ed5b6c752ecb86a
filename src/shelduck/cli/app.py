"""``shelduck``: run SQL on a lake, look at it, see the demo.

Each command loads its modules when it runs, so that ``--help`` and the shell's completion are fast.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from typer.core import TyperGroup

import shelduck
from shelduck.cli import (
    branch_command,
    maintain_command,
    query_command,
    schema_command,
    spark_conf_command,
)
from shelduck.cli.command_options import console
from shelduck.cli.config import config_file
from shelduck.errors import ShelduckError

EXAMPLE = """Example: shelduck sql "CREATE TABLE ducks (id INT)" -c sqlite:///lake.db -d files/

Example: shelduck tables -c sqlite:///lake.db

SHELDUCK_CATALOG can hold the address, and shelduck.toml names for addresses."""


class Commands(TyperGroup):
    """The commands; Ctrl-C tells what goes on, and the exit status is 130."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stopped:
            told = str(stopped) or "interrupted"
            Console(stderr=True).print(told, markup=False, highlight=False, soft_wrap=True)
            raise


app = typer.Typer(
    cls=Commands,
    help="A lakehouse engine for Spark that changes the shape of tables while they are used.",
    epilog=EXAMPLE,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command(epilog=query_command.SQL_EXAMPLE)(query_command.sql)
app.command(epilog=query_command.TABLES_EXAMPLE)(query_command.tables)
app.command(epilog=schema_command.SCHEMA_EXAMPLE)(schema_command.schema)
app.command(epilog=query_command.HISTORY_EXAMPLE)(query_command.history)
app.command(epilog=schema_command.PLAN_EXAMPLE)(schema_command.plan)
app.command(epilog=schema_command.APPLY_EXAMPLE)(schema_command.apply)
app.command(epilog=maintain_command.CHECKING)(maintain_command.check)
app.command(epilog=maintain_command.EXAMPLE)(maintain_command.maintain)
app.command(epilog=maintain_command.MIGRATE_EXAMPLE)(maintain_command.migrate)
app.command(epilog=query_command.UI_EXAMPLE)(query_command.ui)
app.command(epilog=spark_conf_command.JAR_EXAMPLE)(spark_conf_command.jar)
app.command(epilog=spark_conf_command.CONF_EXAMPLE)(spark_conf_command.spark_conf)
app.add_typer(maintain_command.jobs, name="jobs")
app.add_typer(branch_command.branches, name="branch")


def _print_version(is_asked: bool) -> None:
    if is_asked:
        print(f"shelduck {shelduck.__version__}")
        raise typer.Exit


@app.callback()
def options(
    config: Annotated[
        Path | None,
        typer.Option(
            envvar="SHELDUCK_CONFIG",
            help="file with names of lakes; by default the shelduck.toml of this directory or"
            " one above it, and that of ~/.config/shelduck",
        ),
    ] = None,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="show the version"),
    ] = False,
) -> None:
    """Remember what all commands share."""
    config_file.set(config)


@app.command(epilog="Example: shelduck demo --keep my-lake/")
def demo(
    rows: Annotated[int, typer.Option(help="rows to begin with")] = 5_000_000,
    keep: Annotated[Path | None, typer.Option(help="keep the lake in this new folder")] = None,
    *,
    show: Annotated[
        bool, typer.Option("--ui", help="show the lake in a browser at the end, until Ctrl-C")
    ] = False,
) -> None:
    """Change the type of a column of a large table while others write and read."""
    from shelduck.cli.demo import run_demo

    run_demo(console, rows, keep, query_command.show if show else None)


def main() -> None:
    """Run the command line; errors are printed on stderr, with exit status 1."""
    # PySpark logs each error to stderr as a line of JSON; it is printed once, in words.
    logging.disable(logging.CRITICAL)
    try:
        app()
    except ShelduckError as error:
        _fail(error, str(error))
    except Exception as error:
        from shelduck.engine.session import PySparkException

        if not isinstance(error, PySparkException):
            raise
        # Spark appends its plan or a Java trace; the first line says what is wrong.
        _fail(error, str(error).strip().split("\n", 1)[0])
    finally:
        logging.disable(logging.NOTSET)


def _fail(error: Exception, text: str) -> NoReturn:
    told = f"[bold red]{type(error).__name__}[/]: {escape(text)}"
    Console(stderr=True).print(told, highlight=False, soft_wrap=True)
    sys.exit(1)
