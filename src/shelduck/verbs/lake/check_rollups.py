"""Rollups and their bases: what the catalog says of them, and with Spark what is in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shelduck.catalog.commit.settled import forget_settled, settled_ahead
from shelduck.catalog.databases.retry import write_with_retries
from shelduck.catalog.read.read import Connection
from shelduck.errors import NotFound
from shelduck.evolution.rollups import is_current
from shelduck.model.changes.problem import Problem
from shelduck.model.tables.rollup import rollup_names, rollup_of
from shelduck.model.tables.table import TableVersion
from shelduck.spark.scan.rollup_checks import wrong_rollup
from shelduck.work.lookup import rows_of
from shelduck.work.results import TableName
from shelduck.work.rollup_tables import rollup_name
from shelduck.work.rollups.shape import base_of
from shelduck.work.rows.following import is_fresh
from shelduck.work.state import LakeState
from shelduck.work.unit import UnitOfWork

_STALE = "queries read {} itself; its next write or refresh_rollups() makes up for it"


def settled_too_late(connection: Connection, names: Mapping[int, str]) -> Iterator[Problem]:
    """Find tables that count as complete up to a snapshot that does not exist yet."""
    for table, at in settled_ahead(connection).items():
        name = f"shelduck_settled (table_id {table})"
        wrong = f"it counts as complete up to snapshot {at}, and there is no such snapshot yet"
        remedy = "delete the row: the next write makes it complete again"
        yield Problem(names.get(table, ""), "rollup", name, wrong, remedy, "deletes the row")


def forget_settled_too_late(state: LakeState) -> None:
    """Forget what counts as complete up to a snapshot that does not exist yet."""
    write_with_retries(state.store, lambda c: forget_settled(c, settled_ahead(c)))


def rollup_notes(unit: UnitOfWork, name: TableName) -> Iterator[Problem]:
    """Return what is worth knowing of the rollups of a table, or of a rollup without a base.

    Nothing of it gives a wrong answer: queries use only rollups that are up to date.
    """
    table = unit.workspace.table(name)
    own = rollup_of(table)
    if own is not None:
        base = base_of(unit, table)
        if base is None:
            yield _note(table, "its base does not exist, so nobody updates it", "drop the table")
        elif own.name not in rollup_names(base):
            wrong = f"{base.full_name} does not list it, so nobody updates it"
            remedy = "it may belong to a job that is at work; otherwise drop the table"
            yield _note(table, wrong, remedy)
    for short in rollup_names(table):
        found = _rollup(unit, table, short)
        if found is None:
            wrong = f"{table.full_name} lists it, but its table does not exist"
            remedy = f"use ALTER TABLE {table.name} DROP ROLLUP {short}, or add it again"
            missing = str(rollup_name(table, short))
            yield Problem(table.full_name, "rollup", missing, wrong, remedy)
        elif not is_current(table, found):
            wrong = "its columns are not those of its base any more, so it is stale"
            yield _note(found, wrong, _STALE.format(table.full_name))
        elif not is_fresh(unit, table, found):
            wrong = "it is stale: others changed its base or itself"
            yield _note(found, wrong, _STALE.format(table.full_name))


def wrong_rollups(unit: UnitOfWork, name: TableName) -> Iterator[Problem]:
    """Compare each rollup of a table that is up to date with its base; one query each."""
    base = unit.workspace.table(name)
    for short in rollup_names(base):
        found = _rollup(unit, base, short)
        if found is None or not is_fresh(unit, base, found):
            continue
        spark = unit.state.spark
        held = rows_of(unit, TableName.of(found)).frame(spark)
        wrong = wrong_rollup(held, rows_of(unit, name).frame(spark), found, base)
        if wrong is not None:
            remedy = f"drop and add the rollup: ALTER TABLE {base.name} DROP ROLLUP {short}"
            yield Problem(found.full_name, "rollup", found.full_name, wrong, remedy)


def _rollup(unit: UnitOfWork, base: TableVersion, short: str) -> TableVersion | None:
    try:
        found = unit.workspace.table(rollup_name(base, short))
    except NotFound:
        return None
    own = rollup_of(found)
    return found if own is not None and own.base == base.uuid else None


def _note(rollup: TableVersion, wrong: str, remedy: str) -> Problem:
    return Problem(rollup.full_name, "rollup", rollup.full_name, wrong, remedy)
