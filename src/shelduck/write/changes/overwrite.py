"""INSERT OVERWRITE and REPLACE: rows that replace others, in one snapshot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_, or_

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck.engine.rows.assign import assign
from shelduck.engine.types import literal
from shelduck.errors import InvalidRequest, Unsupported
from shelduck.lake.done import Done, discard
from shelduck.model.changes.staged_rows import StagedRows
from shelduck.model.files.data_file import NewDataFile
from shelduck.model.tables.computed import COMPUTED
from shelduck.model.tables.partition import IDENTITY
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import backticked
from shelduck.read.scan.matching import Where, as_condition
from shelduck.read.scan.scan_frames import Origin
from shelduck.read.table_rows import TableRows
from shelduck.write.changes.append import Placing, moved_to_catalog, with_numbers, write_rows
from shelduck.write.changes.edits import delete_rows, row_rules, truncate_rows, with_new_files
from shelduck.write.parquet.clustering import PartitionKey, directory_text, partition_keys
from shelduck.write.progress import write_progress

_KEY = "__shelduck_key_{}"
_MISFIT = "__shelduck_misfit"
_FEW_VALUES = 1000
Deleting = Callable[[tuple[NewDataFile, ...]], Done]


def overwrite_table(spark: SparkSession, rows: TableRows, new: DataFrame, how: Placing) -> Done:
    """Return the replacement of all rows; no row of the table is read."""
    fitting = _fitting(new, rows, how)
    return _replaced(spark, rows, fitting, lambda _: truncate_rows(spark, rows), how)


def overwrite_where(
    spark: SparkSession, rows: TableRows, new: DataFrame, where: Where, how: Placing
) -> Done:
    """Return the replacement of the rows that match; InvalidRequest if a new row does not match."""
    fitting = _fitting(new, rows, how)
    rules = row_rules(rows.table)
    if rules is not None:
        fitting = rules.require_apart(spark, rows, fitting, where)
    fitting, misfits = _counting_misfits(fitting, where)

    def delete(files: tuple[NewDataFile, ...]) -> Done:
        # If there are no rows, Spark may not count at all.
        if files and (count := misfits()):
            raise InvalidRequest(
                f"{count} of the rows for {rows.table.full_name} do not satisfy the condition of"
                " the rows that they replace; nothing was replaced; filter the rows, or widen the"
                " condition"
            )
        return delete_rows(spark, rows, where, few=how.limits.deleted)

    return _replaced(spark, rows, fitting, delete, how)


def overwrite_matching(
    spark: SparkSession,
    rows: TableRows,
    new: DataFrame,
    chosen: Callable[[DataFrame], AbstractContextManager[Where]],
    how: Placing,
) -> Done:
    """Return the replacement of the rows that are chosen by the new rows as they are stored."""
    table = rows.table
    if row_rules(table) is not None:
        raise Unsupported(
            f"cannot replace the rows of {table.full_name} that match others: rows of one key are"
            " merged in it; use MERGE INTO"
        )

    def delete(files: tuple[NewDataFile, ...]) -> Done:
        if not files:
            return Done(table)
        with chosen(_written(rows, files).frame(spark)) as where:
            return delete_rows(spark, rows, where, few=how.limits.deleted)

    return _replaced(spark, rows, _fitting(new, rows, how), delete, how)


def overwrite_partitions(
    spark: SparkSession, rows: TableRows, new: DataFrame, how: Placing
) -> Done:
    """Return the replacement of all rows in the partitions of new rows, or of a table without any.

    The partition is computed from each row, so files with older partition keys are handled
    correctly too; files whose rows are all replaced end.
    """
    table = rows.table
    if not table.partition:
        return overwrite_table(spark, rows, new, how)

    def delete(files: tuple[NewDataFile, ...]) -> Done:
        if not files:
            return Done(table)
        names = {f.name for f in table.columns if f.id in {k.column_id for k in table.partition}}
        chosen = _InPartitions(
            spark, table, _written(rows, files).frame(spark, sorted(names)), files
        )
        return delete_rows(spark, rows, chosen, few=how.limits.deleted)

    fitting = _fitting(new, rows, how)
    return _replaced(spark, rows, fitting, delete, how)


def _written(rows: TableRows, files: Sequence[NewDataFile]) -> TableRows:
    own = StagedRows(files=list(files)).over(rows.table, [])
    return replace(rows, files=tuple(own), inlined=())


def _fitting(new: DataFrame, rows: TableRows, how: Placing) -> DataFrame:
    fitting = assign(new, rows.table, by_position=how.by_position)
    if COMPUTED in rows.table.properties:
        fitting = with_numbers(fitting, rows.table, how.limits)
    rules = row_rules(rows.table)
    return fitting if rules is None else rules.stored(fitting)


def _replaced(
    spark: SparkSession, rows: TableRows, fitting: DataFrame, delete: Deleting, how: Placing
) -> Done:
    table = rows.table
    with write_progress(spark, table.full_name, show=how.show_progress) as progress:
        written = write_rows(spark, fitting, table, progress=progress)
    try:
        gone = delete(written.files)
    except BaseException:
        discard(table, [f.path for f in written.files])
        raise
    if not written.files:
        return moved_to_catalog(gone, how.limits.new)
    counts = replace(gone.counts, inserted=written.rows)
    return moved_to_catalog(with_new_files(gone, written.files, counts), how.limits.new)


@dataclass(frozen=True)
class _InPartitions:
    """Rows in the partitions of ``new``: rows of the same table that were just written to files."""

    spark: SparkSession
    table: TableVersion
    new: DataFrame
    files: Sequence[NewDataFile]

    def rows(self, frame: DataFrame) -> DataFrame:
        """Return the rows of ``frame`` whose partition has a row in ``new``; origins only."""
        keys = partition_keys(self.table)
        names = [_KEY.format(n) for n in range(len(keys))]
        texts = [directory_text(self.spark, k).alias(n) for k, n in zip(keys, names, strict=True)]
        present = self.new.select(*texts).distinct()
        near = [found for n, k in enumerate(keys) if (found := self._values(n, k)) is not None]
        if near:
            frame = frame.where(reduce(and_, near))
        origins = [o for o in Origin if o in frame.columns]
        return frame.select(*texts, *origins).join(F.broadcast(present), names, "left_semi")

    def _values(self, place: int, key: PartitionKey) -> Column | None:
        """Return a condition by which files can be skipped; None if there is none."""
        values = {file.partition_values[place] for file in self.files}
        if key.transform.kind != IDENTITY or len(values) > _FEW_VALUES:
            return None
        column = F.col(backticked(key.field.name))
        known = [column == literal(v, key.leaf) for v in values if v is not None]
        return reduce(or_, known + ([column.isNull()] if None in values else []))


def _counting_misfits(rows: DataFrame, where: Where) -> tuple[DataFrame, Callable[[], int]]:
    """Return rows, and a function that says after the write how many of them fail a condition."""
    named = rows if where.alias is None else rows.alias(where.alias)
    misfit = ~F.coalesce(as_condition(where.condition), F.lit(False))
    marked = named.select("*", misfit.alias(_MISFIT))
    seen = Observation()
    counted = marked.observe(seen, F.count(F.when(F.col(_MISFIT), 1)).alias("misfits"))
    return counted.drop(_MISFIT), lambda: int(seen.get.get("misfits", 0))
