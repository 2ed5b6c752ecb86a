"""Few rows go into the catalog instead of files: how many, and rows of literals without Spark."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal as Number
from functools import partial

from shelduck.catalog.commit.rows.inlined_tables import can_inline
from shelduck.catalog.databases.store import Store
from shelduck.catalog.running.identity_numbers import reserve_numbers
from shelduck.catalog.running.job_rows import open_job
from shelduck.errors import InvalidRequest
from shelduck.lake.done import Done, discard
from shelduck.lake.state import LakeState
from shelduck.model.changes.change import AppendFiles, InlineRows
from shelduck.model.files.inlined_batch import InlinedBatch
from shelduck.model.tables.computed import COMPUTED
from shelduck.model.tables.rollup import is_followed
from shelduck.model.tables.schema import Field, Kind, Schema
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.tables.writable import is_writable
from shelduck.model.types.data_types import FLOATS, Decimal, Leaf, Text
from shelduck.model.types.literals import as_float32, canonical_text, float_text, integer_range
from shelduck.text.query.value_rows import Cell
from shelduck.write.parquet.small import rows_of_files

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


@dataclass(frozen=True, slots=True)
class Limits:
    """What the catalog grants a statement.

    It may leave so many rows there, deleted ones of files and new ones. ``reserve`` is
    `reserve_numbers` of the table.
    """

    deleted: int = 0
    new: int = 0
    reserve: Callable[[int, Iterable[int]], int] | None = None


NOTHING_INLINED = Limits()


@dataclass(frozen=True, slots=True)
class Placing:
    """How the rows of a statement are placed: matched, in the catalog if few, and reported."""

    by_position: bool = False
    limits: Limits = NOTHING_INLINED
    show_progress: bool | None = None


IN_FILES = Placing()


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
    if not is_possible or (table.has_reserved and _has_job(store, table)):
        return Limits(reserve=reserve)
    most = table.options.data_inlining_row_limit
    return Limits(most, 0 if is_followed(table) or not _can_write(table) else most, reserve)


def _has_job(store: Store, table: TableVersion) -> bool:
    with store.read() as connection:
        return open_job(connection, table.id) is not None


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


def _can_write(table: TableVersion) -> bool:
    shapes = (leaf.shape for leaf in table.columns.leaves())
    return all(isinstance(shape, Kind) or is_writable(shape) for shape in shapes)


def literal_batch(
    columns: Schema, names: Sequence[str] | None, rows: Sequence[Sequence[Cell]]
) -> InlinedBatch | None:
    """Return the rows in the table's form, None if Spark must read them.

    ``names`` are the given columns, None for all in their order.
    """
    if any(not _is_simple(leaf) for leaf in columns.leaves()):
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


def _is_simple(leaf: Field) -> bool:
    return not isinstance(leaf.shape, Kind) and is_writable(leaf.shape)


def _stored(field: Field, row: Sequence[Cell], place: int | None) -> tuple[bool, str | None]:
    """Return whether the value is certain, and the value."""
    if place is None:
        default = field.default
        if default is not None:
            return False, None
        return field.nullable, None
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
    except InvalidRequest:
        return None
    if cell.kind == "string" and name not in _MOMENTS:
        is_long = isinstance(leaf, Text) and len(cell.text) > leaf.length
        return cell.text if name == "varchar" and not is_long else None
    if cell.kind == "boolean":
        return cell.text if name == "boolean" else None
    # As in DuckDB, a text is accepted as a date or a time.
    wanted = _WANTED.get(cell.kind, name)
    if name != wanted or not _MOMENTS[name].fullmatch(cell.text):
        return None
    try:
        return canonical_text(leaf, cell.text)
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
