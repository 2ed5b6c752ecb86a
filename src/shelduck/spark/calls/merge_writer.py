"""``df.mergeInto`` of a table of a lake: Spark's builder, whose clauses become those of a MERGE."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql.merge import MergeIntoWriter

from shelduck.errors import InvalidRequest
from shelduck.model.text.names import split_name
from shelduck.spark.merge.merge_clauses import Action, MergeClause, When
from shelduck.spark.rows.assignments import SetValue
from shelduck.spark.scan.matching import require_condition

RunMerge = Callable[[DataFrame, Column, Sequence[MergeClause], bool], None]
"""Merges a source on a condition by clauses; the last says whether the schema evolves."""


class LakeMerge(MergeIntoWriter):
    """Collects the clauses; `merge` runs them at once.

    The methods are Spark's, with its names: texts in conditions and values are columns' names.
    """

    def __init__(self, df: DataFrame, condition: Column, run: RunMerge) -> None:
        # Spark's own constructor would create a writer in Java that needs one on every executor.
        self._df = df
        self._on = _column(condition)
        self._run = run
        self._clauses: list[MergeClause] = []
        self._evolves = False

    def whenMatched(self, condition: Column | None = None) -> Any:  # noqa: N802 - Spark's own name
        """Say what happens to rows that match; follow it with an action."""
        return _Matched(self, When.MATCHED, condition)

    def whenNotMatched(self, condition: Column | None = None) -> Any:  # noqa: N802 - Spark's own name
        """Say what happens to rows of the source that match none."""
        return _NotMatched(self, When.NOT_MATCHED, condition)

    def whenNotMatchedBySource(  # noqa: N802 - Spark's own name
        self, condition: Column | None = None
    ) -> Any:
        """Say what happens to rows of the table that no row of the source matches."""
        return _NotMatchedBySource(self, When.NOT_MATCHED_BY_SOURCE, condition)

    def withSchemaEvolution(self) -> LakeMerge:  # noqa: N802 - Spark's own name
        """Add columns that only the source has, in the same snapshot."""
        self._evolves = True
        return self

    def merge(self) -> None:
        """Run the merge as one commit."""
        self._run(self._df, self._on, self._clauses, self._evolves)

    def _then(self, clause: MergeClause) -> LakeMerge:
        self._clauses.append(clause)
        return self


class _When:
    """The rows of one clause."""

    def __init__(self, writer: LakeMerge, when: When, condition: Column | None) -> None:
        self._writer = writer
        self._when = when
        self._condition = None if condition is None else _column(condition)

    def _then(self, action: Action, values: tuple[SetValue, ...] | None = ()) -> LakeMerge:
        clause = MergeClause(self._when, action, values, self._condition)
        return self._writer._then(clause)  # noqa: SLF001 - the other half of the builder


class _Matched(_When):
    def updateAll(self) -> LakeMerge:  # noqa: N802 - Spark's own name
        """Set every column to the source's of the same name."""
        return self._then(Action.UPDATE, None)

    def update(self, assignments: Mapping[str, Column]) -> LakeMerge:
        """Set some columns."""
        return self._then(Action.UPDATE, _assigned(assignments))

    def delete(self) -> LakeMerge:
        """Delete the rows."""
        return self._then(Action.DELETE)


class _NotMatched(_When):
    def insertAll(self) -> LakeMerge:  # noqa: N802 - Spark's own name
        """Insert the rows, each column from the source's of the same name."""
        return self._then(Action.INSERT, None)

    def insert(self, assignments: Mapping[str, Column]) -> LakeMerge:
        """Insert rows of these values; other columns get their default."""
        return self._then(Action.INSERT, _assigned(assignments))


class _NotMatchedBySource(_Matched):
    def updateAll(self) -> LakeMerge:  # noqa: N802 - Spark's own name
        """Refuse: there is no row of the source."""
        raise InvalidRequest(
            f"WHEN {self._when.value} has no source row to take all columns from; name the"
            ' columns, as in update({"column": value})'
        )


def _assigned(values: Mapping[str, Column]) -> tuple[SetValue, ...]:
    if not values:
        raise InvalidRequest('no column is set; pass {"column": value, ...}')
    return tuple(SetValue(split_name(name), _value(value)) for name, value in values.items())


def _value(value: Column) -> Column | None:
    found = _column(value)
    # SQL's word for the column's default, which Spark also accepts here.
    return None if str(found).upper() == "COLUMN<'DEFAULT'>" else found


def _column(value: Any) -> Column:
    found = F.col(value) if isinstance(value, str) else value
    require_condition(found)
    return found
