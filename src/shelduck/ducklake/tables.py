"""The 28 tables of DuckLake 1.0 as SQLAlchemy Core tables, in the order of the specification.

Columns are in the extension's exact order and must stay there: DuckDB inserts by position. There
are five primary keys, two NOT NULL columns, and no other constraint or index.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.types import TypeEngine

from shelduck.ducklake.checked import (
    BIGINT,
    BOOLEAN,
    KEY_TEXT,
    TEXT,
    TIMESTAMP,
    UUID,
    check_columns,
)

DUCKLAKE = sa.MetaData()
_TYPES: dict[str, TypeEngine[Any]] = {
    "text": TEXT,
    "bool": BOOLEAN,
    "uuid": UUID,
    "time": TIMESTAMP,
}


def table_of(metadata: sa.MetaData, name: str, columns: str, *, is_open: bool = False) -> sa.Table:
    """Return a table, given its columns in order: each a name, and words unless it is a number.

    ``key`` is part of the primary key, and ``needed`` is never NULL. ``is_open``: the database does
    not declare that keys are not NULL.
    """
    return sa.Table(name, metadata, *columns_of(columns, is_open=is_open))


def columns_of(text: str, *, is_open: bool = False) -> list[sa.Column[Any]]:
    """Return the columns of a text, as `table_of` does."""
    return [_column(each.split(), is_open=is_open) for each in text.split(",")]


def _table(name: str, columns: str) -> sa.Table:
    # The extension declares no NOT NULL for keys; PostgreSQL and DuckDB imply it.
    return table_of(DUCKLAKE, f"ducklake_{name}", columns, is_open=True)


def _column(said: list[str], *, is_open: bool) -> sa.Column[Any]:
    name, *words = said
    stored: TypeEngine[Any] = next((_TYPES[word] for word in words if word in _TYPES), BIGINT)
    if "key" not in words:
        return sa.Column(name, stored, nullable="needed" not in words)
    stored = KEY_TEXT if stored is TEXT else stored
    return sa.Column(name, stored, primary_key=True, autoincrement=False, nullable=is_open)


metadata = _table("metadata", "key text needed, value text needed, scope text, scope_id")
IS_VERSION = sa.and_(metadata.c.key == "version", metadata.c.scope.is_(None))
"""The condition of the row of `metadata` with the version of the lake."""
snapshot = _table(
    "snapshot", "snapshot_id key, snapshot_time time, schema_version, next_catalog_id, next_file_id"
)
snapshot_changes = _table(
    "snapshot_changes",
    "snapshot_id key, changes_made text, author text, commit_message text, commit_extra_info text",
)
schema = _table(
    "schema",
    "schema_id key, schema_uuid uuid, begin_snapshot, end_snapshot, schema_name text, "
    "path text, path_is_relative bool",
)
table = _table(
    "table",
    "table_id, table_uuid uuid, begin_snapshot, end_snapshot, schema_id, table_name text, "
    "path text, path_is_relative bool",
)
view = _table(
    "view",
    "view_id, view_uuid uuid, begin_snapshot, end_snapshot, schema_id, view_name text, "
    "dialect text, sql text, column_aliases text",
)
tag = _table("tag", "object_id, begin_snapshot, end_snapshot, key text, value text")
column_tag = _table(
    "column_tag", "table_id, column_id, begin_snapshot, end_snapshot, key text, value text"
)
data_file = _table(
    "data_file",
    "data_file_id key, table_id, begin_snapshot, end_snapshot, file_order, path text, "
    "path_is_relative bool, file_format text, record_count, file_size_bytes, footer_size, "
    "row_id_start, partition_id, encryption_key text, mapping_id, partial_max",
)
file_column_stats = _table(
    "file_column_stats",
    "data_file_id, table_id, column_id, column_size_bytes, value_count, null_count, "
    "min_value text, max_value text, contains_nan bool, extra_stats text",
)
file_variant_stats = _table(
    "file_variant_stats",
    "data_file_id, table_id, column_id, variant_path text, shredded_type text, "
    "column_size_bytes, value_count, null_count, min_value text, max_value text, "
    "contains_nan bool, extra_stats text",
)
delete_file = _table(
    "delete_file",
    "delete_file_id key, table_id, begin_snapshot, end_snapshot, data_file_id, path text, "
    "path_is_relative bool, format text, delete_count, file_size_bytes, footer_size, "
    "encryption_key text, partial_max",
)
column = _table(
    "column",
    "column_id, begin_snapshot, end_snapshot, table_id, column_order, column_name text, "
    "column_type text, initial_default text, default_value text, nulls_allowed bool, "
    "parent_column, default_value_type text, default_value_dialect text",
)
table_stats = _table("table_stats", "table_id, record_count, next_row_id, file_size_bytes")
table_column_stats = _table(
    "table_column_stats",
    "table_id, column_id, contains_null bool, contains_nan bool, min_value text, "
    "max_value text, extra_stats text",
)
partition_info = _table("partition_info", "partition_id, table_id, begin_snapshot, end_snapshot")
partition_column = _table(
    "partition_column", "partition_id, table_id, partition_key_index, column_id, transform text"
)
file_partition_value = _table(
    "file_partition_value", "data_file_id, table_id, partition_key_index, partition_value text"
)
files_scheduled_for_deletion = _table(
    "files_scheduled_for_deletion",
    "data_file_id, path text, path_is_relative bool, schedule_start time",
)
inlined_data_tables = _table("inlined_data_tables", "table_id, table_name text, schema_version")
column_mapping = _table("column_mapping", "mapping_id, table_id, type text")
name_mapping = _table(
    "name_mapping",
    "mapping_id, column_id, source_name text, target_field_id, parent_column, is_partition bool",
)
schema_versions = _table("schema_versions", "begin_snapshot, schema_version, table_id")
macro = _table("macro", "schema_id, macro_id, macro_name text, begin_snapshot, end_snapshot")
macro_impl = _table("macro_impl", "macro_id, impl_id, dialect text, sql text, type text")
macro_parameters = _table(
    "macro_parameters",
    "macro_id, impl_id, column_id, parameter_name text, parameter_type text, "
    "default_value text, default_value_type text",
)
sort_info = _table("sort_info", "sort_id, table_id, begin_snapshot, end_snapshot")
sort_expression = _table(
    "sort_expression",
    "sort_id, table_id, sort_key_index, expression text, dialect text, sort_direction text, "
    "null_order text",
)

check_columns(DUCKLAKE)
