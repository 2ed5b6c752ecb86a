"""Keeping rollups: rows of a rollup that follow the changes of its base."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.bridge import Named, select_named
from shelduck.engine.types import spark_type
from shelduck.lake.done import Counts, Done, Loaded
from shelduck.model.changes.change import AppendFiles
from shelduck.model.changes.staged_rows import StagedRows
from shelduck.model.files.data_file import DataFile, counted_rows, deletes_seen
from shelduck.model.tables.keys import table_keys
from shelduck.model.tables.rollup import Measure, Rollup, RollupColumn, definition_of, keeps_rows
from shelduck.model.tables.schema import Field
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import backticked
from shelduck.read.scan.scan_frames import ORIGINS
from shelduck.read.table_rows import TableRows
from shelduck.write.changes.append import Placing, append_rows
from shelduck.write.changes.edits import Versions, row_rules, truncate_rows, write_versions
from shelduck.write.changes.overwrite import overwrite_table
from shelduck.write.merge.key_ranges import key_ends
from shelduck.write.merge.load_rows import GONE, ORDER, Folding, ordered, same_keys, without_rows
from shelduck.write.parquet.kept import keep, shared

_SILENT = Placing(show_progress=False)


def added(spark: SparkSession, rows: TableRows, rollup: RollupRows, loaded: Loaded) -> Done:
    """Return what a load into the base adds to a rollup that was correct before it."""
    parts = rollup.parts(_loaded_rows(spark, rollup.base, rows, loaded))
    rules = row_rules(rollup.table)
    if rules is None:
        return append_rows(spark, parts, rows.table, _SILENT)
    new = ordered(parts, GONE if GONE in parts.columns else None)
    return rules.load(spark, rows, new, _SILENT).done


def made_anew(spark: SparkSession, rows: TableRows, rollup: RollupRows, base: TableRows) -> Done:
    """Return a rollup of all rows of its base, replacing its current rows."""
    frame = base.frame(spark)
    if base.is_empty:
        return truncate_rows(spark, rows)
    return overwrite_table(spark, rows, rollup.parts(frame), _SILENT)


def followed(
    spark: SparkSession,
    rows: TableRows,
    rollup: RollupRows,
    base: TableRows,
    touched: Sequence[DataFrame],
) -> Done:
    """Return a rollup in which the rows of some keys are rebuilt from those of the base.

    ``touched`` are rows of the base, before or after the change, that were deleted or inserted.
    """
    if not touched:
        return Done(rows.table)
    found = keep(reduce(DataFrame.unionAll, [rollup.keys_of(f) for f in touched]).distinct())
    if not found.count:
        return Done(rows.table)
    keys = found.rows
    ends = key_ends(keys, rollup.key_fields)
    near = ends.near(rollup.key_fields)
    dead = keep(_having(rows.frame(spark, None, ORIGINS).where(near), rollup.key_fields, keys))
    sources = rollup.sources
    alive = _having(base.frame(spark).where(ends.near(sources)), sources, keys)
    content = keep(rollup.content(alive))
    counts = Counts(inserted=content.count, deleted=dead.count)
    if not counts.rows:
        return Done(rows.table)
    versions = Versions(
        counts,
        inserted=content.rows if counts.inserted else None,
        dead=dead.rows if counts.deleted else None,
    )
    return write_versions(spark, rows, versions, _SILENT)


def touched_rows(spark: SparkSession, before: TableRows, after: TableRows) -> list[DataFrame]:
    """Return the rows that a statement deleted from a table, and those that it added.

    Files that both have with the same deletes are not read.
    """
    was = {f.id: f for f in before.files}
    now = {f.id: f for f in after.files}
    changed = [i for i, f in was.items() if i not in now or _differ(f, now[i])]
    found: list[DataFrame] = []
    names = before.table.columns.names
    lost = replace(before, files=tuple(was[i] for i in changed))
    if changed or _inlined_rows(before) != _inlined_rows(after):
        left = replace(after, files=tuple(now[i] for i in changed if i in now))
        still = left.frame(spark, None, ORIGINS)
        count = counted_rows(left.files)
        if count is not None:
            still = shared(still, count + _inlined_rows(left))
        gone = without_rows(lost.frame(spark, None, ORIGINS), still)
        found.append(gone.select(*map(backticked, names)))
    new = tuple(f for f in after.files if f.id not in was)
    if new:
        found.append(replace(after, files=new, inlined=()).frame(spark, names))
    if _inlined_rows(after) > _inlined_rows(before):
        found.append(replace(after, files=()).frame(spark, names))
    return found


def _differ(was: DataFile, now: DataFile) -> bool:
    return deletes_seen(was) != deletes_seen(now) or was.delete_file != now.delete_file


def _inlined_rows(rows: TableRows) -> int:
    return sum(len(part.row_ids) for part in rows.inlined)


def _loaded_rows(
    spark: SparkSession, base: TableVersion, rows: TableRows, loaded: Loaded
) -> DataFrame:
    """Return the loaded rows: the folded ones, or those in new files."""
    if loaded.rows is not None:
        return loaded.rows
    new = [f for c in loaded.done.changes if isinstance(c, AppendFiles) for f in c.files]
    files = tuple(StagedRows(files=list(new)).over(base, []))
    return replace(rows, table=base, files=files, inlined=()).frame(spark)


@dataclass(frozen=True)
class RollupRows:
    """One rollup: its ``table``, and the ``base`` from which it is computed."""

    base: TableVersion
    table: TableVersion

    @property
    def rollup(self) -> Rollup:
        """Return what it holds of its base."""
        return definition_of(self.table)

    @property
    def key_fields(self) -> list[Field]:
        """Return the columns that identify its rows: all rows with one key change together."""
        keys = table_keys(self.table)
        assert keys is not None
        return keys.key_fields(self.table.columns)

    def parts(self, rows: DataFrame) -> DataFrame:
        """Return a row of the rollup for each row of the base, with the measures of that row.

        Columns that a load adds to the table's columns stay after them.
        """
        also = [name for name in (ORDER, GONE) if name in rows.columns]
        named = [self._part(c) for c in self.rollup.columns]
        return select_named(rows, named + [Named(name, name) for name in also])

    def content(self, rows: DataFrame) -> DataFrame:
        """Return the content of the rollup if these are all rows of the base, or of some keys."""
        parts = self.parts(rows)
        keys = table_keys(self.table)
        if keys is None or keeps_rows(self.rollup, keys, table_keys(self.base)):
            return parts
        folding = Folding(self.table, keys)
        return folding.without_sign(folding.folded(ordered(parts)))

    def keys_of(self, rows: DataFrame) -> DataFrame:
        """Return the keys of the rollup that rows of the base have, each once."""
        ids = [f.id for f in self.key_fields]
        by_id = {c.id: c for c in self.rollup.columns}
        return select_named(rows, [self._part(by_id[i]) for i in ids]).distinct()

    @property
    def sources(self) -> list[Field]:
        """Return the base's columns that are the rollup's keys, in their order."""
        by_id = {c.id: c for c in self.rollup.columns}
        found = [self.base.columns.by_id(by_id[f.id].source or 0) for f in self.key_fields]
        return [f for f in found if f is not None]

    def _source(self, column: RollupColumn) -> str:
        field = self.base.columns.by_id(column.source or 0)
        assert field is not None
        return backticked(field.name)

    def _part(self, column: RollupColumn) -> Named:
        target = self.table.columns.by_id(column.id)
        assert target is not None
        if column.measure is Measure.COUNT:
            is_there = F.lit(1)
            if column.source is not None:
                is_there = F.when(F.col(self._source(column)).isNotNull(), 1).otherwise(0)
            return Named(target.name, is_there, T.LongType())
        return Named(target.name, self._source(column), spark_type(target.type, target.name))


def _having(rows: DataFrame, own: Sequence[Field], keys: DataFrame) -> DataFrame:
    """Return the rows of a rollup or of its base that have one of the rollup's keys."""
    names = [f"__shelduck_key_{n}" for n in range(len(own))]
    wanted = keys.toDF(*names)
    same = same_keys(zip(names, (backticked(f.name) for f in own), strict=True))
    return rows.join(wanted, same, "left_semi")
