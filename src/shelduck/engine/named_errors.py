"""Errors with Spark's names, if it has one: they have our text and can be caught as either."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import (
    AnalysisException,
    IllegalArgumentException,
    ParseException,
    PySparkException,
    UnsupportedOperationException,
)

from shelduck import errors
from shelduck.model.tables.schema import is_reserved
from shelduck.model.text.names import split_name

# Names of other modules that this one stands for.
__all__ = ["AnalysisException", "ParseException"]

SparkError = (PySparkException, Py4JJavaError)
# SQL's class of data exceptions, which `raise_error` uses too.
_DATA_FAULT = re.compile(r"SQLSTATE: (22...|P0001)")
_THROWN = re.compile(r"^(Caused by: |.*Exception: )+(?=\[)")
# Errors that Spark finds before any work: one line, and a plan or a text below.
_PLANNING = (AnalysisException, ParseException)
_TRACEBACK = "Traceback (most recent call last)"
_SPARKS_CALL = re.compile(r"\s+(at |\.\.\. \d+ more)|An error occurred while calling ")
_IN_TASK = re.compile(
    r"^.* most recent failure: Lost task \S+ in stage \S+ \(TID \d+\) \(.*?\): (?=[a-zA-Z])"
)
_BEFORE = re.compile(r"^(: |Caused by: |(\w+\.)+Spark\w*Exception: )+")
_PACKAGE = re.compile(r"^([a-z]\w*\.)+(?=[A-Z])")
_SQLSTATE = re.compile(r" ?SQLSTATE: \w{5}")
_NO_FUNCTION = (
    "UNRESOLVED_ROUTINE",
    "ROUTINE_NOT_FOUND",
    "UNRESOLVABLE_TABLE_VALUED_FUNCTION",
    # The name of a lake stands before the function, or the lake is the current catalog.
    "REQUIRES_SINGLE_PART_NAMESPACE",
    "MISSING_CATALOG_ABILITY.TABLE_VALUED_FUNCTIONS",
)
# Spark 4.0 has one name for all that a catalog cannot do, and a word for what that is.
_NO_ABILITY = ("_LEGACY_ERROR_TEMP_1184", "MISSING_CATALOG_ABILITY")
_MISSING = ("UNRESOLVED_", "TABLE_OR_VIEW_NOT_FOUND")
_UNABLE = (
    "UNSUPPORTED_FEATURE",
    "MISSING_CATALOG_ABILITY",
    "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE",
    "INTERNAL_ERROR",
    "INVALID_PARTITION_OPERATION.PARTITION_MANAGEMENT_IS_UNSUPPORTED",
)
_UNKNOWN = ("UNRESOLVED_COLUMN.WITH_SUGGESTION", "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION")


class _Named(errors.ShelduckError, PySparkException):
    """Provides the condition by which Spark's users know an error."""

    condition = ""

    def __init__(self, text: str) -> None:
        PySparkException.__init__(self, message=text)
        self.args = (text,)

    def __str__(self) -> str:
        return str(self.args[0])

    def getMessage(self) -> str:  # noqa: N802 - Spark's own name for it
        """Return the text."""
        return str(self)

    def getCondition(self) -> str:  # noqa: N802 - Spark's own name for it
        """Return the name of the error condition."""
        return self.condition

    getErrorClass = getCondition  # noqa: N815 - its older name


class TableNotFound(_Named, errors.NotFound, AnalysisException):
    """A table, view or metadata table does not exist."""

    condition = "TABLE_OR_VIEW_NOT_FOUND"


class SchemaNotFound(_Named, errors.NotFound, AnalysisException):
    """A schema does not exist."""

    condition = "SCHEMA_NOT_FOUND"


class TableExpected(_Named, errors.NotFound, AnalysisException):
    """A table is needed, but the name is that of a view."""

    condition = "EXPECT_TABLE_NOT_VIEW"


class ColumnNotFound(_Named, errors.NotFound, AnalysisException):
    """A column does not exist."""

    condition = "UNRESOLVED_COLUMN"


class TableExists(_Named, errors.AlreadyExists, AnalysisException):
    """A table or view with that name already exists."""

    condition = "TABLE_OR_VIEW_ALREADY_EXISTS"


class SchemaExists(_Named, errors.AlreadyExists, AnalysisException):
    """A schema with that name already exists."""

    condition = "SCHEMA_ALREADY_EXISTS"


class ColumnExists(_Named, errors.AlreadyExists, AnalysisException):
    """A column with that name already exists."""

    condition = "FIELD_ALREADY_EXISTS"


