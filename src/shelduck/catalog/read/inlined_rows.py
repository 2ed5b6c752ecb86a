"""Rows in the catalog itself, in the form in which each database keeps them.

SQLite has text, PostgreSQL a mixture of its own types and bytes, DuckDB its native types; all are
returned as `shelduck.model.files.data_file.InlinedRows` describes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from decimal import Decimal as Number
from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.sql.elements import ColumnElement, quoted_name

from shelduck.catalog.databases.dialect import Dialect, flag, interval, moment, refused_variant
from shelduck.catalog.databases.known import dialect_of
from shelduck.catalog.read import queries
from shelduck.catalog.read.holdings import Holdings, holdings_of
from shelduck.catalog.read.queries import chunks
from shelduck.ducklake.checked import RESTORE, TEXT, guard, is_broken, unchecked
from shelduck.ducklake.descriptions import begin_under, rows_at, schema_of
from shelduck.ducklake.format import format_of
from shelduck.errors import CorruptLake
from shelduck.model.files.data_file import InlinedHistory, InlinedRows
from shelduck.model.files.duckdb_text import parse_nested
from shelduck.model.tables.schema import Field, Kind, Schema
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.types.data_types import FLOATS
from shelduck.model.types.literals import float_text, integer_range
from shelduck.model.types.temporal import TIMESTAMP_NAMES

Conditions = tuple[ColumnElement[bool], ...]

# SQLite joins no more than 500 queries.
AT_ONCE = 200
# The row id, the begin and the end of a row come before its values.
_SYSTEM = 3


def inlined_rows(
    connection: sa.Connection, table: TableVersion, known: Holdings | None = None
) -> list[InlinedRows]:
    """Return the rows that the catalog holds for a table at its snapshot, per schema version.

    One statement if the table never had any, two if none are left, otherwise four and one for each
    schema version with rows; one less with the ``known`` holdings. Columns are those of the version
    with which the rows were written; their ids identify the current columns.
    """
    found = _find(connection, table, lambda source: is_shown(source, table.snapshot.id), known)
    for part in found:
        require_once(table, part.row_ids)
    return found


def inlined_changes(
    connection: sa.Connection, table: TableVersion, first: int, last: int
) -> tuple[list[InlinedRows], list[InlinedRows]]:
    """Return rows that snapshots ``first`` to ``last`` added to the catalog, and that they deleted.

    ``begin_snapshots`` of deleted rows are the snapshots that deleted them. Rows that no snapshot
    ever saw are left out. Statements are those of `inlined_rows`, twice.
    """

    def came(source: sa.TableClause) -> Conditions:
        begin, end = source.c.begin_snapshot, source.c.end_snapshot
        return begin >= first, begin <= last, sa.or_(end.is_(None), end > begin)

    def went(source: sa.TableClause) -> Conditions:
        begin, end = source.c.begin_snapshot, source.c.end_snapshot
        return end >= first, end <= last, end > begin

    return _find(connection, table, came), _find(connection, table, went, by_end=True)


def require_once(table: TableVersion, row_ids: Sequence[int]) -> None:
    """Raise CorruptLake if two rows of a snapshot have the same id."""
    twice = [n for n, count in Counter(row_ids).items() if count > 1]
    if twice:
        raise CorruptLake(
            f"{table.full_name} has row_id {twice[0]} twice in the catalog at snapshot"
            f" {table.snapshot.id}; {RESTORE}"
        )


def _find(
    connection: sa.Connection,
    table: TableVersion,
    chosen: Callable[[sa.TableClause], Conditions],
    known: Holdings | None = None,
    *,
    by_end: bool = False,
) -> list[InlinedRows]:
    """Return the rows that match a condition; ``by_end`` returns their ends as begins."""
    dialect = dialect_of(connection)
    return [
        converted(dialect, columns, rows, by_end=by_end)
        for _, columns, rows in stored_rows(connection, table, chosen, known)
    ]


def inlined_history(
    connection: sa.Connection, table: TableVersion, known: Holdings | None = None
) -> list[InlinedHistory]:
    """Return all rows that the catalog held at the table's snapshot, including deleted ones.

    Statements are those of `inlined_rows`.
    """
    snapshot = table.snapshot.id

    def came(source: sa.TableClause) -> Conditions:
        return (source.c.begin_snapshot <= snapshot,)

    found = stored_rows(connection, table, came, known)
    return [
        InlinedHistory(
            name,
            converted(dialect_of(connection), columns, rows, by_end=False),
            tuple(row[2] for row in rows),
        )
        for name, columns, rows in found
    ]


def stored_rows(
    connection: sa.Connection,
    table: TableVersion,
    chosen: Callable[[sa.TableClause], Conditions],
    known: Holdings | None,
) -> list[tuple[str, Schema, list[Any]]]:
    """Return chosen rows as they are stored, with their table's name and columns."""
    known = known or holdings_of(connection, table.id)
    names = [name for name, _ in known.inlined]
    if not names:
        return []
    require_inlined_tables(table.id, names)
    missing = sorted(set(names) - known.present)
    if missing:
        raise CorruptLake(f"{table.full_name} has rows in {missing[0]}, which does not exist")
    filled = tables_with_rows(connection, names, chosen)
    if not filled:
        return []
    begins = connection.execute(queries.schema_versions_of(table.id)).all()
    versions = connection.execute(queries.column_versions(table.id)).all()
    first = dialect_of(connection).before_reading
    if first is not None:
        connection.exec_driver_sql(first)
    found = []
    for name, schema_version in known.inlined:
        if name not in filled:
            continue
        begin = begin_under(begins, schema_version)
        begin = table.begin_snapshot if begin is None else begin
        columns = schema_of(rows_at(versions, begin), table.full_name)
        rows = _fetch(connection, table, name, columns, chosen)
        if rows:
            places = _places(connection, name, columns, versions)
            _require_in_place(table, places, begin, versions, rows)
            found.append((name, columns, rows))
    return found


