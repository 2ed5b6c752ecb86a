"""Rewriting files with converted columns beside their own columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from shelduck.engine.bridge import engine_for
from shelduck.engine.files.physical import physical_schema
from shelduck.engine.session import DataFrame, SparkSession
from shelduck.errors import InvalidRequest
from shelduck.files.compact import (
    Derived,
    Report,
    RewrittenBin,
    Survey,
    embeds,
    is_newer,
    next_row_id,
    write_bins,
)
from shelduck.lake.done import discard
from shelduck.lake.evolution.arrangement import keys_in_new_order, sorted_by_shadows
from shelduck.model.changes.change import RewriteFiles
from shelduck.model.files.compaction import NO_PARTITION, Bin
from shelduck.model.files.data_file import DataFile, NewDataFile, counted_rows
from shelduck.model.shadows.copied import CopiedFile, copied_file
from shelduck.model.shadows.shadows import Shadow, with_shadows
from shelduck.model.tables.partition import parse_sort_key
from shelduck.model.tables.schema import Field, FieldId
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.types.data_types import type_text
from shelduck.read.scan.scan_frames import Origin
from shelduck.read.table_rows import TableRows
from shelduck.write import shadow_rows

SMALL = 1 << 20
"""Smaller files are put together, although copying one would be quicker."""
_MOST_TOLD = 3
# The ids of so many rows go to each task.
_FEW_ROWS = 1_000_000


def unconverted(found: Survey, shadows: Sequence[Shadow]) -> set[int]:
    """Return the files that lack one of the converted columns, according to their footers.

    Also those that can begin in one snapshot only if they are rewritten: see
    `rewrite.renewal`.
    """
    return unheld(found, shadows) | {f.id for f in found.rows.files if not _is_plain(f)}


def unheld(found: Survey, shadows: Sequence[Shadow]) -> set[int]:
    """Return the files that lack one of the converted columns, according to their footers."""
    return {f.id for f in found.rows.files if len(held(f, shadows)) < len(shadows)}


def held(file: DataFile, shadows: Sequence[Shadow]) -> tuple[Shadow, ...]:
    """Return the converted columns that a file has, according to its footer."""
    return tuple(s for s in shadows if embeds(file, s.field.id))


def _is_plain(file: DataFile) -> bool:
    deletes = file.delete_file
    in_parquet = deletes is None or deletes.format == "parquet"
    return file.partial_max is None and in_parquet and not file.inlined_deletes


def older(found: Survey, last: int) -> set[int]:
    """Return the files up to the id ``last``, and those with an older partitioning."""
    wanted = found.table.partition_id if found.table.partition else None
    return {
        f.id
        for f in found.rows.files
        if f.id <= last or found.partitions.get(f.id, NO_PARTITION).id != wanted
    }


def write_converted(
    spark: SparkSession,
    found: Survey,
    bins: Sequence[Bin],
    shadows: Sequence[Shadow],
    report: Report | None,
    *,
    past: OlderValues | None = None,
) -> list[RewrittenBin]:
    """Write files with the converted columns after the table's own.

    The files of a bin hold the same ones of them, whose values stay as they are. The values of the
    others are converted, or taken from the ``past`` if they are recalled. Raises InvalidRequest if
    a value cannot be converted, or Spark's error about it.
    """
    engine = engine_for(spark)
    counted = engine.has_jvm
    files = [f for one in bins for f in one.files] if engine.has_jvm else []
    copied = copied_files(found.table, files, shadows, past)[0]

    def frame(rows: TableRows, origins: Sequence[Origin]) -> DataFrame:
        kept = held(rows.files[0], shadows)
        made = [s for s in shadows if s not in kept]
        if kept:
            rows = replace(rows, table=with_shadows(rows.table, kept))
        read = rows.frame(spark, _needed(rows, copied, made), origins=origins)
        if past is not None and made and any(map(past.may_have, rows.files)):
            return past.added(spark, rows, read, made)
        return shadow_rows.add_shadows(read, made, counted=counted and not kept and past is None)

    target = sorted_by_shadows(with_shadows(found.table, shadows), shadows)
    columns = Derived(target, frame, copied)
    written = write_bins(spark, found.rows, bins, report=report, derived=columns, arranges=False)
    checked = [s for s in shadows if counted and past is None and shadow_rows.counts_losses(s)]
    lossy = _lossy([part for part in written if not held(part.bin.files[0], shadows)], checked)
    if lossy is None:
        return written
    for part in written:
        discard(found.table, part.done.paths)
    raise InvalidRequest(
        f"values of column {lossy.old.name!r} of {found.table.full_name} cannot be converted to"
        f" {lossy.field.type}"
    )


def copied_files(
    table: TableVersion,
    files: Iterable[DataFile],
    shadows: Sequence[Shadow],
    past: OlderValues | None = None,
    *,
    least: int = 0,
    renews: Collection[FieldId] = (),
) -> tuple[dict[int, CopiedFile], Counter[str]]:
    """Return what is copied of each file, by its id, and why others are written whole.

    Files of less than ``least`` bytes are not copied, nor are columns that the job ``renews``.
    """
    names = physical_schema(with_shadows(table, shadows)).names
    moves = bool(keys_in_new_order(map(parse_sort_key, table.sort), shadows))
    added = [s.field.id for s in shadows]
    copied, whole = dict[int, CopiedFile](), Counter[str]()
    for file in files:
        known: CopiedFile | str = "whose rows get older values"
        if past is None or not past.may_have(file):
            known = copied_file(table, file, added, names, renews)
        if held(file, shadows):
            known = "with some of the values"
        if moves:
            known = "whose rows are sorted again"
        if not isinstance(known, str) and file.file_size_bytes < least:
            known = "that are small"
        if isinstance(known, str):
            whole[known] += 1
        else:
            copied[file.id] = known
    return copied, whole


def bins_of_copies(found: Survey, copied: Iterable[int]) -> list[Bin]:
    """Return the bins of files that are copied, each of which stays a file."""
    return [one for number in sorted(copied) for one in found.chosen([number], 1)]


def renewal_of_columns(
    spark: SparkSession, found: Survey, older: Collection[int], renews: Collection[FieldId] = ()
) -> tuple[list[Bin], Derived]:
    """Return how columns of files with ``older`` types are written in the types of today.

    Columns whose types did not change, and that it does not have to ``renew``, are copied, but for
    small files, which are put together.
    """
    files = [f for f in found.rows.files if f.id in older]
    copied = dict[int, CopiedFile]()
    if engine_for(spark).has_jvm:
        copied, _ = copied_files(found.table, files, (), least=SMALL, renews=renews)
    shared = [f.id for f in files if f.id not in copied]
    bins = bins_of_copies(found, copied)
    bins += found.chosen(shared, found.table.options.target_file_size)

    def frame(rows: TableRows, origins: Sequence[Origin]) -> DataFrame:
        return rows.frame(spark, _needed(rows, copied), origins=origins)

    return bins, Derived(found.table, frame, copied)


def _needed(
    rows: TableRows, copied: Mapping[int, CopiedFile], made: Sequence[Shadow] = ()
) -> list[str] | None:
    """Return the columns from which those beside copied ones are made, None for all.

    Spark's work on a plan grows with its columns.
    """
    file = copied.get(rows.files[0].id) if len(rows.files) == 1 else None
    if file is None or any(s.conversion.using is not None for s in made):
        return None
    ids = {*file.renewed, *(s.old.id for s in made)}
    return [f.name for f in rows.table.columns if f.id in ids]


@dataclass(frozen=True)
class OlderValues:
    """The rows of a table just before and just after a job published its conversions."""

    before: TableRows
    after: TableRows

    def may_have(self, file: DataFile) -> bool:
        """Return whether rows of a file may be older than the publication."""
        return not is_newer(file, self._next_row_id)

    @cached_property
    def _next_row_id(self) -> int:
        return next_row_id(self.after)

    def added(
        self, spark: SparkSession, rows: TableRows, read: DataFrame, shadows: Sequence[Shadow]
    ) -> DataFrame:
        """Return rows with the columns that are made for them: older values, or converted ones.

        ``read`` are the ``rows`` with the origin ROW_ID.
        """
        recalled = [s for s in shadows if s.conversion.recalls]
        old = _columns(spark, self.before, [s.field.id for s in recalled])
        then = _columns(spark, self.after, [s.old.id for s in recalled])
        count = counted_rows(rows.files)
        few = count is not None and count <= _FEW_ROWS
        return shadow_rows.add_recalled(read, old, then, shadows, few=few)

    def frames(self, spark: SparkSession, shadows: Sequence[Shadow]) -> tuple[DataFrame, DataFrame]:
        """Return the columns that were converted, and what they became, each with the row id."""
        old = _columns(spark, self.before, [s.old.id for s in shadows])
        return old, _columns(spark, self.after, [s.field.id for s in shadows])


def _columns(spark: SparkSession, rows: TableRows, ids: Sequence[int]) -> DataFrame:
    found = [rows.table.columns.by_id(number) for number in ids]
    names = [field.name for field in found if field is not None]
    return rows.frame(spark, names, origins=(Origin.ROW_ID,))


def _lossy(written: Iterable[RewrittenBin], shadows: Sequence[Shadow]) -> Shadow | None:
    """Return a conversion that turned a value into NULL, by the footers; None if there is none."""
    for file in results(written):
        for shadow in shadows:
            before, after = nulls_in([file], shadow.old), nulls_in([file], shadow.field)
            # A missing count proves nothing.
            if after is None or after != before:
                return shadow
    return None


def results(written: Iterable[RewrittenBin]) -> list[NewDataFile]:
    """Return the files that were written."""
    changes = (change for part in written for change in part.done.changes)
    return [f for c in changes if isinstance(c, RewriteFiles) for f in c.results]


def nulls_in(files: Iterable[NewDataFile], column: Field) -> int | None:
    """Return how many rows of written files are NULL in a column, None if a footer has no count."""
    count = 0
    for file in files:
        known = [s.null_count for s in file.stats if s.column_id == column.id]
        if not file.layout.has_field(column.id):
            # It is copied from before the column was added.
            known = [file.record_count if column.initial_default is None else 0]
        if not known:
            return None
        count += known[0]
    return count


@dataclass(frozen=True, slots=True)
class ConvertedColumn:
    """A column that a job has converted: rows that are NULL in it, before and now, if known."""

    shadow: Shadow
    nulls_before: int | None = None
    nulls: int | None = None

    @property
    def lost(self) -> int | None:
        """Return how many values ON ERROR NULL made NULL, None without it."""
        if not self.shadow.conversion.on_error_null or self.nulls is None:
            return None
        return None if self.nulls_before is None else self.nulls - self.nulls_before

    def recorded(self) -> dict[str, str | int | None]:
        """Return what the snapshot that publishes it tells about it."""
        old, conversion = self.shadow.old, self.shadow.conversion
        found: dict[str, str | int | None] = {
            "column": old.name,
            "from": type_text(old.type),
            "to": type_text(self.shadow.field.type),
            "using": conversion.using,
            "on_error": "null" if conversion.on_error_null else None,
            "nulls": self.nulls,
            "became_null": self.lost,
        }
        return {key: value for key, value in found.items() if value is not None}


def converted_columns(
    shadows: Sequence[Shadow], nulls: Callable[[Field], int | None]
) -> list[ConvertedColumn]:
    """Return what a job has converted.

    ``nulls`` counts the rows of the converted files that are NULL in a column, which statistics of
    files tell for columns without parts.
    """
    return [
        ConvertedColumn(
            shadow,
            nulls(shadow.old) if shadow.conversion.on_error_null else None,
            nulls(shadow.field),
        )
        if shadow.old.is_leaf and shadow.field.is_leaf
        else ConvertedColumn(shadow)
        for shadow in shadows
    ]


def told_of_nulls(columns: Sequence[ConvertedColumn]) -> str | None:
    """Return in words how many values became NULL; None without ON ERROR NULL."""
    told = [
        f"{column.lost} value(s) of {column.shadow.old.name!r} became NULL"
        for column in columns
        if column.lost is not None
    ]
    return "; ".join(told) or None


def told_of_bad_values(
    spark: SparkSession, found: Survey, bins: Sequence[Bin], shadows: Sequence[Shadow]
) -> str | None:
    """Return in words which values of these files cannot be converted, None if all can.

    A few jobs for each column: called only after a conversion has failed.
    """
    files = tuple(f for one in bins for f in one.files)
    for shadow in shadows:
        told = _told_of_failure(spark, found, files, shadow)
        told = told or _told_of_loss(spark, found, files, shadow)
        if told is not None:
            return told
    return None


def _told_of_loss(
    spark: SparkSession, found: Survey, files: tuple[DataFile, ...], shadow: Shadow
) -> str | None:
    paths = {f.id: f.path for f in files}
    rows = replace(found.rows, files=files)
    bad = shadow_rows.bad_values(rows.frame(spark, origins=(Origin.FILE_ID,)), shadow)
    if not bad:
        return None
    count = sum(b.count for b in bad)
    where = ", ".join(paths[b.file_id] for b in bad[:_MOST_TOLD])
    more = f" and {len(bad) - _MOST_TOLD} more file(s)" if len(bad) > _MOST_TOLD else ""
    return (
        f"{count} value(s) of column {shadow.old.name!r} cannot be converted to"
        f" {shadow.field.type}, such as {_quoted(shadow, bad[0].example)}, in {where}{more};"
        " correct them, give a conversion with USING, or allow NULL with ON ERROR NULL"
    )


def _told_of_failure(
    spark: SparkSession, found: Survey, files: tuple[DataFile, ...], shadow: Shadow
) -> str | None:
    """Return in words for which value an expression fails, None if it fails for none."""

    def first(count: int) -> DataFrame:
        return replace(found.rows, files=files[:count]).frame(spark, origins=(Origin.POSITION,))

    number = shadow_rows.failing_part(len(files), first, shadow)
    if number is None:
        return None
    file = files[number]
    rows = replace(found.rows, files=(file,)).frame(spark, origins=(Origin.POSITION,))
    failing = shadow_rows.failing_value(rows, (file.record_count or 1) - 1, shadow)
    if failing is None:
        return None
    return told_of_expression(shadow, failing, file.path)


def told_of_expression(shadow: Shadow, failing: shadow_rows.Failing, path: str) -> str:
    """Return in words for which value of a file an expression fails."""
    return (
        f"USING {shadow.conversion.using} of column {shadow.old.name!r} fails for"
        f" {_quoted(shadow, failing.example)} in {path}: {failing.reason}; correct the value,"
        " or give an expression that accepts it"
    )


def _quoted(shadow: Shadow, example: str | None) -> str:
    """Return a value as a literal: bytes are already a literal, and NULL has no quotes."""
    if example is None:
        return "NULL"
    return example if str(shadow.old.type) == "blob" else repr(example)
