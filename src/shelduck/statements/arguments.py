"""Arguments of CALL: bound to a procedure's parameters, and converted to their types."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import datetime
from typing import Any

from shelduck.errors import InvalidRequest
from shelduck.model.text.intervals import parse_interval
from shelduck.model.text.names import split_name
from shelduck.sql.statements import statements as st
from shelduck.sql.tokens.parts import Argument, Call, IntervalText, TimestampText
from shelduck.statements.runner import Runner
from shelduck.work.instants import earlier, instant
from shelduck.work.results import TableName


def bind(function: Callable[..., Any], call: Call) -> dict[str, Argument]:
    """Return the arguments of a call by the parameters of ``function``, all but its first.

    Raises InvalidRequest, listing the parameters, for one that is missing, unknown or given twice.
    """
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())[1:]
    try:
        bound = signature.bind(None, *call.positional, **dict(call.named))
    except TypeError as error:
        listed = ", ".join(_written(p) for p in parameters) or "no arguments"
        raise InvalidRequest(f"{call.procedure}(): {error}; it takes {listed}") from error
    names = [p.name for p in parameters]
    return {name: bound.arguments[name] for name in names if name in bound.arguments}


def table_name(
    runner: Runner, table: Argument, schema: Argument = None, *, what: str = "table"
) -> TableName:
    """Return the table that ``'t'`` or ``'s.t'`` means, in ``schema`` when that is given."""
    parts = split_name(text(table, what))
    default = runner.state.default_schema
    if schema is not None:
        default = runner.view().workspace.word_of(text(schema, "schema"))
    return runner.name(st.TableName(parts), default)


def text(value: Argument, name: str) -> str:
    """Return a text argument."""
    if not isinstance(value, str):
        raise _unfit(name, value, "text")
    return value


def flag(value: Argument, name: str) -> bool:
    """Return an argument that is true or false."""
    if not isinstance(value, bool):
        raise _unfit(name, value, "true or false")
    return value


def whole_number(value: Argument, name: str) -> int:
    """Return a whole number, 0 or more."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise _unfit(name, value, "a whole number of at least 0")
    return value


def share(value: Argument, name: str) -> float:
    """Return a number from 0 to 1."""
    if isinstance(value, bool | str | tuple | TimestampText | IntervalText | None):
        raise _unfit(name, value, "a number from 0 to 1")
    if not 0 <= value <= 1:
        raise _unfit(name, value, "a number from 0 to 1")
    return float(value)


def numbers(value: Argument, name: str) -> tuple[int, ...]:
    """Return whole numbers: an array, or one alone."""
    parts = value if isinstance(value, tuple) else (value,)
    return tuple(whole_number(part, name) for part in parts)


def moment(runner: Runner, value: Argument, name: str) -> datetime:
    """Return the time of a timestamp, or of an interval before now."""
    zone = runner.state.time_zone
    if isinstance(value, IntervalText):
        span = parse_interval(value.text)
        if span is None:
            raise _unfit(name, value.text, "an interval such as INTERVAL '7 days'")
        return earlier(span, zone)
    if isinstance(value, TimestampText):
        return instant(value.text, zone)
    return instant(text(value, name), zone)


def span(value: Argument, name: str) -> str:
    """Return the text of an interval, which may also be a plain text."""
    return value.text if isinstance(value, IntervalText) else text(value, name)


def _written(parameter: inspect.Parameter) -> str:
    is_named = parameter.kind is inspect.Parameter.KEYWORD_ONLY
    shown = f"{parameter.name} => …" if is_named else parameter.name
    return shown if parameter.default is inspect.Parameter.empty else f"[{shown}]"


def _unfit(name: str, value: object, wanted: str) -> InvalidRequest:
    return InvalidRequest(f"argument {name} must be {wanted}, not {value!r}")
