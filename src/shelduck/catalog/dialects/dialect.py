"""What differs between catalog databases once a connection is open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy.types import TypeEngine

from shelduck.model.tables.schema import Field

Stored = int | float | str | bytes | None
Encoder = Callable[[object], Stored]
"""Turns a value of `InlinedBatch.rows` into a parameter of a statement."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The SQL and the types of one kind of database; no other module asks which kind it is."""

    name: str
    """As SQLAlchemy calls it: ``connection.dialect.name``."""

    column_types: Mapping[str, TypeEngine[Any]]
    """The types of the lake's columns that are not the usual ones of `catalog.schema.column_types`.

    The keys are ``text``, ``key_text``, ``boolean``, ``uuid`` and ``timestamp``.
    """

    tables: str
    """The query for the names of all tables beside the lake's, in a column ``name``."""
    indexes: str
    """The same for indexes."""
    whole_number: str
    """An expression over ``{0}``, a text: its number where it is a whole one, else NULL."""
    parameter_mark: str
    """What stands for a parameter in text that goes to the driver as it is."""
    in_driver_text: Callable[[str], str]
    """Quotes a name for such text."""
    kept_places: str | None
    """What makes the trigger of `shelduck.catalog.commit.kept_places`, None without triggers."""

    inlined_type: Callable[[Field], str]
    """The type of a column in a table for inlined rows, as DuckDB makes it here."""
    inlined_value: Callable[[Field], Encoder]
    """How a value of the column is stored, so that DuckDB reads what was meant."""
    never_inlined: frozenset[str]
    """Types of which DuckDB inlines no values here."""
    longest_name: int
    """The longest name of a column, in bytes."""
    most_columns: int
    """How many columns a table for inlined rows can have."""
    read_as_text: Callable[[Field], bool]
    """Whether the database casts a stored value to text, as the driver would change it."""
    has_literal_structs: bool
    """Whether DuckDB writes structs as SQL literals here, instead of its text."""
    knows_columns: bool
    """False where a quoted name that is no column is taken for a text, so names must be checked."""
    before_reading: str | None
    """What is said before inlined rows are read."""


UNLIMITED = 1 << 30
SMALL_INTEGERS = "boolean int8 int16 int32 int64 uint8 uint16 uint32".split()
