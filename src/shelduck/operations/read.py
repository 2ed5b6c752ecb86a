"""READ: a table at a snapshot as a DataFrame."""

from __future__ import annotations

from collections.abc import Sequence

from shelduck.catalog.store import Store
from shelduck.model.staged import StagedRows
from shelduck.model.table import TableVersion
from shelduck.operations.layouts import LayoutMemory
from shelduck.operations.rows import table_rows
from shelduck.spark.session import DataFrame, SparkSession


def read_table(
    spark: SparkSession,
    store: Store,
    table: TableVersion,
    layouts: LayoutMemory,
    columns: Sequence[str] | None = None,
    *,
    staged: StagedRows | None = None,
) -> DataFrame:
    """Return the rows of a table version: its files, without deleted rows, and its inlined rows.

    ``staged`` is what an open transaction did to them.
    """
    return table_rows(store, table, layouts, staged).frame(spark, columns)
