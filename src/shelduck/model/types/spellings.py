"""The words that systems use for the types of DuckLake."""

from __future__ import annotations

SPELLINGS = {
    "bool": "boolean",
    "tinyint": "int8",
    "byte": "int8",
    "smallint": "int16",
    "short": "int16",
    "int1": "int8",
    "int2": "int16",
    "int4": "int32",
    "int": "int32",
    "integer": "int32",
    "bigint": "int64",
    "long": "int64",
    "hugeint": "int128",
    "utinyint": "uint8",
    "usmallint": "uint16",
    "uinteger": "uint32",
    "ubigint": "uint64",
    "uhugeint": "uint128",
    "float": "float32",
    "real": "float32",
    "float4": "float32",
    "float8": "float64",
    "double": "float64",
    "string": "varchar",
    "text": "varchar",
    "char": "varchar",
    "character": "varchar",
    "binary": "blob",
    "bytea": "blob",
    "varbinary": "blob",
    "timestamp": "timestamptz",
    "timestamp_ltz": "timestamptz",
    "timestamp_ntz": "timestamp",
    "timestamp_us": "timestamp",
    "datetime": "timestamp",
    "datetimev2": "timestamp",
    "datev2": "date",
    "void": "null",
}
"""DuckLake's names of types that Spark, DuckDB and Doris call otherwise."""

SPARK_WORDS = {
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INT",
    "int64": "BIGINT",
    "float32": "FLOAT",
    "float64": "DOUBLE",
    "varchar": "STRING",
    "blob": "BINARY",
    "timestamptz": "TIMESTAMP",
    "timestamp": "TIMESTAMP_NTZ",
    "null": "VOID",
}
"""Spark's words for types of DuckLake that it calls otherwise."""

DUCKDB_NUMBERS = {
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "int128": "HUGEINT",
    "uint8": "UTINYINT",
    "uint16": "USMALLINT",
    "uint32": "UINTEGER",
    "uint64": "UBIGINT",
    "uint128": "UHUGEINT",
    "float32": "FLOAT",
    "float64": "DOUBLE",
}
"""DuckDB's names of numbers."""
