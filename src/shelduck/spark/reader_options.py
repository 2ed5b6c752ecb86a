"""Options of Spark's Parquet reader that every scan gives, whatever the session says."""

from __future__ import annotations

# Files come from writers on the Gregorian calendar, and a file of a snapshot that is missing or
# damaged must fail the query.
READER_OPTIONS = {
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
}
# For files that are named one by one: their paths are no patterns, and their schema is given.
LISTED_FILES = READER_OPTIONS | {
    "mergeSchema": "false",
    "recursiveFileLookup": "true",
    "__globPaths__": "false",
}
