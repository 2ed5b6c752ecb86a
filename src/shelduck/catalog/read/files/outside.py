"""A first check of files inside the database: which files a range or a bucket rules out, or not."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import sqlalchemy as sa

from shelduck.catalog.databases.known import dialect_of
from shelduck.catalog.read.queries import shown_or_broken, total
from shelduck.catalog.read.views_and_macros import file_place
from shelduck.ducklake import tables
from shelduck.ducklake.checked import unchecked
from shelduck.model.shadows.proof import FileBounds
from shelduck.model.tables.partition import BUCKET
from shelduck.model.tables.schema import Field, FieldId
from shelduck.model.tables.table_version import TableVersion

_key, _value = tables.partition_column.c, tables.file_partition_value.c
_file = tables.data_file.c

_INT64 = 2**63
_ENDS = ("min_value", "max_value")


def files_outside(
    connection: sa.Connection,
    table: TableVersion,
    ranges: Mapping[FieldId, tuple[int | None, int | None]],
) -> set[int]:
    """Return the files in which some column has no value in its range; one statement per column.

    Only files whose statistics are integers and rule them out are returned; all others may match.
    """
    number = dialect_of(connection).whole_number
    found: set[int] = set()
    for column_id, (low, high) in ranges.items():
        tests = []
        if low is not None and abs(low) < _INT64:
            tests.append(f"{number.format('max_value')} < {low}")
        if high is not None and abs(high) < _INT64:
            tests.append(f"{number.format('min_value')} > {high}")
        if not tests:
            continue
        query = (
            "SELECT data_file_id FROM ducklake_file_column_stats"
            f" WHERE table_id = {int(table.id)} AND column_id = {int(column_id)}"
            f" AND ({' OR '.join(tests)})"
        )
        found.update(row[0] for row in connection.execute(sa.text(query)))
    return found


def files_inside(
    connection: sa.Connection,
    table: TableVersion,
    column: FieldId,
    span: tuple[int | None, int | None],
    at_most: int,
) -> list[int] | None:
    """Return the files whose statistics of a column do not rule out a range; one statement.

    The table may have had some of them at other snapshots only. Files without a row of statistics
    are left out: see `files_without_statistics`. None if there are more than ``at_most``. Raises
    CorruptLake if an id is not an integer.
    """
    dialect = dialect_of(connection)
    tests = [
        f"{bound} {sign} {int(end)}"
        for bound, sign, end in zip(
            (dialect.high_bound, dialect.low_bound), (">=", "<="), span, strict=True
        )
        if end is not None and abs(end) < _INT64
    ]
    if not tests:
        return None
    query = (
        "SELECT data_file_id FROM ducklake_file_column_stats"
        f" WHERE table_id = {int(table.id)} AND column_id = {int(column)} AND {' AND '.join(tests)}"
    )
    query = dialect.first_rows.format(query, at_most + 1)
    ids = sa.text(query).columns(tables.file_column_stats.c.data_file_id)
    found = list(connection.execute(ids).scalars())
    return None if len(found) > at_most else found


def files_without_statistics(
    connection: sa.Connection, table: TableVersion, column: FieldId, at_most: int
) -> list[int] | None:
    """Return the files of a table at its snapshot that lack statistics of a column.

    None if there are more than ``at_most``. One statement if no file of any snapshot lacks them:
    then as many files have statistics as there are, and the sum of their ids is the same. Otherwise
    two.
    """
    known = tables.file_column_stats.c
    of_column = (known.table_id == table.id, known.column_id == column)
    in_table = _file.table_id == table.id
    with_statistics, all_files = connection.execute(
        sa.union_all(
            sa.select(sa.func.count(), total(known.data_file_id)).where(*of_column),
            sa.select(sa.func.count(), total(_file.data_file_id)).where(in_table),
        )
    ).all()
    if with_statistics == all_files:
        return []
    is_known = sa.exists().where(*of_column, known.data_file_id == _file.data_file_id)
    there = _there(table)
    query = sa.select(unchecked(_file.data_file_id)).where(*there)
    found = connection.execute(query.where(sa.not_(is_known)).limit(at_most + 1)).scalars().all()
    return None if len(found) > at_most else list(found)


def bytes_of_large_files(connection: sa.Connection, table: TableVersion, least: int) -> int:
    """Return the bytes of files that have at least ``least`` at a table's snapshot; one query."""
    size = sa.select(total(_file.file_size_bytes)).select_from(tables.data_file)
    large = size.where(*_there(table), _file.file_size_bytes >= least)
    return int(connection.execute(large).scalar_one())


class UnprovenFile(NamedTuple):
    """A file of a table with the statistics of one column; those of foreign files prove nothing."""

    id: int
    path: str
    is_relative: int | None
    mapping_id: int | None
    size: int | None
    bounds: FileBounds

    def place(self, table: TableVersion) -> str:
        """Return the absolute path."""
        return file_place(table, self.path, self.is_relative)


