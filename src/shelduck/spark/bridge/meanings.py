"""Spark's errors in words of people who use lakes: a sentence that says what to write instead.

To add one, add a line to ``_MEANINGS``: what Spark says, the class of the error, and the sentence,
which may name the groups of the pattern. Spark says these things about other tables too, so a
sentence must be right for them as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from shelduck.errors import ShelduckError
from shelduck.spark.named_errors import ColumnNotFound, RefusedArgument, TableNotFound

_TABLES = "a table of a lake is spark.table('lake.main.t') and df.writeTo('lake.main.t')"
_MEANINGS: tuple[tuple[str, Callable[[str], ShelduckError], str], ...] = (
    (
        r"Failed to find the data source: (delta|iceberg|hudi)\b",
        RefusedArgument,
        "this session has no data source {0!r}; leave out the format: " + _TABLES,
    ),
    (
        r"Failed to find the data source: shelduck\b",
        RefusedArgument,
        (
            "this session does not know the data source 'shelduck'; call shelduck.register(spark)"
            " to read, and write with df.writeTo('lake.main.t') or lake.table('t').append(df)"
        ),
    ),
    (
        r"LakeProvider does not allow create table|Data source shelduck does not support streamed",
        RefusedArgument,
        (
            "format('shelduck') only reads; write with df.writeTo('lake.main.t'),"
            " df.write.saveAsTable('lake.main.t') or df.writeStream.toTable('lake.main.t')"
        ),
    ),
    (
        r"The table or view `(delta|iceberg|hudi)`\.`([^`]+)` cannot be found",
        TableNotFound,
        (
            "{0}.`{1}` cannot be read: this session has no data source {0!r}; use CALL"
            " import_delta('folder', 't') for a table of Delta, or CALL add_files('t', 'folder')"
            " for Parquet files, and read t"
        ),
    ),
    (
        r"The table or view (?:`[^`]+`\.)?`information_schema`\.`([^`]+)` cannot be found",
        TableNotFound,
        (
            "information_schema.{0} does not exist; use SHOW SCHEMAS, SHOW TABLES, DESCRIBE t, or"
            " CALL table_info()"
        ),
    ),
    (
        r"UNRESOLVED_COLUMN\S* .*? with name `_metadata`",
        ColumnNotFound,
        (
            "column '_metadata' does not exist: only files that Spark lists by itself have it; for"
            " a table of a lake use SELECT rowid, snapshot_id FROM t, or CALL list_files('t')"
        ),
    ),
    (
        r"Table (\S+) does not support partition management",
        RefusedArgument,
        (
            "statements about single partitions of {0} are not supported: partitions come and go"
            " with their rows; use DELETE, INSERT, or SELECT * FROM t.partitions"
        ),
    ),
    (
        r"The provided partitioning [^-]*- provided: (.*?)\s*- table: (.*?)\s*(?:\n|$)",
        RefusedArgument,
        (
            "partitionBy {0} does not fit a table that is partitioned by {1}; leave out"
            " partitionBy, or change the table first: ALTER TABLE t SET PARTITIONED BY (...)"
        ),
    ),
    (
        r"\[NOT_SUPPORTED_COMMAND_FOR_V2_TABLE\] (?:ALTER TABLE \.\.\. )?(.+?) is not supported",
        RefusedArgument,
        "{0} is not supported for tables of such a catalog as a lake; leave it out",
    ),
    (
        r"cannot alter (\S+) here; ",
        RefusedArgument,
        (
            "Spark itself cannot alter {0}; run ALTER TABLE by itself with spark.sql of the Python"
            " session that attached the lake, or use lake.table('t').alter(...)"
        ),
    ),
    (
        r"Table (\S+) does not support (?:batch scan|\S*upsert|\S*delete|\S*row-level)",
        RefusedArgument,
        (
            "Spark itself cannot change rows of {0}; run the statement by itself:"
            " spark.sql('UPDATE ...'), not inside EXPLAIN, EXECUTE IMMEDIATE or BEGIN ... END"
        ),
    ),
)


def sentence_for(message: str) -> ShelduckError | None:
    """Return what a message of Spark means, None if nothing is known about it."""
    for pattern, kind, sentence in _MEANINGS:
        found = re.search(pattern, message[:1000])
        if found is not None:
            return kind(sentence.format(*(g.replace("`", "") for g in found.groups())))
    return None
