"""How many rows of one statement go into the catalog instead of a file."""

from __future__ import annotations

from shelduck.catalog.databases.store import Store
from shelduck.catalog.running.jobs import open_job
from shelduck.catalog.schema.inlined_columns import can_inline
from shelduck.model.tables.table import TableVersion


def inline_limit(store: Store, table: TableVersion) -> int:
    """Return the most rows that a table takes in the catalog, 0 for none.

    The option ``data_inlining_row_limit`` tells it. Rows of partitioned tables go into files, which
    know their partition. So do rows of a table whose types a job changes: there they are checked.
    """
    if table.partition or not can_inline(store.kind, table.columns):
        return 0
    if table.has_reserved:
        with store.read() as connection:
            if open_job(connection, table.id) is not None:
                return 0
    return table.options.data_inlining_row_limit
