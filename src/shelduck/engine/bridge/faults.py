"""Errors of tasks about files: whoever runs a query, PySpark raises them as errors of a lake.

PySpark turns each exception of Java into one of Python in one function. It is replaced by one that
first looks for messages of the bridge's Java, and for errors that people who use lakes need in
other words (`_MEANINGS`). It leaves all other exceptions to PySpark.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors.exceptions import captured

from shelduck import errors
from shelduck.engine import named_errors
from shelduck.engine.named_errors import (
    ColumnNotFound,
    DamagedFile,
    FailedWork,
    InvalidArgument,
    MissingArgument,
    NotOverConnect,
    RefusedArgument,
    TableNotFound,
    TakenArgument,
    UnfitRows,
    UnreachedFile,
)
from shelduck.engine.stores.store_errors import meaning_of

# As in DamagedLake.java and LakeFileIndex.java.
DAMAGED = "shelduck found a damaged lake: "
_UNREACHED = "shelduck cannot reach a file: "
_TOO_NEW = "shelduck's Spark is too old for a file: "
_UNLISTED = "Shelduck could not list the files to read: "
_OWN_SCHEME = re.compile(r"\bs3-[0-9a-f]{8}://")
_FILE = re.compile(r"\b(data|delete) file (.+?) of (.+?) cannot be read: ")
# What Python prints of an error that a function for foreachBatch raised, or a lake answers, and
# Spark behind it; calls are indented.
_IN_BATCH = re.compile(
    r"(?:Traceback \((?!.*Traceback \()[^\n]*\n(?:\s[^\n]*\n)*shelduck[\w.]*\.[A-Z]\w*: "
    rf"|(?:\A|terminated with exception: )(?:{'|'.join(vars(errors))}): )"
    r"(.*?)\s*(?:SQLSTATE: |=== Streaming |\Z)",
    re.DOTALL,
)
# More causes than any exception has; a chain may be a circle.
_MOST_CAUSES = 20
_installing = threading.Lock()
_Kinds = Mapping[type[errors.ShelduckError], type[errors.ShelduckError]]
_OF_QUERIES: _Kinds = {
    errors.CorruptLake: DamagedFile,
    errors.SparkFailed: FailedWork,
    errors.StorageUnavailable: UnreachedFile,
}
_OF_ARGUMENTS: _Kinds = {
    errors.AlreadyExists: TakenArgument,
    errors.InvalidRequest: InvalidArgument,
    errors.NotFound: MissingArgument,
    errors.Unsupported: RefusedArgument,
}
_ANSWERS: Mapping[str, _Kinds] = {
    ".sql.AnalysisException": {errors.InvalidRequest: UnfitRows},
    ".QueryExecutionException": _OF_QUERIES,
    ".IllegalArgumentException": _OF_ARGUMENTS,
    ".LakeScript$Failed": _OF_ARGUMENTS,
}
# What Spark says where it takes the name of a lake for that of a schema.
_NOT_FOUND = re.compile(
    r"\[(REQUIRES_SINGLE_PART_NAMESPACE|TABLE_OR_VIEW_NOT_FOUND|SCHEMA_NOT_FOUND|CATALOG_NOT_FOUND"
    r"|NESTED_DATABASE_UNSUPPORTED_BY_V1_SESSION_CATALOG)|Couldn't find a catalog to handle the"
    r"|Nested databases are not supported by v1 session catalog"
)
_CONVERTS = "convert_exception"
_lakes: set[str] = set()
_TABLES = "a table of a lake is spark.table('lake.main.t') and df.writeTo('lake.main.t')"
# What Spark says, the class of the error, and a sentence that says what to write instead; it may
# name the groups of the pattern. Spark says these things about other tables too, so a sentence must
# be right for them as well.
_MEANINGS: tuple[tuple[str, Callable[[str], errors.ShelduckError], str], ...] = (
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
            "information_schema.{0} does not exist; there are information_schema.schemata, tables,"
            " views and columns, and CALL table_info()"
        ),
    ),
    (
        r"UNRESOLVED_COLUMN\S* .*? with name `_metadata`",
        ColumnNotFound,
        (
            "column '_metadata' does not exist in a DataFrame of a lake's table; select it in SQL,"
            " as in SELECT _metadata.file_path FROM t, or use CALL list_files('t')"
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
        r"Table (\S+) does not support (?:batch scan|\S*upsert|\S*delete|\S*row-level)",
        RefusedArgument,
        (
            "Spark itself cannot change rows of {0}; run the statement by itself:"
            " spark.sql('UPDATE ...'), not inside EXECUTE IMMEDIATE or BEGIN ... END"
        ),
    ),
)


def file_fault(text: str) -> errors.ShelduckError | None:
    """Return what a message of Spark says about a file of a lake, None if it is about others."""
    for mark, make in (
        (DAMAGED, DamagedFile),
        (_UNREACHED, _unreached),
        (_TOO_NEW, errors.Unsupported),
    ):
        _, found, rest = text.partition(mark)
        if found:
            told = rest.split("\n", 1)[0].split(" SQLSTATE:", 1)[0]
            return make(_OWN_SCHEME.sub("s3://", told.replace("file:///", "/")))
    _, found, rest = text.partition(_UNLISTED)
    return _named(rest.split("\n\tat ", 1)[0], _OF_QUERIES) if found else None


def tell_of_files() -> None:
    """Let PySpark raise errors about files of a lake as what they are; once is enough."""
    with _installing:
        original = getattr(captured, "convert_exception", None)
        if original is not None and not hasattr(original, "tells_of_files"):
            captured.convert_exception = _telling(original)  # type: ignore[assignment]
            failed: Any = captured.StreamingQueryException
            failed.__init__ = _in_short(failed.__init__)


def _telling(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def convert(thrown: Any) -> Any:
        return _fault_of(thrown) or original(thrown)

    convert.tells_of_files = True  # type: ignore[attr-defined]
    return convert


def _in_short(original: Callable[..., None]) -> Callable[..., None]:
    """Return what makes the error of a failed query: in it, an error of ours has no calls."""

    def make(self: Any, *arguments: Any, **more: Any) -> None:
        original(self, *arguments, **more)
        found = _IN_BATCH.search(self._desc)
        if found is not None:
            self._desc = found[1]

    return make


def _fault_of(thrown: Any) -> errors.ShelduckError | None:
    try:
        return _told(thrown)
    except (Py4JError, OSError):
        # Java does not answer: PySpark tells of that.
        return None


def _told(thrown: Any) -> errors.ShelduckError | None:
    kind = str(thrown.getClass().getName())
    if kind.endswith(".StreamingQueryException"):
        # Callers expect that class, and it has the message.
        return None
    known = next((of for name, of in _ANSWERS.items() if kind.endswith(name)), None)
    if known is not None:
        # What a catalog or a data source of a lake answers.
        found = _named(str(thrown.getMessage()), known)
        if found is not None:
            return found
    for _ in range(_MOST_CAUSES):
        if thrown is None:
            return None
        message = str(thrown.getMessage() or "")
        found = file_fault(message) or _sentence_for(message)
        if found is not None:
            return found
        thrown = thrown.getCause()
    return None


def _unreached(told: str) -> UnreachedFile:
    found = _FILE.search(told)
    if found is not None:
        kind, path, table = found.groups()
        better = meaning_of(told, path)
        if better is not None:
            told = f"{kind} file {path} of {table}: {better}"
    return UnreachedFile(told)


def _named(told: str, known: _Kinds) -> errors.ShelduckError | None:
    """Return the error of a text that begins with its class, None if that is not one of a lake.

    ``known`` are classes that have a name of Spark too.
    """
    name, _, text = told.partition(": ")
    kind = getattr(errors, name, None) or getattr(named_errors, name, None)
    if not (isinstance(kind, type) and issubclass(kind, errors.ShelduckError)):
        return None
    return known.get(kind, kind)(text)


def _sentence_for(message: str) -> errors.ShelduckError | None:
    """Return what a message of Spark means, None if nothing is known about it."""
    for pattern, kind, sentence in _MEANINGS:
        found = re.search(pattern, message[:1000])
        if found is not None:
            return kind(sentence.format(*(g.replace("`", "") for g in found.groups())))
    return None


def tell_over_connect(name: str) -> None:
    """Let PySpark say of tables in a catalog what can be done with them over Spark Connect."""
    from pyspark.sql.connect.client import core  # noqa: PLC0415 - needs the packages of Connect

    _lakes.add(name.lower())
    original = getattr(core, _CONVERTS, None)
    if original is not None and not hasattr(original, "tells_of_lakes"):
        setattr(core, _CONVERTS, _telling_over_connect(original))


def forget_over_connect(name: str) -> None:
    """Take back `tell_over_connect`."""
    _lakes.discard(name.lower())


def _telling_over_connect(original: Callable[..., Any]) -> Callable[..., Any]:
    def convert(*arguments: Any, **more: Any) -> Any:
        made = original(*arguments, **more)
        return _lakes_fault(str(made)) or made

    convert.tells_of_lakes = True  # type: ignore[attr-defined]
    return convert


def _lakes_fault(message: str) -> errors.ShelduckError | None:
    condition = _NOT_FOUND.search(message) if _lakes else None
    name = None if condition is None else _name().search(message, condition.end())
    if condition is None or name is None:
        return _sentence_for(message)
    table = name[1].replace("`", "").rstrip(".")
    made = NotOverConnect(
        f"Spark itself does not find {table} over Spark Connect; use spark.sql for SELECT and for"
        " what changes the lake, spark.sql('SELECT ...').createOrReplaceTempView('v') for a view of"
        " rows, lake.table('main.t').read() and .append(df) for a DataFrame"
    )
    made.condition = condition[1] or made.condition
    return made


def _name() -> re.Pattern[str]:
    """Return a pattern of names that begin with the name of a lake, quoted or not."""
    lakes = "|".join(map(re.escape, _lakes))
    part = r"(?:`[^`]+`|\w+)"
    quoted = rf"(?:{lakes}|`(?:{lakes})`)"
    return re.compile(rf"(?<![\w.`])(?:`spark_catalog`\.)?({quoted}(?:\.{part})*)", re.IGNORECASE)
