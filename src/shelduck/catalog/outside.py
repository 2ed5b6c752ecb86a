"""A first look at statistics inside the database: whole numbers that a range rules out."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection, text

from shelduck.model.schema import FieldId
from shelduck.model.table import TableVersion

_INT64 = 2**63

# The bound as a number where its text is a whole number, else NULL, which rules nothing out. SQLite
# holds numbers beyond 64 bits to its least and greatest, which are never outside a 64 bit range.
_NUMBER = {
    "sqlite": (
        "CASE WHEN {0} <> '' AND ltrim({0}, '-') NOT GLOB '*[^0-9]*' THEN CAST({0} AS INTEGER) END"
    ),
    "postgresql": "CASE WHEN {0} ~ '^-?[0-9]+$' THEN CAST({0} AS NUMERIC) END",
    "duckdb": "CASE WHEN regexp_full_match({0}, '-?[0-9]+') THEN TRY_CAST({0} AS HUGEINT) END",
}


def files_outside(
    connection: Connection,
    table: TableVersion,
    ranges: Mapping[FieldId, tuple[int | None, int | None]],
) -> set[int]:
    """Return the files in which some column has no value within its range; a statement per column.

    Only files whose statistics say so in whole numbers are returned; of all others nothing is said.
    """
    number = _NUMBER[connection.dialect.name]
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
