"""Repairs of the catalog: what is wrong in its rows and can be mended without a decision."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from shelduck.catalog.commit.draft import ChangeKind, Draft
from shelduck.catalog.commit.opening import Work
from shelduck.catalog.commit.rows.table_stats import widen_column_stats
from shelduck.catalog.databases.known import misnamed_tables, renaming
from shelduck.ducklake import tables
from shelduck.ducklake.checked import BIGINT
from shelduck.ducklake.format import format_of
from shelduck.errors import Conflict
from shelduck.model.changes.problem import CorrectedStats, RepairCatalog
from shelduck.model.types.literals import exactness

# A greater distance is rather a wrong id than a low counter.
_MOST_SKIPPED = 1_000_000_000
_CATALOG_IDS = (
    tables.schema.c.schema_id,
    tables.table.c.table_id,
    tables.view.c.view_id,
    tables.macro.c.macro_id,
    tables.partition_info.c.partition_id,
    tables.sort_info.c.sort_id,
)
_FILE_IDS = (
    tables.data_file.c.data_file_id,
    tables.delete_file.c.delete_file_id,
    tables.column_mapping.c.mapping_id,
)


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


KIND = ChangeKind((RepairCatalog,), Work.keep, write)


def _names(draft: Draft) -> None:
    for found in misnamed_tables(draft.connection):
        for statement in renaming(found.table, found.names) if found.taken is None else ():
            draft.connection.execute(statement)


def _rows(draft: Draft) -> None:
    for equal in list(equal_rows(draft.connection)):
        done = draft.connection.execute(sa.delete(equal.source).where(equal.condition))
        if done.rowcount != equal.count:
            raise Conflict(
                f"cannot repair the catalog: {equal.count} equal rows of {equal.source.name} were"
                f" found, and {done.rowcount} would be deleted; delete them by hand"
            )
        draft.connection.execute(sa.insert(equal.source), equal.row)


def _counters(draft: Draft) -> None:
    total = tables.table_stats
    for low in [low for low in low_counters(draft.connection) if low.is_mendable]:
        if low.table is not None:
            raised = sa.update(total).where(total.c.table_id == low.table)
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
    changed = sa.update(known).where(*mine, *same).values(values)
    if draft.connection.execute(changed).rowcount:
        widen_column_stats(draft, corrected.table, corrected.leaf, true)


@dataclass(frozen=True, slots=True)
class EqualRows:
    """Rows of a table of the catalog that are equal in every column."""

    source: sa.Table
    row: dict[str, Any]
    count: int

    @property
    def condition(self) -> sa.ColumnElement[bool]:
        """The condition that a row is one of them."""
        pairs = self.row.items()
        return sa.and_(*(self.source.c[name].is_not_distinct_from(value) for name, value in pairs))


@dataclass(frozen=True, slots=True)
class LowCounter:
    """A counter, as it is and as it must be; ``table`` is that of a ``next_row_id``."""

    name: str
    now: int
    wanted: int
    table: int | None = None

    @property
    def is_mendable(self) -> bool:
        """True if a repair may raise it."""
        return self.wanted - self.now <= _MOST_SKIPPED


def equal_rows(connection: sa.Connection, most: int | None = None) -> Iterator[EqualRows]:
    """Yield rows that are there several times, at most ``most`` of each table without a key."""
    every = format_of(connection).metadata.tables.values()
    for source in (each for each in every if not each.primary_key.columns):
        count = sa.func.count().label("equal_rows")
        query = (
            sa.select(*source.c, count).group_by(*source.c).having(sa.func.count() > 1).limit(most)
        )
        for found in connection.execute(query).mappings().all():
            row = {c.name: found[c.name] for c in source.c}
            yield EqualRows(source, row, found["equal_rows"])


def low_counters(connection: sa.Connection) -> Iterator[LowCounter]:
    """Yield the counters that would give an id a second time."""
    s, f, total = tables.snapshot.c, tables.data_file.c, tables.table_stats.c
    newest = sa.select(s.next_catalog_id, s.next_file_id).order_by(s.snapshot_id.desc()).limit(1)
    head = connection.execute(newest).first()
    if head is None:
        return
    for name, columns in (("next_catalog_id", _CATALOG_IDS), ("next_file_id", _FILE_IDS)):
        used = [connection.execute(sa.select(_greatest(c))).scalar_one() for c in columns]
        counter = LowCounter(name, getattr(head, name), max(used) + 1)
        if counter.wanted > counter.now:
            yield counter
    # A file with rows of several snapshots may have versions of one row, which share their id.
    last = f.row_id_start + f.record_count - 1
    greatest = _greatest(sa.case((f.partial_max.is_(None), last), else_=f.row_id_start))
    query = (
        sa.select(total.table_id, total.next_row_id, greatest.label("last"))
        .join_from(tables.table_stats, tables.data_file, total.table_id == f.table_id)
        .group_by(total.table_id, total.next_row_id)
    )
    for table, now, last in connection.execute(query).all():
        counter = LowCounter("next_row_id", now, last + 1, table)
        if counter.wanted > counter.now:
            yield counter


def _greatest(value: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
    """Return the greatest value, -1 if there is none."""
    return sa.type_coerce(sa.func.coalesce(sa.func.max(value), -1), BIGINT)
