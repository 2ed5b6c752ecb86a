"""Shelduck's own tables, and indexes on DuckLake's tables: created if they are missing.

DuckDB ignores tables that it does not know and keeps indexes up to date, so both may come and go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy.schema import CreateIndex, CreateTable

from shelduck.catalog.databases.dialect import Dialect
from shelduck.catalog.databases.known import dialect_of
from shelduck.catalog.databases.store import Store
from shelduck.ducklake import tables
from shelduck.ducklake.checked import check_columns
from shelduck.errors import CorruptLake

T = TypeVar("T")

OWN = sa.MetaData()


def _table(name: str, columns: str) -> sa.Table:
    return tables.table_of(OWN, f"shelduck_{name}", columns)


file_layout = _table("file_layout", "data_file_id key, layout_id")
layout = _table("layout", "layout_id key, digest text, layout text")
# Adopted files that no snapshot shows any more. They belong to their owners, so they are not
# scheduled for deletion: DuckDB would delete them.
released_file = _table("released_file", "data_file_id key, path text, released time")
# The newest committed batch of each series, such as a streaming query into a table.
stream_batches = _table("stream_batches", "table_id key, query_id text key, batch_id, snapshot_id")
# Heavy schema changes: one row each, kept after they end.
job = _table(
    "job",
    "job_id key, table_id, table_name text, state text, created time, finished time, "
    "work text, timeout, base_snapshot, schema_version, published_snapshot, message text, "
    "done_files, total_files, last_file, worker text, heartbeat time",
)
# How much a job has rewritten, and in which time: estimates of later jobs come from here.
job_speed = _table("job_speed", "job_id key, bytes, milliseconds, cores")
# Who is writing files for a table now: a job waits for writers that began before it.
writer = _table("writer", "writer_id text key, table_id key, snapshot_id, expires time")
# Tables with a key model, and rollups: the newest snapshot as of which they are settled.
settled = _table("settled", "table_id key, snapshot_id")
# Maintenance: who does it now, table by table, and when it was last done.
upkeep = _table("upkeep", "subject text key, worker text, heartbeat time, finished time")
# How many numbers of its identity a table has given out.
identity = _table("identity", "table_uuid text key, taken")
check_columns(OWN)

_INDEXED = (
    (tables.column, ("table_id",)),
    (tables.data_file, ("table_id",)),
    (tables.delete_file, ("table_id",)),
    (tables.file_column_stats, ("table_id", "column_id", "data_file_id")),
    (tables.file_variant_stats, ("table_id", "column_id", "data_file_id")),
    (tables.file_partition_value, ("table_id", "data_file_id")),
    (tables.files_scheduled_for_deletion, ("data_file_id",)),
    (tables.inlined_data_tables, ("table_id",)),
    (tables.schema_versions, ("table_id",)),
    (tables.table, ("table_id",)),
    (tables.table_stats, ("table_id",)),
    (tables.table_column_stats, ("table_id",)),
    (tables.tag, ("object_id",)),
    (tables.column_tag, ("table_id",)),
    (tables.partition_info, ("table_id",)),
    (tables.partition_column, ("table_id",)),
    (tables.sort_info, ("table_id",)),
    (tables.sort_expression, ("table_id",)),
    (file_layout, ("layout_id",)),
    (layout, ("digest",)),
)


# Indexes with other columns than those of earlier versions have names of their own.
_RENAMED = {
    "shelduck_ix_file_column_stats": "shelduck_ix_column_stats_of_file",
    "shelduck_ix_file_variant_stats": "shelduck_ix_variant_stats_of_file",
    "shelduck_ix_file_partition_value": "shelduck_ix_partition_value_of_file",
}


def _index(source: sa.Table, columns: tuple[str, ...], what: str = "") -> sa.Index:
    # A copy of the table has the index, so that creating a lake does not create indexes.
    copy = source.to_metadata(sa.MetaData())
    name = f"shelduck_ix_{what or source.name.partition('_')[2]}"
    return sa.Index(
        sa.quoted_name(_RENAMED.get(name, name), quote=None), *(copy.c[c] for c in columns)
    )


_INDEXES = (
    *(_index(source, columns) for source, columns in _INDEXED),
    _index(tables.delete_file, ("data_file_id",), "delete_of_file"),
)


def indexes(dialect: Dialect) -> tuple[sa.Index, ...]:
    """Return the indexes that Shelduck gives to a lake in such a database."""
    if not dialect.indexes_bounds:
        return _INDEXES
    stats = tables.file_column_stats.to_metadata(sa.MetaData())
    bounds = sa.Index(
        "shelduck_ix_column_bounds",
        *(stats.c.table_id, stats.c.column_id),
        *map(sa.text, (dialect.high_bound, dialect.low_bound)),
        stats.c.data_file_id,
    )
    return (*_INDEXES, bounds)


def if_known(store: Store, act: Callable[[bool], T]) -> T:
    """Return ``act(True)`` if this process has seen all tables of Shelduck, else ``act(False)``.

    Nobody removes them, so ``act`` need not look for them. If another catalog without them took the
    place of the lake, ``act`` fails with CorruptLake, has changed nothing, and runs again.
    """
    if store.has_own_tables:
        try:
            return act(True)
        except CorruptLake:
            store.has_own_tables = False
    return act(False)


def ensure_own_tables(store: Store, connection: sa.Connection) -> None:
    """Create missing tables and indexes of Shelduck; ``connection`` comes from `Store.write`.

    Idempotent. One statement (two if indexes help) if nothing is missing.
    """
    present = store.table_names(connection)
    for own in OWN.sorted_tables:
        if own.name not in present:
            connection.execute(CreateTable(own))
    store.has_own_tables = True
    if not store.database.indexed:
        return
    present = store.index_names(connection)
    for index in indexes(dialect_of(connection)):
        if index.name not in present:
            connection.execute(CreateIndex(index))
    for name in present & _RENAMED.keys():
        connection.execute(sa.text(f"DROP INDEX {name}"))
