"""Text that a lake stores, as expressions of Spark: nothing else hands such text to its parser.

Whoever can write the catalog may have written it, so it only computes with one row. Expressions
over rows of a table are evaluated in the time zone that they were made in, with ANSI mode.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from shelduck.engine.bridge import Sql
from shelduck.engine.named_errors import SparkError, data_fault, first_line
from shelduck.errors import InvalidRequest, ShelduckError, Unsupported
from shelduck.model.tables.computed import ComputedColumn
from shelduck.model.tables.constraints import Constraint
from shelduck.model.tables.row_expressions import RowExpression
from shelduck.model.tables.table_version import TableVersion
from shelduck.text.query.harmless import refuse_harmful
from shelduck.text.query.read_query import looks_at_other_rows

Value = TypeVar("Value")
Ruling = TypeVar("Ruling", Constraint, ComputedColumn)
_FAILED = re.compile(r"== SQL of shelduck (.+?) \(line \d+, position \d+\) ==", re.DOTALL)


def stored(text: str, what: str, way_out: str) -> Sql:
    """Return an expression that comes from the catalog, and that others may have written.

    Raises Unsupported, naming ``what`` it is, if it does more than compute with one row.
    """
    if looks_at_other_rows(text):
        raise Unsupported(f"{what} depends on other rows; {way_out}")
    try:
        refuse_harmful(text, way_out)
    except Unsupported as error:
        raise Unsupported(f"{what}: {error}") from error
    return Sql(text)


def bound(
    expression: RowExpression,
    table: TableVersion,
    what: str,
    way_out: str,
    *,
    within: str = "{}",
    only: Sql | None = None,
) -> Sql:
    """Return an expression over the row of `Engine.select_bound`; ``what`` names it in errors.

    ``within`` is what is asked of its value. It is NULL and not computed but for ``only`` rows.
    """
    text = expression.evaluated(table.columns)
    if text is None:
        raise InvalidRequest(f"{what} uses a column that another writer dropped; {way_out}")
    made = within.format(stored(text, what, way_out))
    return Sql(made if only is None else f"if({only}, {made}, NULL)", what)


def failed_rule(error: BaseException) -> str | None:
    """Return that an expression cannot be computed for a row, and why; None for other errors."""
    if not isinstance(error, SparkError):
        return None
    named = _FAILED.search(str(error))
    if named is None:
        return None
    return f"{named[1]} cannot be computed for a row: {data_fault(error) or first_line(error)}"


def tried(act: Callable[[], Value]) -> tuple[Value | None, str | None]:
    """Return what an act with expressions gives, or else which of them failed and why."""
    try:
        return act(), None
    except ShelduckError as error:
        return None, str(error)
    except SparkError as error:
        failed = failed_rule(error)
        if failed is None:
            raise
        return None, failed


def by_zone(ones: Iterable[Ruling]) -> list[tuple[str, list[Ruling]]]:
    """Return what has expressions by their time zones: a select for each."""
    found: dict[str, list[Ruling]] = {}
    for one in ones:
        found.setdefault("" if one.expression is None else one.expression.zone, []).append(one)
    return list(found.items())
