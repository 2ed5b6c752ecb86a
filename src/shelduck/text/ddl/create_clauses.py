"""CREATE and DROP of schemas and tables; key models as Doris has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from shelduck.model.tables.constraints import ConstraintKind
from shelduck.model.tables.keys import KeyModel, KeySpec
from shelduck.model.text.quoting import quote_name
from shelduck.text.ddl.column_clauses import Beside, read_definition
from shelduck.text.ddl.constraint_clauses import take_constraint
from shelduck.text.ddl.macro_clauses import MACRO_WORDS, read_create_macro, read_drop_macro
from shelduck.text.ddl.partitioning import read_doris_partitions, read_partition_keys
from shelduck.text.ddl.rollup_clauses import read_create_rollup, read_drop_rollup, read_rollups
from shelduck.text.ddl.sorting import read_sort_keys
from shelduck.text.ddl.view_clauses import read_create_view, read_drop_view
from shelduck.text.query.read_query import begins_query, read_query
from shelduck.text.query.travel import read_time
from shelduck.text.statements import statement_values as st
from shelduck.text.tokens.arguments import read_properties
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.lexer import TokenKind
from shelduck.text.tokens.parts import NamedTable

SCHEMA_WORDS = ("SCHEMA", "DATABASE", "NAMESPACE")
FOREIGN = frozenset(("delta", "iceberg"))
PROVIDERS = frozenset(("shelduck", "ducklake", "parquet")) | FOREIGN
"""The formats that a statement may name: each means a table of the lake."""
_CLAUSES = {
    "LOCATION": "the files of a table are below the lake's data path; leave it out",
    "OPTIONS": "leave it out",
    "CLUSTERED": "use PARTITIONED BY (bucket(N, c)) and SORTED BY (...)",
    "PARTITION": "use PARTITIONED BY (...)",
    "WITH": "leave it out",
    "ROW": "tables are Parquet files; leave it out",
    "STORED": "tables are Parquet files; leave it out",
}
_SEQUENCE = "function_column.sequence_col"


def read_create(
    cursor: Cursor,
) -> (
    st.CreateSchemaStatement
    | st.CreateTableStatement
    | st.CopyTableStatement
    | st.CreateViewStatement
    | st.PinView
    | st.CreateMacroStatement
    | st.AlterRollups
):
    """Read the statement behind ``CREATE``."""
    if cursor.accept_any(*SCHEMA_WORDS):
        return _create_schema(cursor)
    or_replace = cursor.accept("OR", "REPLACE")
    if cursor.accept("TABLE"):
        if_not_exists = cursor.accept_if_not_exists("table", or_replace=or_replace)
        name = cursor.table_name()
        # Files belong to one table, so a shallow clone is a deep one.
        is_clone = cursor.accept("DEEP", "CLONE") or cursor.accept("SHALLOW", "CLONE")
        if word := cursor.accept_any("LIKE", "CLONE") or is_clone:
            return _copy(cursor, name, if_not_exists, or_replace, has_rows=word != "LIKE")
        return _create_table(cursor, name, if_not_exists, or_replace)
    if cursor.accept("VIEW"):
        return read_create_view(cursor, or_replace)
    if cursor.accept_any(*MACRO_WORDS):
        return read_create_macro(cursor, or_replace)
    if cursor.accept("MATERIALIZED", "VIEW"):
        return read_create_rollup(cursor, or_replace)
    if cursor.peek().kind is TokenKind.END:
        raise cursor.failure("SCHEMA, TABLE, VIEW or MACRO")
    raise cursor.refusal(
        f"CREATE {cursor.peek().text.upper()}",
        f"use CREATE SCHEMA, TABLE, VIEW, MACRO or MATERIALIZED VIEW{cursor.spelling()}",
    )


def read_replace(cursor: Cursor) -> st.CreateTableStatement:
    """Read the statement behind ``REPLACE TABLE``: CREATE OR REPLACE of a table that exists."""
    name = cursor.table_name()
    return replace(_create_table(cursor, name, False, or_replace=True), must_exist=True)


def read_drop(
    cursor: Cursor,
) -> (
    st.DropSchemaStatement
    | st.DropTableStatement
    | st.DropViewStatement
    | st.DropMacroStatement
    | st.AlterRollups
):
    """Read the statement behind ``DROP``."""
    if cursor.accept_any(*SCHEMA_WORDS):
        if_exists = cursor.accept_if("EXISTS")
        name = cursor.schema_name()
        cascade = cursor.accept_any("CASCADE", "RESTRICT") == "CASCADE"
        cursor.end()
        return st.DropSchemaStatement(name, if_exists, cascade)
    if cursor.accept("TABLE"):
        if_exists = cursor.accept_if("EXISTS")
        table = cursor.table_name()
        if cursor.sees("PURGE"):
            raise cursor.refusal(
                "DROP TABLE ... PURGE", "files are kept for time travel; leave it out"
            )
        # Views of a table stay, as they do in DuckDB: they are read by name.
        cursor.accept_any("CASCADE", "RESTRICT")
        cursor.end()
        return st.DropTableStatement(table, if_exists)
    if cursor.accept("VIEW"):
        return read_drop_view(cursor)
    if cursor.accept_any(*MACRO_WORDS):
        return read_drop_macro(cursor)
    if cursor.accept("MATERIALIZED", "VIEW"):
        return read_drop_rollup(cursor)
    if cursor.peek().kind is TokenKind.END:
        raise cursor.failure("SCHEMA, TABLE, VIEW or MACRO")
    raise cursor.refusal(
        f"DROP {cursor.peek().text.upper()}",
        f"use DROP SCHEMA, TABLE, VIEW, MACRO or MATERIALIZED VIEW{cursor.spelling()}",
    )


def read_undrop_table(cursor: Cursor) -> st.UndropTable:
    """Read the statement behind ``UNDROP TABLE``."""
    name = cursor.table_name()
    cursor.end()
    return st.UndropTable(name)


def _create_schema(cursor: Cursor) -> st.CreateSchemaStatement:
    if_not_exists = cursor.accept_if("NOT", "EXISTS")
    name = cursor.schema_name()
    if cursor.peek().key in ("COMMENT", "LOCATION", "WITH", "MANAGED"):
        raise cursor.refusal(f"CREATE SCHEMA ... {cursor.peek().key}", "leave it out")
    cursor.end()
    return st.CreateSchemaStatement(name, if_not_exists)


def _copy(
    cursor: Cursor, name: NamedTable, if_not_exists: bool, or_replace: bool, *, has_rows: bool
) -> st.CopyTableStatement:
    source = cursor.table_name()
    version, timestamp = read_time(cursor) if has_rows else (None, None)
    if not has_rows and cursor.accept("USING"):
        _provider(cursor)
    properties = read_properties(cursor) if cursor.accept("TBLPROPERTIES") else {}
    cursor.end()
    return st.CopyTableStatement(
        name, source, has_rows, if_not_exists, or_replace, version, timestamp, properties
    )


def _create_table(
    cursor: Cursor, name: NamedTable, if_not_exists: bool, or_replace: bool
) -> st.CreateTableStatement:
    columns: tuple[st.ColumnDefinition, ...] = ()
    beside = Beside(computed=[])
    opening = cursor.at
    if cursor.sees("(") and not begins_query(cursor):
        columns = read_columns(cursor, beside)
    keys = (c for c in beside.constraints if c.kind is ConstraintKind.PRIMARY_KEY)
    needed = {name.lower() for key in keys for name in key.columns}
    columns = tuple(
        replace(c, nullable=c.nullable and c.name.lower() not in needed) for c in columns
    )
    clauses = _clauses(cursor) | {"constraints": tuple(beside.constraints)}
    clauses["computed"] = tuple(beside.computed or ())
    clauses["keys"] = taken_keys(cursor, columns, clauses)
    if cursor.accept("AS") or begins_query(cursor):
        if columns:
            cursor.at = opening
            raise cursor.failure("AS (the query of CREATE TABLE AS defines the columns)")
        return st.CreateTableStatement(
            name,
            if_not_exists=if_not_exists,
            or_replace=or_replace,
            as_query=read_query(cursor),
            **clauses,
        )
    if not columns:
        raise cursor.failure("the columns in brackets, or AS and a query")
    cursor.end()
    return st.CreateTableStatement(
        name, columns, if_not_exists=if_not_exists, or_replace=or_replace, **clauses
    )


def read_columns(cursor: Cursor, beside: Beside) -> tuple[st.ColumnDefinition, ...]:
    """Take the columns in brackets, and what is ``beside`` them."""
    cursor.expect("(")
    columns: list[st.ColumnDefinition] = []
    while True:
        if columns and take_constraint(cursor, beside.constraints, is_new_table=True):
            if not cursor.accept(",") or cursor.sees(")"):
                break
            continue
        start = cursor.at
        found = read_definition(cursor, beside)
        if len(found.path) > 1:
            cursor.at = start
            raise cursor.failure("the name of a column (quote a name that contains a dot)")
        if found.position is not None:
            cursor.at -= 1
            raise cursor.failure("',' or ')' (FIRST and AFTER are for ALTER TABLE)")
        columns.append(
            st.ColumnDefinition(
                found.path[0],
                found.type,
                found.nullable,
                found.default,
                found.comment,
                found.key,
                found.aggregation,
            )
        )
        # Doris' documentation and DuckDB leave a comma behind the last column.
        if not cursor.accept(",") or cursor.sees(")"):
            break
    cursor.expect(")")
    return tuple(columns)


def _clauses(cursor: Cursor) -> dict[str, Any]:
    found: dict[str, Any] = {}
    while words := next((words for words in _READERS if cursor.sees(*words)), None):
        key, read = _READERS[words]
        if key in found:
            what = "a KEY clause" if key == "keys" else words[0]
            raise cursor.failure(f"{what} only once")
        cursor.expect(*words)
        found[key] = read(cursor)
    word = cursor.peek().key
    begins_with = word == "WITH" and cursor.peek(1).key != "("
    if word in _CLAUSES and not begins_with:
        raise cursor.refusal(f"CREATE TABLE ... {word}", _CLAUSES[word])
    begun = next((words for words in _READERS if words[0] == word), ())
    # It has not been read, so one of the words is missing.
    cursor.expect(*begun)
    for ignored in ("using", "engine"):
        found.pop(ignored, None)
    return found


def _provider(cursor: Cursor) -> str:
    provider = cursor.name("a format")
    if provider.lower() not in PROVIDERS:
        raise cursor.refusal(
            f"USING {provider}", "tables of a lake are Parquet files; leave it out"
        )
    return provider


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
    return columns, str(cursor.whole("the number of buckets, or AUTO"))


def taken_keys(
    cursor: Cursor, columns: Sequence[st.ColumnDefinition], clauses: dict[str, Any]
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


def _keys_of_words(columns: Sequence[st.ColumnDefinition]) -> KeySpec | None:
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


_READERS: dict[tuple[str, ...], tuple[str, Callable[[Cursor], object]]] = {
    ("COMMENT",): ("comment", lambda cursor: cursor.string("the comment as a string")),
    ("USING",): ("using", _provider),
    ("ENGINE", "="): ("engine", read_engine),
    ("PARTITIONED", "BY"): ("partitioned_by", read_partition_keys),
    ("PARTITION", "BY"): ("partitioned_by", read_doris_partitions),
    ("AUTO", "PARTITION", "BY"): ("partitioned_by", read_doris_partitions),
    ("SORTED", "BY"): ("sorted_by", read_sort_keys),
    # Delta's word.
    ("CLUSTER", "BY"): ("sorted_by", read_sort_keys),
    ("DISTRIBUTED", "BY"): ("distributed_by", read_distribution),
    **{words: ("keys", read) for words, read in KEY_CLAUSES.items()},
    ("ROLLUP",): ("rollups", read_rollups),
    ("TBLPROPERTIES",): ("properties", read_properties),
    ("PROPERTIES",): ("doris_properties", read_properties),
}
