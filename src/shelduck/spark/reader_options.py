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
# For a path that is no pattern, whatever letters are in it.
EXACT_PATH = READER_OPTIONS | {"__globPaths__": "false"}
# For files that are named one by one, and whose schema is given.
LISTED_FILES = EXACT_PATH | {"mergeSchema": "false", "recursiveFileLookup": "true"}
