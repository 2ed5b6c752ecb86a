"""Unknown columns of a statement, reported in the lake's words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import AnalysisException

from shelduck.errors import InvalidRequest, NotFound
from shelduck.model.tables.schema import is_reserved
from shelduck.model.text.names import split_name

_UNKNOWN = ("UNRESOLVED_COLUMN.WITH_SUGGESTION", "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION")


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
        raise NotFound.named("column", name, known) from error


def _parts(text: str) -> tuple[str, ...]:
    try:
        return split_name(text)
    except InvalidRequest:
        return ()
