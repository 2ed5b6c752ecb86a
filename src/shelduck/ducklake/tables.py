"""The 28 tables of DuckLake 1.0 as SQLAlchemy Core tables, in the order of the specification.

Columns are in the extension's exact order and must stay there: DuckDB inserts by position. There
are five primary keys, two NOT NULL columns, and no other constraint or index.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, MetaData, Table, and_
from sqlalchemy.types import TypeEngine

from shelduck.ducklake.column_types import BIGINT, BOOLEAN, TEXT, TIMESTAMP, UUID
from shelduck.ducklake.rules import check_columns

DUCKLAKE = MetaData()


def _key(name: str) -> Column[Any]:
    # nullable: the extension declares no NOT NULL here; PostgreSQL and DuckDB imply it.
    return Column(name, BIGINT, primary_key=True, autoincrement=False, nullable=True)


def _columns(type_: TypeEngine[Any], *names: str) -> list[Column[Any]]:
    return [Column(name, type_) for name in names]


def _int(*names: str) -> list[Column[Any]]:
    return _columns(BIGINT, *names)


def _text(*names: str) -> list[Column[Any]]:
    return _columns(TEXT, *names)


def _bool(name: str) -> Column[Any]:
    return Column(name, BOOLEAN)


metadata = Table(
    "ducklake_metadata",
    DUCKLAKE,
    Column("key", TEXT, nullable=False),
    Column("value", TEXT, nullable=False),
    *_text("scope"),
    *_int("scope_id"),
)

IS_VERSION = and_(metadata.c.key == "version", metadata.c.scope.is_(None))
"""The condition of the row of `metadata` with the version of the lake."""

snapshot = Table(
    "ducklake_snapshot",
    DUCKLAKE,
    _key("snapshot_id"),
    Column("snapshot_time", TIMESTAMP),
    *_int("schema_version", "next_catalog_id", "next_file_id"),
)

snapshot_changes = Table(
    "ducklake_snapshot_changes",
    DUCKLAKE,
    _key("snapshot_id"),
    *_text("changes_made", "author", "commit_message", "commit_extra_info"),
)

schema = Table(
    "ducklake_schema",
    DUCKLAKE,
    _key("schema_id"),
    Column("schema_uuid", UUID),
    *_int("begin_snapshot", "end_snapshot"),
    *_text("schema_name", "path"),
    _bool("path_is_relative"),
)

table = Table(
    "ducklake_table",
    DUCKLAKE,
    *_int("table_id"),
    Column("table_uuid", UUID),
    *_int("begin_snapshot", "end_snapshot", "schema_id"),
    *_text("table_name", "path"),
    _bool("path_is_relative"),
)

view = Table(
    "ducklake_view",
    DUCKLAKE,
    *_int("view_id"),
    Column("view_uuid", UUID),
    *_int("begin_snapshot", "end_snapshot", "schema_id"),
    *_text("view_name", "dialect", "sql", "column_aliases"),
)

tag = Table(
    "ducklake_tag",
    DUCKLAKE,
    *_int("object_id", "begin_snapshot", "end_snapshot"),
    *_text("key", "value"),
)

column_tag = Table(
    "ducklake_column_tag",
    DUCKLAKE,
    *_int("table_id", "column_id", "begin_snapshot", "end_snapshot"),
    *_text("key", "value"),
)

data_file = Table(
    "ducklake_data_file",
    DUCKLAKE,
    _key("data_file_id"),
    *_int("table_id", "begin_snapshot", "end_snapshot", "file_order"),
    *_text("path"),
    _bool("path_is_relative"),
    *_text("file_format"),
    *_int("record_count", "file_size_bytes", "footer_size", "row_id_start", "partition_id"),
    *_text("encryption_key"),
    *_int("mapping_id", "partial_max"),
)

file_column_stats = Table(
    "ducklake_file_column_stats",
    DUCKLAKE,
    *_int("data_file_id", "table_id", "column_id"),
    *_int("column_size_bytes", "value_count", "null_count"),
    *_text("min_value", "max_value"),
    _bool("contains_nan"),
    *_text("extra_stats"),
)

file_variant_stats = Table(
    "ducklake_file_variant_stats",
    DUCKLAKE,
    *_int("data_file_id", "table_id", "column_id"),
    *_text("variant_path", "shredded_type"),
    *_int("column_size_bytes", "value_count", "null_count"),
    *_text("min_value", "max_value"),
    _bool("contains_nan"),
    *_text("extra_stats"),
)

delete_file = Table(
    "ducklake_delete_file",
    DUCKLAKE,
    _key("delete_file_id"),
    *_int("table_id", "begin_snapshot", "end_snapshot", "data_file_id"),
    *_text("path"),
    _bool("path_is_relative"),
    *_text("format"),
    *_int("delete_count", "file_size_bytes", "footer_size"),
    *_text("encryption_key"),
    *_int("partial_max"),
)

column = Table(
    "ducklake_column",
    DUCKLAKE,
    *_int("column_id", "begin_snapshot", "end_snapshot", "table_id", "column_order"),
    *_text("column_name", "column_type", "initial_default", "default_value"),
    _bool("nulls_allowed"),
    *_int("parent_column"),
    *_text("default_value_type", "default_value_dialect"),
)

table_stats = Table(
    "ducklake_table_stats",
    DUCKLAKE,
    *_int("table_id", "record_count", "next_row_id", "file_size_bytes"),
)

table_column_stats = Table(
    "ducklake_table_column_stats",
    DUCKLAKE,
    *_int("table_id", "column_id"),
    _bool("contains_null"),
    _bool("contains_nan"),
    *_text("min_value", "max_value", "extra_stats"),
)

partition_info = Table(
    "ducklake_partition_info",
    DUCKLAKE,
    *_int("partition_id", "table_id", "begin_snapshot", "end_snapshot"),
)

partition_column = Table(
    "ducklake_partition_column",
    DUCKLAKE,
    *_int("partition_id", "table_id", "partition_key_index", "column_id"),
    *_text("transform"),
)

file_partition_value = Table(
    "ducklake_file_partition_value",
    DUCKLAKE,
    *_int("data_file_id", "table_id", "partition_key_index"),
    *_text("partition_value"),
)

files_scheduled_for_deletion = Table(
    "ducklake_files_scheduled_for_deletion",
    DUCKLAKE,
    *_int("data_file_id"),
    *_text("path"),
    _bool("path_is_relative"),
    Column("schedule_start", TIMESTAMP),
)

inlined_data_tables = Table(
    "ducklake_inlined_data_tables",
    DUCKLAKE,
    *_int("table_id"),
    *_text("table_name"),
    *_int("schema_version"),
)

column_mapping = Table(
    "ducklake_column_mapping",
    DUCKLAKE,
    *_int("mapping_id", "table_id"),
    *_text("type"),
)

name_mapping = Table(
    "ducklake_name_mapping",
    DUCKLAKE,
    *_int("mapping_id", "column_id"),
    *_text("source_name"),
    *_int("target_field_id", "parent_column"),
    _bool("is_partition"),
)

schema_versions = Table(
    "ducklake_schema_versions",
    DUCKLAKE,
    *_int("begin_snapshot", "schema_version", "table_id"),
)

macro = Table(
    "ducklake_macro",
    DUCKLAKE,
    *_int("schema_id", "macro_id"),
    *_text("macro_name"),
    *_int("begin_snapshot", "end_snapshot"),
)

macro_impl = Table(
    "ducklake_macro_impl",
    DUCKLAKE,
    *_int("macro_id", "impl_id"),
    *_text("dialect", "sql", "type"),
)

macro_parameters = Table(
    "ducklake_macro_parameters",
    DUCKLAKE,
    *_int("macro_id", "impl_id", "column_id"),
    *_text("parameter_name", "parameter_type", "default_value", "default_value_type"),
)

sort_info = Table(
    "ducklake_sort_info",
    DUCKLAKE,
    *_int("sort_id", "table_id", "begin_snapshot", "end_snapshot"),
)

sort_expression = Table(
    "ducklake_sort_expression",
    DUCKLAKE,
    *_int("sort_id", "table_id", "sort_key_index"),
    *_text("expression", "dialect", "sort_direction", "null_order"),
)

check_columns(DUCKLAKE)
