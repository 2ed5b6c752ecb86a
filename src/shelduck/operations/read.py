"""READ: a table at a snapshot as a DataFrame."""

from __future__ import annotations

from collections.abc import Sequence

from shelduck.catalog import read
from shelduck.catalog.store import Store
from shelduck.model.table import TableVersion
from shelduck.operations.layouts import LayoutMemory
from shelduck.operations.pruning import Pruner
from shelduck.planning.scan import plan_scan
from shelduck.spark.layouts import read_layouts
from shelduck.spark.read import read_rows
from shelduck.spark.session import DataFrame, SparkSession


def read_table(
    spark: SparkSession,
    store: Store,
    table: TableVersion,
    layouts: LayoutMemory,
    columns: Sequence[str] | None = None,
) -> DataFrame:
    """Return the rows of a table version: its files, without deleted rows, and its inlined rows."""
    with store.read() as connection:
        files = read.data_files(connection, table)
        wanted = {f.mapping_id for f in files if f.mapping_id is not None}
        mappings = read.name_mappings(connection, wanted)
        inlined = read.inlined_rows(connection, table)
    known = layouts.fill(files, read_layouts)
    plan = plan_scan(table, known, mappings, columns)
    pruner = Pruner(store, table)
    return read_rows(spark, plan, prune=pruner, inlined=inlined)