def files_unproven(
    connection: sa.Connection,
    table: TableVersion,
    column: FieldId,
    span: tuple[int, int] | None,
    scale: int = 0,
) -> tuple[int, list[UnprovenFile]]:
    """Return how many files a table has at its snapshot, and those that may leave a range.

    All other files belong to no name mapping, and the bounds of a column, with ``scale`` digits
    after the point, have whole parts within ``span``. Without a span, all files. Two statements.
    """
    known = tables.file_column_stats.c
    there = _there(table)
    count = connection.execute(sa.select(sa.func.count()).where(*there)).scalar_one()
    asked = (
        *(_file.data_file_id, _file.path, _file.path_is_relative, _file.mapping_id),
        *(_file.file_size_bytes, _file.partial_max, _file.record_count, known.value_count),
        *(known.null_count, known.min_value, known.max_value, known.contains_nan),
    )
    query = sa.select(*map(unchecked, asked)).outerjoin_from(*_with_statistics(table, column))
    query = query.where(*there)
    if span is not None and max(map(abs, span)) < _INT64:
        number = dialect_of(connection).whole_number
        stats = "ducklake_file_column_stats"
        low, high = (_whole_part(f"{stats}.{name}", number, scale) for name in _ENDS)
        within = f"{low} >= {int(span[0])} AND {high} <= {int(span[1])}"
        # Only texts of numbers get to the comparison.
        ordered = " >= ".join(f"CAST({stats}.{name} AS DOUBLE PRECISION)" for name in _ENDS[::-1])
        is_within = sa.text(f"CASE WHEN {within} THEN {ordered} END")
        is_proven = sa.and_(_file.mapping_id.is_(None), known.value_count > 0, is_within)
        query = query.where(sa.case((is_proven, 0), else_=1) == 1)
    found = []
    for number, path, is_relative, mapping, size, last, *told in connection.execute(query):
        bounds = FileBounds(*told)._replace(is_whole=last is None, is_trusted=mapping is None)
        found.append(UnprovenFile(number, path, is_relative, mapping, size, bounds))
    return count, found


def nulls_of(connection: sa.Connection, table: TableVersion, column: Field) -> int:
    """Return how many rows of all files of a table are NULL in a column; one statement.

    Files without statistics of the column were written before it was added.
    """
    missing = _file.record_count if column.initial_default is None else 0
    nulls = total(sa.func.coalesce(tables.file_column_stats.c.null_count, missing))
    query = sa.select(nulls).outerjoin_from(*_with_statistics(table, column.id))
    return int(connection.execute(query.where(*_there(table))).scalar_one())


def _there(table: TableVersion) -> tuple[sa.ColumnElement[bool], sa.ColumnElement[bool]]:
    """Return the conditions that a file is one of the table at its snapshot."""
    return _file.table_id == table.id, shown_or_broken(tables.data_file, table.snapshot.id)


def _with_statistics(
    table: TableVersion, column: FieldId
) -> tuple[sa.Table, sa.Table, sa.ColumnElement[bool]]:
    """Return what joins the files of a table with their statistics of one column."""
    known = tables.file_column_stats.c
    is_same = (known.data_file_id == _file.data_file_id) & (known.table_id == table.id)
    return tables.data_file, tables.file_column_stats, is_same & (known.column_id == column)


def _whole_part(bound: str, number: str, scale: int) -> str:
    """Return an expression: the whole part of a decimal text with so many digits after the point.

    It is NULL for all other texts.
    """
    if not scale:
        return number.format(bound)
    point = f"length({bound}) - {scale}"
    # A one before the digits tells whether they are digits.
    digits = number.format(f"('1' || substr({bound}, {point} + 1))")
    whole = number.format(f"substr({bound}, 1, {point} - 1)")
    return (
        f"CASE WHEN length({bound}) > {scale + 1} AND substr({bound}, {point}, 1) = '.'"
        f" AND {digits} IS NOT NULL THEN {whole} END"
    )


def bucketed_by(
    connection: sa.Connection, table: TableVersion, columns: Collection[FieldId]
) -> dict[FieldId, list[str]]:
    """Return the bucket transforms that files of a table ever had for columns; one statement."""
    query = sa.select(_key.column_id, _key.transform).where(
        _key.table_id == table.id, _key.column_id.in_(sorted(columns))
    )
    found: dict[FieldId, list[str]] = {}
    for column, transform in connection.execute(query.distinct()):
        if transform.startswith(BUCKET):
            found.setdefault(FieldId(column), []).append(transform)
    return found


def files_in_other_buckets(
    connection: sa.Connection,
    table: TableVersion,
    column: FieldId,
    transform: str,
    wanted: Collection[int],
    *,
    among: Collection[int] | None = None,
) -> set[int]:
    """Return the files that a bucket transform puts into other buckets than the wanted ones.

    Files with NULL are included, files without that key are not. ``among`` are the files that
    matter, None for all of the table. One statement.
    """
    is_other = sa.or_(
        _value.partition_value.is_(None), _value.partition_value.not_in(sorted(map(str, wanted)))
    )
    query = (
        sa.select(_value.data_file_id)
        .join_from(
            tables.file_partition_value, tables.data_file, _value.data_file_id == _file.data_file_id
        )
        .join(
            tables.partition_column,
            (_key.partition_id == _file.partition_id)
            & (_key.partition_key_index == _value.partition_key_index),
        )
        .where(_value.table_id == table.id, is_other)
        .where(_key.table_id == table.id, _key.column_id == column, _key.transform == transform)
    )
    if among is not None:
        query = query.where(_value.data_file_id.in_(sorted(among)))
    return set(connection.execute(query).scalars())
