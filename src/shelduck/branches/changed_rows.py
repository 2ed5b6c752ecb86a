"""Rows that the sides of a merge changed: Spark finds them by their ids, and gives them on.

Both sides are read with the columns that the merge makes. A column that a job converted on one side
is converted for the rows of the other one, as the job did it.

In UNIQUE and AGGREGATE tables, a merge loads what happened to each key. A load replaces or combines
rows of one key, so rows that both sides loaded are no conflict. That is one only where one side
deleted the row of a key, and the other one changed it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck.branches.merging import OURS, Merging, Resolution
from shelduck.engine.rows.table_rules import violations
from shelduck.engine.session import temporary_views
from shelduck.errors import Conflict, ShelduckError
from shelduck.lake.done import Counts
from shelduck.lake.lookup import rows_of
from shelduck.lake.results import TableName
from shelduck.lake.table_changes import changes_of
from shelduck.lake.unit import UnitOfWork
from shelduck.model.changes.job import Job
from shelduck.model.shadows.shadows import Shadow, known_shadow
from shelduck.model.tables.constraints import Constraints, constraints_of, with_constraints
from shelduck.model.tables.keys import Aggregation, table_keys
from shelduck.model.tables.schema import Field, FieldId
from shelduck.model.tables.table_version import Conversion, TableVersion, shadow_name
from shelduck.model.text.names import backticked
from shelduck.read.scan.matching import Where
from shelduck.read.scan.scan_frames import ORIGINS, Origin
from shelduck.read.table_rows import table_rows
from shelduck.write.appending import load
from shelduck.write.changes.append import placing
from shelduck.write.changes.edits import Versions, write_versions
from shelduck.write.edit_verbs import EditVerbs
from shelduck.write.hooks import settled_rows, stage_rows
from shelduck.write.parquet.kept import Kept, keep, shared
from shelduck.write.shadow_rows import add_shadows, require_resolved

# At most so many rows that conflict are listed, and so many characters of each.
MOST_LISTED, _CHARACTERS = 100, 200
_ROW, _TEXT = Origin.ROW_ID, "__shelduck_text"
LIVES, IS_NEW, _NEW = "__shelduck_lives", "__shelduck_is_new", "__shelduck_new_{}"


@dataclass(frozen=True)
class Side:
    """A table of a merge, and the snapshot since which it is compared.

    ``jobs`` have converted columns of it since, in the order of their snapshots. A side that
    ``goes_back`` is the table as it was at that snapshot, and the next one changed its rows.
    """

    unit: UnitOfWork
    table: TableVersion
    since: int
    jobs: tuple[Job, ...] = ()
    goes_back: bool = False

    @cached_property
    def parts(self) -> list[DataFrame] | None:
        """The parts of the change feed, each with its columns; None if nobody knows it.

        A conversion cuts it: no part has the columns of both sides of it. No job runs.
        """
        found, first = [], self.since + 1
        head = first if self.goes_back else self.unit.workspace.base.id
        for job in self.jobs:
            assert job.published is not None
            found.append((first, job.published - 1))
            first = job.first_feed
        parts = [(low, high) for low, high in (*found, (first, head)) if low <= high]
        _ = self.unit.state.spark  # that there is none is not what nobody knows
        try:
            return [
                changes_of(self.unit.state, self.table, *part).where(
                    F.col("_commit_version") > self.since
                )
                for part in parts or [(head, head)]
            ]
        except ShelduckError:
            return None

    @cached_property
    def changed(self) -> Kept | None:
        """The ids of rows that came, changed or went: whether they `LIVES`, and `IS_NEW`."""
        parts = self.parts
        if parts is None:
            return None
        names = ("_row_id", "_commit_version", "_change_type")
        events = reduce(DataFrame.unionAll, [part.select(*names) for part in parts])
        at = F.struct("_commit_version", "_change_type")
        found = events.groupBy(F.col("_row_id").alias(_ROW)).agg(
            F.min(at).alias("first"), F.max(at).alias("last")
        )
        is_new = F.col("first._change_type") == "insert"
        lives = F.col("last._change_type") != "delete"
        if self.goes_back:
            is_new, lives = ~lives, ~is_new
        told = found.select(_ROW, is_new.alias(IS_NEW), lives.alias(LIVES))
        return keep(told.where(F.col(LIVES) | ~F.col(IS_NEW)))

    def rows(self, merged: TableVersion, converted: Sequence[Job] = ()) -> DataFrame:
        """Return the rows with the columns of a merge, followed by their ids.

        ``converted`` are the jobs of the other side, which do to these rows what they did there. A
        value that they cannot convert fails the query.
        """
        made = {f.id: f for f in merged.columns}
        fields = [replace(made.get(f.id, f), name=f.name) for f in self.table.columns]
        known = {f.id: f for f in fields}
        jobs = [list(job.work.conversions) for job in converted]
        wanted = made.keys() - known.keys()
        for conversions in reversed(jobs):
            conversions[:] = [c for c in conversions if c.shadow_id in wanted]
            wanted |= {c.column_id for c in conversions}
        given = {c.shadow_id for some in jobs for c in some}
        lacks = [f for f in merged.columns if f.id not in known.keys() | given]
        more = [replace(f, name=_NEW.format(f.id)) for f in lacks]
        state = self.unit.state
        rows = table_rows(state.store, self.table, state.layouts, lists=state.lists)
        read = replace(self.table, columns=self.table.columns.with_fields([*fields, *more]))
        frame = replace(rows, table=read).frame(state.spark, None, (_ROW,))
        known |= {f.id: f for f in more}
        for conversions in jobs:
            shadows = [self._shadow(known, c) for c in conversions]
            now = replace(read, columns=read.columns.with_fields(list(known.values())))
            require_resolved(state.spark, now, [s for s in shadows if s.conversion.using])
            frame = add_shadows(frame, shadows).drop(*(s.old.name for s in shadows))
            for each in shadows:
                frame = frame.withColumnRenamed(shadow_name(each.field), each.old.name)
            gone = {s.old.id for s in shadows}
            known = {number: f for number, f in known.items() if number not in gone}
            known |= {s.field.id: replace(s.field, name=s.old.name) for s in shadows}
        named = (F.col(backticked(known[f.id].name)).alias(f.name) for f in merged.columns)
        return frame.select(*named, _ROW)

    def _shadow(self, known: Mapping[FieldId, Field], conversion: Conversion) -> Shadow:
        """Return how a job converts a column; a name in USING must mean what it meant there."""
        meant = {path[0]: number for path, number in conversion.named if len(path) == 1}
        names = {f.name: f.id for f in known.values()}
        other = [n for n, number in meant.items() if names.get(n, number) != number]
        if conversion.using is not None and other:
            raise Conflict(
                f"USING {conversion.using} cannot convert rows of {self.table.full_name}, where"
                f" {other[0]} is another column; rename it"
            )
        return known_shadow(known[conversion.column_id], conversion, self.table.full_name)

    def broken_rules(self, merged: TableVersion, converted: Sequence[Job]) -> Iterator[str]:
        """Yield which rules of a merge new rows break; only those that this side does not know."""
        mine = constraints_of(self.table.properties, self.table.full_name)
        made = constraints_of(merged.properties, merged.full_name)
        new = Constraints(tuple(one for one in made if one not in mine.all))
        needed = [f for f in merged.columns if not f.nullable and _may_be_null(self.table, f)]
        if not (new.checks or needed):
            return
        rows = self.rows(merged, converted)
        if self.changed is not None:
            live = self.changed.rows.where(F.col(LIVES))
            rows = rows.join(shared(live, self.changed.count), _ROW, "left_semi")
        for field in needed:
            count = rows.where(F.col(backticked(field.name)).isNull()).count()
            if count:
                yield f"{field.name} is NOT NULL, and NULL in {count} row(s)"
        yield from violations(rows, replace(merged, properties=with_constraints({}, new)))


def _may_be_null(table: TableVersion, field: Field) -> bool:
    known = table.columns.by_id(field.id)
    return known is not None and known.nullable


@dataclass(frozen=True)
class RowMerge:
    """The rows of both sides, with the columns of their merge; ``base`` are those of the branch."""

    merged: TableVersion
    base: TableVersion
    ours: Side
    theirs: Side

    @property
    def is_known(self) -> bool:
        """False if nobody knows any more which rows changed."""
        return self.ours.parts is not None and self.theirs.parts is not None

    def stay(self, merging: Merging, using: str = OURS) -> DataFrame | None:
        """Return the ids of rows for which resolutions choose a side; None for none.

        Other rows that both sides changed, and that are not equal now, are noted as conflicts.
        """
        assert self.ours.changed is not None
        assert self.theirs.changed is not None
        mine = self.ours.changed.rows.select(_ROW, F.col(LIVES).alias("mine"))
        met = mine.join(self.theirs.changed.rows, _ROW)
        both = keep(met.where(F.col("mine") | F.col(LIVES)).select(_ROW))
        if not both.count:
            return None
        ids = shared(both.rows, both.count)
        ours = _with_text(self.ours.rows(self.merged, self.theirs.jobs).join(ids, _ROW))
        theirs = _with_text(self.theirs.rows(self.merged, self.ours.jobs).join(ids, _ROW))
        texts = _texts(ours, "mine").join(_texts(theirs, "other"), _ROW, "full")
        left = keep(texts.where(~F.col("mine").eqNullSafe(F.col("other")))).rows
        shown = ours.unionByName(theirs.join(ours.select(_ROW), _ROW, "left_anti"))
        left, stay = decided(left, shown, merging.resolutions, using=using)
        self._refuse(merging, left)
        return stay

    def _refuse(self, merging: Merging, left: DataFrame) -> None:
        found = keep(left.orderBy(_ROW).limit(MOST_LISTED))
        if not found.count:
            return
        jobs = (*self.ours.jobs, *self.theirs.jobs)
        before = replace(self.theirs, table=self.base, jobs=()).rows(self.merged, jobs)
        was = _texts(_with_text(before.join(found.rows.select(_ROW), _ROW)), "base")
        for row in found.rows.join(was, _ROW, "left").orderBy(_ROW).collect():
            told = [(text or "deleted")[:_CHARACTERS] for text in (row.base, row.mine, row.other)]
            merging.refuse("row", f"rowid {row[_ROW]}", *told)


def _with_text(rows: DataFrame) -> DataFrame:
    """Return rows followed by `_TEXT`, by which two are equal: Spark compares no maps."""
    names = [backticked(n) for n in rows.columns if n != _ROW]
    return rows.withColumn(_TEXT, F.to_json(F.struct(*names), {"ignoreNullFields": "false"}))


def _texts(rows: DataFrame, name: str) -> DataFrame:
    return rows.select(_ROW, F.col(_TEXT).alias(name))


def decided(
    left: DataFrame,
    shown: DataFrame,
    resolutions: Sequence[Resolution],
    *,
    by: str = _ROW,
    using: str = OURS,
) -> tuple[DataFrame, DataFrame | None]:
    """Return what resolutions leave of rows, and those for which they choose a side.

    Rows are known ``by`` a column; ``shown`` has their values for conditions.
    """
    stay = []
    for each in resolutions:
        if each.column is not None:
            continue
        chosen = left
        if each.where is not None:
            some = Where(each.where).rows(shown).select(by)
            chosen = keep(left.join(some, by, "left_semi")).rows
        if each.using == using:
            stay.append(chosen.select(by))
        left = left.join(chosen.select(by), by, "left_anti")
    return left, reduce(DataFrame.unionAll, stay) if stay else None


def give_rows(unit: UnitOfWork, source: Side, target: Side, stay: DataFrame | None) -> None:
    """Stage that a table gets what a side did to rows, which keep their ids.

    ``target`` may have got its columns in this unit. Those that ``stay`` are left out.
    """
    assert source.changed is not None
    spark, name = unit.state.spark, TableName.of(target.table)
    ids = source.changed.rows
    if stay is not None:
        ids = ids.join(stay, _ROW, "left_anti")
    ids = shared(ids, source.changed.count)
    rows = rows_of(unit, name, writes=True, deletes=True)
    dead = keep(rows.frame(spark, [], ORIGINS).join(ids.select(_ROW), _ROW, "left_semi"))
    live = ids.where(F.col(LIVES)).select(_ROW)
    new = keep(source.rows(rows.table, target.jobs).join(live, _ROW, "left_semi"))
    versions = Versions(
        Counts(updated=new.count, deleted=dead.count),
        updated=new.rows if new.count else None,
        dead=dead.rows if dead.count else None,
    )
    stage_rows(unit, write_versions(spark, rows, versions, placing(unit.state, rows.table)))


def delete_changed(unit: UnitOfWork, source: Side, table: TableVersion) -> None:
    """Stage that the rows which a side changed leave another table, in whichever files they are."""
    assert source.changed is not None
    old = source.changed.rows.where(~F.col(IS_NEW))
    with temporary_views(unit.state.spark, {"changed": old}) as names:
        verbs = EditVerbs(unit.state, TableName.of(table), unit)
        verbs.delete(f"{_ROW} IN (SELECT {_ROW} FROM {names['changed']})")


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
