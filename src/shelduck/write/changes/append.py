"""APPEND: rows in, with the shadow columns of an open job; files out, ready for a commit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import accumulate

from shelduck.engine.bridge.classic import held_with_numbers
from shelduck.engine.rows.assign import assign
from shelduck.engine.rows.store_rules import NEW_TYPE
from shelduck.engine.rows.table_rules import numbered, numbers_of_parts, numbers_of_plan
from shelduck.engine.session import AnalysisException, DataFrame, SparkSession
from shelduck.errors import InvalidRequest
from shelduck.lake.done import Counts, Done, inlined
from shelduck.model.changes.change import AppendFiles
from shelduck.model.shadows.shadows import Shadow, known_shadows, with_shadows
from shelduck.model.tables.computed import COMPUTED, identity_of
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.tables.writable import shadow_name
from shelduck.model.text.names import backticked
from shelduck.write.changes.inlining import Limits, Placing, moved_to_catalog
from shelduck.write.parquet.kept import keep
from shelduck.write.parquet.origins import MARKS
from shelduck.write.parquet.small import small_rows
from shelduck.write.parquet.write import (
    NEW_ROWS,
    Progress,
    Register,
    Writing,
    WrittenFiles,
    write_files,
)
from shelduck.write.progress import write_progress
from shelduck.write.shadow_rows import add_shadows


def append_rows(
    spark: SparkSession,
    rows: DataFrame,
    table: TableVersion,
    how: Placing,
    *,
    in_one_task: bool = False,
    register: Register | None = None,
    is_copy: bool = False,
) -> Done:
    """Write rows as new files of a table and return what was written; nothing is committed.

    Few rows are kept for the catalog instead, as ``how`` says, and no file is left. If Spark's
    plan already contains them, they are taken without a Spark job. ``register`` is called
    before files are written. Those of a copy have the table's columns, and stay as they are.

    Raises InvalidRequest, before any work if names or types do not fit, and while writing if a
    value does not fit; no file is left then.
    """
    fitting = rows if is_copy else assign(rows, table, by_position=how.by_position)
    if COMPUTED in table.properties and not is_copy:
        fitting = with_numbers(fitting, table, how.limits)
    if how.limits.new:
        batch = small_rows(fitting, table, how.limits.new)
        if batch is not None and batch.can_be_kept:
            return inlined(table, batch)
    if in_one_task:
        fitting = fitting.coalesce(1)
    if register is not None:
        table = register(table)
    with write_progress(spark, table.full_name, show=how.show_progress) as progress:
        done = appended(table, write_rows(spark, fitting, table, progress=progress))
    return moved_to_catalog(done, how.limits.new)


def write_rows(
    spark: SparkSession,
    rows: DataFrame,
    table: TableVersion,
    how: Writing = NEW_ROWS,
    *,
    progress: Progress | None = None,
) -> WrittenFiles:
    """Write assigned rows as `write_files` does, with the columns of an open job beside them.

    If columns of a job no longer exist, or its expression names such a column, nothing is written
    for it: the job ends by itself.
    """
    if not table.conversions or (how.lineage and any(c.recalls for c in table.conversions)):
        # Rows that are not new may get older values: the job knows them.
        return write_files(spark, rows, table, how=how, progress=progress)
    shadows = known_shadows(table, table.conversions)
    write = partial(write_files, spark, how=how, progress=progress)
    behind = (*how.lineage, *MARKS) if how.changes else how.lineage
    with_both = None if isinstance(shadows, str) else _with_shadows(rows, table, shadows, behind)
    if isinstance(shadows, str) or with_both is None:
        return write(rows, table)
    target = with_shadows(table, shadows)
    try:
        return write(with_both, target)
    except InvalidRequest as error:
        if error.about != NEW_TYPE:
            raise
        raise InvalidRequest(
            f"{error}; a job is changing types of {table.full_name}, and new rows must fit the new"
            f" types, too; correct them, or use CANCEL ALTER TABLE COLUMN FROM {table.full_name}"
        ) from error


def appended(table: TableVersion, written: WrittenFiles) -> Done:
    """Return the change that appends written files."""
    counts = Counts(inserted=written.rows, files=len(written.files), bytes=written.bytes)
    if not written.files:
        return Done(table)
    paths = tuple(f.path for f in written.files)
    return Done(table, (AppendFiles(table.id, written.files, table),), paths, counts)


def _with_shadows(
    rows: DataFrame, table: TableVersion, shadows: Sequence[Shadow], behind: Sequence[str]
) -> DataFrame | None:
    names = (*table.columns.names, *(shadow_name(s.field) for s in shadows), *behind)
    try:
        found = add_shadows(rows, shadows).select(*map(backticked, names))
        # Over Spark Connect, only a request for the schema finds names that do not exist.
        _ = found.schema
    except AnalysisException:
        return None
    return found


def with_numbers(rows: DataFrame, table: TableVersion, limits: Limits) -> DataFrame:
    """Return rows of a table in which its identity has a number wherever it is NULL.

    The rows are computed once and counted, without a job if Spark's plan has them; then one
    statement reserves as many numbers, behind those that rows have. Numbers of rows that need none,
    and of statements that fail, are left out for ever.
    """
    found = identity_of(table)
    if found is None:
        return rows
    kept = keep(rows)
    if not kept.count:
        return kept.rows
    assert limits.reserve is not None
    field, identity = found
    if kept.in_plan:
        given = [] if identity.always else numbers_of_plan(kept.rows, field.name)
        count, lacking, ends = kept.count, kept.count - len(given), given
    else:
        parts = numbers_of_parts(kept.rows, field.name)
        # A part that an executor lost while Spark counted may have other rows now.
        *before, count = accumulate((part.rows for part in parts), initial=0)
        lacking = sum(part.lacking for part in parts)
        ends = [end for part in parts for end in (part.low, part.high) if end is not None]
    first = limits.reserve(count if lacking else 0, ends)
    if not lacking:
        return kept.rows
    if kept.in_plan:
        return held_with_numbers(kept.rows, field.name, first, identity.step)
    offsets = {part.number: n for part, n in zip(parts, before, strict=True)}
    return numbered(kept.rows, field.name, first, identity.step, offsets)