class NoStatement(_Named, errors.InvalidRequest, ParseException):
    """A statement cannot be parsed."""

    condition = "PARSE_SYNTAX_ERROR"


class UnfitRows(_Named, errors.InvalidRequest, AnalysisException):
    """Rows have other columns or types than their table takes."""

    condition = "INCOMPATIBLE_DATA_FOR_TABLE"


class InvalidQuery(_Named, errors.InvalidRequest, AnalysisException):
    """Spark cannot plan a query."""


class InvalidValue(_Named, errors.InvalidRequest):
    """Spark cannot compute with a value of the rows."""


class DamagedFile(_Named, errors.CorruptLake):
    """A query finds that a file of a lake and the catalog contradict each other."""

    condition = "FAILED_READ_FILE"


class UnreachedFile(_Named, errors.StorageUnavailable):
    """A query cannot read a file of a lake from its storage."""

    condition = "FAILED_READ_FILE"
    about = "storage"


class RefusedArgument(_Named, errors.Unsupported, IllegalArgumentException):
    """A catalog of a lake cannot do what Spark asks it for."""


class InvalidArgument(_Named, errors.InvalidRequest, IllegalArgumentException):
    """Spark asks a catalog of a lake for something that has to be mended."""


class MissingArgument(_Named, errors.NotFound, IllegalArgumentException):
    """Spark asks a catalog of a lake about something that does not exist."""


class TakenArgument(_Named, errors.AlreadyExists, IllegalArgumentException):
    """Spark asks a catalog of a lake for a name that is taken."""


class NotOverConnect(_Named, errors.Unsupported, AnalysisException):
    """Spark Connect knows no catalogs of this process."""

    condition = "REQUIRES_SINGLE_PART_NAMESPACE"


class FailedWork(_Named, errors.SparkFailed):
    """Spark could not end its work, for a reason that is neither in rows nor in files."""


_NAMED: dict[tuple[type[errors.ShelduckError], str], type[_Named]] = {
    (errors.NotFound, "schema"): SchemaNotFound,
    (errors.NotFound, "table"): TableNotFound,
    (errors.NotFound, "view"): TableNotFound,
    (errors.NotFound, "view instead of table"): TableExpected,
    (errors.NotFound, "column"): ColumnNotFound,
    (errors.AlreadyExists, "schema"): SchemaExists,
    (errors.AlreadyExists, "table"): TableExists,
    (errors.AlreadyExists, "view"): TableExists,
    (errors.AlreadyExists, "column"): ColumnExists,
    (errors.InvalidRequest, "text"): NoStatement,
    (errors.InvalidRequest, "rows"): UnfitRows,
}


@contextmanager
def told_as_sparks() -> Iterator[None]:
    """Raise a lake's errors in the form that Spark's users expect."""
    try:
        yield
    except errors.ShelduckError as error:
        raise as_sparks(error) from error


def told_as_lakes(error: Exception) -> errors.ShelduckError | None:
    """Return an error of Spark's parser, analysis or values as a lake's users expect it.

    For Spark's users it stays the same error, with its condition, without the plan. None for other
    errors.
    """
    if isinstance(error, ParseException):
        return _with_condition(NoStatement(first_line(error) or str(error).strip()), error)
    if isinstance(error, AnalysisException):
        condition = error.getCondition() or ""
        kind = ColumnNotFound if condition.startswith("UNRESOLVED_COLUMN.") else InvalidQuery
        return _with_condition(kind(first_line(error)), error)
    fault = data_fault(error)
    return None if fault is None else InvalidValue(fault)


def _with_condition(made: _Named, error: PySparkException) -> _Named:
    made.condition = error.getCondition() or made.condition
    return made


def as_sparks(error: errors.ShelduckError) -> errors.ShelduckError:
    """Return an error of a lake as one of Spark's too, if Spark has such an error."""
    made = _named(error)
    return error if made is None else made(str(error))


def told_to_java(error: Exception) -> str:
    """Return the class and the message of an error, from which `faults` makes it again.

    The class is one that callers know: modules have some of their own.
    """
    known = (errors.__name__, __name__)
    kinds = (k for k in type(error).__mro__ if issubclass(k, errors.ShelduckError))
    public = next((k for k in kinds if k.__module__ in known), type(error))
    return f"{public.__name__}: {error}"


def condition_of(error: Exception) -> str:
    """Return Spark's name for an error, or else a word for what is wrong."""
    made = _named(error)
    if made is not None:
        return made.condition
    return "INVALID" if isinstance(error, errors.InvalidRequest | errors.Unsupported) else "FAILED"


