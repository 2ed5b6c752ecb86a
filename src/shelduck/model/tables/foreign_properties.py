"""Table properties of Delta that a lake does not have, and what to write instead of each.

To add a property, add a line to ``_PROPERTIES``: its name, or the beginning of several names with a
dot or a word behind it, and what follows ``; `` in the error. The longest beginning counts.
"""

from __future__ import annotations

_PREFIX = "delta."
_STATISTICS = "every column has statistics; leave it out"
_NO_LOG = "a lake has no log of files; leave it out"
_SMALL_FILES = "use CALL maintain(), which combines small files"
_ICEBERG = "use CALL export_iceberg('t', 'folder')"
_EXPIRE = "use CALL set_option('expire_older_than', '30 days')"
_CLEAN = "use CALL set_option('delete_older_than', '7 days')"
_SIZE = "use CALL set_option('target_file_size', '256MB', table_name => 't')"

_PROPERTIES = {
    "": "leave it out, or choose a name that does not begin with delta.",
    "appendOnly": "a lake cannot forbid changes of rows; leave it out",
    "autoOptimize": _SMALL_FILES,
    "checkpoint": _NO_LOG,
    "clusteringColumns": "use ALTER TABLE t SET SORTED BY (c)",
    "columnMapping": "columns always have ids; leave it out",
    "constraints": "DuckLake supports only NOT NULL and defaults; leave it out",
    "coordinatedCommits": "the catalog's database orders the commits; leave it out",
    "dataSkipping": _STATISTICS,
    "deletedFileRetentionDuration": _CLEAN,
    "enableChangeDataFeed": "every table has a change feed: table_changes('t', start, end)",
    "enableDeletionVectors": "DELETE always writes positions; leave it out",
    "enableExpiredLogCleanup": _NO_LOG,
    "enableFullRetentionRollback": "RESTORE can go back to every snapshot; leave it out",
    "enableIcebergCompat": _ICEBERG,
    "enableInCommitTimestamps": "every snapshot has its time; leave it out",
    "enableRowTracking": "rows always have ids: SELECT rowid; leave it out",
    "feature": "a lake has no table features but typeWidening; leave it out",
    "identity": "DuckLake has no identity columns; leave it out",
    "isolationLevel": "commits that touch the same rows exclude each other; leave it out",
    "logRetentionDuration": _EXPIRE,
    "minReaderVersion": "a lake has no versions of a protocol; leave it out",
    "minWriterVersion": "a lake has no versions of a protocol; leave it out",
    "parquet.compression": (
        "use CALL set_option('parquet_compression', 'zstd', table_name => 't')"
    ),
    "parquet.format": "use CALL set_option('parquet_version', '2', table_name => 't')",
    "random": "files have random names; leave it out",
    "rowTracking": "rows always have ids: SELECT rowid; leave it out",
    "setTransactionRetentionDuration": "numbers of lake.transaction(once=...) stay; leave it out",
    "targetFileSize": _SIZE,
    "tuneFileSizesForRewrites": _SIZE,
    "universalFormat": _ICEBERG,
}


def foreign_property(key: str, table: str) -> str | None:
    """Return why ``table`` cannot have a property of Delta, None for a name that is not Delta's."""
    if not key.lower().startswith(_PREFIX):
        return None
    name = key[len(_PREFIX) :].lower()
    known = max((p for p in _PROPERTIES if name.startswith(p.lower())), key=len)
    return f"{table} cannot have the property {key!r} of Delta; {_PROPERTIES[known]}"
