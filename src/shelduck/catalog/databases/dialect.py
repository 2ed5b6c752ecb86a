"""How catalog databases differ once a connection is open, and how they hold values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from shelduck.errors import Unsupported
from shelduck.model.files.duckdb_text import TEXT_FORM, nested_text
from shelduck.model.tables.schema import Field, Kind
from shelduck.model.text.names import double_quoted

Stored = int | float | str | bytes | None
Encoder = Callable[[object], Stored]
"""Converts a value of `InlinedBatch.rows` to a parameter of a statement."""


UNLIMITED = 1 << 30


def as_it_is(_field: Field, _kind: str) -> None:
    """Return None: all versions store the value alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The SQL and the types of one kind of database; no other module asks which kind it is."""

    name: str
    """SQLAlchemy's name for it: ``connection.dialect.name``."""

    tables: str
    """The query for the names of all tables in the lake's schema, in a column ``name``."""
    indexes: str
    """The same for indexes."""
    columns: str
    """The columns of DuckLake's tables in their order: ``table_name``, ``name`` and ``kind``."""
    insert: Callable[[sa.Table], Any]
    """Its INSERT that knows ON CONFLICT."""
    whole_number: str
    """An expression over ``{0}``, a text: its number if it is an integer, otherwise NULL."""
    indexes_bounds: bool = False
    """Whether Shelduck's index of the bounds of files makes queries quicker here."""
    first_rows: str = "{0} LIMIT {1}"
    """A statement for the first ``{1}`` rows of the query ``{0}``, quick if few rows match."""
    parameter_mark: str = "?"
    """The mark of a parameter in text that goes to the driver unchanged."""
    in_driver_text: Callable[[str], str] = double_quoted
    """Quotes a name for this text."""
    kept_places: str | None = None
    """The statements that create the trigger of `shelduck.catalog.commit.kept_places`, or None."""
    kept_files: str | None = None
    """The same for the trigger of `shelduck.catalog.commit.shared_guard`."""

    inlined_type: Callable[[Field], str]
    """The type of a column in a table for inlined rows, as DuckDB creates it in this database."""
    inlined_value: Callable[[Field], Encoder]
    """How to store a value of the column so that DuckDB reads it correctly."""
    older_value: Callable[[Field, str], str | None] = as_it_is
    """An expression that makes an inlined value of one that DuckLake 0.3 stored in such a type."""
    never_inlined: frozenset[str]
    """Types whose values Shelduck does not inline in this database; DuckDB may inline variants."""
    longest_name: int = UNLIMITED
    """The longest name of a column, in bytes."""
    most_columns: int = UNLIMITED
    """How many columns a table for inlined rows can have."""
    read_as_text: Callable[[Field], bool]
    """Whether the database casts a stored value to text, because the driver would change it."""
    has_literal_structs: bool = True
    """Whether DuckDB writes structs to this database as SQL literals, not as its text."""
    has_variants: bool = False
    """Whether DuckDB keeps variants here in a type of its own, not as the bytes of Parquet."""
    knows_columns: bool = True
    """False if a quoted name that is not a column is taken for a text, so names must be checked."""
    before_reading: str | None = None
    """The statement that runs before inlined rows are read."""
    drops_at_once: bool = False
    """Whether no other process can know a dropped table, and DROP TABLE waits for nobody."""
    in_use: str | None = None
    """The query for the names of tables that DROP TABLE would wait for, None if there are none."""
    row_address: str = "rowid"
    """The column that every table has and that tells its rows apart within one transaction."""

    @property
    def low_bound(self) -> str:
        """An expression: the lowest integer of a file's statistics, -2^63 if it is unknown."""
        # As a literal, -2^63 is the negative of a number beyond 64 bits.
        return f"COALESCE({self.whole_number.format('min_value')}, -{_MOST} - 1)"

    @property
    def high_bound(self) -> str:
        """An expression: the highest integer of a file's statistics, 2^63 - 1 if it is unknown."""
        return f"COALESCE({self.whole_number.format('max_value')}, {_MOST})"


_MOST = 2**63 - 1


SMALL_INTEGERS = "boolean int8 int16 int32 int64 uint8 uint16 uint32".split()
WHOLE: dict[str, Encoder] = dict.fromkeys(SMALL_INTEGERS, lambda value: int(str(value)))


def encoders(by_type: Mapping[str, Encoder], mark: str = TEXT_FORM) -> Callable[[Field], Encoder]:
    """Return what gives the encoder of a column: by its type, of bytes as they are, else its text.

    Nested values are DuckDB's text, structs with ``mark`` before it: DuckDB itself writes structs
    as SQL literals to a database that holds only texts, which it then misreads.
    """

    def encoder(field: Field) -> Encoder:
        if field.is_leaf:
            return by_type.get(str(field.shape), binary if str(field.shape) == "blob" else str)
        before = mark if field.shape is Kind.STRUCT else ""
        return lambda value: before + nested_text(field, value)

    return encoder


def number_of_boolean(value: object) -> int:
    """Return 1 for ``true``, 0 for ``false``."""
    return int(value == "true")


def binary(value: object) -> bytes:
    """Return bytes as they are."""
    assert isinstance(value, bytes)
    return value


def flag(value: Any) -> str:
    """Return the text of a stored boolean."""
    if value not in (0, 1, "true", "false"):
        raise ValueError(f"{value!r} is neither true nor false")
    return "true" if value in (1, "true") else "false"


def refused_variant(column: str, _: Any) -> object:
    """Raise Unsupported for a variant in DuckDB's own type."""
    raise Unsupported(
        f"column {column!r} has variants in the catalog, which only DuckDB reads there; flush them"
        " with DuckDB: CALL ducklake_flush_inlined_data"
    )


_PG_BC = re.compile(r"(\d+-\d+-\d+)(.*) BC")


def moment(text: str) -> str:
    """Return DuckDB's text of a stored date or timestamp; PostgreSQL says BC at the end."""
    return _PG_BC.sub(r"\1 (BC)\2", text) if text.endswith(" BC") else text


_PG_UNITS = re.compile(r"\b(mon|mons)\b")


def interval(value: Any) -> str:
    """Return DuckDB's text of a stored interval; PostgreSQL says "1 mon", DuckDB "1 month"."""
    return _PG_UNITS.sub(lambda m: "month" if m[0] == "mon" else "months", str(value))
