"""What DuckDB shows of the table of the mirror story, in the words of the mirror."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.mirror import in_order, told

if TYPE_CHECKING:
    from tests.support.mirror import Cell, Mirror
    from tests.support.oracle import DuckDBOracle

_TYPES = {
    "SMALLINT": "smallint",
    "INTEGER": "int",
    "BIGINT": "bigint",
    "FLOAT": "float",
    "DOUBLE": "double",
    "VARCHAR": "string",
}
# A job reserves the id of its column by a row that no snapshot shows.
_COLUMN_IDS = (
    "SELECT column_id, column_name, end_snapshot IS NULL, begin_snapshot IS NOT DISTINCT FROM"
    " end_snapshot FROM __ducklake_metadata_lake.ducklake_column ORDER BY begin_snapshot, 1"
)


def by_duckdb(
    oracle: DuckDBOracle, source: str
) -> tuple[list[tuple[str, str]], list[tuple[Cell, ...]]]:
    """Names and types of the columns, and the rows, of the table or whatever stands for it."""
    described = oracle.sql(f"DESCRIBE SELECT * FROM {source}")
    shape = [(name, _TYPES.get(kind, kind.lower())) for name, kind, *_ in described]
    rows = oracle.sql(f"SELECT * FROM {source}")
    return shape, in_order([told(v) for v in row] for row in rows)


class ColumnIds:
    """The ids that columns have had so far."""

    def __init__(self) -> None:
        self._identities: dict[int, int] = {}
        self._reserved: set[int] = set()

    def check(self, oracle: DuckDBOracle, mirror: Mirror) -> None:
        """A column keeps its id, until a job gives it a new one; no id is used again."""
        identities = {c.name: c.identity for c in mirror.columns}
        newest = max(self._identities, default=0)
        for number, name, is_live, is_reserved in oracle.sql(_COLUMN_IDS):
            if is_reserved:
                self._reserved.add(number)
            if not is_live:
                continue
            is_new = number > newest or number in self._reserved
            assert number in self._identities or is_new, f"{name} has an old id, {number}"
            identity = self._identities.setdefault(number, identities[name])
            assert identity == identities[name], f"id {number} of {name} was another column's"
