"""SET VARIABLE and RESET VARIABLE: DuckDB's words for variables of the session."""

from __future__ import annotations

from shelduck.sql.query.expressions import skip_expression
from shelduck.sql.query.rewriting import Rewriting
from shelduck.sql.statements.upkeep_statements import SetVariable
from shelduck.sql.tokens.cursor import Cursor


def read_set_variable(cursor: Cursor) -> SetVariable:
    """Read the statement behind ``SET VARIABLE``."""
    name = cursor.name("a variable")
    cursor.expect("=")
    value = skip_expression(cursor, what="a value")
    cursor.end()
    return SetVariable(name, Rewriting(cursor, [value]).expression(value))


def read_reset_variable(cursor: Cursor) -> SetVariable:
    """Read the statement behind ``RESET VARIABLE``."""
    name = cursor.name("a variable")
    cursor.end()
    return SetVariable(name, None)
