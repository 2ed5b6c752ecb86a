"""Maintenance statements: CALL, OPTIMIZE, VACUUM, CHECKPOINT."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from shelduck.spark.scan.matching import Where
from shelduck.sql.statements import upkeep_statements as up
from shelduck.sql.tokens.parts import Call
from shelduck.statements.calls.procedures import call
from shelduck.statements.calls.upkeep import checkpoint as do_checkpoint
from shelduck.statements.calls.upkeep import compacted_rows, deleted_rows, lake_of
from shelduck.statements.runner import Answer, Runner
from shelduck.upkeep.upkeep import ORPHAN_AGE
from shelduck.work.results import PlainRows, Result, Unchanged
from shelduck.work.upkeep_results import FilesDeleted


def optimize(runner: Runner, statement: up.Optimize) -> PlainRows:
    """OPTIMIZE a table, or only its files with rows for which the condition is true."""
    table = runner.table(statement.name)
    condition = statement.rows.condition
    if condition is None:
        return compacted_rows([table.compact()])
    with runner.views(condition) as named:
        where = Where(named(condition.text), statement.rows.target.alias)
        return compacted_rows([table.compact(where=where)])


def drop_feature(runner: Runner, statement: up.DropFeature) -> Result:
    """ALTER TABLE … DROP FEATURE: files of older types are rewritten first."""
    view = runner.view().workspace
    if statement.if_exists and not view.has_table(runner.name(statement.name)):
        return Unchanged(view.base.id)
    return runner.table(statement.name).drop_feature(statement.feature)


def vacuum(runner: Runner, statement: up.Vacuum) -> PlainRows:
    """VACUUM: delete unneeded and orphaned files, of one table or of the lake."""
    lake = lake_of(runner)
    hours, dry_run = statement.retain_hours, statement.dry_run
    age = None if hours is None else timedelta(hours=hours)
    name = None if statement.name is None else str(runner.name(statement.name))
    old = lake.cleanup_old_files(older_than=age, table=name, dry_run=dry_run)
    lost = lake.remove_orphans(
        older_than=ORPHAN_AGE if age is None else age, table=name, dry_run=dry_run
    )
    return deleted_rows(FilesDeleted(old.files + lost.files, dry_run=dry_run))


def checkpoint(runner: Runner, _: up.Checkpoint) -> PlainRows:
    """CHECKPOINT: all maintenance of the lake."""
    return do_checkpoint(runner)


RUN: dict[type, Callable[[Runner, Any], Answer]] = {
    Call: call,
    up.DropFeature: drop_feature,
    up.Optimize: optimize,
    up.Vacuum: vacuum,
    up.Checkpoint: checkpoint,
}
