"""The words of DuckDB and of Spark for what pinned views need, with the same meaning in both."""

# ruff: noqa: D102 - `Words` holds the contract of these methods.

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from shelduck.errors import Unsupported
from shelduck.model.text.names import backticked, double_quoted, quote_text
from shelduck.model.types.data_types import (
    DUCKDB_NUMBERS,
    SPARK_WORDS,
    DataType,
    Decimal,
    Leaf,
    List,
    Map,
    Primitive,
    Struct,
)
from shelduck.model.types.literals import blob_bytes, canonical_text
from shelduck.model.types.temporal import NANOSECONDS

_SPARK = {
    **SPARK_WORDS,
    **{name: name.upper() for name in ("boolean", "date", "variant")},
    "int128": "DECIMAL(38,0)",
    "uint8": "SMALLINT",
    "uint16": "INT",
    "uint32": "BIGINT",
    "uint64": "DECIMAL(20,0)",
    "uint128": "DECIMAL(38,0)",
    "timestamp_s": "TIMESTAMP_NTZ",
    "timestamp_ms": "TIMESTAMP_NTZ",
    **dict.fromkeys(NANOSECONDS, "BIGINT"),
    "geometry": "BINARY",
    **dict.fromkeys(("json", "uuid", "time", "timetz"), "STRING"),
}


class Words(Protocol):
    """How one engine writes each part of a pinned view.

    ``has_all_types`` is False if the engine stores unsigned numbers and timestamps of seconds in
    types that hold more.
    """

    has_all_types: bool

    def name(self, name: str) -> str:
        """Return a quoted name."""

    def type(self, data_type: DataType) -> str:
        """Return the name of a type; Unsupported if the engine has none."""

    def constant(self, leaf: Leaf, text: str) -> str:
        """Return the value that DuckLake's text means."""

    def text(self, text: str) -> str:
        """Return a text as a literal."""

    def member(self, value: str, name: str) -> str:
        """Return a field of a struct."""

    def struct(self, members: Sequence[tuple[str, str]]) -> str:
        """Return a struct of values by name."""

    def elements(self, value: str, variable: str, element: str) -> str:
        """Return a list in which each ``variable`` is replaced by ``element``."""

    def entries(self, value: str, variable: str, key: str, item: str) -> str:
        """Return a map; ``key`` and ``item`` refer to fields of the entry ``variable``."""
        entry = self.struct((("key", key), ("value", item)))
        return f"map_from_entries({self.elements(f'map_entries({value})', variable, entry)})"

    def failure(self, told: str, value: str) -> str:
        """Return an expression that fails with a text and a value."""

    def matches(self, value: str, pattern: str) -> str:
        """Return whether the whole of a text matches a pattern without backslashes."""


class DuckDBWords(Words):
    """DuckDB's words."""

    has_all_types = True

    def name(self, name: str) -> str:
        return double_quoted(name)

    def type(self, data_type: DataType) -> str:
        match data_type:
            case Struct(members):
                inside = (f"{double_quoted(m.name)} {self.type(m.type)}" for m in members)
                return f"STRUCT({', '.join(inside)})"
            case List(element):
                return f"{self.type(element)}[]"
            case Map(key, value):
                return f"MAP({self.type(key)}, {self.type(value)})"
            case Decimal(precision, scale):
                return f"DECIMAL({precision},{scale})"
            case Primitive("null"):
                return '"NULL"'
            case Primitive(name):
                return DUCKDB_NUMBERS.get(name, name.upper())

    def constant(self, leaf: Leaf, text: str) -> str:
        return f"CAST({self.text(canonical_text(leaf, text))} AS {self.type(leaf)})"

    def text(self, text: str) -> str:
        return "'" + text.replace("'", "''") + "'"

    def member(self, value: str, name: str) -> str:
        return f"struct_extract({value}, {self.text(name)})"

    def struct(self, members: Sequence[tuple[str, str]]) -> str:
        return f"struct_pack({', '.join(f'{double_quoted(n)} := {v}' for n, v in members)})"

    def elements(self, value: str, variable: str, element: str) -> str:
        return f"[{element} for {variable} in {value}]"

    def failure(self, told: str, value: str) -> str:
        return f"error({self.text(told)} || CAST({value} AS VARCHAR))"

    def matches(self, value: str, pattern: str) -> str:
        return f"regexp_full_match({value}, {self.text(pattern)})"


class SparkWords(Words):
    """Spark's words."""

    has_all_types = False

    def name(self, name: str) -> str:
        return backticked(name)

    def type(self, data_type: DataType) -> str:
        match data_type:
            case Struct(members):
                inside = (f"{backticked(m.name)}: {self.type(m.type)}" for m in members)
                return f"STRUCT<{', '.join(inside)}>"
            case List(element):
                return f"ARRAY<{self.type(element)}>"
            case Map(key, value):
                return f"MAP<{self.type(key)}, {self.type(value)}>"
            case Decimal(precision, scale):
                return f"DECIMAL({precision},{scale})"
            case Primitive(name):
                if name not in _SPARK:
                    raise Unsupported(f"Spark has no type {name}")
                return _SPARK[name]

    def constant(self, leaf: Leaf, text: str) -> str:
        found, name = canonical_text(leaf, text), str(leaf)
        if name == "blob":
            return f"X'{(blob_bytes(found) or b'').hex()}'"
        if name == "timestamptz":
            return f"TIMESTAMP '{found}:00'"
        if name in NANOSECONDS:
            raise Unsupported(f"Spark has no constants of type {name}")
        return f"CAST({quote_text(found)} AS {self.type(leaf)})"

    def text(self, text: str) -> str:
        return quote_text(text)

    def member(self, value: str, name: str) -> str:
        return f"{value}.{backticked(name)}"

    def struct(self, members: Sequence[tuple[str, str]]) -> str:
        return f"named_struct({', '.join(f'{quote_text(n)}, {v}' for n, v in members)})"

    def elements(self, value: str, variable: str, element: str) -> str:
        return f"transform({value}, {variable} -> {element})"

    def failure(self, told: str, value: str) -> str:
        return f"raise_error(concat({quote_text(told)}, CAST({value} AS STRING)))"

    def matches(self, value: str, pattern: str) -> str:
        # Java's $ also matches in front of a last line break, and the pattern is ASCII only.
        return f"({value} RLIKE '^({pattern})$' AND NOT contains({value}, char(10)))"


DUCKDB: Words = DuckDBWords()
SPARK: Words = SparkWords()
