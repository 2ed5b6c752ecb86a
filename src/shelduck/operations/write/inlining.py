"""How many rows of one statement go into the catalog instead of a file."""

from __future__ import annotations

from shelduck.catalog.databases.store import Store
from shelduck.catalog.running.jobs import open_job
from shelduck.catalog.schema.inlined_columns import can_inline
from shelduck.model.tables.table import TableVersion


def inline_limit(store: Store, table: TableVersion) -> int:
    """Return how many rows of one statement may go into the catalog, 0 for none.

    It is the option ``data_inlining_row_limit``. Rows of partitioned tables go into files, which
    have a partition. So do rows of a table whose types a job changes, because they are checked
    there.
    """
    if table.partition or not can_inline(store.kind, table.columns):
        return 0
    if table.has_reserved:
        with store.read() as connection:
            if open_job(connection, table.id) is not None:
                return 0
    return table.options.data_inlining_row_limit
