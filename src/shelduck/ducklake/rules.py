"""What a catalog must hold: the values of its columns, and how its rows fit together.

Statements check values where they read them (`shelduck.ducklake.checked`), and
`shelduck.catalog.upkeep.audit` looks at all of it. A name means the same in every table, but for
the exceptions below. A rule for a table or column that a version of DuckLake lacks says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    **{f"{what}_name": _NOT_EMPTY for what in ("schema", "table", "view", "macro", "column")},
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
    # Somebody may give the greatest number.
    ("shelduck_identity", "taken"): (0, 2**63 - 1),
    # The file before the first.
    ("shelduck_job", "last_file"): (-1, MOST),
}
# Texts of which each has a meaning of its own. The scope of an option may be empty for none.
_WORDS = {
    ("ducklake_metadata", "scope"): ("", "schema", "table"),
    ("ducklake_macro_impl", "type"): ("scalar", "table"),
}

SNAPSHOTS = ("begin_snapshot", "end_snapshot", "partial_max")
"""Columns with numbers of snapshots up to the newest."""

# In the rules below, names of tables are without ``ducklake_``.
# Of these columns, no two rows of a table may have the same values.
ONCE = {
    "metadata": "key scope scope_id",
    "table_stats": "table_id",
    "table_column_stats": "table_id column_id",
    "file_column_stats": "data_file_id column_id",
    "file_partition_value": "data_file_id partition_key_index",
    "inlined_data_tables": "table_id schema_version",
    "column_mapping": "mapping_id",
    "name_mapping": "mapping_id column_id",
    "schema_versions": "table_id schema_version",
    "macro_impl": "macro_id impl_id",
    "macro_parameters": "macro_id impl_id column_id",
    "files_scheduled_for_deletion": "path",
}
# Of these, no two rows of one snapshot; of names, in any case.
ONCE_IN_A_SNAPSHOT = (
    ("schema", "schema_id"),
    ("schema", "parent_schema_id schema_name"),
    ("table", "table_id"),
    ("view", "view_id"),
    ("view", "schema_id view_name"),
    ("macro", "macro_id"),
    ("column", "table_id column_id"),
    ("column", "table_id parent_column column_name"),
    ("partition_info", "table_id"),
    ("sort_info", "table_id"),
    ("tag", "object_id key"),
    ("column_tag", "table_id column_id key"),
    ("view_column_tag", "view_id column_name key"),
    ("data_file", "table_id path"),
    ("delete_file", "table_id path"),
    ("delete_file", "data_file_id"),
)
# The keys of a partitioning or a sort order count from 0 on.
COUNTED = (
    ("partition_column", "partition_id", "partition_key_index"),
    ("sort_expression", "sort_id", "sort_key_index"),
)
# Columns by whose values a row of another table exists: of which tables, and of which others.
REFERENCES: tuple[tuple[str, str, Mapping[str, str]], ...] = (
    (
        "table_id",
        (
            "column column_tag data_file delete_file partition_info sort_info table_stats"
            " table_column_stats inlined_data_tables file_column_stats"
        ),
        {"table": "table_id"},
    ),
    (
        "data_file_id",
        "delete_file file_column_stats file_partition_value",
        {"data_file": "data_file_id"},
    ),
    ("schema_id", "table view macro", {"schema": "schema_id"}),
    (
        "object_id",
        "tag",
        {"table": "table_id", "schema": "schema_id", "view": "view_id", "macro": "macro_id"},
    ),
    ("macro_id", "macro_impl macro_parameters", {"macro": "macro_id"}),
    ("view_id", "view_column_tag", {"view": "view_id"}),
    ("mapping_id", "data_file name_mapping", {"column_mapping": "mapping_id"}),
    ("mapping_id parent_column", "name_mapping", {"name_mapping": "mapping_id column_id"}),
    ("partition_id", "data_file partition_column", {"partition_info": "partition_id"}),
    ("sort_id", "sort_expression", {"sort_info": "sort_id"}),
    ("table_id column_id", "file_column_stats", {"column": "table_id column_id"}),
    ("table_id parent_column", "column", {"column": "table_id column_id"}),
)


@dataclass(frozen=True, slots=True)
class ValueRule:
    """What a column may hold: the range of a number or of the length of a text, NULL or not.

    ``words`` are the only texts, if there are any.
    """

    limits: tuple[int, int]
    optional: bool
    words: tuple[str, ...] = ()


def rule_of(table: str, column: str) -> ValueRule:
    """Return the rule of a column."""
    place = (table, column)
    limits = _LIMITS_OF.get(place) or _LIMITS.get(column, (0, MOST))
    optional = _EXCEPTIONS.get(place, column in _OPTIONAL)
    return ValueRule(limits, optional, _WORDS.get(place, ()))
