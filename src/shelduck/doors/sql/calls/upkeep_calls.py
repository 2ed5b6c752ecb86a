"""CALL for maintenance and checks, with the names and columns of DuckDB where it has the same."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

from shelduck.doors.sql.call_arguments import Moment, Numbers, Share, Span, by_name, table_of, text
from shelduck.errors import InvalidRequest
from shelduck.lake.operation import Answer, Runner
from shelduck.lake.results import Committed, PlainRows, Unchanged
from shelduck.lake.state import Turns
from shelduck.lake.unit import refuse_in_transaction
from shelduck.objects.catalog_verbs import CatalogVerbs, Table
from shelduck.text.tokens.parts import Argument
from shelduck.upkeep.check import check_lake
from shelduck.upkeep.lake_upkeep import ORPHAN_AGE
from shelduck.upkeep.maintain import MAX_BYTES, MAX_TIME, Budget, maintain_lake
from shelduck.upkeep.statement import checkpoint, compacted_rows, deleted_rows, lake_of

Done = TypeVar("Done")
_CHECKED = (
    "table string, kind string, object string, wrong string, remedy string, level string,"
    " repair string"
)
_MAINTAINED = (
    "schema_name string, table_name string, step string, state string, reason string,"
    " files bigint, bytes bigint, told string"
)


def compact(
    runner: Runner,
    table: str | None = None,
    *,
    schema: str | None = None,
    target_file_size: Argument = None,
    min_files: int | None = None,
    max_files: int | None = None,
    max_compacted_files: int | None = None,
    max_bytes: Argument = None,
    min_file_size: Argument = None,
    max_file_size: Argument = None,
    where: str | None = None,
    dry_run: bool = False,
) -> PlainRows:
    """Combine small files: of one table, of a schema, or of the lake."""
    given = {
        "target_file_size": target_file_size,
        "min_files": min_files,
        "max_files": max_files if max_compacted_files is None else max_compacted_files,
        "max_bytes": max_bytes,
        "min_file_size": min_file_size,
        "max_file_size": max_file_size,
        "where": where,
    }
    more: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    done = _in_turn(runner, table, schema, lambda t: t.compact(**more, dry_run=dry_run))
    return compacted_rows(done)


def rewrite_data_files(
    runner: Runner,
    table: str | None = None,
    *,
    schema: str | None = None,
    delete_threshold: Share | None = None,
    dry_run: bool = False,
) -> PlainRows:
    """Rewrite files with many deleted rows: of one table, of a schema, or of the lake."""
    done = _in_turn(
        runner, table, schema, lambda t: t.rewrite_deletes(delete_threshold, dry_run=dry_run)
    )
    return compacted_rows(done)


def expire_snapshots(
    runner: Runner,
    *,
    older_than: Moment | None = None,
    versions: Numbers | None = None,
    retain_last: int | None = None,
    dry_run: bool = False,
) -> PlainRows:
    """Expire snapshots; one row for each."""
    done = lake_of(runner).expire_snapshots(
        older_than=older_than, versions=versions, retain_last=retain_last, dry_run=dry_run
    )
    return PlainRows("snapshot_id bigint", [(v,) for v in done.snapshots])


def cleanup_old_files(
    runner: Runner,
    *,
    older_than: Moment | None = None,
    cleanup_all: bool = False,
    include_adopted: bool = False,
    dry_run: bool = False,
) -> PlainRows:
    """Delete files that are no longer needed; one row for each."""
    done = lake_of(runner).cleanup_old_files(
        older_than=older_than,
        cleanup_all=cleanup_all,
        include_adopted=include_adopted,
        dry_run=dry_run,
    )
    return deleted_rows(done)


def delete_orphaned_files(
    runner: Runner,
    table: str | None = None,
    *,
    older_than: Moment | None = None,
    cleanup_all: bool = False,
    duckdb_files: bool = False,
    dry_run: bool = False,
) -> PlainRows:
    """Delete orphaned files; one row for each. ``cleanup_all``: whatever their age."""
    if cleanup_all and older_than is not None:
        raise InvalidRequest("older_than and cleanup_all cannot be used together; leave one out")
    done = lake_of(runner).remove_orphans(
        older_than=older_than or (timedelta(0) if cleanup_all else ORPHAN_AGE),
        table=table,
        duckdb_files=duckdb_files,
        dry_run=dry_run,
    )
    return deleted_rows(done)


def maintain(
    runner: Runner,
    *,
    max_bytes: Argument = MAX_BYTES,
    max_time: Span = MAX_TIME,
    dry_run: bool = False,
) -> PlainRows:
    """Do the maintenance that is worth it now; one row for each step."""
    refuse_in_transaction(runner.unit, "maintain()")
    size = max_bytes if isinstance(max_bytes, int) else text(max_bytes, "max_bytes")
    budget = Budget.of(size, max_time)
    done = maintain_lake(runner.state, budget, lambda _: None, dry_run=dry_run)
    rows = [
        (
            *((None, None) if step.table is None else (step.table.schema, step.table.name)),
            *(step.work, step.state, step.reason, step.files, step.bytes, step.told or None),
        )
        for step in done.steps
    ]
    return PlainRows(_MAINTAINED, rows)


def migrate(runner: Runner, version: str, *, plan: bool = False) -> PlainRows:
    """Give the lake a newer version of DuckLake; one row for each step."""
    done = lake_of(runner).migrate(version, plan=plan)
    rows = [(step.action, step.object, step.told) for step in done.steps]
    return PlainRows("action string, object string, details string", rows)


def check(
    runner: Runner, table: str | None = None, *, rows: bool = False, repair: bool = False
) -> PlainRows:
    """Check a lake, or one table, and repair it; one row for each problem, note and repair."""
    refuse_in_transaction(runner.unit, "check()")
    done = check_lake(runner.state, table, rows=rows, repair=repair)
    told = [
        (p.table or None, p.kind, p.object, p.wrong, p.remedy, level, p.repair or None)
        for level, p in done.rows
    ]
    return PlainRows(_CHECKED, told)


def _in_turn(
    runner: Runner, table: str | None, schema: str | None, act: Callable[[Table], Done]
) -> list[Done]:
    """Return what a verb did with one table, with all of a schema, or with all of the lake."""
    if table is not None:
        return [act(table_of(runner, table, schema))]
    names = CatalogVerbs(runner.state, runner.unit).tables(schema)
    with Turns() as turns:
        each = turns.each(names, lambda name: act(Table(runner.state, name, runner.unit)))
        return list(each)


def flush_inlined_data(
    runner: Runner, table_name: str | None = None, *, schema: str | None = None
) -> PlainRows:
    """Move rows out of the catalog: of one table, of all in a schema, or of all in the lake."""
    refuse_in_transaction(runner.unit, "a flush")
    done = _in_turn(runner, table_name, schema, lambda t: (t.name, t.flush_inlined_data()))
    rows = [
        (name.schema, name.name, *_landed(result), result.note or None)
        for name, result in done
        if isinstance(result, Committed) or (isinstance(result, Unchanged) and result.note)
    ]
    columns = "schema_name string, table_name string, snapshot bigint, files bigint, note string"
    return PlainRows(columns, rows)


def _landed(result: Committed | Unchanged) -> tuple[int | None, int]:
    return result.snapshot if isinstance(result, Committed) else None, result.files


def fold(runner: Runner, table_name: str, *, schema: str | None = None) -> Answer:
    """Combine rows of the same key that other writers put into a table."""
    return table_of(runner, table_name, schema).fold()


def refresh_rollups(runner: Runner, table_name: str, *, schema: str | None = None) -> Answer:
    """Update all rollups of a table that another writer left outdated."""
    return table_of(runner, table_name, schema).refresh_rollups()


PROCEDURES = by_name(
    *(compact, rewrite_data_files, expire_snapshots, cleanup_old_files, delete_orphaned_files),
    *(checkpoint, maintain, migrate, check, flush_inlined_data, fold, refresh_rollups),
) | {"merge_adjacent_files": compact, "remove_orphans": delete_orphaned_files}