def _places(
    connection: sa.Connection, name: str, columns: Schema, versions: Sequence[Any]
) -> tuple[int, ...]:
    """Return the ids of the columns in their order in a table for inlined rows.

    One statement if columns were ever out of the order of their ids, otherwise none.
    """
    ids = {f.name.lower(): int(f.id) for f in columns}
    if all(row.column_order == row.column_id for row in versions):
        return tuple(ids.values())
    every: sa.Select[Any] = sa.select(sa.literal_column("*")).select_from(sa.table(name)).limit(0)
    keys = tuple(connection.execute(every).keys())
    return tuple(ids[key.lower()] for key in keys[_SYSTEM:])


def _require_in_place(
    table: TableVersion,
    places: tuple[int, ...],
    begin: int,
    versions: Sequence[Any],
    rows: Sequence[Any],
) -> None:
    """Raise CorruptLake if DuckDB put values into the wrong columns.

    DuckDB writes values in the order of the columns, whatever the table for inlined rows has;
    ``begin`` is the snapshot that made this table. Rows written with it are in its order.
    """
    ends = {n for row in versions for n in (row.begin_snapshot, row.end_snapshot) if n is not None}
    changes = sorted(n for n in ends if n > begin)
    later = {row[1] for row in rows if row[1] > begin}
    # Between two changes of columns, all snapshots are the same.
    alike: dict[int, int] = {}
    for snapshot in later:
        at = bisect_right(changes, snapshot)
        alike[at] = min(snapshot, alike.get(at, snapshot))
    for snapshot in sorted(alike.values()):
        if tuple(f.id for f in schema_of(rows_at(versions, snapshot), table.full_name)) != places:
            raise CorruptLake(
                f"{table.full_name} has rows of snapshot {snapshot} in the catalog whose values"
                " DuckDB 1.5.5 wrote to other columns, because another session had altered the"
                f" table; read the table as of snapshot {snapshot - 1}, delete these rows in"
                f" DuckDB (DELETE FROM {table.name} WHERE snapshot_id = {snapshot}), and insert"
                " them again"
            )


