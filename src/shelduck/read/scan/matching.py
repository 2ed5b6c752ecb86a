"""Rows for which a condition is true."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck.errors import InvalidRequest
from shelduck.read.scan.scan_frames import Origin

__all__ = ["Column", "Condition", "Where", "as_condition", "require_condition", "row_ids"]

Condition = Column | str


@dataclass(frozen=True, slots=True)
class Where:
    """A condition on rows, as a Spark column or SQL text.

    ``alias`` is the name of the rows in it, and in values that are computed from them.
    """

    condition: Condition
    alias: str | None = None

    def __post_init__(self) -> None:
        require_condition(self.condition)

    def rows(self, frame: DataFrame) -> DataFrame:
        """Return the rows of ``frame`` for which the condition is true."""
        named = frame if self.alias is None else frame.alias(self.alias)
        return named.where(as_condition(self.condition))


def require_condition(condition: object) -> None:
    """Raise InvalidRequest for something that is not a condition."""
    if not isinstance(condition, Column | str):
        raise InvalidRequest(
            "a condition must be SQL text or a Spark column, such as \"id = 5\" or col('id') =="
            f" 5, not {condition!r}"
        )


def as_condition(condition: Condition) -> Column:
    """Return a condition as a Spark column."""
    require_condition(condition)
    return F.expr(condition) if isinstance(condition, str) else condition


def row_ids(rows: DataFrame) -> tuple[int, ...]:
    """Return the row ids of rows in the catalog itself, which are few."""
    found = rows.select(Origin.ROW_ID).collect()
    return tuple(sorted(row[0] for row in found))
