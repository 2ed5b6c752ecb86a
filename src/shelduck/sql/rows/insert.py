"""INSERT INTO, INSERT OVERWRITE and INSERT INTO ... REPLACE WHERE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from shelduck.model.tables.schema import Field
from shelduck.sql.query.expressions import skip_expression
from shelduck.sql.query.query import begins_query, read_query, skip_query
from shelduck.sql.query.relations import Found
from shelduck.sql.query.rewriting import Rewriting, Span, edited
from shelduck.sql.statements.row_statements import DefaultCell, Insert, PartitionValue
from shelduck.sql.tokens.arguments import literal_text
from shelduck.sql.tokens.cursor import Cursor
from shelduck.sql.tokens.lexer import Kind, Token, string_of, tokenize
from shelduck.sql.tokens.parts import Query, Selection


def read_insert(cursor: Cursor) -> Insert:
    """Read the statement behind ``INSERT``."""
    evolution = cursor.accept("WITH", "SCHEMA", "EVOLUTION")
    mode = cursor.accept_any("INTO", "OVERWRITE")
    if not mode:
        raise cursor.failure("INTO or OVERWRITE")
    _refuse_directory(cursor)
    cursor.accept("TABLE")
    first = cursor.peek()
    name = cursor.table_name()
    end = cursor.tokens[cursor.at - 1].end
    target = Found(name, first.start, end, end)
    _refuse_clauses(cursor)
    partition = _partition(cursor) if cursor.accept("PARTITION") else ()
    _refuse_clauses(cursor)
    columns, by_name = _columns_or_by_name(cursor)
    condition = None
    if cursor.sees("REPLACE"):
        condition = _replace_where(cursor, mode, partition)
        columns_behind, by_name_behind = _columns_or_by_name(cursor)
        columns, by_name = columns or columns_behind, by_name or by_name_behind
    _refuse_clauses(cursor)
    is_plain = columns is None and not by_name and not partition and condition is None
    if is_plain and cursor.accept("DEFAULT", "VALUES"):
        cursor.end()
        how: Literal["append", "overwrite"] = "append" if mode == "INTO" else "overwrite"
        return Insert(name, Query(""), mode=how, default_values=True)
    source, replaced = _source(cursor, target, condition)
    source, defaults = _without_defaults(source)
    return Insert(
        name,
        source,
        columns,
        by_name,
        "replace_where" if replaced else "overwrite" if mode == "OVERWRITE" else "append",
        defaults,
        partition,
        replaced,
        evolution,
    )


def _refuse_directory(cursor: Cursor) -> None:
    ahead = 1 if cursor.sees("LOCAL") else 0
    if cursor.peek(ahead).key == "DIRECTORY" and cursor.peek(ahead + 1).kind is Kind.STRING:
        raise cursor.refusal("INSERT OVERWRITE DIRECTORY", "use df.write")


def _refuse_clauses(cursor: Cursor) -> None:
    if cursor.sees("IF"):
        raise cursor.refusal("INSERT ... IF NOT EXISTS", "leave it out")
    if cursor.peek(1).key == "REPLACE" and cursor.peek(2).key in ("ON", "USING"):
        # Behind an alias, which could begin a query: FROM, TABLE.
        cursor.take()
        _refuse_replace(cursor)


def _refuse_replace(cursor: Cursor) -> None:
    cursor.expect("REPLACE")
    if cursor.peek().key in ("USING", "ON"):
        raise cursor.refusal(f"REPLACE {cursor.peek().key}", "use REPLACE WHERE or MERGE INTO")


def _columns_or_by_name(cursor: Cursor) -> tuple[tuple[str, ...] | None, bool]:
    """Take the columns in brackets, BY NAME or neither."""
    by_name = cursor.accept("BY", "NAME")
    columns = None
    if cursor.sees("(") and not begins_query(cursor):
        columns = cursor.columns()
    by_name = cursor.accept("BY", "NAME") or by_name
    if by_name and columns is not None:
        cursor.at -= 2
        raise cursor.failure("a query (with BY NAME, the query names the columns, not a list)")
    return columns, by_name


def _partition(cursor: Cursor) -> tuple[PartitionValue, ...]:
    cursor.expect("(")
    found: list[PartitionValue] = []
    taken: set[str] = set()
    while True:
        column = cursor.new_column(taken)
        found.append(PartitionValue(column, literal_text(cursor) if cursor.accept("=") else None))
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return tuple(found)


def _replace_where(cursor: Cursor, mode: str, partition: tuple[PartitionValue, ...]) -> Span:
    if mode == "OVERWRITE":
        raise cursor.failure("a query (REPLACE WHERE is written after INSERT INTO t)")
    if partition:
        raise cursor.failure("a query (write the partition in the condition of REPLACE WHERE)")
    _refuse_replace(cursor)
    cursor.expect("WHERE")
    return skip_expression(cursor, before_query=True, what="a condition")


def _source(
    cursor: Cursor, target: Found, condition: Span | None
) -> tuple[Query, Selection | None]:
    if condition is None:
        return read_query(cursor), None
    query = skip_query(cursor)
    texts = Rewriting(cursor, [condition, query], target=target)
    return texts.query(query), Selection(texts.target(None), texts.expression(condition))


_TIMES = {"date": "DATE", "timestamp": "TIMESTAMP_NTZ", "timestamptz": "TIMESTAMP"}


def time_word(field: Field | None) -> str | None:
    """Return Spark's word for the type of a column, None if it is no date or time."""
    return None if field is None else _TIMES.get(str(field.type))


