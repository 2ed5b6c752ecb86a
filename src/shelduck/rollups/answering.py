"""Queries that one of a table's rollups answers."""

from __future__ import annotations

from shelduck.engine.session import DataFrame
from shelduck.errors import NewerFormat
from shelduck.lake.lookup import rows_of
from shelduck.lake.results import TableName
from shelduck.lake.unit import UnitOfWork
from shelduck.model.files.data_file import live_rows
from shelduck.model.tables.keys import table_keys
from shelduck.model.tables.rollup import keeps_rows, rollup_of
from shelduck.model.tables.schema import FieldId
from shelduck.model.tables.table_version import TableVersion
from shelduck.read.plan.rollup_choice import Candidate, Wanted, choose
from shelduck.read.scan.rollup_rule import Chooser, RollupFrame
from shelduck.read.table_rows import TableRows
from shelduck.rollups.following import is_fresh
from shelduck.rollups.rollup_tables import rollups_of


def chooser_of(unit: UnitOfWork, rows: TableRows) -> Chooser | None:
    """Return a function that chooses a rollup for a query, None if the table has no usable one.

    Only rollups that are fresh at the unit's snapshot, from which the rows are too, are considered.
    If a newer Shelduck made them, the table itself answers.
    """
    try:
        return _chooser(unit, rows.table, rows)
    except NewerFormat:
        return None


def _chooser(unit: UnitOfWork, base: TableVersion, rows: TableRows) -> Chooser | None:
    candidates: list[Candidate] = []
    found: dict[str, TableRows] = {}
    for table in rollups_of(unit, base):
        if not is_fresh(unit, base, table):
            continue
        theirs = rows_of(unit, TableName.of(table))
        rollup, count = rollup_of(table), _alive(theirs)
        if rollup is None or count is None:
            continue
        sources = {c.id: c.source for c in rollup.columns}
        order = tuple(s for i in _key_order(table) if (s := sources.get(i)) is not None)
        whole = keeps_rows(rollup, table_keys(table), table_keys(base))
        candidates.append(Candidate(rollup.name, rollup, order, count, whole))
        found[rollup.name] = theirs
    total = _alive(rows)
    if not candidates or total is None:
        return None
    frames: dict[str, DataFrame] = {}

    def chosen(wanted: Wanted) -> RollupFrame | None:
        choice = choose(wanted, _key_order(base), total, candidates)
        if choice is None:
            return None
        theirs = found[choice.name]
        # Made once, as Spark plans a query several times. Two threads may make two.
        if choice.name not in frames:
            frames[choice.name] = theirs.frame(unit.state.spark)
        names = {f.id: f.name for f in theirs.table.columns}
        return RollupFrame.of(choice, frames[choice.name], names)

    return chosen


def _key_order(table: TableVersion) -> tuple[FieldId, ...]:
    keys = table_keys(table)
    return () if keys is None else keys.columns


def _alive(rows: TableRows) -> int | None:
    """Return how many rows there are, None if a file does not say."""
    stored = live_rows(rows.files)
    return None if stored is None else stored + sum(len(part.row_ids) for part in rows.inlined)