def tables_with_rows(
    connection: sa.Connection, names: Sequence[str], chosen: Callable[[sa.TableClause], Conditions]
) -> set[str]:
    """Return which tables have such rows: an ALTER or a flush leaves most of them empty."""
    questions = (
        sa.select(sa.literal(name)).where(sa.exists().select_from(source).where(*chosen(source)))
        for name, source in ((name, source_of(connection, name)) for name in names)
    )
    return {name for (name,) in rows_of_all(connection, questions)}


def rows_of_all(connection: sa.Connection, asked: Iterable[sa.Select[Any]]) -> Iterator[Any]:
    """Yield the rows of questions that are alike; a statement for two hundred of them."""
    for some in chunks(asked, AT_ONCE):
        yield from connection.execute(sa.union_all(*some))


def source_of(connection: sa.Connection, name: str) -> sa.TableClause:
    """Return a table for inlined rows, with the columns that each has."""
    return format_of(connection).inlined(name)


def is_shown(source: sa.TableClause, snapshot: int) -> Conditions:
    """Return the condition that a snapshot sees a row, or that its interval is broken."""
    return (queries.shown_or_broken(source, snapshot),)


def _fetch(
    connection: sa.Connection,
    table: TableVersion,
    name: str,
    columns: Schema,
    chosen: Callable[[sa.TableClause], Conditions],
) -> list[Any]:
    """Return the chosen rows: row id, begin snapshot, end snapshot, one value per column."""
    try:
        result = connection.execute(_query(connection, name, columns, chosen))
    except ProgrammingError as error:
        raise CorruptLake(f"{name} does not have the columns of {table.full_name}") from error
    rows: list[Any] = list(result)
    if not dialect_of(connection).knows_columns:
        stored = [str(key).lower() for key in tuple(result.keys())]
        wanted = [*format_of(connection).system_columns, *(n.lower() for n in columns.names)]
        if sorted(stored) != sorted(wanted):
            raise CorruptLake(f"{name} has the columns {stored}, expected {wanted}")
        if stored != wanted:
            places = [stored.index(n) for n in wanted]
            rows = [tuple(row[n] for n in places) for row in rows]
    guard(tuple(source_of(connection, name).c), more=True)(rows)
    return rows


def require_inlined_tables(table_id: int, names: Sequence[str]) -> None:
    """Raise CorruptLake if tables of inlined rows are registered twice, or are not a table's own.

    Their rows would count twice, and an expired table's tables are dropped.
    """
    for name, count in Counter(names).items():
        if count > 1 or not re.fullmatch(rf"ducklake_inlined_data_{table_id}_\d+", name):
            what = "twice" if count > 1 else "which is not one of its own"
            raise CorruptLake(
                f"ducklake_inlined_data_tables has {name!r} for table_id {table_id}, {what};"
                f" {RESTORE}"
            )


def _query(
    connection: sa.Connection,
    name: str,
    columns: Schema,
    chosen: Callable[[sa.TableClause], Conditions],
) -> sa.Select[Any]:
    dialect, source = dialect_of(connection), source_of(connection, name)
    values: list[ColumnElement[Any]] = list(map(unchecked, source.c))
    if not dialect.knows_columns:
        values = [sa.literal_column("*")]
    else:
        for field in columns:
            # Always quoted: SQLAlchemy does not know every word that a database reserves.
            value: ColumnElement[Any] = sa.column(quoted_name(field.name, quote=True))
            values.append(sa.cast(value, TEXT) if dialect.read_as_text(field) else value)
    return sa.select(*values).select_from(source).where(*chosen(source)).order_by(source.c.row_id)


def converted(dialect: Dialect, columns: Schema, rows: list[Any], *, by_end: bool) -> InlinedRows:
    """Return stored rows as rows; ``by_end`` returns their ends as begins."""
    converters = [_converter(dialect, f) for f in columns]

    def values(row: Any) -> tuple[object, ...]:
        try:
            return tuple(
                None if value is None else convert(value)
                for convert, value in zip(converters, row[_SYSTEM:], strict=True)
            )
        except (ArithmeticError, TypeError, ValueError) as error:
            raise CorruptLake(
                f"the catalog has a row with row_id {row[0]} and a value that is not one of its"
                f" column ({error}); {RESTORE}"
            ) from error

    return InlinedRows(
        columns,
        tuple(map(values, rows)),
        tuple(row[0] for row in rows),
        tuple(row[2 if by_end else 1] for row in rows),
    )


