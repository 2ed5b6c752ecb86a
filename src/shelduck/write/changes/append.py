"""APPEND: rows in, with the shadow columns of an open job; files out, ready for a commit.

Few rows go into the catalog instead of files. Rows of literals need no Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal as Number
from functools import partial
from itertools import accumulate

from shelduck.catalog.commit.rows.inlined_tables import can_inline
from shelduck.catalog.databases.store import Store
from shelduck.catalog.running.identity_numbers import reserve_numbers
from shelduck.catalog.running.job_rows import open_job
from shelduck.engine.bridge.classic import held_with_numbers
from shelduck.engine.rows.assign import assign
from shelduck.engine.rows.store_rules import NEW_TYPE
from shelduck.engine.rows.table_rules import numbered, numbers_of_parts, numbers_of_plan
from shelduck.engine.session import AnalysisException, DataFrame, SparkSession
from shelduck.errors import InvalidRequest
from shelduck.lake.done import Counts, Done, discard, inlined
from shelduck.lake.state import LakeState
from shelduck.model.changes.change import AppendFiles, InlineRows
from shelduck.model.files.fitted import InlinedBatch
from shelduck.model.shadows.shadows import Shadow, known_shadows, with_shadows
from shelduck.model.tables.computed import COMPUTED, identity_of
from shelduck.model.tables.rollup import is_followed
from shelduck.model.tables.schema import Field, Kind, Schema
from shelduck.model.tables.table_version import TableVersion, is_writable, shadow_name
from shelduck.model.text.names import backticked
from shelduck.model.types.data_types import FLOATS, Decimal, Leaf, Text
from shelduck.model.types.literals import as_float32, canonical_text, float_text, integer_range
from shelduck.text.query.value_rows import Cell
from shelduck.write.parquet.kept import MARKS, keep
from shelduck.write.parquet.small import rows_of_files, small_rows
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

_LOCAL = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?"
_MOMENTS = {
    "date": re.compile(r"\d{4}-\d\d-\d\d"),
    "timestamp": re.compile(_LOCAL),
    # Without an offset, the time zone of the session decides.
    "timestamptz": re.compile(_LOCAL + r"(Z|[+-](0\d|1[0-7]):[0-5]\d)"),
}
_WANTED = {
    "date": "date",
    "timestamp": "timestamptz",
    "timestamp_ltz": "timestamptz",
    "timestamp_ntz": "timestamp",
}
_EXACT = {"float32": 2**24, "float64": 2**53}
_NULL = Cell("null", "null")


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


@dataclass(frozen=True, slots=True)
class Limits:
    """What the catalog grants a statement.

    It may leave so many rows there, deleted ones of files and new ones. ``reserve`` is
    `reserve_numbers` of the table.
    """

    deleted: int = 0
    new: int = 0
    reserve: Callable[[int, Iterable[int]], int] | None = None


@dataclass(frozen=True, slots=True)
class Placing:
    """How the rows of a statement are placed: matched, in the catalog if few, and reported."""

    by_position: bool = False
    limits: Limits = Limits()
    show_progress: bool | None = None


def placing(state: LakeState, table: TableVersion, *, by_position: bool = False) -> Placing:
    """Return how a statement places rows in a table."""
    return Placing(by_position, limits_of(state.store, table), state.show_progress)


def limits_of(store: Store, table: TableVersion) -> Limits:
    """Return how many rows of one statement may go into the catalog.

    Both are the option ``data_inlining_row_limit``. Rows of a table whose types a job changes go
    into files, because they are checked there. A query is answered from a rollup only if all rows
    are in files, so new rows of a table with rollups go there too.
    """
    reserve = partial(reserve_numbers, store, table) if COMPUTED in table.properties else None
    is_possible = can_inline(store.kind, store.format, table.columns)
    if not is_possible or (table.has_reserved and store.ask(open_job, table.id) is not None):
        return Limits(reserve=reserve)
    most = table.options.data_inlining_row_limit
    return Limits(most, 0 if is_followed(table) or not _can_write(table.columns) else most, reserve)


def moved_to_catalog(done: Done, limit: int) -> Done:
    """Return what a verb wrote, with its new rows in the catalog if they are at most ``limit``.

    Their files are deleted then. Rows keep the row ids that the files hold.
    """
    table = done.table
    written = [f for c in done.changes if isinstance(c, AppendFiles) for f in c.files]
    if table.conversions or not 0 < sum(f.record_count for f in written) <= limit:
        return done
    paths = [f.path for f in written]
    batch = rows_of_files([table.path + path for path in paths], table.columns)
    if not batch.can_be_kept:
        return done
    discard(table, paths)
    planned = next(c.planned for c in done.changes if isinstance(c, AppendFiles))
    others = (c for c in done.changes if not isinstance(c, AppendFiles))
    size = sum(f.file_size_bytes for f in written)
    counts = replace(
        done.counts, files=done.counts.files - len(written), bytes=done.counts.bytes - size
    )
    return replace(
        done,
        changes=(*others, InlineRows(table.id, batch, planned)),
        paths=tuple(path for path in done.paths if path not in paths),
        counts=counts,
    )


def _can_write(columns: Schema) -> bool:
    return all(is_writable(leaf.leaf) for leaf in columns.leaves())


def literal_batch(
    columns: Schema, names: Sequence[str] | None, rows: Sequence[Sequence[Cell]]
) -> InlinedBatch | None:
    """Return the rows in the table's form, None if Spark must read them.

    ``names`` are the given columns, None for all in their order.
    """
    if not _can_write(columns):
        return None
    given = columns.names if names is None else list(names)
    places = {name.lower(): n for n, name in enumerate(given)}
    known = {f.name.lower() for f in columns}
    if len(places) != len(given) or not places.keys() <= known:
        return None
    if any(len(row) != len(given) for row in rows):
        return None
    made = []
    for row in rows:
        values = [_stored(f, row, places.get(f.name.lower())) for f in columns]
        if any(not fits for fits, _ in values):
            return None
        made.append(tuple(text for _, text in values))
    return InlinedBatch(columns, tuple(made))


def _stored(field: Field, row: Sequence[Cell], place: int | None) -> tuple[bool, str | None]:
    """Return whether the value is certain, and the value."""
    if place is None:
        return field.default is None and field.nullable, None
    cell = row[place]
    if cell == _NULL:
        return field.nullable, None
    if isinstance(field.shape, Kind):
        return False, None
    text = _text(field.shape, cell)
    return text is not None, text


def _text(leaf: Leaf, cell: Cell) -> str | None:
    name = str(leaf)
    try:
        if cell.kind == "integer":
            return _whole(leaf, int(cell.text))
        if cell.kind == "fraction":
            is_exact = name in FLOATS and Number(float(cell.text)) == Number(cell.text)
            is_taken = isinstance(leaf, Decimal) or name == "float64" or is_exact
            # A zero has no sign in Spark's decimals, and such a literal is a decimal.
            return canonical_text(leaf, _unsigned_zero(cell.text)) if is_taken else None
        if cell.kind in ("double", "float"):
            return _binary(leaf, cell)
        if cell.kind == "string" and name not in _MOMENTS:
            is_long = isinstance(leaf, Text) and len(cell.text) > leaf.length
            return cell.text if name == "varchar" and not is_long else None
        if cell.kind == "boolean":
            return cell.text if name == "boolean" else None
        # As in DuckDB, a text is accepted as a date or a time.
        is_moment = name == _WANTED.get(cell.kind, name) and _MOMENTS[name].fullmatch(cell.text)
        return canonical_text(leaf, cell.text) if is_moment else None
    except InvalidRequest:
        return None


def _binary(leaf: Leaf, cell: Cell) -> str | None:
    """Return the text of a float; None if 32 bits round it, and for a double in 32 bits."""
    number, name = float(cell.text), str(leaf)
    if cell.kind == "float":
        exact = as_float32(number)
        is_taken = name in FLOATS and exact == number and Number(exact) == Number(cell.text)
    else:
        is_taken = name == "float64" and abs(number) != float("inf")
    return float_text(leaf, number) if is_taken else None


def _whole(leaf: Leaf, number: int) -> str | None:
    name = str(leaf)
    is_exact = name in _EXACT and abs(number) <= _EXACT[name]
    if is_exact or integer_range(leaf) is not None or isinstance(leaf, Decimal):
        return canonical_text(leaf, str(number))
    return None


def _unsigned_zero(text: str) -> str:
    return text if Number(text) else text.lstrip("-")
