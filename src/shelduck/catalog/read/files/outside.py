"""A first check of files inside the database: which files a range or a bucket rules out."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlalchemy import Connection, or_, select, text

from shelduck.catalog.dialects.known import dialect_of
from shelduck.catalog.schema import tables
from shelduck.model.tables.partition import BUCKET
from shelduck.model.tables.schema import FieldId
from shelduck.model.tables.table import TableVersion

_key, _value = tables.partition_column.c, tables.file_partition_value.c
_file = tables.data_file.c

_INT64 = 2**63


def files_outside(
    connection: Connection,
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
        found.update(row[0] for row in connection.execute(text(query)))
    return found


def bucketed_by(
    connection: Connection, table: TableVersion, columns: Collection[FieldId]
) -> dict[FieldId, list[str]]:
    """Return the bucket transforms that files of a table ever had for columns; one statement."""
    query = select(_key.column_id, _key.transform).where(
        _key.table_id == table.id, _key.column_id.in_(sorted(columns))
    )
    found: dict[FieldId, list[str]] = {}
    for column, transform in connection.execute(query.distinct()):
        if transform.startswith(BUCKET):
            found.setdefault(FieldId(column), []).append(transform)
    return found


def files_in_other_buckets(
    connection: Connection,
    table: TableVersion,
    column: FieldId,
    transform: str,
    wanted: Collection[int],
) -> set[int]:
    """Return the files that a bucket transform puts into other buckets than the wanted ones.

    Files with NULL are included, files without that key are not. One statement.
    """
    is_other = or_(
        _value.partition_value.is_(None), _value.partition_value.not_in(sorted(map(str, wanted)))
    )
    query = (
        select(_value.data_file_id)
        .join_from(
            tables.file_partition_value, tables.data_file, _value.data_file_id == _file.data_file_id
        )
        .join(
            tables.partition_column,
            (_key.partition_id == _file.partition_id)
            & (_key.partition_key_index == _value.partition_key_index),
        )
        .where(_value.table_id == table.id, is_other)
        .where(_key.column_id == column, _key.transform == transform)
    )
    return set(connection.execute(query).scalars())
