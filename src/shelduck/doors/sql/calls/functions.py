"""Table functions of a lake, in FROM or by CALL, with the names and columns of DuckDB."""

from __future__ import annotations

from collections.abc import Callable

from shelduck.catalog.read import metadata_rows, read
from shelduck.doors.sql.call_arguments import (
    Moment,
    SnapshotOrTime,
    Texts,
    by_name,
    table_name,
    values,
)
from shelduck.doors.sql.calls import exchange
from shelduck.engine.session import DataFrame
from shelduck.lake.lookup import version_at
from shelduck.lake.operation import Answer, Runner
from shelduck.lake.results import PlainRows
from shelduck.lake.spark_options import ChangesWanted, changes_wanted
from shelduck.lake.table_changes import changes_between, spark_changes
from shelduck.read.scan.images import CAME, WENT, as_ducklakes, rows_of
from shelduck.text.query.travel import CHANGES
from shelduck.text.tokens.parts import Call

_SNAPSHOTS = (
    "snapshot_id bigint, snapshot_time timestamp, schema_version bigint,"
    " changes map<string, array<string>>, author string, commit_message string,"
    " commit_extra_info string"
)
_TABLES = (
    "table_name string, schema_id bigint, table_id bigint, table_uuid string, file_count bigint,"
    " file_size_bytes bigint, delete_file_count bigint, delete_file_size_bytes bigint"
)
_FILES = ", ".join(
    f"{kind}_file string, {kind}_file_size_bytes bigint, {kind}_file_footer_size bigint,"
    f" {kind}_file_encryption_key string"
    for kind in ("data", "delete")
)


def snapshots(runner: Runner) -> PlainRows:
    """Show all snapshots, oldest first."""
    found = runner.state.store.ask(read.snapshots)
    rows = [
        (
            *(s.id, s.time, s.schema_version, metadata_rows.change_map(read.entries_of(s))),
            *(s.author, s.commit_message, s.commit_extra_info),
        )
        for s in found
    ]
    return PlainRows(_SNAPSHOTS, rows)


def table_info(runner: Runner) -> PlainRows:
    """Show the tables, with the number and size of their files."""
    rows = runner.state.store.ask(metadata_rows.table_rows, runner.view().workspace.base)
    return PlainRows(_TABLES, [(*row[:3], str(row[3]), *row[4:]) for row in rows])


def current_snapshot(runner: Runner) -> PlainRows:
    """Show the id of the snapshot that queries read."""
    return PlainRows("id bigint", [(runner.view().workspace.base.id,)])


def last_committed_snapshot(runner: Runner) -> PlainRows:
    """Show the id of the newest snapshot, whatever a transaction reads."""
    return PlainRows("id bigint", [(runner.state.store.ask(read.snapshot).id,)])


def settings(runner: Runner) -> PlainRows:
    """Show what kind of catalog the lake has, what wrote it, and where its files are."""
    info = runner.state.info
    row = (runner.state.store.kind, info.created_by, info.data_path)
    return PlainRows("catalog_type string, extension_version string, data_path string", [row])


def list_files(
    runner: Runner,
    table: str,
    *,
    schema: str | None = None,
    snapshot_version: int | None = None,
    snapshot_time: Moment | None = None,
) -> PlainRows:
    """Show the data files of a table, each with its delete file."""
    name = table_name(runner, table, schema)
    if snapshot_version is None and snapshot_time is None:
        version = runner.view().workspace.table(name)
    else:
        version = version_at(runner.state, name, snapshot_version, snapshot_time)
    return PlainRows(_FILES, runner.state.store.ask(metadata_rows.listed_files, version))


def table_changes(
    runner: Runner, table: str, start: SnapshotOrTime, end: SnapshotOrTime | None = None
) -> DataFrame:
    """Show the change feed of a table, with the columns of `Table.changes`."""
    return changes_between(runner.view(), table_name(runner, table), start, end)


def changes(
    runner: Runner,
    table: str,
    start: SnapshotOrTime,
    end: SnapshotOrTime | None,
    *,
    excludes_start: bool,
    excludes_end: bool,
    options: Texts,
) -> DataFrame:
    """Show what Spark's CHANGES shows; ``options`` are names and values in turns."""
    name = table_name(runner, table)
    given = dict(zip(options[::2], options[1::2], strict=True))
    wanted = ChangesWanted(start, end, excludes_start, excludes_end)
    return spark_changes(runner.view(), name, changes_wanted(wanted, given, f"CHANGES of {name}"))


def ducklake_table_changes(
    runner: Runner, table: str, start: SnapshotOrTime, end: SnapshotOrTime
) -> DataFrame:
    """Show the change feed of a table, with the columns that DuckDB gives it."""
    return as_ducklakes(table_changes(runner, table, start, end))


def table_insertions(
    runner: Runner, table: str, start: SnapshotOrTime, end: SnapshotOrTime
) -> DataFrame:
    """Show the rows that came between two snapshots, both included."""
    return rows_of(table_changes(runner, table, start, end), CAME)


def table_deletions(
    runner: Runner, table: str, start: SnapshotOrTime, end: SnapshotOrTime
) -> DataFrame:
    """Show the rows that went between two snapshots, both included."""
    return rows_of(table_changes(runner, table, start, end), WENT)


FUNCTIONS = by_name(
    *(snapshots, table_info, current_snapshot, last_committed_snapshot, settings),
    *(exchange.options, list_files),
    *(table_changes, table_insertions, table_deletions, ducklake_table_changes),
) | {
    "ducklake_list_files": list_files,
    "ducklake_table_insertions": table_insertions,
    "ducklake_table_deletions": table_deletions,
}


def _called(function: Callable[..., Answer]) -> Callable[[Runner, Call], Answer]:
    return lambda runner, call: function(runner, **values(runner, function, call))


IN_FROM = {n: _called(function) for n, function in {**FUNCTIONS, CHANGES: changes}.items()}
"""The functions as `Sources` has them."""
PROCEDURES = {name: run for name, run in FUNCTIONS.items() if not name.startswith("ducklake_")}
