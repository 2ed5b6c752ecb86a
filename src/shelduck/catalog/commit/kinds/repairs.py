"""Repairs of the catalog: what needs no decision."""

from __future__ import annotations

from sqlalchemy import delete, insert, update

from shelduck.catalog.commit.draft import Draft
from shelduck.catalog.commit.kinds.kind import Kind
from shelduck.catalog.commit.mends import equal_rows, low_counters
from shelduck.catalog.commit.rows.table_stats import widen_column_stats
from shelduck.catalog.commit.work import Work
from shelduck.catalog.databases.known import misnamed_tables, renaming
from shelduck.ducklake import tables
from shelduck.errors import Conflict
from shelduck.model.changes.problem import CorrectedStats, RepairCatalog
from shelduck.model.types.bounds import exactness


def write(draft: Draft, work: Work) -> None:
    """Mend what is wrong now; a few statements for each table of the catalog."""
    for change in work.of(RepairCatalog):
        if change.rows:
            _names(draft)
            _rows(draft)
            _counters(draft)
        for corrected in change.statistics:
            _statistics(draft, corrected)
    # DuckDB caches the statistics of a table.
    draft.has_stats_change = True


KIND = Kind((RepairCatalog,), Work.keep, write)


def _names(draft: Draft) -> None:
    for found in misnamed_tables(draft.connection):
        for statement in renaming(found.table, found.names) if found.taken is None else ():
            draft.connection.execute(statement)


def _rows(draft: Draft) -> None:
    for equal in list(equal_rows(draft.connection)):
        done = draft.connection.execute(delete(equal.source).where(equal.condition))
        if done.rowcount != equal.count:
            raise Conflict(
                f"cannot repair the catalog: {equal.count} equal rows of {equal.source.name} were"
                f" found, and {done.rowcount} would be deleted; delete them by hand"
            )
        draft.connection.execute(insert(equal.source), equal.row)


def _counters(draft: Draft) -> None:
    total = tables.table_stats
    for low in [low for low in low_counters(draft.connection) if low.is_mendable]:
        if low.table is not None:
            raised = update(total).where(total.c.table_id == low.table)
            draft.connection.execute(raised.values(next_row_id=low.wanted))
        elif low.name == "next_file_id":
            draft.skip_ids(file=low.wanted)
        else:
            draft.skip_ids(catalog=low.wanted)


def _statistics(draft: Draft, corrected: CorrectedStats) -> None:
    """Correct statistics if they are still the ones that were compared with the footer."""
    known = draft.format.table(tables.file_column_stats)
    c, seen, true = known.c, corrected.seen, corrected.true
    names = ("null_count", "min_value", "max_value")
    same = [c[name].is_not_distinct_from(getattr(seen, name)) for name in names]
    mine = (c.data_file_id == corrected.data_file_id, c.column_id == seen.column_id)
    values = {name: getattr(true, name) for name in names}
    for end in ("min", "max"):
        text, flag = getattr(true, f"{end}_value"), f"{end}_is_exact"
        if flag in c and text != getattr(seen, f"{end}_value"):
            values[flag] = exactness(corrected.leaf, text, None)
    changed = update(known).where(*mine, *same).values(values)
    if draft.connection.execute(changed).rowcount:
        widen_column_stats(draft, corrected.table, corrected.leaf, true)
