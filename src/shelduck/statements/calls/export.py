"""CALL of plan_export, export_delta and export_iceberg."""

from __future__ import annotations

from collections.abc import Callable

from shelduck.sql.tokens.parts import Argument
from shelduck.statements.arguments import flag, table_name, text, whole_number
from shelduck.statements.runner import Answer, Runner
from shelduck.verbs.table.table import Table
from shelduck.work.results import PlainRows

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


PROCEDURES: dict[str, Callable[..., Answer]] = {
    "plan_export": plan_export,
    "export_delta": export_delta,
    "export_iceberg": export_iceberg,
}
