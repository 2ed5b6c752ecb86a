"""Work that may run again and must be committed only once."""

from __future__ import annotations

from dataclasses import dataclass

from shelduck.model.tables.schema import TableId

# Ids of tables begin at 1. This stands for "no single table".
ANY_TABLE = TableId(0)


@dataclass(frozen=True, slots=True)
class Batch:
    """One step of a series, such as a streaming query; the numbers of a series grow.

    A series is identified by its name and, if it goes into one table, by that table.
    """

    query_id: str
    batch_id: int
    table_id: TableId = ANY_TABLE

    def __str__(self) -> str:
        return f"batch {self.batch_id} of {self.query_id!r}"
