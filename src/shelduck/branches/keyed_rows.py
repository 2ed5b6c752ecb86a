"""Rows of UNIQUE and AGGREGATE tables on a branch: a merge loads what happened to each key.

A load replaces or combines rows of one key, so rows that both sides loaded are no conflict. That is
one only where one side deleted the row of a key, and the other one changed it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck.branches.changed_rows import MOST_LISTED, Side, decided
from shelduck.branches.merging import Merging
from shelduck.lake.done import Counts
from shelduck.lake.lookup import rows_of
from shelduck.lake.results import TableName
from shelduck.lake.unit import UnitOfWork
from shelduck.model.tables.keys import Aggregation, table_keys
from shelduck.model.tables.schema import Field
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import backticked
from shelduck.read.scan.scan_frames import ORIGINS
from shelduck.write.appending import load
from shelduck.write.changes.append import placing
from shelduck.write.changes.edits import Versions, write_versions
from shelduck.write.hooks import settled_rows, stage_rows
from shelduck.write.parquet.kept import Kept, keep

# A struct of keys, of which NULL is equal to NULL, and structs whose fields are ids of columns.
_KEY, _BEFORE, _AFTER, _MINE = (f"__shelduck_{n}" for n in ("key", "before", "after", "mine"))
# All these ignore NULL.
_ADDS_NOTHING = frozenset(Aggregation) - {Aggregation.REPLACE}


@dataclass(frozen=True)
class KeyedMerge:
    """What happened to the keys of a table on both sides; ``merged`` has the merged columns."""

    merged: TableVersion
    ours: Side
    theirs: Side

    @cached_property
    def _nets(self) -> tuple[Kept | None, Kept | None]:
        return self._net(self.ours), self._net(self.theirs)

    def _key(self, table: TableVersion) -> Column:
        keys = table_keys(self.merged)
        assert keys is not None
        return F.struct(*(F.col(backticked(f.name)) for f in keys.key_fields(table.columns)))

    def _net(self, side: Side) -> Kept | None:
        """Return the rows of changed keys before and after, NULL for none."""
        parts = side.parts
        if parts is None:
            return None
        [events] = parts
        comes = F.col("_change_type").isin("insert", "update_postimage")
        row = F.struct(comes.alias("comes"), *_ids(side.table))
        at = F.struct("_commit_version", comes)
        found = events.groupBy(self._key(side.table).alias(_KEY)).agg(
            F.min_by(row, at).alias(_BEFORE), F.max_by(row, at).alias(_AFTER)
        )
        was = F.when(~F.col(f"{_BEFORE}.comes"), F.col(_BEFORE)).alias(_BEFORE)
        now = F.when(F.col(f"{_AFTER}.comes"), F.col(_AFTER)).alias(_AFTER)
        told = found.select(_KEY, was, now)
        return keep(told.where(F.col(_BEFORE).isNotNull() | F.col(_AFTER).isNotNull()))

    def stay(self, merging: Merging) -> DataFrame | None:
        """Return the keys whose rows stay as ours, by a resolution; None for none.

        Other keys of which one side deleted the row are noted as conflicts.
        """
        keys = table_keys(self.merged)
        for field in keys.key_fields(self.merged.columns) if keys else ():
            there = (side.table.columns.by_id(field.id) for side in (self.ours, self.theirs))
            states = ["new rows" if known is None else "a new key" for known in there]
            if "new rows" in states:
                merging.refuse("key", field.name, "", *states)
                return None
        mine, other = self._nets
        if mine is None or other is None:
            merging.refuse("table", "its rows", "", "", "changes that nobody knows any more")
            return None
        met = other.rows.join(mine.rows.select(_KEY, F.col(_AFTER).alias(_MINE)), _KEY)
        left = keep(met.where(F.col(_AFTER).isNull() != F.col(_MINE).isNull())).rows
        ours = _values(left.where(F.col(_MINE).isNotNull()), _MINE, self.ours.table)
        theirs = _values(left.where(F.col(_MINE).isNull()), _AFTER, self.theirs.table)
        shown = ours.unionByName(theirs, allowMissingColumns=True)
        left, stay = decided(left, shown, merging.resolutions, by=_KEY)
        for row in left.orderBy(_KEY).limit(MOST_LISTED).collect():
            told = ("deleted" if row[name] is None else "changed" for name in (_MINE, _AFTER))
            key = ", ".join(map(str, row[_KEY]))
            merging.refuse("key", f"({key})", "as it was", *told)
        return stay

    def stage(self, unit: UnitOfWork, stay: DataFrame | None) -> None:
        """Stage deletes of keys, and loads of the others."""
        _, other = self._nets
        assert other is not None
        net = other.rows if stay is None else other.rows.join(stay, _KEY, "left_anti")
        name, spark = TableName.of(self.ours.table), unit.state.spark
        rows = settled_rows(unit, name)
        gone = net.where(F.col(_AFTER).isNull()).select(_KEY)
        keyed = rows.frame(spark, None, ORIGINS).withColumn(_KEY, self._key(rows.table))
        if (lost := self._went_back(rows.table)) is not None:
            gone = gone.union(keyed.join(net, _KEY).where(lost).select(_KEY))
        dead = keep(keyed.join(gone, _KEY, "left_semi"))
        if dead.count:
            versions = Versions(Counts(deleted=dead.count), dead=dead.rows)
            stage_rows(unit, write_versions(spark, rows, versions, placing(unit.state, rows.table)))
        now = rows_of(unit, name).frame(spark)
        there = now.select(
            self._key(rows.table).alias(_KEY), F.struct(*_ids(rows.table)).alias(_MINE)
        )
        both = net.where(F.col(_AFTER).isNotNull()).join(there, _KEY, "left")
        known = {f.id for f in self.theirs.table.columns}
        lacks = [f for f in rows.table.columns if f.id not in known]
        has = [f for f in rows.table.columns if f.id in known]
        is_there = F.col(_MINE).isNotNull()
        parts = [(both, has)]
        if lacks:
            parts = [(both.where(is_there), [*has, *lacks]), (both.where(~is_there), has)]
        for some, fields in parts:
            df = some.select(*(self._value(f, f in lacks).alias(f.name) for f in fields))
            stage_rows(unit, load(unit, name, df))

    def _went_back(self, table: TableVersion) -> Column | None:
        """Return whether the branch alone deleted and loaded a key, so that MIN or MAX hide it.

        None if the table has neither.
        """
        keys = table_keys(self.merged)
        assert keys is not None
        same, found = F.lit(True), []
        for field in self.theirs.table.columns:
            how, own = keys.aggregation(field.id), table.columns.by_id(field.id)
            after, before = (F.col(f"{name}.c{field.id}") for name in (_AFTER, _BEFORE))
            if how is not None and own is not None:
                same &= F.col(backticked(own.name)).eqNullSafe(before)
            is_lost = before.isNotNull() & after.isNull()
            if how is Aggregation.MAX:
                found.append(is_lost | (after < before))
            elif how is Aggregation.MIN:
                found.append(is_lost | (after > before))
        there = F.col(_BEFORE).isNotNull() & F.col(_AFTER).isNotNull()
        return there & same & reduce(Column.__or__, found) if found else None

    def _value(self, field: Field, is_lacking: bool) -> Column:
        """Return what a load needs, so that a key ends up as the branch has it, or both sides."""
        keys = table_keys(self.merged)
        how = None if keys is None else keys.aggregation(field.id)
        if is_lacking:
            return F.lit(None) if how in _ADDS_NOTHING else F.col(f"{_MINE}.c{field.id}")
        after, before = (F.col(f"{name}.c{field.id}") for name in (_AFTER, _BEFORE))
        # If the other side deleted the row, the whole value counts.
        goes_on = F.col(_BEFORE).isNotNull() & F.col(_MINE).isNotNull()
        if how is Aggregation.SUM:
            more = F.coalesce(after, F.lit(0)) - F.coalesce(before, F.lit(0))
            return F.when(goes_on, more).otherwise(after)
        if how is None or not how.replaces:
            return after
        own = F.lit(None) if how in _ADDS_NOTHING else F.col(f"{_MINE}.c{field.id}")
        return F.when(goes_on & after.eqNullSafe(before), own).otherwise(after)


def _ids(table: TableVersion) -> list[Column]:
    return [F.col(backticked(f.name)).alias(f"c{f.id}") for f in table.columns]


def _values(rows: DataFrame, struct: str, table: TableVersion) -> DataFrame:
    names = [F.col(f"{struct}.c{f.id}").alias(f.name) for f in table.columns]
    return rows.select(_KEY, *names)
