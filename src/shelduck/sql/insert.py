"""INSERT INTO and INSERT OVERWRITE."""

from __future__ import annotations

from dataclasses import replace

from shelduck.sql.cursor import Cursor
from shelduck.sql.lexer import Token, tokenize
from shelduck.sql.query import begins_query, read_query
from shelduck.sql.statements import DefaultCell, Insert, Query


def read_insert(cursor: Cursor) -> Insert:
    """Read the statement behind ``INSERT``."""
    if cursor.sees("WITH", "SCHEMA"):
        raise cursor.refusal("WITH SCHEMA EVOLUTION", "add the columns with ALTER TABLE first")
    mode = cursor.accept_any("INTO", "OVERWRITE")
    if not mode:
        raise cursor.failure("INTO or OVERWRITE")
    cursor.accept("TABLE")
    name = cursor.table_name()
    _refuse_clauses(cursor)
    by_name = cursor.accept("BY", "NAME")
    columns = None
    if cursor.sees("(") and not begins_query(cursor):
        columns = _columns(cursor)
    by_name = cursor.accept("BY", "NAME") or by_name
    if by_name and columns is not None:
        cursor.at -= 2
        raise cursor.failure("a query (BY NAME takes the columns' names from it, not from a list)")
    _refuse_clauses(cursor)
    source, defaults = _without_defaults(read_query(cursor))
    return Insert(name, source, columns, by_name, mode == "OVERWRITE", defaults)


def _refuse_clauses(cursor: Cursor) -> None:
    if cursor.sees("PARTITION"):
        raise cursor.refusal("INSERT ... PARTITION", "give the partition columns as columns")
    if cursor.sees("REPLACE"):
        raise cursor.refusal("INSERT ... REPLACE", "append rows instead")
    if cursor.sees("DEFAULT", "VALUES"):
        raise cursor.refusal("DEFAULT VALUES", "write VALUES (DEFAULT, ...) or name a column")
    if cursor.sees("IF"):
        raise cursor.refusal("INSERT ... IF NOT EXISTS", "leave it out")


def _columns(cursor: Cursor) -> tuple[str, ...]:
    cursor.expect("(")
    names: list[str] = []
    while True:
        start = cursor.at
        path = cursor.path()
        if len(path) > 1:
            cursor.at = start
            raise cursor.failure("a top-level column (quote a name that holds a dot)")
        if path[0].lower() in (n.lower() for n in names):
            cursor.at = start
            raise cursor.failure("each column only once")
        names.append(path[0])
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return tuple(names)


def _without_defaults(source: Query) -> tuple[Query, tuple[DefaultCell, ...]]:
    """Return the source with a word of its own for each DEFAULT that is a whole cell of VALUES."""
    tokens = tokenize(source.text)
    cells = _default_cells(tokens) if tokens[0].key == "VALUES" else []
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


def _default_cells(tokens: list[Token]) -> list[tuple[int, Token]]:
    cells: list[tuple[int, Token]] = []
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
        elif token.key == "DEFAULT" and depth == 1 and _is_cell(tokens, n):
            cells.append((position, token))
    return cells


def _is_cell(tokens: list[Token], n: int) -> bool:
    return tokens[n - 1].key in ("(", ",") and tokens[n + 1].key in (")", ",")
