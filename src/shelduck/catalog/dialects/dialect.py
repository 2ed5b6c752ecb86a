"""How catalog databases differ once a connection is open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Table

from shelduck.model.tables.schema import Field

Stored = int | float | str | bytes | None
Encoder = Callable[[object], Stored]
"""Converts a value of `InlinedBatch.rows` to a parameter of a statement."""


@dataclass(frozen=True, slots=True)
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
    insert: Callable[[Table], Any]
    """Its INSERT that knows ON CONFLICT."""
    whole_number: str
    """An expression over ``{0}``, a text: its number if it is an integer, otherwise NULL."""
    indexes_bounds: bool
    """Whether Shelduck's index of the bounds of files makes queries quicker here."""
    first_rows: str
    """A statement for the first ``{1}`` rows of the query ``{0}``, quick if few rows match."""
    parameter_mark: str
    """The mark of a parameter in text that goes to the driver unchanged."""
    in_driver_text: Callable[[str], str]
    """Quotes a name for this text."""
    kept_places: str | None
    """The statements that create the trigger of `shelduck.catalog.commit.kept_places`, or None."""

    inlined_type: Callable[[Field], str]
    """The type of a column in a table for inlined rows, as DuckDB creates it in this database."""
    inlined_value: Callable[[Field], Encoder]
    """How to store a value of the column so that DuckDB reads it correctly."""
    older_value: Callable[[Field, str], str | None]
    """An expression that makes an inlined value of one that DuckLake 0.3 stored in such a type."""
    never_inlined: frozenset[str]
    """Types whose values Shelduck does not inline in this database; DuckDB may inline variants."""
    longest_name: int
    """The longest name of a column, in bytes."""
    most_columns: int
    """How many columns a table for inlined rows can have."""
    read_as_text: Callable[[Field], bool]
    """Whether the database casts a stored value to text, because the driver would change it."""
    has_literal_structs: bool
    """Whether DuckDB writes structs to this database as SQL literals, not as its text."""
    has_variants: bool
    """Whether DuckDB keeps variants here in a type of its own, not as the bytes of Parquet."""
    knows_columns: bool
    """False if a quoted name that is not a column is taken for a text, so names must be checked."""
    before_reading: str | None
    """The statement that runs before inlined rows are read."""
    drops_at_once: bool
    """Whether DROP TABLE waits for nobody, and older transactions go on reading the table."""
    row_address: str
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


def as_it_is(_field: Field, _kind: str) -> None:
    """Return None: all versions store the value alike."""


UNLIMITED = 1 << 30
SMALL_INTEGERS = "boolean int8 int16 int32 int64 uint8 uint16 uint32".split()
