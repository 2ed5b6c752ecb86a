"""Iceberg's procedures that mean something for a lake, with its names, arguments and columns."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from shelduck.doors.sql.call_arguments import Moment, by_name, table_name
from shelduck.errors import NotFound
from shelduck.lake.operation import Runner
from shelduck.lake.results import Committed, PlainRows, Result
from shelduck.objects.table import Table
from shelduck.upkeep.statement import compacted_rows, lake_of

# Iceberg's own default.
_ORPHAN_AGE = timedelta(days=3)


def rollback_to_snapshot(runner: Runner, table: str, snapshot_id: int) -> PlainRows:
    """Give a table the rows and columns of a snapshot again; a commit, as RESTORE is."""
    return _restored(runner, lambda: _table(runner, table).restore(version=snapshot_id))


def rollback_to_timestamp(runner: Runner, table: str, timestamp: Moment) -> PlainRows:
    """Give a table the rows and columns of a time again."""
    return _restored(runner, lambda: _table(runner, table).restore(timestamp=timestamp))


def ancestors_of(runner: Runner, table: str, snapshot_id: int | None = None) -> PlainRows:
    """Show the snapshots that changed a table, newest first, up to one of them."""
    last = snapshot_id
    rows = [(s.id, s.time) for s in _table(runner, table).history() if last is None or s.id <= last]
    if last is not None and last not in dict(rows):
        raise NotFound(f"snapshot {last} did not change table {table}", about="snapshot")
    return PlainRows("snapshot_id bigint, timestamp timestamp", rows)


def rewrite_position_delete_files(runner: Runner, table: str) -> PlainRows:
    """Write the files again that have deleted rows."""
    return compacted_rows([_table(runner, table).rewrite_deletes(0)])


def rewrite_manifests(runner: Runner, table: str, use_caching: bool = True) -> PlainRows:  # noqa: ARG001
    """Do nothing: a lake has no manifests."""
    _table(runner, table).history(limit=1)
    return PlainRows("rewritten_manifests_count int, added_manifests_count int", [(0, 0)])


def remove_orphan_files(
    runner: Runner,
    table: str | None = None,
    older_than: Moment | None = None,
    *,
    dry_run: bool = False,
) -> PlainRows:
    """Delete files that no snapshot knows and that are older than three days; one row for each."""
    name = None if table is None else str(table_name(runner, table))
    done = lake_of(runner).remove_orphans(
        older_than=older_than or _ORPHAN_AGE, table=name, dry_run=dry_run
    )
    return PlainRows("orphan_file_location string", [(path,) for path in done.files])


def _table(runner: Runner, name: str) -> Table:
    return Table(runner.state, table_name(runner, name), runner.unit)


def _restored(runner: Runner, restore: Callable[[], Result]) -> PlainRows:
    before = runner.view().workspace.base.id
    done = restore()
    now = done.snapshot if isinstance(done, Committed) else before
    return PlainRows("previous_snapshot_id bigint, current_snapshot_id bigint", [(before, now)])


PROCEDURES = by_name(
    *(ancestors_of, remove_orphan_files, rewrite_manifests, rewrite_position_delete_files),
    *(rollback_to_snapshot, rollback_to_timestamp),
) | {"set_current_snapshot": rollback_to_snapshot}
