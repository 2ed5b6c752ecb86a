"""CALL for maintenance, with the names and columns that DuckDB gives where it has the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

from shelduck.errors import InvalidRequest
from shelduck.sql.tokens.parts import Argument
from shelduck.statements import arguments as read
from shelduck.statements.runner import Answer, Runner
from shelduck.verbs.lake.check import check_lake
from shelduck.verbs.lake.maintain import MAX_BYTES, MAX_TIME, Budget, maintain_lake
from shelduck.verbs.lake.upkeep import ORPHAN_AGE, LakeUpkeep
from shelduck.verbs.table.table import Table
from shelduck.work.compaction import refuse_in_transaction
from shelduck.work.results import PlainRows, TableName
from shelduck.work.turns import Turns
from shelduck.work.upkeep_results import Compacted, FilesDeleted

_COMPACTED = (
    "schema_name string, table_name string, files_processed bigint, files_created bigint,"
    " bytes_before bigint, bytes_after bigint, files_skipped bigint, snapshot bigint,"
    " note string"
)
_MAINTAINED = (
    "schema_name string, table_name string, step string, state string, reason string,"
    " files bigint, bytes bigint, told string"
)
_COLUMNS = (
    "table string, kind string, object string, wrong string, remedy string, level string,"
    " repair string"
)


def compact(
    runner: Runner,
    table: Argument = None,
    *,
    schema: Argument = None,
    target_file_size: Argument = None,
    min_files: Argument = None,
    max_files: Argument = None,
    max_compacted_files: Argument = None,
    max_bytes: Argument = None,
    min_file_size: Argument = None,
    max_file_size: Argument = None,
    where: Argument = None,
    dry_run: Argument = False,
) -> PlainRows:
    """Combine small files: of one table, of a schema, or of the lake."""
    more: dict[str, Any] = {"dry_run": read.flag(dry_run, "dry_run")}
    sizes = {
        "target_file_size": target_file_size,
        "max_bytes": max_bytes,
        "min_file_size": min_file_size,
        "max_file_size": max_file_size,
    }
    more |= {name: size for name, size in sizes.items() if size is not None}
    if min_files is not None:
        more["min_files"] = read.whole_number(min_files, "min_files")
    for name, value in (("max_files", max_files), ("max_compacted_files", max_compacted_files)):
        if value is not None:
            more["max_files"] = read.whole_number(value, name)
    if where is not None:
        more["where"] = read.text(where, "where")
    return _in_turn(runner, table, schema, lambda t: t.compact(**more))


def rewrite_data_files(
    runner: Runner,
    table: Argument = None,
    *,
    schema: Argument = None,
    delete_threshold: Argument = None,
    dry_run: Argument = False,
) -> PlainRows:
    """Rewrite files with many deleted rows: of one table, of a schema, or of the lake."""
    share = None if delete_threshold is None else read.share(delete_threshold, "delete_threshold")
    is_dry = read.flag(dry_run, "dry_run")
    return _in_turn(runner, table, schema, lambda t: t.rewrite_deletes(share, dry_run=is_dry))


def expire_snapshots(
    runner: Runner,
    *,
    older_than: Argument = None,
    versions: Argument = None,
    retain_last: Argument = None,
    dry_run: Argument = False,
) -> PlainRows:
    """Expire snapshots; one row for each."""
    done = lake_of(runner).expire_snapshots(
        older_than=None if older_than is None else read.moment(runner, older_than, "older_than"),
        versions=None if versions is None else read.numbers(versions, "versions"),
        retain_last=None if retain_last is None else read.whole_number(retain_last, "retain_last"),
        dry_run=read.flag(dry_run, "dry_run"),
    )
    return PlainRows("snapshot_id bigint", [(v,) for v in done.snapshots])


def cleanup_old_files(
    runner: Runner,
    *,
    older_than: Argument = None,
    cleanup_all: Argument = False,
    include_adopted: Argument = False,
    dry_run: Argument = False,
) -> PlainRows:
    """Delete files that are no longer needed; one row for each."""
    done = lake_of(runner).cleanup_old_files(
        older_than=None if older_than is None else read.moment(runner, older_than, "older_than"),
        cleanup_all=read.flag(cleanup_all, "cleanup_all"),
        include_adopted=read.flag(include_adopted, "include_adopted"),
        dry_run=read.flag(dry_run, "dry_run"),
    )
    return deleted_rows(done)


def delete_orphaned_files(
    runner: Runner,
    table: Argument = None,
    *,
    older_than: Argument = None,
    cleanup_all: Argument = False,
    duckdb_files: Argument = False,
    dry_run: Argument = False,
) -> PlainRows:
    """Delete orphaned files; one row for each. ``cleanup_all``: whatever their age."""
    everything = read.flag(cleanup_all, "cleanup_all")
    if everything and older_than is not None:
        raise InvalidRequest("older_than and cleanup_all cannot be used together; leave one out")
    since: datetime | timedelta = timedelta(0) if everything else ORPHAN_AGE
    if older_than is not None:
        since = read.moment(runner, older_than, "older_than")
    done = lake_of(runner).remove_orphans(
        older_than=since,
        table=None if table is None else read.text(table, "table"),
        duckdb_files=read.flag(duckdb_files, "duckdb_files"),
        dry_run=read.flag(dry_run, "dry_run"),
    )
    return deleted_rows(done)


def checkpoint(runner: Runner, *, dry_run: Argument = False) -> PlainRows:
    """Do all maintenance; one row for each thing that was done."""
    done = lake_of(runner).checkpoint(dry_run=read.flag(dry_run, "dry_run"))
    lines = [(line,) for line in str(done).splitlines()]
    return PlainRows("done string", lines)


def maintain(
    runner: Runner,
    *,
    max_bytes: Argument = MAX_BYTES,
    max_time: Argument = MAX_TIME,
    dry_run: Argument = False,
) -> PlainRows:
    """Do the maintenance that is worth it now; one row for each step."""
    refuse_in_transaction(runner.unit, "maintain()")
    size = max_bytes if isinstance(max_bytes, int) else read.text(max_bytes, "max_bytes")
    budget = Budget.of(size, read.span(max_time, "max_time"))
    is_dry = read.flag(dry_run, "dry_run")
    done = maintain_lake(runner.state, budget, lambda _: None, dry_run=is_dry)
    rows = [
        (
            *((None, None) if step.table is None else (step.table.schema, step.table.name)),
            *(step.work, step.state, step.reason, step.files, step.bytes, step.told or None),
        )
        for step in done.steps
    ]
    return PlainRows(_MAINTAINED, rows)


def migrate(runner: Runner, version: Argument, *, plan: Argument = False) -> PlainRows:
    """Give the lake a newer version of DuckLake; one row for each step."""
    done = lake_of(runner).migrate(read.text(version, "version"), plan=read.flag(plan, "plan"))
    rows = [(step.action, step.object, step.told) for step in done.steps]
    return PlainRows("action string, object string, details string", rows)


def lake_of(runner: Runner) -> LakeUpkeep:
    """Return the lake whose maintenance a statement asks for."""
    return LakeUpkeep(runner.state, runner.unit)


def compacted_rows(done: Iterable[Compacted]) -> PlainRows:
    """Return one row for each table that had files to rewrite."""
    rows = [
        (
            *(one.table.schema, one.table.name, one.files, one.new_files),
            *(one.bytes, one.new_bytes, one.skipped),
            one.snapshots[-1] if one.snapshots else None,
            one.note or None,
        )
        for one in done
        if not one.is_nothing
    ]
    return PlainRows(_COMPACTED, rows)


def deleted_rows(done: FilesDeleted) -> PlainRows:
    """Return one row for each file."""
    return PlainRows("path string", [(path,) for path in done.files])


def _in_turn(
    runner: Runner, table: Argument, schema: Argument, act: Callable[[Table], Compacted]
) -> PlainRows:
    def made(name: TableName) -> Compacted:
        return act(Table(runner.state, name, runner.unit))

    if table is not None:
        return compacted_rows([made(read.table_name(runner, table, schema))])
    names = runner.verbs.tables(None if schema is None else read.text(schema, "schema"))
    with Turns() as turns:
        return compacted_rows(turns.each(names, made))


def check(
    runner: Runner, table: Argument = None, *, rows: Argument = False, repair: Argument = False
) -> PlainRows:
    """Check a lake, or one table, and repair it; one row for each problem, note and repair."""
    refuse_in_transaction(runner.unit, "check()")
    name = None if table is None else read.text(table, "table")
    found = check_lake(
        runner.state, name, rows=read.flag(rows, "rows"), repair=read.flag(repair, "repair")
    )
    told = [
        (p.table or None, p.kind, p.object, p.wrong, p.remedy, level, p.repair or None)
        for level, p in found.rows
    ]
    return PlainRows(_COLUMNS, told)


PROCEDURES: dict[str, Callable[..., Answer]] = {
    "compact": compact,
    "merge_adjacent_files": compact,
    "rewrite_data_files": rewrite_data_files,
    "expire_snapshots": expire_snapshots,
    "cleanup_old_files": cleanup_old_files,
    "delete_orphaned_files": delete_orphaned_files,
    "remove_orphans": delete_orphaned_files,
    "checkpoint": checkpoint,
    "maintain": maintain,
    "migrate": migrate,
    "check": check,
}
