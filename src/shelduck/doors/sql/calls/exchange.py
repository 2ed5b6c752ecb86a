"""CALL for files and tables of others, and for options: add_files, import_delta, set_option."""

from __future__ import annotations

from decimal import Decimal

from shelduck.doors.sql.call_arguments import Texts, by_name, table_name, table_of, text
from shelduck.errors import InvalidRequest
from shelduck.formats.delta.import_verbs import LakeBorders
from shelduck.lake.operation import Runner
from shelduck.lake.results import PlainRows, Result
from shelduck.model.tables.options import OptionValue
from shelduck.objects import set_options as api
from shelduck.text.tokens.parts import Argument, IntervalText

_REPORT = "kind string, subject string, what string, data_file_id bigint, bytes bigint"
_EXPORTED = "metadata_file string, snapshot bigint, files bigint, losses bigint"


def add_files(
    runner: Runner,
    table: str,
    path: Texts,
    *,
    schema: str | None = None,
    allow_missing: bool = False,
    ignore_extra_columns: bool = False,
    hive_partitioning: bool | None = None,
) -> Result:
    """Make Parquet files part of a table; ``path`` is one place or an array of them."""
    return table_of(runner, table, schema).add_files(
        path,
        allow_missing=allow_missing,
        ignore_extra_columns=ignore_extra_columns,
        hive_partitioning=hive_partitioning,
    )


def import_delta(runner: Runner, path: str, table: str, *, schema: str | None = None) -> PlainRows:
    """Make a Delta table part of the lake; one row for each version that became a snapshot."""
    if runner.unit is not None:
        raise InvalidRequest(
            "import_delta() makes many snapshots and cannot be part of a transaction; run it"
            " outside of the transaction"
        )
    name = table_name(runner, table, schema)
    done = LakeBorders(runner.state, None).import_delta(path, str(name))
    columns = "delta_version bigint, snapshot_id bigint"
    return PlainRows(columns, list(done.snapshots.items()))


def plan_export(
    runner: Runner,
    table: str,
    format: str,  # noqa: A002 - the word for it
    *,
    schema: str | None = None,
) -> PlainRows:
    """Preview an export: one row for each loss and each file to rewrite, one for rows to flush."""
    report = table_of(runner, table, schema).plan_export(format)
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
    table: str,
    path: str,
    *,
    schema: str | None = None,
    rewrite: bool = False,
    format_version: int | None = None,
) -> PlainRows:
    """Write Iceberg metadata over the files of a table; one row that says where."""
    done = table_of(runner, table, schema).export_iceberg(
        path, rewrite=rewrite, format_version=format_version
    )
    row = (done.path, done.snapshot, done.files, len(done.report.losses))
    return PlainRows(_EXPORTED, [row])


def export_delta(
    runner: Runner, table: str, path: str, *, schema: str | None = None, rewrite: bool = False
) -> PlainRows:
    """Write a Delta log over the files of a table; one row that says where."""
    done = table_of(runner, table, schema).export_delta(path, rewrite=rewrite)
    row = (done.path, done.snapshot, done.files, len(done.report.losses))
    return PlainRows(_EXPORTED.replace("metadata_file", "path"), [row])


def set_option(
    runner: Runner,
    option: str,
    value: Argument,
    *,
    schema: str | None = None,
    table_name: str | None = None,
) -> Result:
    """Set an option of the lake, of a schema or of a table."""
    if runner.unit is not None:
        raise InvalidRequest(
            "an option cannot be set in a transaction; set it outside of the transaction"
        )
    if isinstance(value, IntervalText):
        value = value.text
    if isinstance(value, Decimal):
        value = float(value)
    given: OptionValue
    if isinstance(value, tuple):
        given = [text(part, "value") for part in value]
    elif isinstance(value, str | int | float):
        given = value
    else:
        raise InvalidRequest(f"an option must be text, a number, true or false, not {value!r}")
    return api.set_option(runner.state, option, given, schema=schema, table=table_name)


def options(runner: Runner) -> PlainRows:
    """Show the options that are set."""
    rows = [(o.name, o.value, o.scope, o.owner) for o in api.options(runner.state)]
    columns = "option_name string, value string, scope string, scope_entry string"
    return PlainRows(columns, rows)


PROCEDURES = by_name(
    add_files, import_delta, plan_export, export_delta, export_iceberg, set_option, options
) | {"add_data_files": add_files}
