"""Key models in CREATE TABLE, as Doris has them: words of columns, and clauses behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from shelduck.model.tables.keys import KeyModel, KeySpec
from shelduck.model.text.quoting import quote_name
from shelduck.sql.statements.statement_values import ColumnDefinition
from shelduck.sql.tokens.cursor import Cursor
from shelduck.sql.tokens.lexer import TokenKind

_SEQUENCE = "function_column.sequence_col"


def read_engine(cursor: Cursor) -> str:
    """Take what stands behind ``ENGINE =``; it is OLAP."""
    engine = cursor.name("OLAP")
    if engine.upper() != "OLAP":
        raise cursor.refusal(f"ENGINE={engine}", "tables of a lake are Parquet files; leave it out")
    return engine


def read_distribution(cursor: Cursor) -> tuple[tuple[str, ...], str | None]:
    """Take what stands behind ``DISTRIBUTED BY``; return the columns of HASH and the buckets.

    Files of a lake are in no buckets: the number is kept to be shown.
    """
    columns: tuple[str, ...] = ()
    if not cursor.accept("RANDOM"):
        if not cursor.accept("HASH"):
            raise cursor.failure("HASH and columns in brackets, or RANDOM")
        columns = cursor.columns()
    if not cursor.accept("BUCKETS"):
        return columns, None
    if cursor.accept("AUTO"):
        return columns, "AUTO"
    token = cursor.peek()
    if token.kind is not TokenKind.NUMBER or not token.text.isdecimal():
        raise cursor.failure("the number of buckets, or AUTO")
    cursor.take()
    return columns, token.text


def taken_keys(
    cursor: Cursor, columns: Sequence[ColumnDefinition], clauses: dict[str, Any]
) -> KeySpec | None:
    """Take what is said of keys out of the clauses; return the model that it means.

    Without a KEY clause the words of columns mean one. A table without keys that is distributed is
    a DUPLICATE table whose key has no columns. Raises InvalidRequest where words, clause and
    properties contradict each other.
    """
    spec: KeySpec | None = clauses.pop("keys", None) or _keys_of_words(columns)
    distributed_by, buckets = clauses.pop("distributed_by", ((), None))
    sequence = clauses.get("doris_properties", {}).pop(_SEQUENCE, None)
    if sequence is not None and (spec is None or spec.model is not KeyModel.UNIQUE):
        raise cursor.error(
            f"the property {_SEQUENCE} applies only to tables with UNIQUE KEY (...); add the keys,"
            " or leave out the property"
        )
    if spec is None and (distributed_by or buckets):
        spec = KeySpec(KeyModel.DUPLICATE, ())
    if spec is None:
        return None
    known = {name.lower() for name in spec.columns}
    for column in columns:
        if column.key and column.name.lower() not in known:
            raise cursor.error(
                f"column {quote_name(column.name)} has the word KEY but is not in"
                f" {spec.model.value} KEY (...); add it there, or leave out the word"
            )
    return replace(
        spec,
        aggregations=tuple((c.name, c.aggregation) for c in columns if c.aggregation is not None),
        sequence=sequence,
        distributed_by=distributed_by,
        buckets=buckets,
    )


def _keys_of_words(columns: Sequence[ColumnDefinition]) -> KeySpec | None:
    if any(c.aggregation is not None for c in columns):
        keys = (c.name for c in columns if c.key or c.aggregation is None)
        return KeySpec(KeyModel.AGGREGATE, tuple(keys))
    names = tuple(c.name for c in columns if c.key)
    return KeySpec(KeyModel.DUPLICATE, names) if names else None


def _key_clause(model: KeyModel, cursor: Cursor) -> KeySpec:
    return KeySpec(model, cursor.columns())


KEY_CLAUSES: dict[tuple[str, ...], Callable[[Cursor], KeySpec]] = {
    (model.value, "KEY"): partial(_key_clause, model) for model in KeyModel
}
"""How each clause is read, by the words that it begins with."""
