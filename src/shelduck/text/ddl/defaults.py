"""DEFAULT expressions: Spark text to the catalog's (DuckDB's) and back.

Only expressions that mean the same in both engines are let through; sqlglot would translate many
more, some of them into something else (``cast(1.7 as int)`` is 1 in Spark and 2 in DuckDB).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from datetime import datetime

from sqlglot import expressions as exp
from sqlglot.errors import ParseError

from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.tables.schema import Default
from shelduck.model.text.intervals import whole_number
from shelduck.model.types.data_types import DataType, Decimal, Primitive, parse_type
from shelduck.model.types.literals import blob_text, integer_range
from shelduck.text.query.translate import parse_tree, read_tree, strict
from shelduck.text.tokens.lexer import DIGITS, Token, TokenKind, in_brackets, string_of, tokenize

_SAME_IN_BOTH = frozenset(
    """literal neg add sub mul paren dpipe null boolean interval var datatype datatypeparam
    currenttimestamp currentdate uuid rand""".split()
)
_FUNCTIONS = frozenset(("now", "uuid"))
_CASTS = frozenset(("cast", "trycast"))
_TYPED = frozenset(("DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "TIME"))
_ARITHMETIC: dict[type, Callable[[int, int], int]] = {
    exp.Add: operator.add,
    exp.Sub: operator.sub,
    exp.Mul: operator.mul,
}
_SUFFIX = re.compile(r"(?:[bB][dD]|[lLsSyYdDfF])$")


def read_default(text: str) -> Default | None:
    """Return the default that ``text``, the words after DEFAULT, means; None for NULL.

    A literal, signed or typed or cast from a string, becomes the value's text; anything else an
    expression in DuckDB's SQL. Raises InvalidRequest or Unsupported.
    """
    tokens = tokenize(text)[:-1]
    while len(tokens) > 2 and in_brackets(tokens):
        tokens = tokens[1:-1]
    if len(tokens) == 1 and tokens[0].key == "NULL":
        return None
    value = _literal(tokens)
    if value is not None:
        return Default(value)
    return Default(_translated(text, "spark", "duckdb"), literal=False)


def expression_for_spark(duckdb_text: str) -> str:
    """Return the Spark SQL of a default expression that the catalog holds.

    Raises Unsupported for an expression that Spark may understand differently or not at all.
    """
    return _translated(duckdb_text, "duckdb", "spark")


def value_at(default: Default, kind: DataType, now: datetime) -> Default | None:
    """Return the one value that an expression has ``now``, a local time; None if there is none.

    Constants have one, and so have the present time and date in a column of their type.
    """
    try:
        tree = parse_tree(default.text, "duckdb")
    except ParseError:
        return None
    word = str(tree.name).lower() if isinstance(tree, exp.Anonymous) else tree.key
    if word in ("currenttimestamp", "currentdate", "now"):
        return _moment(kind, now, is_date=word == "currentdate")
    found = _constant(tree)
    return None if found is None else Default(str(found))


def _moment(kind: DataType, now: datetime, *, is_date: bool) -> Default | None:
    day = now.date().isoformat()
    if str(kind) == "date":
        return Default(day)
    local = f"{day} 00:00:00" if is_date else now.replace(tzinfo=None).isoformat(" ")
    if str(kind) == "timestamp":
        return Default(local)
    offset = now.isoformat()[-6:]
    return Default(f"{local}{offset}") if str(kind) == "timestamptz" else None


def _constant(tree: exp.Expr) -> int | str | None:
    """Return what whole numbers and texts make with + - * and ||."""
    match tree:
        case exp.Paren():
            return _constant(tree.this)
        case exp.Literal():
            if tree.is_string:
                return str(tree.this)
            return whole_number(str(tree.this), DIGITS)
    one = _constant(tree.this) if isinstance(tree.this, exp.Expr) else None
    if isinstance(tree, exp.Neg):
        return -one if isinstance(one, int) else None
    other = _constant(tree.expression) if isinstance(tree, exp.Binary) else None
    if isinstance(tree, exp.DPipe) and isinstance(one, str) and isinstance(other, str):
        return one + other
    if isinstance(one, int) and isinstance(other, int) and type(tree) in _ARITHMETIC:
        return _ARITHMETIC[type(tree)](one, other)
    return None


def _literal(tokens: list[Token]) -> str | None:
    kinds = [t.kind for t in tokens]
    if kinds and all(k is TokenKind.STRING for k in kinds):
        return "".join(string_of(t) for t in tokens)
    if len(tokens) == 1 and tokens[0].key in ("TRUE", "FALSE"):
        return tokens[0].text.lower()
    sign = tokens[0].key if tokens and tokens[0].key in ("+", "-") else ""
    if kinds[bool(sign) :] == [TokenKind.NUMBER]:
        return ("-" if sign == "-" else "") + _SUFFIX.sub("", tokens[-1].text)
    if kinds == [TokenKind.WORD, TokenKind.STRING]:
        text = string_of(tokens[1])
        if tokens[0].key in _TYPED:
            return text
        return _blob(text) if tokens[0].key == "X" else None
    return _cast(tokens)


def _blob(digits: str) -> str:
    if not re.fullmatch(r"(?:[0-9A-Fa-f]{2})*", digits):
        raise InvalidRequest(
            f"X{digits!r} has an odd number of hexadecimal digits or other characters"
        )
    return blob_text(bytes.fromhex(digits))


def _cast(tokens: list[Token]) -> str | None:
    """Return the text of CAST('text' AS type) or 'text'::type when the cast keeps it as it is."""
    keys = [t.key for t in tokens]
    if keys[:2] == ["CAST", "("] and keys[3:4] == ["AS"] and keys[-1] == ")":
        value, words = tokens[2], tokens[4:-1]
    elif keys[1:2] == ["::"]:
        value, words = tokens[0], tokens[2:]
    else:
        return None
    if value.kind is not TokenKind.STRING or not words:
        return None
    text = string_of(value)
    return text if _is_exact(text, parse_type(" ".join(t.text for t in words))) else None


def _is_exact(text: str, kind: DataType) -> bool:
    """Tell whether casting ``text`` to ``kind`` gives a value that is written just so."""
    if isinstance(kind, Decimal):
        digits = re.fullmatch(r"-?(\d+)(?:\.(\d+))?", text)
        if digits is None:
            return False
        whole = digits[1].lstrip("0")
        return len(digits[2] or "") <= kind.scale and len(whole) <= kind.precision - kind.scale
    if not isinstance(kind, Primitive):
        return False
    limits = integer_range(kind)
    if limits is not None:
        return re.fullmatch(r"-?\d{1,40}", text) is not None and limits[0] <= int(text) <= limits[1]
    shape = {
        "boolean": r"(?i:true|false)",
        "date": r"\d{4}-\d\d-\d\d",
        "timestamptz": r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d(:\d\d)?)?",
        "timestamp": r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?",
        "float64": r"-?\d+(\.\d+)?([eE][+-]?\d+)?",
        "varchar": r"(?s:.*)",
    }.get(kind.name)
    return shape is not None and re.fullmatch(shape, text) is not None


def _translated(text: str, read: str, write: str) -> str:
    tree = read_tree(text, read, "the default")
    _check(tree, text)
    return strict(tree).sql(dialect=write, comments=False)


def _check(tree: exp.Expr, text: str) -> None:
    for node in tree.walk():
        if isinstance(node, exp.Column):
            raise InvalidRequest(
                f"the default {text!r} refers to the column {node.name!r}, but a default can only"
                " contain constants and functions; write text in single quotes"
            )
        if node.key in _SAME_IN_BOTH:
            continue
        if node.key in _CASTS and isinstance(node.this, exp.Literal) and node.this.is_string:
            continue
        if node.key == "anonymous" and str(node.name).lower() in _FUNCTIONS:
            continue
        raise Unsupported(
            f"the default {text!r} may have different meanings in Spark and DuckDB; use a literal,"
            " current_timestamp(), current_date(), now(), uuid() or rand(), or combine these with"
            " + - * and ||"
        )
