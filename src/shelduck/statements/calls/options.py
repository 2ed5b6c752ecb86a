"""CALL set_option and CALL options."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from shelduck.errors import InvalidRequest
from shelduck.model.tables.options import OptionValue
from shelduck.sql.tokens.parts import Argument, IntervalText
from shelduck.statements.arguments import text
from shelduck.statements.runner import Answer, Runner
from shelduck.verbs import options as api
from shelduck.work.results import PlainRows, Result


def set_option(
    runner: Runner,
    option: str,
    value: Argument,
    *,
    schema: str | None = None,
    table_name: str | None = None,
) -> Result:
    """Set an option of the lake, of a schema or of a table."""
    if runner.unit is not None:
        raise InvalidRequest(
            "an option cannot be set in a transaction; set it outside of the transaction"
        )
    if isinstance(value, IntervalText):
        value = value.text
    if isinstance(value, Decimal):
        value = float(value)
    given: OptionValue
    if isinstance(value, tuple):
        given = [text(part, "value") for part in value]
    elif isinstance(value, str | int | float):
        given = value
    else:
        raise InvalidRequest(f"an option must be text, a number, true or false, not {value!r}")
    return api.set_option(
        runner.state,
        option,
        given,
        schema=schema,
        table=table_name,
    )


def options(runner: Runner) -> PlainRows:
    """Show the options that are set."""
    rows = [(o.name, o.value, o.scope, o.owner) for o in api.options(runner.state)]
    columns = "option_name string, value string, scope string, scope_entry string"
    return PlainRows(columns, rows)


PROCEDURES: dict[str, Callable[..., Answer]] = {"set_option": set_option, "options": options}
