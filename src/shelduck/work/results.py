"""The results of calls: plain values that print well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shelduck.errors import InvalidRequest
from shelduck.model.tables.table_version import Snapshot, TableVersion
from shelduck.model.text.names import shown_schema
from shelduck.model.text.quoting import quote_name, schema_names, schema_text, schema_word
from shelduck.model.text.shown import Shown, html_table


@dataclass(frozen=True, slots=True, repr=False)
class Committed(Shown):
    """A successful commit, and what it changed.

    ``snapshot`` is the id for time travel. ``rows`` counts the inserted, updated and deleted rows;
    the last three fields count each kind. ``files`` and ``bytes`` count what was written. For a
    change of metadata all counts are 0. ``note`` says what was left undone, or done in another way,
    and why.
    """

    snapshot: int
    rows: int = 0
    files: int = 0
    bytes: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class Unchanged(Shown):
    """Nothing was done and no snapshot was made; ``note`` says why if something was left undone."""

    snapshot: int
    rows: int = 0
    files: int = 0
    bytes: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class Staged(Shown):
    """Work that waits for the end of its transaction."""

    rows: int = 0
    files: int = 0
    bytes: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0


Result = Committed | Unchanged | Staged


def require_limit(limit: int | None) -> None:
    """Raise InvalidRequest for a limit below 1."""
    if limit is not None and limit < 1:
        raise InvalidRequest(f"limit is {limit}; pass 1 or more, or leave it out for all")


class Snapshots(list[Snapshot]):
    """A list of snapshots, which shows each in a line."""

    def __repr__(self) -> str:
        return "\n".join("  ".join(str(v) for v in row if v is not None) for row in self._rows())

    def _repr_html_(self) -> str:
        return html_table(("snapshot", "time", "changes", "author", "message"), self._rows())

    def _rows(self) -> list[tuple[object, ...]]:
        return [
            (
                s.id,
                s.time.isoformat(sep=" ", timespec="seconds"),
                s.changes_made,
                s.author,
                s.commit_message,
            )
            for s in self
        ]


@dataclass(frozen=True, slots=True)
class PlainRows:
    """Rows of an answer that needs no Spark; ``columns`` are names and types, as in DDL."""

    columns: str
    rows: Sequence[tuple[object, ...]]

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.split()[0] for column in self.columns.split(",")]


@dataclass(frozen=True, slots=True, repr=False)
class TableName:
    """A table of the lake by schema and name; its text is what `Lake.table` accepts.

    ``home`` is the schema as one word, as `schema_word` makes it.
    """

    home: str
    name: str

    @classmethod
    def of(cls, table: TableVersion) -> TableName:
        """Return the name of a table."""
        return cls(table.schema.name, table.name)

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of its schema, and its own."""
        return (*schema_names(self.home), self.name)

    @property
    def schema(self) -> str:
        """The schema as people write it: ``a.b`` is b inside a."""
        return shown_schema(self.home)

    def __str__(self) -> str:
        return f"{schema_text(self.home)}.{quote_name(self.name)}"

    def __repr__(self) -> str:
        return f"TableName(schema={self.schema!r}, name={self.name!r})"


def table_name(parts: tuple[str, ...], default_schema: str) -> TableName:
    """Return the schema and name that ``table`` or ``schema.table`` refers to.

    More parts are those of schemas inside schemas.
    """
    *schema, name = parts
    return TableName(schema_word(schema) if schema else default_schema, name)


# Names of other modules that this one stands for.
__all__ = ["Snapshot"]
