"""Errors as Spark calls them, where it has a word for one: with our text, and caught as either."""

from __future__ import annotations

from pyspark.errors import AnalysisException, ParseException, PySparkException

from shelduck.errors import AlreadyExists, InvalidRequest, NotFound, ShelduckError

__all__ = ["AnalysisException", "ParseException", "as_sparks"]


class _Named(PySparkException):
    """Tells the condition by which Spark's users know an error."""

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


class TableNotFound(_Named, NotFound, AnalysisException):
    """A table, view or metadata table does not exist."""

    condition = "TABLE_OR_VIEW_NOT_FOUND"


class SchemaNotFound(_Named, NotFound, AnalysisException):
    """A schema does not exist."""

    condition = "SCHEMA_NOT_FOUND"


class ColumnNotFound(_Named, NotFound, AnalysisException):
    """A column does not exist."""

    condition = "UNRESOLVED_COLUMN"


class TableExists(_Named, AlreadyExists, AnalysisException):
    """A table or view of that name exists."""

    condition = "TABLE_OR_VIEW_ALREADY_EXISTS"


class SchemaExists(_Named, AlreadyExists, AnalysisException):
    """A schema of that name exists."""

    condition = "SCHEMA_ALREADY_EXISTS"


class ColumnExists(_Named, AlreadyExists, AnalysisException):
    """A column of that name exists."""

    condition = "FIELD_ALREADY_EXISTS"


class NoStatement(_Named, InvalidRequest, ParseException):
    """A statement cannot be read."""

    condition = "PARSE_SYNTAX_ERROR"


_KINDS: tuple[tuple[type[ShelduckError], str, type[ShelduckError]], ...] = (
    (NotFound, "schema ", SchemaNotFound),
    (NotFound, "column ", ColumnNotFound),
    (NotFound, "", TableNotFound),
    (AlreadyExists, "schema ", SchemaExists),
    (AlreadyExists, "column ", ColumnExists),
    (AlreadyExists, "", TableExists),
)


def as_sparks(error: ShelduckError) -> ShelduckError:
    """Return an error of a lake as one that is Spark's too, where Spark has such a one."""
    text = str(error)
    for kind, beginning, made in _KINDS:
        if isinstance(error, kind) and text.startswith(beginning):
            return made(text)
    if isinstance(error, InvalidRequest) and text.startswith("cannot read "):
        return NoStatement(text)
    return error