def _converter(dialect: Dialect, field: Field) -> Callable[[Any], object]:
    if dialect.has_variants and any(str(f.shape) == "variant" for f in field.leaves()):
        return partial(refused_variant, field.name)
    if isinstance(field.shape, Kind):
        sql_structs = dialect.has_literal_structs
        return lambda value: parse_nested(field, _text(value), sql_structs=sql_structs)
    name = str(field.shape)
    if name in ("blob", "variant"):
        return lambda value: value.encode() if isinstance(value, str) else bytes(value)
    if name == "boolean":
        return flag
    if limits := integer_range(field.shape):
        return partial(_whole, field, limits)
    if name in FLOATS:
        shape = field.shape
        return lambda v: float_text(shape, v) if isinstance(v, float) else str(v)
    if name == "interval":
        return interval
    if name == "date" or name in TIMESTAMP_NAMES:
        return lambda value: moment(_text(value))
    return _text


def _whole(field: Field, limits: tuple[int, int], value: Any) -> str:
    """Return the text of an integer; ValueError if it is none of this type."""
    text = _text(value)
    if not limits[0] <= int(text) <= limits[1]:
        raise ValueError(f"{text} is beyond {field.shape}")
    return text


def _text(value: Any) -> str:
    if isinstance(value, bytes | memoryview):
        return bytes(value).decode()
    if isinstance(value, Number):
        return f"{value:f}"
    return str(value)


def inlined_since(
    connection: sa.Connection,
    table: TableVersion,
    known: Holdings,
    before: Sequence[InlinedRows],
    since: int,
) -> list[InlinedRows] | None:
    """Return the rows that the catalog holds at a table's snapshot, given those at an older one.

    Two statements if no rows came or went; otherwise two more, and one for each schema version with
    such rows. None if the catalog no longer holds the rows of the older snapshot ``since``.
    """

    def changed(source: sa.TableClause) -> Conditions:
        end = source.c.end_snapshot
        return (sa.or_(source.c.begin_snapshot > since, end > since, is_broken(source)),)

    at = table.snapshot.id
    shown = _count(connection, [name for name, _ in known.inlined], at)
    stored = stored_rows(connection, table, changed, known)
    gone = {(row[0], row[1]) for _, _, rows in stored for row in rows if row[1] <= since}
    found = [_without(part, gone) for part in before] if gone else list(before)
    for _, columns, rows in stored:
        live = [r for r in rows if since < r[1] <= at and (r[2] is None or r[2] > at)]
        found.append(converted(dialect_of(connection), columns, live, by_end=False))
    if shown != sum(len(part.row_ids) for part in found):
        return None
    found = [part for part in _joined(found) if part.rows]
    for part in found:
        require_once(table, part.row_ids)
    return found


def _count(connection: sa.Connection, names: Sequence[str], snapshot: int) -> int:
    """Return how many rows a snapshot sees in tables of inlined rows."""
    counts = (
        sa.select(sa.func.count()).select_from(source).where(*is_shown(source, snapshot))
        for source in (source_of(connection, name) for name in names)
    )
    return sum(count for (count,) in rows_of_all(connection, counts))


def _without(part: InlinedRows, gone: Collection[tuple[int, int]]) -> InlinedRows:
    versions = zip(part.row_ids, part.begin_snapshots, strict=True)
    return part.at([n for n, version in enumerate(versions) if version not in gone])


def _joined(parts: Sequence[InlinedRows]) -> list[InlinedRows]:
    """Return the rows of parts that have the same columns as one part."""
    found: dict[Schema, list[InlinedRows]] = {}
    for part in parts:
        found.setdefault(part.columns, []).append(part)
    return [
        InlinedRows(
            columns,
            tuple(row for p in each for row in p.rows),
            tuple(n for p in each for n in p.row_ids),
            tuple(n for p in each for n in p.begin_snapshots),
        )
        for columns, each in found.items()
    ]
