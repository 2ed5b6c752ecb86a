"""Work that may be begun again and shall land once."""

from __future__ import annotations

from dataclasses import dataclass

from shelduck.model.tables.schema import TableId

# Ids of tables begin at 1: what concerns no one table has this.
ANY_TABLE = TableId(0)


@dataclass(frozen=True, slots=True)
class Batch:
    """One step of a series, such as a streaming query; numbers of a series grow.

    A series is told by its name and, when it goes into one table, by that table.
    """

    query_id: str
    batch_id: int
    table_id: TableId = ANY_TABLE

    def __str__(self) -> str:
        return f"batch {self.batch_id} of {self.query_id!r}"
