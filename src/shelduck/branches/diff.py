"""How a branch differs from its base: columns by the catalog, and rows by their ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from shelduck.branches.branch_diff import BranchDiff, RowCounts, TableDiff
from shelduck.branches.branch_tables import (
    branch_called,
    rollups_then,
    source_of_branch,
    table_pairs,
    twin_as_begun,
)
from shelduck.branches.changed_rows import IS_NEW, LIVES, Side
from shelduck.branches.merge import BranchMerge
from shelduck.branches.merging import Resolution
from shelduck.branches.table_clauses import clauses_between
from shelduck.branches.table_merge import LakeHistory
from shelduck.catalog.read.overview.commits import FileChanges, row_changes
from shelduck.errors import InvalidRequest, Unsupported
from shelduck.lake.lookup import rows_of
from shelduck.lake.results import TableName
from shelduck.lake.state import LakeState
from shelduck.lake.unit import UnitOfWork
from shelduck.model.changes.change import COMPACTIONS, DELETES, INSERTS
from shelduck.model.changes.job import successors
from shelduck.model.tables.rollup import rollup_names
from shelduck.model.tables.table_version import Feature, TableVersion
from shelduck.model.tables.twin import branched_from
from shelduck.model.text.names import quote_name
from shelduck.read.scan.scan_frames import Origin
from shelduck.rollups.rollup_plan import spec_of
from shelduck.text.ddl.render import rollup_text
from shelduck.write.parquet.kept import Kept

MOST = 1000
"""At most so many rows of a table are shown."""
_KINDS = {(True, True): "added", (True, False): "changed", (False, False): "deleted"}
"""The words of a diff: whether a row lives, and whether it is new."""
_OF_FEED = {"_change_type", "_commit_version", "_commit_timestamp", "_row_id", str(Origin.ROW_ID)}


def diff_of(state: LakeState, name: str, rows: int, resolve: Sequence[Resolution]) -> BranchDiff:
    """Return what happened on a branch, with up to ``rows`` rows of each table.

    Spark counts rows if it runs already, or if some are to be shown, where the catalog does not say
    it. Raises NotFound for no branch, and Conflict if its base has expired.
    """
    if not 0 <= rows <= MOST:
        raise InvalidRequest(f"rows is {rows}; pass 0 to {MOST:,}")
    unit = UnitOfWork(state)
    merge, refusal = BranchMerge(unit, name, resolve), ""
    try:
        merge.look()
    except Unsupported as error:
        refusal = str(error)
    schema, branch = branch_called(unit, name)
    source = source_of_branch(unit, branch)
    assert source is not None  # the merge needs it
    found: list[_Changed] = []
    told: list[TableDiff] = []
    with unit.workspace.reading() as connection:
        history = LakeHistory(connection, unit.workspace.base.id)
        for ours, theirs in table_pairs(unit, schema, branch):
            if theirs is None:
                assert ours is not None
                told.append(TableDiff(ours.full_name, "dropped"))
                continue
            base, since = None, branch.base
            if (twin := branched_from(theirs)) is not None:
                base, since = twin_as_begun(unit, connection, theirs, twin), twin.since
            side = Side(unit, theirs, since, history.conversions(theirs, since))
            named = replace(theirs, schema=source) if ours is None else ours
            one = _changed(history, side, base, named.full_name)
            if one is not None:
                found.append(one)
    # Spark may take long, and others wait for the catalog.
    told += [*(one.with_rows(rows) for one in found), *merge.views.told]
    conflicts = () if refusal else tuple(merge.conflicts)
    return BranchDiff(schema.text, source.text, branch.base, _told(told), conflicts, refusal)


def _told(known: Sequence[TableDiff]) -> tuple[TableDiff, ...]:
    """Return what happened to tables, sorted by name; one that replaces another is listed once."""
    gone = {one.table for one in known if one.change == "dropped"}
    again = {one.table for one in known if one.change == "created" and one.table in gone}
    return tuple(
        replace(one, change="replaced") if one.table in again else one
        for one in sorted(known, key=lambda one: one.table)
        if one.table not in again or one.change == "created"
    )


def _changed(
    history: LakeHistory, side: Side, base: TableVersion | None, name: str
) -> _Changed | None:
    """Return what the catalog says of a table that was ``base``, None for a new one.

    None if nothing happened to it.
    """
    clauses, rollups = tuple[str, ...](), tuple[str, ...]()
    verbs = history.changes(side.table, side.since)
    if base is not None:
        done = [c for job in side.jobs if job.is_understood for c in job.work.conversions]
        clauses = clauses_between(base, side.table, successors(done))
        rollups = tuple(_rollups(side, base, name))
        if not (clauses or rollups or verbs & (INSERTS | DELETES)):
            return None
        if not (clauses or rollups) and history.has_same_files(side.table, side.since):
            return None
    known = row_changes(history.connection, [side.table.id], side.since, history.head)
    found = known.get(side.table.id, FileChanges())
    # A fold ends rows without saying so.
    folds = bool(verbs & COMPACTIONS) and Feature.KEYS in side.table.features
    if not found.is_certain:
        counts = RowCounts()
    elif base is None or not (verbs & DELETES or folds):
        counts = RowCounts(found.rows, 0, 0, found.rows)
    elif verbs & INSERTS:
        counts = RowCounts(net=found.rows)
    else:
        counts = RowCounts(0, 0, -found.rows, found.rows)
    word = "changed" if base else "created"
    return _Changed(side, TableDiff(name, word, clauses, counts, rollups=rollups))


def _rollups(side: Side, base: TableVersion, name: str) -> Iterator[str]:
    """Yield the statements that make the rollups of a table those of now."""
    was, now = rollup_names(base), rollup_names(side.table)
    yield from (f"ALTER TABLE {name} DROP ROLLUP {quote_name(n)}" for n in was if n not in now)
    if not {*now} <= {*was}:
        for each in rollups_then(side.unit, side.table):
            spec = spec_of(side.table, each)
            if spec is not None and spec.name not in was:
                yield rollup_text(name, spec)


@dataclass(frozen=True)
class _Changed:
    """A table of a branch, and what the catalog says of it."""

    side: Side
    told: TableDiff

    def with_rows(self, most: int) -> TableDiff:
        """Return it with what Spark knows: counts, and up to so many rows."""
        if not (most or (self.side.unit.state.has_spark and not self.told.counts.is_known)):
            return self.told
        changed = self.side.changed
        if changed is None:
            return self.told
        rows = tuple(self._some(changed, most)) if most else ()
        return replace(self.told, counts=_counted(changed, self.told.counts.net), rows=rows)

    def _some(self, changed: Kept, most: int) -> Iterator[Mapping[str, object]]:
        """Yield the first rows by id: as they are, and deleted ones as they were."""
        some = changed.rows.orderBy(str(Origin.ROW_ID)).limit(most).collect()
        chosen = {row[Origin.ROW_ID]: _KINDS[row[LIVES], row[IS_NEW]] for row in some}
        unit, parts = self.side.unit, self.side.parts
        if not chosen or parts is None:
            return
        now = rows_of(unit, TableName.of(self.side.table))
        frames = [
            (str(Origin.ROW_ID), now.frame(unit.state.spark, origins=(Origin.ROW_ID,))),
            *(("_row_id", part.where("_change_type = 'delete'")) for part in parts),
        ]
        ids = f"IN ({', '.join(map(str, chosen))})"
        rows = {
            row[number]: row.asDict(recursive=True)
            for number, frame in frames
            for row in frame.where(f"{number} {ids}").collect()
        }
        for number, change in chosen.items():
            values = {k: v for k, v in rows[number].items() if k not in _OF_FEED}
            yield {"_change": change, **values}


def _counted(changed: Kept, net: int | None) -> RowCounts:
    found = changed.rows.groupBy(LIVES, IS_NEW).count().collect()
    counts = {_KINDS[row[LIVES], row[IS_NEW]]: row["count"] for row in found}
    added, modified, deleted = (counts.get(word, 0) for word in ("added", "changed", "deleted"))
    return RowCounts(added, modified, deleted, net)