def as_time(text: str, field: Field | None) -> str:
    """Return a value for a column: a text alone is a date or a time where the column is one."""
    kind = time_word(field)
    if kind is None:
        return text
    tokens = tokenize(text)
    is_text = len(tokens) == 2 and tokens[0].kind is Kind.STRING
    return f"CAST({text} AS {kind})" if is_text else text


def text_of(literal: str) -> str | None:
    """Return the text that a literal means, None if it is none, such as a number."""
    first, *rest = tokenize(literal)
    return string_of(first) if first.kind is Kind.STRING and len(rest) == 1 else None


def is_values(source: Query) -> bool:
    """Tell whether a source is a list of VALUES."""
    return source.text.lstrip()[:6].upper() == "VALUES"


def with_times(text: str, types: Sequence[str | None]) -> str:
    """Return VALUES with each text in the place of a time cast to its type, as DuckDB reads it.

    ``types`` are Spark's words, by place; None where a text stays one. Other text is returned as it
    is.
    """
    edits = [
        (token.start, token.end, f"CAST({token.text} AS {types[position]})")
        for position, token in _cells(text)
        if token.kind is Kind.STRING and position < len(types) and types[position]
    ]
    return edited(text, 0, len(text), edits)


def _without_defaults(source: Query) -> tuple[Query, tuple[DefaultCell, ...]]:
    """Return the source with a word of its own for each DEFAULT that is a whole cell of VALUES."""
    cells = [(place, token) for place, token in _cells(source.text) if token.key == "DEFAULT"]
    if not cells:
        return source, ()
    stem = "__default_"
    while stem in source.text.lower():
        stem += "x"
    text = source.text
    for position, token in reversed(cells):
        text = f"{text[: token.start]}{stem}{position}__{text[token.end :]}"
    positions = sorted({position for position, _ in cells})
    found = tuple(DefaultCell(position, f"{stem}{position}__") for position in positions)
    return replace(source, text=text), found


def _cells(text: str) -> list[tuple[int, Token]]:
    """Return the cells of one token in VALUES, each with its place; none of another source."""
    cells: list[tuple[int, Token]] = []
    tokens = tokenize(text)
    if tokens[0].key != "VALUES":
        return cells
    depth = 0
    position = 0
    for n, token in enumerate(tokens):
        if token.key in ("(", "[", "{"):
            depth += 1
            position = 0 if depth == 1 else position
        elif token.key in (")", "]", "}"):
            depth -= 1
        elif token.key == "," and depth == 1:
            position += 1
        elif depth == 1 and _is_cell(tokens, n):
            cells.append((position, token))
    return cells


def _is_cell(tokens: list[Token], n: int) -> bool:
    return tokens[n - 1].key in ("(", ",") and tokens[n + 1].key in (")", ",")
