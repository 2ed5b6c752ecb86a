"""Clauses of a merge as Python values: what `Table.merge` takes after the condition.

Conditions and values are SQL text or Spark columns; they refer to the table as ``t`` and to the
source as ``s``, unless `Table.merge` gets other names.
"""

from __future__ import annotations

from collections.abc import Mapping

from shelduck.errors import InvalidRequest
from shelduck.model.text.names import split_name
from shelduck.spark.merge.merge_clauses import Action, MergeClause, When
from shelduck.spark.rows.assignments import SetValue, Value
from shelduck.spark.scan.matching import Condition, require_condition


def when_matched_update(
    values: Mapping[str, Value], *, condition: Condition | None = None
) -> MergeClause:
    """Set columns and struct fields of a row that a row of the source matches.

    ``values`` are as in `Table.update`; ``{"n": "t.n + s.n"}`` uses both rows.
    """
    return _clause(When.MATCHED, Action.UPDATE, assignments(values), condition)


def when_matched_update_all(*, condition: Condition | None = None) -> MergeClause:
    """Set every column of a matched row to the source's column of the same name."""
    return _clause(When.MATCHED, Action.UPDATE, None, condition)


def when_matched_delete(*, condition: Condition | None = None) -> MergeClause:
    """Delete a row that a row of the source matches."""
    return _clause(When.MATCHED, Action.DELETE, (), condition)


def when_not_matched_insert(
    values: Mapping[str, Value], *, condition: Condition | None = None
) -> MergeClause:
    """Insert a row of the source that matches none; columns without a value get their default.

    Values and condition see the source alone.
    """
    return _clause(When.NOT_MATCHED, Action.INSERT, assignments(values), condition)


def when_not_matched_insert_all(*, condition: Condition | None = None) -> MergeClause:
    """Insert a row of the source that matches none, each column from that of the same name."""
    return _clause(When.NOT_MATCHED, Action.INSERT, None, condition)


def when_not_matched_by_source_update(
    values: Mapping[str, Value], *, condition: Condition | None = None
) -> MergeClause:
    """Set columns of a row that no row of the source matches; values see the table alone."""
    return _clause(When.NOT_MATCHED_BY_SOURCE, Action.UPDATE, assignments(values), condition)


def when_not_matched_by_source_delete(*, condition: Condition | None = None) -> MergeClause:
    """Delete a row that no row of the source matches."""
    return _clause(When.NOT_MATCHED_BY_SOURCE, Action.DELETE, (), condition)


def assignments(values: Mapping[str, Value]) -> tuple[SetValue, ...]:
    """Return what a mapping of paths to values assigns; ``DEFAULT`` is a column's default."""
    if not values:
        raise InvalidRequest('no column is set; pass {"column": value, ...}')
    return tuple(SetValue(split_name(path), _value(value)) for path, value in values.items())


def _value(value: Value) -> Value | None:
    is_default = isinstance(value, str) and value.strip().upper() == "DEFAULT"
    return None if is_default else value


def _clause(
    when: When,
    action: Action,
    values: tuple[SetValue, ...] | None,
    condition: Condition | None,
) -> MergeClause:
    if condition is not None:
        require_condition(condition)
    return MergeClause(when, action, values, condition)
