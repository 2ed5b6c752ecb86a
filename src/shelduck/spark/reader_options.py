"""Options of Spark's Parquet reader that every scan sets, whatever the session's settings are."""

from __future__ import annotations

# Files come from writers that use the Gregorian calendar. If a file of a snapshot is missing or
# damaged, the query must fail.
READER_OPTIONS = {
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    # Most writers put a checksum into each page, without which a flipped bit may be a wrong value.
    "parquet.page.verify-checksum.enabled": "true",
}
# For a path that is not a pattern, whatever characters it has.
EXACT_PATH = READER_OPTIONS | {"__globPaths__": "false"}
# For files that are named one by one, and whose schema is given.
LISTED_FILES = EXACT_PATH | {"mergeSchema": "false", "recursiveFileLookup": "true"}
