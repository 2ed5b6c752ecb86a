"""CALL add_files and import_delta, and of plan_export, export_delta and export_iceberg."""

from __future__ import annotations

from collections.abc import Callable

from shelduck.errors import InvalidRequest
from shelduck.sql.tokens.parts import Argument
from shelduck.statements.arguments import flag, table_name, text, whole_number
from shelduck.statements.runner import Answer, Runner
from shelduck.verbs.lake.delta_import import LakeBorders
from shelduck.verbs.table.table import Table
from shelduck.work.results import PlainRows, Result

_REPORT = "kind string, subject string, what string, data_file_id bigint, bytes bigint"
_EXPORTED = "metadata_file string, snapshot bigint, files bigint, losses bigint"


def plan_export(
    runner: Runner,
    table: Argument,
    format: Argument,  # noqa: A002 - the word for it
    *,
    schema: Argument = None,
) -> PlainRows:
    """Preview an export: one row for each loss and each file to rewrite, one for rows to flush."""
    report = _table(runner, table, schema).plan_export(text(format, "format"))
    rows: list[tuple[object, ...]] = [
        ("rewrite", f.path, "; ".join(f.reasons), f.file_id, f.bytes) for f in report.rewrites
    ]
    if report.inlined_rows:
        what = f"{report.inlined_rows} row(s) are in the catalog"
        rows.append(("flush", report.table, what, None, None))
    rows += [("loss", loss.subject, loss.what, None, None) for loss in report.losses]
    return PlainRows(_REPORT, rows)


def export_iceberg(
    runner: Runner,
    table: Argument,
    path: Argument,
    *,
    schema: Argument = None,
    rewrite: Argument = False,
    format_version: Argument = None,
) -> PlainRows:
    """Write Iceberg metadata over the files of a table; one row that says where."""
    version = None if format_version is None else whole_number(format_version, "format_version")
    done = _table(runner, table, schema).export_iceberg(
        text(path, "path"), rewrite=flag(rewrite, "rewrite"), format_version=version
    )
    row = (done.path, done.snapshot, done.files, len(done.report.losses))
    return PlainRows(_EXPORTED, [row])


def export_delta(
    runner: Runner,
    table: Argument,
    path: Argument,
    *,
    schema: Argument = None,
    rewrite: Argument = False,
) -> PlainRows:
    """Write a Delta log over the files of a table; one row that says where."""
    done = _table(runner, table, schema).export_delta(
        text(path, "path"), rewrite=flag(rewrite, "rewrite")
    )
    row = (done.path, done.snapshot, done.files, len(done.report.losses))
    return PlainRows(_EXPORTED.replace("metadata_file", "path"), [row])


def _table(runner: Runner, table: Argument, schema: Argument) -> Table:
    return Table(runner.state, table_name(runner, table, schema), runner.unit)


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


def import_delta(
    runner: Runner, path: Argument, table: Argument, *, schema: Argument = None
) -> PlainRows:
    """Make a Delta table part of the lake; one row for each version that became a snapshot."""
    if runner.unit is not None:
        raise InvalidRequest(
            "import_delta() makes many snapshots and cannot be part of a transaction; run it"
            " outside of the transaction"
        )
    name = table_name(runner, table, schema)
    done = LakeBorders(runner.state, None).import_delta(text(path, "path"), str(name))
    columns = "delta_version bigint, snapshot_id bigint"
    return PlainRows(columns, list(done.snapshots.items()))


PROCEDURES: dict[str, Callable[..., Answer]] = {
    "plan_export": plan_export,
    "export_delta": export_delta,
    "export_iceberg": export_iceberg,
    "add_files": add_files,
    "add_data_files": add_files,
    "import_delta": import_delta,
}