def first_line(error: Exception) -> str:
    """Return Spark's message, without the plan, the text or the calls that it shows below.

    Of the failure of a task it is the task's own message, and what caused it.
    """
    if isinstance(error, Py4JError | PySparkException) and not isinstance(error, _PLANNING):
        return _sentence(error)
    return str(error).strip().split("\n", maxsplit=1)[0]


def _sentence(error: Exception) -> str:
    try:
        lines = str(error).splitlines()
    except (Py4JError, OSError):
        # Java, which has the rest, is gone.
        lines = [str(error.args[0])]
    python = [n for n, line in enumerate(lines) if _TRACEBACK in line]
    if python:
        # Python indents the calls. The line after them is the exception.
        return next((line for line in lines[python[-1] + 1 :] if re.match(r"\S", line)), "")
    texts = [line.strip() for line in lines if line.strip() and not _SPARKS_CALL.match(line)]
    first = _plain(texts[0]) if texts else type(error).__name__
    causes = [_plain(text) for text in texts if text.startswith("Caused by: ")]
    if not causes or causes[-1] in first:
        return first
    return f"{first.rstrip('.:')}: {causes[-1]}"


def _plain(text: str) -> str:
    """Return a message without what Spark and py4j put before and behind it."""
    text = _IN_TASK.sub("", _BEFORE.sub("", text))
    return _SQLSTATE.sub("", _PACKAGE.sub("", _BEFORE.sub("", text)))


def data_fault(error: Exception) -> str | None:
    """Return Spark's message about a value with which it cannot compute; None for other errors.

    Such an error occurs again in every attempt.
    """
    if not isinstance(error, SparkError):
        return None
    lines = (line.strip() for line in str(error).splitlines())
    found = next((line for line in lines if _DATA_FAULT.search(line)), None)
    return None if found is None else _THROWN.sub("", found)


def thrown_by_java(error: BaseException) -> Any:
    """Return the Java object that Spark threw, None for an error that is not Spark's own."""
    if isinstance(error, Py4JJavaError):
        return error.java_exception
    return getattr(error, "_origin", None) if isinstance(error, PySparkException) else None


def names_nothing(error: Exception) -> bool:
    """Return whether Spark cannot parse a text, or misses a function, table or column in it."""
    return lacks_function(error) or any(c.startswith(_MISSING) for c in _conditions(error))


def lacks_function(error: Exception) -> bool:
    """Return whether Spark misses a function in a text, or cannot parse it.

    It may be unable to parse the arguments of a function that is not its own.
    """
    return any(c in _NO_FUNCTION or c.startswith("PARSE_") for c in _conditions(error))


def _conditions(error: BaseException | None) -> Iterator[str]:
    while error is not None:
        if isinstance(error, PySparkException):
            yield newest_condition(error)
        error = error.__cause__


def newest_condition(error: PySparkException) -> str:
    """Return Spark's name for an error: that of the newest Spark if an older one has another."""
    found = error.getCondition() or ""
    older, newer = _NO_ABILITY
    if found != older:
        return found
    ability = (error.getMessageParameters() or {}).get("ability", "")
    return f"{newer}.{re.sub(r'[^A-Z]', '_', ability.upper())}"


def was_unable(error: Exception) -> bool:
    """Return whether Spark knows a statement, but its table or catalog does not support it.

    Spark finds some of these cases so late in its planning that it takes them for a bug.
    """
    if isinstance(error, UnsupportedOperationException | errors.Unsupported):
        return True
    text = str(error)
    known = any(f"[{condition}" in text for condition in _UNABLE)
    return known or any(c.startswith(_UNABLE) for c in _conditions(error))


def _named(error: Exception) -> type[_Named] | None:
    if not isinstance(error, errors.ShelduckError):
        return None
    return _NAMED.get((type(error), error.about))


@contextmanager
def unknown_columns() -> Iterator[None]:
    """Raise NotFound for a column that Spark does not find, with similar names.

    Spark would also suggest columns that only the statement itself has.
    """
    try:
        yield
    except AnalysisException as error:
        if error.getCondition() not in _UNKNOWN:
            raise
        told = error.getMessageParameters() or {}
        near = [parts for text in told.get("proposal", "").split(", ") if (parts := _parts(text))]
        known = [".".join(parts) for parts in near if not any(map(is_reserved, parts))]
        name = ".".join(_parts(told.get("objectName", ""))) or told.get("objectName", "")
        raise errors.NotFound.named("column", name, known) from error


def _parts(text: str) -> tuple[str, ...]:
    try:
        return split_name(text)
    except errors.InvalidRequest:
        return ()
