"""CREATE and DROP of schemas and tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from shelduck.sql.ddl.column_clauses import read_definition
from shelduck.sql.ddl.key_clauses import KEY_CLAUSES, read_distribution, read_engine, taken_keys
from shelduck.sql.ddl.macro_clauses import MACRO_WORDS, read_create_macro, read_drop_macro
from shelduck.sql.ddl.partitioning import read_doris_partitions, read_partition_keys
from shelduck.sql.ddl.rollups import read_create_rollup, read_drop_rollup, read_rollups
from shelduck.sql.ddl.sorting import read_sort_keys
from shelduck.sql.ddl.view_clauses import read_create_view, read_drop_view
from shelduck.sql.query.read_query import begins_query, read_query
from shelduck.sql.statements.statement_values import (
    AlterRollups,
    ColumnDefinition,
    CreateMacroStatement,
    CreateSchemaStatement,
    CreateTableStatement,
    CreateViewStatement,
    DropMacroStatement,
    DropSchemaStatement,
    DropTableStatement,
    DropViewStatement,
    PinView,
)
from shelduck.sql.tokens.arguments import read_properties
from shelduck.sql.tokens.cursor import Cursor
from shelduck.sql.tokens.lexer import TokenKind

SCHEMA_WORDS = ("SCHEMA", "DATABASE", "NAMESPACE")
PROVIDERS = frozenset(("shelduck", "ducklake", "parquet"))
_CLAUSES = {
    "LOCATION": "the files of a table are below the lake's data path; leave it out",
    "OPTIONS": "leave it out",
    "CLUSTERED": "use PARTITIONED BY (bucket(N, c)) and SORTED BY (...)",
    "PARTITION": "use PARTITIONED BY (...)",
    "LIKE": "list the columns, or use CREATE TABLE ... AS SELECT ... LIMIT 0",
    "WITH": "leave it out",
    "ROW": "tables are Parquet files; leave it out",
    "STORED": "tables are Parquet files; leave it out",
}


def read_create(
    cursor: Cursor,
) -> (
    CreateSchemaStatement
    | CreateTableStatement
    | CreateViewStatement
    | PinView
    | CreateMacroStatement
    | AlterRollups
):
    """Read the statement behind ``CREATE``."""
    if cursor.accept_any(*SCHEMA_WORDS):
        return _create_schema(cursor)
    or_replace = cursor.accept("OR", "REPLACE")
    if cursor.accept("TABLE"):
        return _create_table(cursor, or_replace)
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


def read_replace(cursor: Cursor) -> CreateTableStatement:
    """Read the statement behind ``REPLACE TABLE``: CREATE OR REPLACE of a table that exists."""
    return replace(_create_table(cursor, or_replace=True), must_exist=True)


def read_drop(
    cursor: Cursor,
) -> (
    DropSchemaStatement | DropTableStatement | DropViewStatement | DropMacroStatement | AlterRollups
):
    """Read the statement behind ``DROP``."""
    if cursor.accept_any(*SCHEMA_WORDS):
        if_exists = cursor.accept_if("EXISTS")
        name = cursor.schema_name()
        cascade = cursor.accept_any("CASCADE", "RESTRICT") == "CASCADE"
        cursor.end()
        return DropSchemaStatement(name, if_exists, cascade)
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
        return DropTableStatement(table, if_exists)
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


def _create_schema(cursor: Cursor) -> CreateSchemaStatement:
    if_not_exists = cursor.accept_if("NOT", "EXISTS")
    name = cursor.schema_name()
    if cursor.peek().key in ("COMMENT", "LOCATION", "WITH", "MANAGED"):
        raise cursor.refusal(f"CREATE SCHEMA ... {cursor.peek().key}", "leave it out")
    cursor.end()
    return CreateSchemaStatement(name, if_not_exists)


def _create_table(cursor: Cursor, or_replace: bool) -> CreateTableStatement:
    if_not_exists = cursor.accept_if("NOT", "EXISTS")
    if if_not_exists and or_replace:
        cursor.at -= 3
        raise cursor.failure(
            "the name of a table (OR REPLACE and IF NOT EXISTS cannot be used together)"
        )
    name = cursor.table_name()
    columns: tuple[ColumnDefinition, ...] = ()
    opening = cursor.at
    if cursor.sees("(") and not begins_query(cursor):
        columns = _columns(cursor)
    clauses = _clauses(cursor)
    clauses["keys"] = taken_keys(cursor, columns, clauses)
    if cursor.accept("AS") or begins_query(cursor):
        if columns:
            cursor.at = opening
            raise cursor.failure("AS (the query of CREATE TABLE AS defines the columns)")
        return CreateTableStatement(
            name,
            if_not_exists=if_not_exists,
            or_replace=or_replace,
            as_query=read_query(cursor),
            **clauses,
        )
    if not columns:
        raise cursor.failure("the columns in brackets, or AS and a query")
    cursor.end()
    return CreateTableStatement(
        name, columns, if_not_exists=if_not_exists, or_replace=or_replace, **clauses
    )


def _columns(cursor: Cursor) -> tuple[ColumnDefinition, ...]:
    cursor.expect("(")
    columns: list[ColumnDefinition] = []
    while True:
        start = cursor.at
        found = read_definition(cursor)
        if len(found.path) > 1:
            cursor.at = start
            raise cursor.failure("the name of a column (quote a name that contains a dot)")
        if found.position is not None:
            cursor.at -= 1
            raise cursor.failure("',' or ')' (FIRST and AFTER are for ALTER TABLE)")
        columns.append(
            ColumnDefinition(
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


_READERS: dict[tuple[str, ...], tuple[str, Callable[[Cursor], object]]] = {
    ("COMMENT",): ("comment", lambda cursor: cursor.string("the comment as a string")),
    ("USING",): ("using", _provider),
    ("ENGINE", "="): ("engine", read_engine),
    ("PARTITIONED", "BY"): ("partitioned_by", read_partition_keys),
    ("PARTITION", "BY"): ("partitioned_by", read_doris_partitions),
    ("AUTO", "PARTITION", "BY"): ("partitioned_by", read_doris_partitions),
    ("SORTED", "BY"): ("sorted_by", read_sort_keys),
    ("DISTRIBUTED", "BY"): ("distributed_by", read_distribution),
    **{words: ("keys", read) for words, read in KEY_CLAUSES.items()},
    ("ROLLUP",): ("rollups", read_rollups),
    ("TBLPROPERTIES",): ("properties", read_properties),
    ("PROPERTIES",): ("doris_properties", read_properties),
}
