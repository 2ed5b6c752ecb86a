"""CREATE and DROP of macros, DuckDB's named expressions and queries."""

from __future__ import annotations

from decimal import Decimal

from shelduck.model.tables.view import UNKNOWN, MacroKind, MacroParameter
from shelduck.text.statements import statement_values as st
from shelduck.text.tokens.arguments import read_literal
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.lexer import TokenKind
from shelduck.text.tokens.parts import TimestampText

MACRO_WORDS = ("MACRO", "FUNCTION")
_TIMES = {
    "DATE": "date",
    "TIMESTAMP_NTZ": "timestamp",
    "TIMESTAMP_LTZ": "timestamptz",
    "TIMESTAMPTZ": "timestamptz",
}
# What a function of Spark may say of itself, and every macro is.
_CHARACTERISTICS = (
    ("LANGUAGE", "SQL"),
    ("NOT", "DETERMINISTIC"),
    ("DETERMINISTIC",),
    ("CONTAINS", "SQL"),
    ("READS", "SQL", "DATA"),
    ("SQL", "SECURITY", "INVOKER"),
)
_DEFAULT = "a constant: a number, a string, TRUE, FALSE, DATE '...' or TIMESTAMP '...'"


def read_create_macro(cursor: Cursor, or_replace: bool) -> st.CreateMacroStatement:
    """Read the statement behind ``CREATE MACRO``."""
    if_not_exists = cursor.accept_if_not_exists("macro", or_replace=or_replace)
    name = cursor.table_name()
    kind, form = _form(cursor)
    forms = [form]
    while cursor.accept(","):
        start = cursor.at
        other, form = _form(cursor)
        if other is not kind:
            cursor.at = start
            raise cursor.failure(f"a form of a {kind.value} macro, like the first one")
        if any(len(f.parameters) == len(form.parameters) for f in forms):
            cursor.at = start
            raise cursor.failure("another number of parameters: calls choose a form by it")
        forms.append(form)
    cursor.end()
    return st.CreateMacroStatement(name, kind, tuple(forms), if_not_exists, or_replace)


def read_drop_macro(cursor: Cursor) -> st.DropMacroStatement:
    """Read the statement behind ``DROP MACRO``."""
    kind = MacroKind.TABLE if cursor.accept("TABLE") else MacroKind.SCALAR
    if_exists = cursor.accept_if("EXISTS")
    name = cursor.table_name()
    cursor.end()
    return st.DropMacroStatement(name, kind, if_exists)


def _form(cursor: Cursor) -> tuple[MacroKind, st.MacroText]:
    """Take ``(parameters) AS expression`` or ``(parameters) AS TABLE query``.

    A function of Spark says RETURNS and its type, which its value gets, before it says RETURN.
    """
    parameters = _parameters(cursor)
    if cursor.accept("RETURNS"):
        return _function(cursor, parameters)
    if cursor.sees("RETURN"):
        raise cursor.failure("RETURNS and a type before RETURN")
    cursor.expect("AS")
    kind = MacroKind.TABLE if cursor.accept("TABLE") else MacroKind.SCALAR
    start = cursor.at
    if cursor.peek().kind is TokenKind.END or cursor.sees(","):
        raise cursor.failure("a query" if kind is MacroKind.TABLE else "an expression")
    while cursor.peek().kind is not TokenKind.END and not _another(cursor):
        if cursor.peek().key in ("(", "[", "{"):
            cursor.skip_group()
        else:
            cursor.take()
    return kind, st.MacroText(parameters, cursor.since(start))


def _function(
    cursor: Cursor, parameters: tuple[MacroParameter, ...]
) -> tuple[MacroKind, st.MacroText]:
    """Take the rest of a function of Spark behind RETURNS."""
    kind = MacroKind.SCALAR
    columns: tuple[tuple[str, str], ...] = ()
    start = cursor.at
    if cursor.accept("TABLE"):
        kind = MacroKind.TABLE
        columns = cursor.in_brackets(_returned) if cursor.sees("(") else ()
    else:
        cursor.type()
    returned = cursor.since(start)
    while not cursor.accept("RETURN"):
        if not any(cursor.accept(*words) for words in _CHARACTERISTICS):
            if cursor.sees("LANGUAGE"):
                raise cursor.refusal("LANGUAGE", "use SQL, or register a function of Spark")
            raise cursor.failure("RETURN and an expression or a query")
    start = cursor.at
    if cursor.peek().kind is TokenKind.END:
        raise cursor.failure("an expression or a query")
    while cursor.peek().kind is not TokenKind.END:
        cursor.take()
    body = cursor.since(start)
    if kind is MacroKind.SCALAR:
        return kind, st.MacroText(parameters, f"CAST(({body}) AS {returned})")
    if columns:
        names = ", ".join(name for name, _ in columns)
        cast = ", ".join(f"CAST({name} AS {of}) AS {name}" for name, of in columns)
        body = f"SELECT {cast} FROM ({body}) AS returned({names})"
    return kind, st.MacroText(parameters, body)


def _returned(cursor: Cursor) -> tuple[str, str]:
    """Take a column of RETURNS TABLE: its name and type, as written."""
    first = cursor.peek()
    cursor.name("a column")
    start = cursor.at
    cursor.type()
    of = cursor.since(start)
    if cursor.accept("COMMENT"):
        cursor.string("the comment as a string")
    return cursor.text[first.start : first.end], of


def _another(cursor: Cursor) -> bool:
    """Tell whether a comma and the parameters of another form come next."""
    if not cursor.sees(",", "("):
        return False
    before = cursor.at
    cursor.take()
    cursor.skip_group()
    found = cursor.sees("AS")
    # In a select list, a name and the rest of the query follow AS.
    found = found and (cursor.peek(1).key == "TABLE" or cursor.peek(2).key not in (",", "FROM"))
    cursor.at = before
    return found


def _parameters(cursor: Cursor) -> tuple[MacroParameter, ...]:
    cursor.expect("(")
    found: list[MacroParameter] = []
    taken: set[str] = set()
    while not cursor.sees(")"):
        start = cursor.at
        name = cursor.new_column(taken)
        kind = UNKNOWN
        if cursor.peek().kind is TokenKind.WORD and not cursor.sees("DEFAULT"):
            kind = str(cursor.type())
        default, default_type = _default(cursor)
        if default is None and found and found[-1].default is not None:
            cursor.at = start
            raise cursor.failure("parameters with defaults last")
        found.append(MacroParameter(name, kind, default, default_type))
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return tuple(found)


def _default(cursor: Cursor) -> tuple[str | None, str]:
    """Take ``:= value``, or nothing; return the value's text and its type for DuckLake."""
    if not (cursor.accept(":", "=") or cursor.accept("=>") or cursor.accept("DEFAULT")):
        return None, UNKNOWN
    token = cursor.peek()
    if token.key == "TIMESTAMP":
        kind = "timestamp" if cursor.ntz else "timestamptz"
    else:
        kind = _TIMES.get(token.key, "")
    start = cursor.at
    match read_literal(cursor):
        case bool(value):
            return str(value).lower(), "boolean"
        case int(value):
            return str(value), "int32" if -(2**31) <= value < 2**31 else "int64"
        case Decimal() as value:
            _, digits, exponent = value.as_tuple()
            scale = max(0, -int(exponent))
            return str(value), f"decimal({max(len(digits), scale)},{scale})"
        case float(value):
            return repr(value), "float64"
        case TimestampText(text) if kind:
            return text, kind
        case str(text):
            return text, "varchar"
    cursor.at = start
    raise cursor.failure(_DEFAULT)
