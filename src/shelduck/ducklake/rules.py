"""The values that columns of a catalog may hold: which are never NULL, and the range of numbers.

A name means the same in every table, but for the exceptions below.
"""

from __future__ import annotations

from dataclasses import dataclass

MOST = 2**53
"""The largest number of any column; even the sum of a hundred of them fits into 64 bits."""
MOST_BYTES = 2**50
"""The largest file."""

# Which clients may leave NULL: there is no such thing, it is unknown, or it has a default.
_OPTIONAL = frozenset(
    (
        "scope scope_id changes_made author commit_message commit_extra_info end_snapshot"
        " schema_uuid path_is_relative column_aliases value file_order record_count footer_size"
        " row_id_start partition_id encryption_key mapping_id partial_max column_size_bytes"
        " value_count null_count min_value max_value contains_nan contains_null extra_stats"
        " variant_path shredded_type column_order initial_default default_value nulls_allowed"
        " parent_column default_value_type default_value_dialect parameter_type partition_value"
        " is_partition digest finished published_snapshot message last_file worker heartbeat"
        " row_group_count min_is_exact max_is_exact parent_schema_id"
    ).split()
)
_EXCEPTIONS = {
    ("ducklake_metadata", "value"): False,
    ("ducklake_schema", "path"): True,
    ("ducklake_table", "path"): True,
    ("ducklake_partition_info", "partition_id"): False,
    ("ducklake_partition_column", "partition_id"): False,
    ("ducklake_column_mapping", "mapping_id"): False,
    ("ducklake_name_mapping", "mapping_id"): False,
    # Rows of catalogs from before DuckLake 1.0 have none.
    ("ducklake_schema_versions", "table_id"): True,
    ("ducklake_table_stats", "file_size_bytes"): True,
    ("ducklake_snapshot", "snapshot_time"): False,
}

# From where to where a number goes; of a text, its length. Field ids of Parquet files have 32 bits.
_FIELD_ID = (0, 2**31 - 1)
_NOT_EMPTY = (1, MOST)
_LIMITS = {
    "schema_name": _NOT_EMPTY,
    "table_name": _NOT_EMPTY,
    "view_name": _NOT_EMPTY,
    "macro_name": _NOT_EMPTY,
    "column_name": _NOT_EMPTY,
    "column_id": _FIELD_ID,
    "parent_column": _FIELD_ID,
    # A column that moved before the first one.
    "column_order": (-MOST, MOST),
    "target_field_id": _FIELD_ID,
    "file_size_bytes": (1, MOST_BYTES),
}
_LIMITS_OF = {
    ("ducklake_data_file", "path"): _NOT_EMPTY,
    ("ducklake_delete_file", "path"): _NOT_EMPTY,
    ("ducklake_files_scheduled_for_deletion", "path"): _NOT_EMPTY,
    ("ducklake_table_stats", "file_size_bytes"): (0, MOST),
    # The nodes of a mapping have numbers of their own.
    ("ducklake_name_mapping", "column_id"): (0, MOST),
    ("ducklake_name_mapping", "parent_column"): (0, MOST),
    ("shelduck_stream_batches", "batch_id"): (-MOST, MOST),
    # The file before the first.
    ("shelduck_job", "last_file"): (-1, MOST),
}


@dataclass(frozen=True, slots=True)
class ValueRule:
    """What a column may hold: the range of a number or of the length of a text, NULL or not."""

    limits: tuple[int, int]
    optional: bool


def rule_of(table: str, column: str) -> ValueRule:
    """Return the rule of a column."""
    place = (table, column)
    limits = _LIMITS_OF.get(place) or _LIMITS.get(column, (0, MOST))
    return ValueRule(limits, _EXCEPTIONS.get(place, column in _OPTIONAL))
