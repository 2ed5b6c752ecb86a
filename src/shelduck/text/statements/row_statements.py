"""Statements that change rows, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from shelduck.model.tables.schema import Path
from shelduck.text.tokens.parts import (
    Expression,
    NamedTable,
    OfRows,
    OfTable,
    Query,
    Selection,
    Statement,
    Target,
)


@dataclass(frozen=True, slots=True)
class DefaultCell:
    """A ``DEFAULT`` in a row of VALUES: the row's cell (from 0) and the word that stands for it."""

    position: int
    placeholder: str


@dataclass(frozen=True, slots=True)
class PartitionValue:
    """One column of INSERT's PARTITION clause.

    ``value`` is the SQL text of a literal, NULL too; None when the source gives the column.
    """

    column: str
    value: str | None = None


@dataclass(frozen=True, slots=True)
class RowMatch:
    """Which rows the source's rows replace in REPLACE USING and REPLACE ON: those that match.

    They match if they are equal in some columns, or by a condition, in which ``alias`` is the
    source and ``target`` the table.
    """

    columns: tuple[str, ...] = ()
    condition: Expression | None = None
    alias: str | None = None
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Insert(OfTable, Statement):
    """INSERT INTO, INSERT OVERWRITE, or INSERT INTO ... REPLACE WHERE, USING or ON.

    ``columns`` is None when the text lists none. With ``by_name`` the source's columns go to the
    columns of their names, else by position; see `targets`. ``defaults`` are words in
    ``source.text`` to replace by the default of the column at that position. ``replaced`` are the
    rows that the source's rows replace, None but for REPLACE WHERE; ``matching`` says the same for
    REPLACE USING and ON. ``default_values``: one row of defaults instead of a source.
    """

    source: Query
    columns: tuple[str, ...] | None = None
    by_name: bool = False
    mode: Literal["append", "overwrite", "replace_where", "replace_matching"] = "append"
    defaults: tuple[DefaultCell, ...] = ()
    partition: tuple[PartitionValue, ...] = ()
    replaced: Selection | None = None
    schema_evolution: bool = False
    default_values: bool = False
    matching: RowMatch | None = None

    @property
    def overwrite(self) -> bool:
        """True for INSERT OVERWRITE."""
        return self.mode == "overwrite"

    def targets(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the columns, of those of the table, to which the source's go by position.

        They are those that the text lists, else all in the table's order, without those that have
        a value in ``partition``.
        """
        if self.columns is not None:
            return self.columns
        fixed = {p.column.lower() for p in self.partition if p.value is not None}
        return tuple(name for name in columns if name.lower() not in fixed)


@dataclass(frozen=True, slots=True)
class Delete(OfRows, Statement):
    """DELETE FROM."""


@dataclass(frozen=True, slots=True)
class Truncate(OfTable, Statement):
    """TRUNCATE TABLE."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """``path = value``; the value is None for DEFAULT.

    ``path`` is as written and may begin with the table's alias or name: see `Target.column`.
    """

    path: Path
    value: Expression | None


@dataclass(frozen=True, slots=True)
class Update(OfRows, Statement):
    """UPDATE; no path of ``assignments`` is equal to another one or within it."""

    assignments: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True)
class UpdateAll:
    """UPDATE SET *: each column becomes the source's column of the same name, or place."""

    by_position: bool = False


@dataclass(frozen=True, slots=True)
class UpdateSet:
    """UPDATE SET with assignments, as those of `Update`."""

    assignments: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True)
class DeleteRow:
    """DELETE, as an action of MERGE."""


@dataclass(frozen=True, slots=True)
class DoNothing:
    """DO NOTHING: the row stays, or does not come, and no later clause takes it."""


@dataclass(frozen=True, slots=True)
class RaiseError:
    """ERROR: a row that the clause takes fails the statement."""

    message: str


@dataclass(frozen=True, slots=True)
class InsertAll:
    """INSERT *: each column is the source's column of the same name, or place."""

    by_position: bool = False


@dataclass(frozen=True, slots=True)
class InsertRow:
    """INSERT (columns) VALUES (values): as many values as columns, None for DEFAULT.

    No columns are all columns of the table, in their order.
    """

    columns: tuple[Path, ...]
    values: tuple[Expression | None, ...]


@dataclass(frozen=True, slots=True)
class MatchedClause:
    """WHEN MATCHED or WHEN NOT MATCHED BY SOURCE; the latter never holds UpdateAll."""

    action: UpdateAll | UpdateSet | DeleteRow | DoNothing | RaiseError
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class NotMatchedClause:
    """WHEN NOT MATCHED [BY TARGET]; the condition sees the source alone."""

    action: InsertAll | InsertRow | DoNothing | RaiseError
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class MergeStatement(Statement):
    """MERGE INTO: the clauses of each kind in order, at least one in all.

    A row takes the first clause of its kind whose condition is true; only the last of a kind may be
    without one. ``source_alias`` is None for a query without an alias; a table has its own name.
    ``condition`` may be the names of columns that are equal in both, for USING (…).
    """

    target: Target
    source: Query
    source_alias: str | None
    condition: Expression | tuple[str, ...]
    matched: tuple[MatchedClause, ...] = ()
    not_matched: tuple[NotMatchedClause, ...] = ()
    not_matched_by_source: tuple[MatchedClause, ...] = ()
    schema_evolution: bool = False

    @property
    def name(self) -> NamedTable:
        """The table that is changed."""
        return self.target.name


@dataclass(frozen=True, slots=True)
class UpdateFrom(MergeStatement):
    """UPDATE … FROM: a MERGE with nothing but an update of the rows that match."""


@dataclass(frozen=True, slots=True)
class DeleteUsing(MergeStatement):
    """DELETE … USING: a MERGE with nothing but a deletion of the rows that match."""


@dataclass(frozen=True, slots=True)
class Returning(Statement):
    """A statement with RETURNING; ``rows`` is the query over the rows that it changed.

    ``changed`` is the placeholder of these rows in the query.
    """

    statement: Insert | Update | Delete | MergeStatement
    rows: Query
    changed: str
