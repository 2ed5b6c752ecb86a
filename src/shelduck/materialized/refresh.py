"""REFRESH of a materialized view: its query runs over changed rows, and a merge puts them in place.

The text of the query never changes: each run has other rows in the place of its tables. What rows
of a table add, and what those that went had added, is the query over these rows alone, beside the
other tables as they were before (for tables behind it) or are now. A row of a table in a LEFT JOIN
decides about rows of another table, so the query runs over those, before and after.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from types import MappingProxyType

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.bridge import engine_for
from shelduck.engine.rows.assignments import Value
from shelduck.lake.done import Done
from shelduck.lake.lookup import rows_of
from shelduck.lake.operation import text_over
from shelduck.lake.results import TableName
from shelduck.lake.unit import UnitOfWork
from shelduck.materialized.planning import BaseTable, RefreshPlan, Way
from shelduck.model.changes.change import DELETES
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import backticked
from shelduck.read.scan.images import CAME, WENT
from shelduck.read.scan.images import rows_of as rows_of_feed
from shelduck.read.scan.scan_frames import Origin
from shelduck.read.table_rows import table_rows
from shelduck.text.query.query_shape import Fold
from shelduck.write.changes.append import placing
from shelduck.write.changes.edits import merge_rows
from shelduck.write.changes.overwrite import overwrite_table
from shelduck.write.edit_verbs import (
    when_matched_delete,
    when_matched_update,
    when_not_matched_insert,
)
from shelduck.write.hooks import stage_rows
from shelduck.write.merge.load_rows import same_keys
from shelduck.write.merge.merge_clauses import Merge, MergeClause
from shelduck.write.parquet.kept import Kept, keep, shared

_SIGN, _COPIES, _AT, _GONE = (f"__shelduck_{n}" for n in ("sign", "copies", "at", "gone"))
Frames = Mapping[str, DataFrame]


def stage_refresh(unit: UnitOfWork, table: TableVersion, plan: RefreshPlan) -> None:
    """Stage the rows that a plan which does something gives to a materialized view."""
    work = _Refresh(unit, table, plan)
    made = {Way.ROWS: work.rows, Way.SUMS: work.sums, Way.GROUPS: work.groups, Way.ALL: work.all}
    done = made[plan.way]()
    if done is not None:
        stage_rows(unit, done)


@dataclass(frozen=True)
class _Refresh:
    unit: UnitOfWork
    table: TableVersion
    plan: RefreshPlan
    kept: list[Kept] = field(default_factory=list)
    """Over Spark Connect, rows that nobody holds are gone."""

    @property
    def names(self) -> list[str]:
        """The columns of the view."""
        return self.table.columns.names

    @property
    def keys(self) -> list[str]:
        """Those that identify a group."""
        return [self.names[place] for place in self.plan.shape.keys or ()]

    def all(self) -> Done:
        """Replace all rows."""
        rows = rows_of(self.unit, TableName.of(self.table), writes=True, deletes=True)
        how = placing(self.unit.state, rows.table, by_position=True)
        return overwrite_table(self.unit.state.spark, rows, self.plan.rows, how)

    def rows(self) -> Done | None:
        """Take away as many equal rows as went, and add those that came."""
        names = [F.col(backticked(n)) for n in self.names]
        counted = self.changed.groupBy(*names).agg(F.sum(_SIGN).alias(_COPIES))
        net = self._keep(counted.where(F.col(_COPIES) != 0))
        if not net.count:
            return None
        came, went = F.col(_COPIES) > 0, F.col(_COPIES) < 0
        less = shared(net.rows.where(went), net.count).alias("r")
        equal = self._held((Origin.ROW_ID,)).alias("l").join(less, _same(self.names))
        of_row = Window.partitionBy(*(f"l.{backticked(n)}" for n in self.names))
        at = F.row_number().over(of_row.orderBy(Origin.ROW_ID))
        dead = equal.select("l.*", _COPIES, at.alias(_AT)).where(F.col(_AT) <= -F.col(_COPIES))
        new = net.rows.where(came).withColumn(_AT, F.explode(F.sequence(F.lit(1), _COPIES)))
        new = new.select(*names, F.lit(None).cast("bigint").alias(_AT))
        old = dead.select(*names, F.col(Origin.ROW_ID).alias(_AT))
        return self._merged(
            old.unionAll(new), f"t.{Origin.ROW_ID} = s.{_AT}", when_matched_delete(), self._insert()
        )

    def sums(self) -> Done:
        """Add to the groups what came, less what went."""
        shape, loses = self.plan.shape, self.plan.loses
        folds = {self.names[n]: fold for n, fold in (shape.folds or {}).items()}
        told = {self.names[n]: self.names[c] for n, c in shape.told.items()} if loses else {}
        keys = [F.col(backticked(k)) for k in self.keys]
        source = self.changed.select(*keys).distinct()
        if folds:
            source = self.changed.groupBy(*keys).agg(*(_folded(n, f) for n, f in folds.items()))
            source = source.select(
                *keys, *(F.col(backticked(n)).cast(self._kind(n)) for n in folds)
            )
        clauses: list[MergeClause] = []
        is_new = None
        if loses:
            assert shape.counted is not None
            count = backticked(self.names[shape.counted])
            clauses.append(when_matched_delete(condition=f"t.{count} + s.{count} = 0"))
            is_new = f"s.{count} <> 0"
        if folds:
            values = {backticked(n): self._sum(n, fold, told) for n, fold in folds.items()}
            clauses.append(when_matched_update(values))
        return self._merged(source, self._on(), *clauses, self._insert(is_new, told))

    def groups(self) -> Done | None:
        """Compute the groups again in which rows came or went."""
        keys = [F.col(backticked(k)) for k in self.keys]
        touched = self._keep(self.changed.select(*keys).distinct())
        if not touched.count:
            return None
        few = shared(touched.rows, touched.count)
        frames = {word: self._now(base) for word, base in self.plan.bases.items()}
        owned: dict[str, list[tuple[str, str]]] = {}
        for place, (word, column) in (self.plan.shape.sources or {}).items():
            owned.setdefault(word, []).append((column, self.names[place]))
        for word, pairs in sorted(owned.items(), key=lambda each: -len(each[1]))[:1]:
            same = few.select(*(F.col(backticked(n)).alias(c) for c, n in pairs)).distinct()
            frames[word] = _having(frames[word], [c for c, _ in pairs], same)
        new = self._keep(_having(self._query(frames), self.keys, few))
        gone = _having(touched.rows, self.keys, new.rows, how="left_anti")
        nothing = [F.lit(None).alias(n) for n in self.names if n not in self.keys]
        source = new.rows.withColumn(_GONE, F.lit(False)).unionByName(
            gone.select(*keys, *nothing, F.lit(True).alias(_GONE))
        )
        names = [backticked(n) for n in self.names]
        differs = " OR ".join(f"NOT (t.{n} <=> s.{n})" for n in names)
        return self._merged(
            source,
            self._on(),
            when_matched_delete(condition=f"s.{_GONE}"),
            when_matched_update({n: f"s.{n}" for n in names}, condition=differs),
            self._insert(f"NOT s.{_GONE}"),
        )

    @cached_property
    def changed(self) -> DataFrame:
        """What the query gives more (`_SIGN` is 1) and less (-1) for the changed rows."""
        runs = (self._query(frames).withColumn(_SIGN, F.lit(sign)) for sign, frames in self._runs())
        return reduce(DataFrame.unionAll, runs)

    def _runs(self) -> Iterator[tuple[int, Frames]]:
        words, bases = list(self.plan.shape.tables), self.plan.bases
        for at, (word, matching) in enumerate(self.plan.shape.tables.items()):
            base = bases[word]
            if base.feed is None:
                continue
            loses = bool(base.verbs & DELETES)
            feed = self._keep(base.feed).rows if loses or matching else base.feed
            frames = {
                w: self._now(bases[w]) if n < at else self._then(bases[w])
                for n, w in enumerate(words)
                if n != at
            }
            if matching is None:
                yield 1, {**frames, word: rows_of_feed(feed, CAME)}
                if loses:
                    yield -1, {**frames, word: rows_of_feed(feed, WENT)}
                continue
            columns = [F.col(backticked(mine)).alias(theirs) for theirs, mine in matching.columns]
            touched = self._keep(feed.select(*columns).distinct())
            names = [theirs for theirs, _ in matching.columns]
            few = shared(touched.rows, touched.count)
            frames[matching.word] = _having(frames[matching.word], names, few)
            yield 1, {**frames, word: self._now(base)}
            yield -1, {**frames, word: self._then(base)}

    def _keep(self, rows: DataFrame) -> Kept:
        self.kept.append(keep(rows))
        return self.kept[-1]

    def _query(self, frames: Frames) -> DataFrame:
        text = text_over(self.plan.query, frames)
        return engine_for(self.unit.state.spark).query(text, frames).toDF(*self.names)

    def _now(self, base: BaseTable) -> DataFrame:
        return rows_of(self.unit, TableName.of(base.now), needs_all=False).frame(
            self.unit.state.spark
        )

    def _then(self, base: BaseTable) -> DataFrame:
        state = self.unit.state
        if base.feed is None:
            return self._now(base)
        return table_rows(state.store, base.then, state.layouts, lists=state.lists).frame(
            state.spark
        )

    def _held(self, origins: Sequence[Origin]) -> DataFrame:
        rows = rows_of(self.unit, TableName.of(self.table))
        return rows.frame(self.unit.state.spark, None, origins)

    def _merged(self, source: DataFrame, on: str, *clauses: MergeClause) -> Done:
        state = self.unit.state
        rows = rows_of(self.unit, TableName.of(self.table), writes=True, deletes=True)
        merge = Merge(on, clauses, "t", "s")
        return merge_rows(state.spark, rows, source, merge, placing(state, rows.table))

    def _insert(
        self, condition: str | None = None, told: Mapping[str, str] = MappingProxyType({})
    ) -> MergeClause:
        """Return the clause for new rows; a sum of no values is NULL, as ``told`` counts say."""
        values: dict[str, Value] = {n: f"s.{n}" for n in map(backticked, self.names)}
        for name, count in told.items():
            new = backticked(name)
            values[new] = f"CASE WHEN s.{backticked(count)} <> 0 THEN s.{new} END"
        return when_not_matched_insert(values, condition=condition)

    def _on(self) -> str:
        return " AND ".join(f"t.{k} <=> s.{k}" for k in map(backticked, self.keys))

    def _sum(self, name: str, fold: Fold, told: Mapping[str, str]) -> Column:
        """Return a column of a group and of what it gets, as one."""
        old, new = (F.col(f"{side}.{backticked(name)}") for side in "ts")
        if fold is Fold.MIN:
            return F.least(old, new)
        if fold is Fold.MAX:
            return F.greatest(old, new)
        found = F.coalesce(old + new, old, new).cast(self._kind(name))
        if name not in told:
            return found
        count = backticked(told[name])
        return F.when(F.col(f"t.{count}") + F.col(f"s.{count}") != 0, found)

    def _kind(self, name: str) -> T.DataType:
        return self.plan.rows.schema[self.names.index(name)].dataType


def _folded(name: str, fold: Fold) -> Column:
    """Return the value of a column for rows of the query over parts of its tables."""
    column = F.col(backticked(name))
    if fold in (Fold.MIN, Fold.MAX):
        return (F.min if fold is Fold.MIN else F.max)(column).alias(name)
    return F.sum(F.when(F.col(_SIGN) > 0, column).otherwise(-column)).alias(name)


def _having(
    rows: DataFrame, columns: Sequence[str], wanted: DataFrame, how: str = "left_semi"
) -> DataFrame:
    """Return the rows of which ``wanted`` has, or has not, the values in these columns."""
    return rows.alias("l").join(wanted.alias("r"), _same(columns), how)


def _same(columns: Sequence[str]) -> Column:
    return same_keys((f"l.{n}", f"r.{n}") for n in map(backticked, columns))
