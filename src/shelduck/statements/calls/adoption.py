"""CALL add_files."""

from __future__ import annotations

from collections.abc import Callable

from shelduck.sql.tokens.parts import Argument
from shelduck.statements.arguments import flag, table_name, text
from shelduck.statements.runner import Answer, Runner
from shelduck.verbs.table.table import Table
from shelduck.work.results import Result


def add_files(
    runner: Runner,
    table: Argument,
    path: Argument,
    *,
    schema: Argument = None,
    allow_missing: Argument = False,
    ignore_extra_columns: Argument = False,
    hive_partitioning: Argument = None,
) -> Result:
    """Make Parquet files part of a table; ``path`` is one place or an array of them."""
    places = path if isinstance(path, tuple) else (path,)
    hive = hive_partitioning
    return Table(runner.state, table_name(runner, table, schema), runner.unit).add_files(
        [text(place, "path") for place in places],
        allow_missing=flag(allow_missing, "allow_missing"),
        ignore_extra_columns=flag(ignore_extra_columns, "ignore_extra_columns"),
        hive_partitioning=None if hive is None else flag(hive, "hive_partitioning"),
    )


PROCEDURES: dict[str, Callable[..., Answer]] = {
    "add_files": add_files,
    "add_data_files": add_files,
}
