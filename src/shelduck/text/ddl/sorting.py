"""Sort keys: Spark's text to DuckDB's, which the catalog keeps, and back.

Only expressions that order rows alike in both engines are let through.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

from sqlglot import expressions as exp

from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.tables.partition import ResetSorting, SetSorting, SortKey
from shelduck.model.text.names import backticked, double_quoted, quote_name
from shelduck.text.query.translate import read_tree
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.lexer import TokenKind, edited, tokenize

_SAME_IN_BOTH = frozenset(
    """column identifier literal neg add sub mul paren dpipe null boolean upper lower length trim
    substring coalesce abs timestamptrunc datetrunc year month day var cast trycast tsordstodate
    date datatype case if gt gte lt lte eq neq and or not is""".split()
)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# What DuckDB's parser would not take for a column.
_RESERVED = frozenset(
    """ALL ANALYSE ANALYZE AND ANY ARRAY AS ASC ASYMMETRIC BOTH CASE CAST CHECK COLLATE COLUMN
    CONSTRAINT CREATE DEFAULT DEFERRABLE DESC DESCRIBE DISTINCT DO ELSE END EXCEPT FALSE FETCH FOR
    FOREIGN FROM GROUP HAVING IN INITIALLY INTERSECT INTO LAMBDA LATERAL LEADING LIMIT NOT NULL
    OFFSET ON ONLY OR ORDER PIVOT PLACING PRIMARY QUALIFY REFERENCES RETURNING SELECT SHOW SOME
    SUMMARIZE SYMMETRIC TABLE THEN TO TRAILING TRUE UNION UNIQUE UNPIVOT USING VARIADIC WHEN WHERE
    WINDOW WITH DATE TIME TIMESTAMP INTERVAL""".split()
)
_parsed = partial(read_tree, what="the sort key")


def read_sort_keys(cursor: Cursor) -> tuple[SortKey, ...]:
    """Take the keys in brackets; NULL goes last where nothing is said, as in DuckDB."""
    return cursor.in_brackets(_key)


def read_order_of_files(cursor: Cursor) -> SetSorting | ResetSorting:
    """Read Delta's CLUSTER BY or Iceberg's WRITE: both say how rows are sorted in files."""
    if cursor.accept("CLUSTER", "BY"):
        none = cursor.accept("NONE")
        return ResetSorting() if none else SetSorting(read_sort_keys(cursor))
    cursor.expect("WRITE")
    if cursor.accept("UNORDERED"):
        return ResetSorting()
    # Rows of one partition are written together in any case.
    distributed = cursor.accept("DISTRIBUTED", "BY", "PARTITION")
    if distributed and cursor.peek().kind is TokenKind.END:
        return ResetSorting()
    cursor.accept("LOCALLY")
    cursor.expect("ORDERED", "BY")
    return SetSorting(_order(cursor))


def _order(cursor: Cursor) -> tuple[SortKey, ...]:
    # Iceberg's keys need no brackets.
    return read_sort_keys(cursor) if cursor.sees("(") else tuple(cursor.listed(_key))


def sort_keys(texts: Sequence[str]) -> tuple[SortKey, ...]:
    """Return the keys that texts such as ``upper(name) DESC NULLS FIRST`` mean."""
    return tuple(map(sort_key, texts))


def sort_key(text: str) -> SortKey:
    """Return the key that one text means."""
    cursor = Cursor(text, tokenize(text))
    found = _key(cursor)
    cursor.end()
    return found


def columns_of(expression: str) -> set[str]:
    """Return the names of the columns in an expression of the catalog, as they are written."""
    return {node.name for node in _parsed(expression, "duckdb").find_all(exp.Column)}


def is_column(expression: str) -> bool:
    """Tell whether an expression of the catalog is a column and nothing else."""
    return isinstance(_parsed(expression, "duckdb"), exp.Column)


def renamed(expression: str, old: str, new: str) -> str:
    """Return an expression of the catalog with a column's new name; the rest stays as it is."""
    return edited(
        expression,
        (
            (node.this.meta["start"], node.this.meta["end"] + 1, duckdb_name(new))
            for node in _parsed(expression, "duckdb").find_all(exp.Column)
            if node.name.lower() == old.lower()
        ),
    )


def sort_expression_for_spark(expression: str) -> str:
    """Return the Spark SQL of an expression of the catalog.

    Raises Unsupported for one by which Spark may sort differently or not at all.
    """
    tree = _parsed(expression, "duckdb")
    _check(tree, expression)
    return _sql(tree, "spark", backticked)


def key_text(key: SortKey) -> str:
    """Return a key as a statement writes it; what only DuckDB understands is a comment."""
    try:
        tree = _parsed(key.expression, "duckdb")
        _check(tree, key.expression)
        shown = _sql(tree, "spark", quote_name)
    except (InvalidRequest, Unsupported):
        expression = key.expression.replace("*/", "* /").replace("/*", "/ *")
        shown = f"/* {expression} in DuckDB */"
    direction = " DESC" if key.descending else ""
    return f"{shown}{direction}{' NULLS FIRST' if key.nulls_first else ''}"


def duckdb_name(name: str) -> str:
    """Return a column's name as DuckDB writes it: in quotes only where it must be."""
    if _PLAIN.fullmatch(name) and name.upper() not in _RESERVED:
        return name
    return double_quoted(name)


def _key(cursor: Cursor) -> SortKey:
    start = cursor.at
    while not _ends(cursor):
        cursor.skip()
    if cursor.at == start:
        raise cursor.failure("a column or an expression to sort by")
    text = cursor.since(start)
    descending = cursor.accept_any("ASC", "DESC") == "DESC"
    nulls_first = cursor.accept("NULLS", "FIRST")
    if not nulls_first:
        cursor.accept("NULLS", "LAST")
    return SortKey(_for_catalog(text), descending, nulls_first)


def _ends(cursor: Cursor) -> bool:
    key = cursor.peek().key
    is_order = key in ("ASC", "DESC") or cursor.sees("NULLS", "FIRST")
    return (
        key in (",", ")")
        or cursor.peek().kind is TokenKind.END
        or is_order
        or cursor.sees("NULLS", "LAST")
    )


def _for_catalog(text: str) -> str:
    # A name in double quotes, as DuckDB writes it, would be a string to Spark.
    tokens = tokenize(text)[:-1]
    if len(tokens) == 1 and tokens[0].may_name:
        return duckdb_name(Cursor(text, tokenize(text)).name())
    tree = _parsed(text, "spark")
    _check(tree, text)
    if not any(True for _ in tree.find_all(exp.Column)):
        raise InvalidRequest(f"cannot sort by {text!r}: it contains no column")
    return _sql(tree, "duckdb", duckdb_name)


def _check(tree: exp.Expr, text: str) -> None:
    for node in tree.walk():
        if isinstance(node, exp.Column) and (
            node.table or not isinstance(node.this, exp.Identifier)
        ):
            raise Unsupported(
                f"cannot sort by {text!r}: only top-level columns can be in a sort key"
            )
        if node.key not in _SAME_IN_BOTH:
            raise Unsupported(
                f"the sort key {text!r} may have different meanings in Spark and DuckDB; use"
                " columns, upper(), lower(), abs(), date_trunc() and the like"
            )


def _sql(tree: exp.Expr, dialect: str, quoted: Callable[[str], str]) -> str:
    def named(node: exp.Expr) -> exp.Expr:
        return exp.Var(this=quoted(node.name)) if isinstance(node, exp.Column) else node

    made = tree.copy().transform(named)
    return made.sql(dialect=dialect, comments=False, normalize_functions="lower")
