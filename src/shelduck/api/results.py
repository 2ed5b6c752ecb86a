"""What calls return: plain values that print well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shelduck.model.quoting import quote_name
from shelduck.model.table import Snapshot, TableVersion


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit that landed, and what it brought.

    ``snapshot`` is the id to time travel to. ``rows`` are those that were inserted, updated or
    deleted, and how many of each follows at the end; files and bytes count what was written. A
    change of metadata leaves all at 0. ``note`` says what maintenance had to leave, and why.
    """

    snapshot: int
    rows: int = 0
    files: int = 0
    bytes: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Nothing was done: no snapshot was made; ``note`` says why where something was left."""

    snapshot: int
    rows: int = 0
    files: int = 0
    bytes: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Staged:
    """Work that waits for the end of its transaction."""

    rows: int = 0
    files: int = 0
    bytes: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0


Result = Committed | Unchanged | Staged


@dataclass(frozen=True, slots=True)
class PlainRows:
    """Rows of an answer that needs no Spark; ``columns`` are names and types, as in DDL."""

    columns: str
    rows: Sequence[tuple[object, ...]]

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.split()[0] for column in self.columns.split(",")]


@dataclass(frozen=True, slots=True)
class TableName:
    """A table of the lake by schema and name; as text it is what `Lake.table` takes."""

    schema: str
    name: str

    @classmethod
    def of(cls, table: TableVersion) -> TableName:
        """Return what a table is found by."""
        return cls(table.schema.name, table.name)

    def __str__(self) -> str:
        return f"{quote_name(self.schema)}.{quote_name(self.name)}"


__all__ = ["Committed", "PlainRows", "Result", "Snapshot", "Staged", "TableName", "Unchanged"]
