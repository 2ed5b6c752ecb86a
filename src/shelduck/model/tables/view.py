"""Views and macros as one snapshot sees them, and what a view is pinned to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from shelduck.errors import InvalidRequest
from shelduck.model.tables.schema import SnapshotId, TableId
from shelduck.model.tables.table_version import Feature, SchemaInfo, Snapshot, TableVersion
from shelduck.model.text.names import quote_name, schema_text
from shelduck.model.text.stored import NUMBER, Stored, record

SPARK_SQL = "shelduck.spark_sql"
"""The key of the tag with Spark's own text: DuckDB parses every row of ``ducklake_view``."""
PINNED = "shelduck.pinned"
"""The key of the tag of a pinned view."""
UNKNOWN = "unknown"
"""The catalog's word for the type of a parameter without one, and of a default that is not set."""


@dataclass(frozen=True, slots=True)
class ViewDefinition:
    """The definition of a view: ``sql`` is DuckDB's text, ``spark_sql`` Spark's, or None.

    ``columns`` are the names that it gives to its query's columns, empty if they keep their own
    names. A view with a ``pin`` shows a table in the columns of an older snapshot: the commit
    writes its texts, and again whenever the table changes.

    ``column_comments`` are pairs of a column of the query, before ``columns`` rename it, and text.
    """

    sql: str
    columns: tuple[str, ...] = ()
    spark_sql: str | None = None
    comment: str | None = None
    pin: Pin | None = None
    column_comments: tuple[tuple[str, str], ...] = ()

    def comments_of(self, names: Sequence[str]) -> list[str | None]:
        """Return the comment of each column of the query, given their names, in any case."""
        known = {name.lower(): text for name, text in self.column_comments}
        return [known.get(name.lower()) for name in names]


@dataclass(frozen=True, slots=True)
class ViewVersion:
    """One view at one snapshot. A replaced view gets another id, a renamed one keeps it."""

    id: int
    uuid: str
    schema: SchemaInfo
    name: str
    definition: ViewDefinition
    snapshot: Snapshot
    begin_snapshot: SnapshotId
    dialect: str = "duckdb"

    @property
    def full_name(self) -> str:
        """Return the view's name with its schema, quoted if necessary."""
        return f"{schema_text(self.schema.name)}.{quote_name(self.name)}"


@dataclass(frozen=True, slots=True)
class Pin:
    """A table, and the snapshot whose columns a view shows."""

    table_id: TableId
    snapshot: SnapshotId


@dataclass(frozen=True, slots=True)
class Materialized:
    """What a table knows of the query whose rows it holds; ``table`` is its own UUID.

    The query is that of the view with the UUID ``view``, as it was at a ``snapshot``. It read the
    tables with the UUIDs ``sources``, in a session that computed as ``session`` says.
    """

    table: str
    view: str
    sources: tuple[str, ...]
    snapshot: int
    session: str


_STORED_QUERY: Stored[Materialized] = Stored("materialized", record(Materialized))


def materialized(table: TableVersion) -> Materialized | None:
    """Return whose rows a table holds, None for an ordinary one, such as a copy of such a table."""
    text = table.properties.get(Feature.MATERIALIZED.value)
    found = None if text is None else _STORED_QUERY.read(text, table.full_name)
    return found if found is not None and found.table == table.uuid else None


def with_materialized(table: TableVersion, known: Materialized) -> dict[str, str]:
    """Return the properties of a table with what it knows of its query."""
    key = Feature.MATERIALIZED.value
    return {**table.properties, key: _STORED_QUERY.write(known, table.properties.get(key))}


def refuse_materialized(table: TableVersion) -> None:
    """Raise InvalidRequest for a table whose rows are those of a query."""
    if materialized(table) is not None:
        raise InvalidRequest(
            f"cannot change rows of {table.full_name}: it is a materialized view; change the tables"
            f" that it reads, then REFRESH MATERIALIZED VIEW {table.full_name}"
        )


STORED_PIN: Stored[Pin] = Stored("pin", record(Pin, table=NUMBER.called("table_id")))


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
