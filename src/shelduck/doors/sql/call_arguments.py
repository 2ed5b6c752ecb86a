"""Arguments of CALL: bound to a procedure's parameters, and converted to their types.

The type of a parameter says what a procedure takes: a text, a whole number, true or false, or one
of the types of this module. An argument of the type `Argument` comes as it was written.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from shelduck.errors import InvalidRequest
from shelduck.lake.lookup import earlier, instant
from shelduck.lake.operation import Procedure, Runner
from shelduck.lake.results import TableName
from shelduck.model.text.intervals import parse_interval
from shelduck.model.text.names import split_name
from shelduck.objects.catalog_verbs import Table
from shelduck.text.tokens.parts import Argument, Call, IntervalText, NamedTable, TimestampText


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


def values(runner: Runner, function: Callable[..., Any], call: Call) -> dict[str, Any]:
    """Return the arguments of a call in the types that the parameters of ``function`` have.

    Raises InvalidRequest as `bind` does, and for a value that is not of its type.
    """
    types = _types(function)
    return {
        name: _converted(runner, types[name], value, name)
        for name, value in bind(function, call).items()
    }


def table_name(runner: Runner, table: str, schema: str | None = None) -> TableName:
    """Return the table that ``'t'`` or ``'s.t'`` means, in ``schema`` when that is given."""
    default = runner.state.current.schema
    if schema is not None:
        default = runner.view().workspace.word_of(schema)
    return runner.name(NamedTable(split_name(table)), default)


def table_of(runner: Runner, table: str, schema: str | None = None) -> Table:
    """Return the verbs of the table that `table_name` finds."""
    return Table(runner.state, table_name(runner, table, schema), runner.unit)


def by_name(*functions: Procedure) -> dict[str, Procedure]:
    """Return procedures by their own names."""
    return {function.__name__: function for function in functions}


def text(value: Argument, name: str) -> str:
    """Return a text argument."""
    if not isinstance(value, str):
        raise _unfit(name, value, "text")
    return value


def _flag(_: Runner, value: Argument, name: str) -> bool:
    if not isinstance(value, bool):
        raise _unfit(name, value, "true or false")
    return value


def _whole_number(_: Runner, value: Argument, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise _unfit(name, value, "a whole number of at least 0")
    return value


def _share(_: Runner, value: Argument, name: str) -> float:
    if isinstance(value, bool | str | tuple | TimestampText | IntervalText | None):
        raise _unfit(name, value, "a number from 0 to 1")
    if not 0 <= value <= 1:
        raise _unfit(name, value, "a number from 0 to 1")
    return float(value)


def _moment(runner: Runner, value: Argument, name: str) -> datetime:
    zone = runner.state.time_zone
    if isinstance(value, IntervalText):
        parsed = parse_interval(value.text)
        if parsed is None:
            raise _unfit(name, value.text, "an interval such as INTERVAL '7 days'")
        return earlier(parsed, zone)
    if isinstance(value, TimestampText):
        return instant(value.text, zone)
    return instant(text(value, name), zone)


def _snapshot(runner: Runner, value: Argument, name: str) -> int | datetime:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return (_whole_number if is_number else _moment)(runner, value, name)


def _span(_: Runner, value: Argument, name: str) -> str:
    return value.text if isinstance(value, IntervalText) else text(value, name)


def _several(of: Callable[[Runner, Argument, str], Any]) -> Callable[[Runner, Argument, str], Any]:
    def read(runner: Runner, value: Argument, name: str) -> tuple[Any, ...]:
        parts = value if isinstance(value, tuple) else (value,)
        return tuple(of(runner, part, name) for part in parts)

    return read


def _text(_: Runner, value: Argument, name: str) -> str:
    return text(value, name)


Share = Annotated[float, _share]
"""A number from 0 to 1."""
Moment = Annotated[datetime, _moment]
"""The time of a timestamp, or of an interval before now."""
SnapshotOrTime = Annotated[int | datetime, _snapshot]
"""The id of a snapshot, or a `Moment`."""
Span = Annotated[str, _span]
"""The text of an interval, which may also be a plain text."""
Numbers = Annotated[tuple[int, ...], _several(_whole_number)]
"""Whole numbers: an array, or one alone."""
Texts = Annotated[tuple[str, ...], _several(_text)]
"""Texts: an array, or one alone."""
_READERS = {str: _text, bool: _flag, int: _whole_number}


@cache
def _types(function: Callable[..., Any]) -> dict[str, Any]:
    return get_type_hints(function, include_extras=True)


def _converted(runner: Runner, kind: Any, value: Argument, name: str) -> Any:
    if kind == Argument:
        return value
    parts = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    if NoneType in parts:
        if value is None:
            return None
        (kind,) = (part for part in parts if part is not NoneType)
    read = kind.__metadata__[0] if get_origin(kind) is Annotated else _READERS[kind]
    return read(runner, value, name)


def _written(parameter: inspect.Parameter) -> str:
    is_named = parameter.kind is inspect.Parameter.KEYWORD_ONLY
    shown = f"{parameter.name} => …" if is_named else parameter.name
    return shown if parameter.default is inspect.Parameter.empty else f"[{shown}]"


def _unfit(name: str, value: object, wanted: str) -> InvalidRequest:
    shown = "NULL" if value is None else repr(value)
    return InvalidRequest(f"argument {name} must be {wanted}, not {shown}")
