"""Macros: named expressions and queries with parameters, as DuckLake stores them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from shelduck.model.tables.schema import SnapshotId
from shelduck.model.tables.table import SchemaInfo
from shelduck.model.text.quoting import quote_name, schema_text

UNKNOWN = "unknown"
"""The catalog's word for the type of a parameter without one, and of a default that is not set."""


class MacroKind(Enum):
    """The kind of a macro; a scalar macro and a table macro may share a name, as in DuckDB."""

    SCALAR = "scalar"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class MacroParameter:
    """One parameter; ``default`` is the text of its value, of DuckLake's type ``default_type``."""

    name: str
    type: str = UNKNOWN
    default: str | None = None
    default_type: str = UNKNOWN

    def __str__(self) -> str:
        return self.name if self.default is None else f"{self.name} := {self.default}"


@dataclass(frozen=True, slots=True)
class MacroBody:
    """One form of a macro: ``sql`` is DuckDB's text, ``spark_sql`` Spark's, or None.

    The text is an expression of a scalar macro, a query of a table macro.
    """

    parameters: tuple[MacroParameter, ...]
    sql: str
    spark_sql: str | None = None
    dialect: str = "duckdb"

    def __str__(self) -> str:
        return f"({', '.join(str(p) for p in self.parameters)})"


@dataclass(frozen=True, slots=True)
class MacroVersion:
    """One macro at one snapshot. A replaced macro gets another id."""

    id: int
    schema: SchemaInfo
    name: str
    kind: MacroKind
    bodies: tuple[MacroBody, ...]
    begin_snapshot: SnapshotId

    @property
    def full_name(self) -> str:
        """Return the macro's name with its schema, quoted if necessary."""
        return f"{schema_text(self.schema.name)}.{quote_name(self.name)}"
