"""MERGE as a value: how rows of the source match rows of the table, and what happens to them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.bridge import Sql
from shelduck.engine.rows.assignments import SetValue
from shelduck.errors import InvalidRequest
from shelduck.model.tables.computed import COMPUTED, computed_of
from shelduck.model.tables.schema import path_text
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import backticked
from shelduck.model.types.data_types import Member
from shelduck.read.scan.matching import Condition, as_condition
from shelduck.write.parquet.kept import DELETED, INSERTED, UPDATED


class When(Enum):
    """Which rows a clause is for."""

    MATCHED = "MATCHED"
    NOT_MATCHED = "NOT MATCHED"
    NOT_MATCHED_BY_SOURCE = "NOT MATCHED BY SOURCE"


class MergeAction(Enum):
    """The actions on a row."""

    UPDATE = UPDATED
    INSERT = INSERTED
    DELETE = DELETED
    NOTHING = 4
    ERROR = 5


@dataclass(frozen=True, slots=True)
class MergeClause:
    """One WHEN … THEN.

    ``values`` are what UPDATE and INSERT assign, None for ``*``: each column gets the source's
    column with the same name. Of the clauses for one kind of rows, the first clause with a true
    condition takes a row. ``message`` is that of ERROR, which fails the statement if the clause
    takes a row.
    """

    when: When
    action: MergeAction
    values: tuple[SetValue, ...] | None = ()
    condition: Condition | None = None
    message: str = ""

    def __str__(self) -> str:
        return f"WHEN {self.when.value} THEN {self.action.name}"


@dataclass(frozen=True, slots=True)
class Merge:
    """A whole MERGE. ``on`` is a condition, or the names of columns that are equal in both.

    ``target_qualifier`` are the names that may precede ``target_alias``: those of a catalog and a
    schema. Without ``source_alias``, the source's columns keep their names. ``expects`` are columns
    that the target must have.
    """

    on: Condition | tuple[str, ...]
    clauses: tuple[MergeClause, ...]
    target_alias: str
    source_alias: str | None
    schema_evolution: bool = False
    target_qualifier: tuple[str, ...] = ()
    expects: tuple[Member, ...] = ()

    def __post_init__(self) -> None:
        if not self.clauses:
            raise InvalidRequest("MERGE has no clause; add at least one WHEN clause")
        source = self.source_alias
        if source is not None and self.target_alias.lower() == source.lower():
            raise InvalidRequest(
                f"MERGE uses the alias {source!r} for both the table and the source; give one of"
                " them another alias"
            )
        for when in When:
            for clause in self.of(when)[:-1]:
                if clause.condition is None:
                    raise InvalidRequest(
                        f"MERGE has another clause after {clause}, which has no condition and"
                        " takes every row; add a condition"
                    )

    def of(self, when: When) -> list[MergeClause]:
        """Return the clauses for one kind of rows, in order."""
        return [c for c in self.clauses if c.when is when]

    @property
    def join(self) -> str:
        """Return the cheapest join of the table with the source that has all rows with a clause."""
        return join_of({clause.when for clause in self.clauses})

    @property
    def only_inserts(self) -> bool:
        """True if rows of the table stay as they are."""
        return all(c.when is When.NOT_MATCHED for c in self.clauses)

    @property
    def may_match_twice(self) -> bool:
        """True if it does not matter how many rows of the source match one row of the table."""
        matched = self.of(When.MATCHED)
        is_delete = [c.action is MergeAction.DELETE and c.condition is None for c in matched]
        return not matched or is_delete == [True]

    def on_column(self, source: DataFrame) -> Column:
        """Return the condition of the join."""
        if isinstance(self.on, tuple):
            alias = backticked(self.target_alias)
            equal = (
                F.col(f"{alias}.{backticked(name)}") == self.source_column(source, name)
                for name in self.on
            )
            return reduce(and_, equal)
        return as_condition(self.on)

    def source_column(self, source: DataFrame, name: str) -> Column:
        """Return a column of the source in the form that conditions and values use."""
        found = self.source_value(source, name)
        return F.expr(found) if isinstance(found, Sql) else found

    def source_value(self, source: DataFrame, name: str) -> Sql | Column:
        """Return a column of the source as SQL if it has an alias."""
        if self.source_alias is None:
            return source[backticked(name)]
        return Sql(f"{backticked(self.source_alias)}.{backticked(name)}")


def join_of(kinds: Collection[When]) -> str:
    """Return the join of a table with a source that has all rows of these kinds."""
    if When.NOT_MATCHED_BY_SOURCE in kinds:
        return "full_outer" if When.NOT_MATCHED in kinds else "left_outer"
    return "right_outer" if When.NOT_MATCHED in kinds else "inner"


def evolving_columns(merge: Merge, source: T.StructType) -> T.StructType:
    """Return the columns of the source that the table must have if the merge changes its schema.

    These are all columns if a clause takes all, otherwise those that a clause assigns under their
    name.
    """
    if any(c.values is None for c in merge.clauses):
        return source
    named = {v.path[0].lower() for c in merge.clauses for v in c.values or ()}
    return T.StructType([f for f in source.fields if f.name.lower() in named])


def assigned(
    clause: MergeClause, table: TableVersion, source: DataFrame, merge: Merge
) -> tuple[SetValue, ...]:
    """Return what a clause assigns, with ``*`` expanded to the columns that the source has.

    If the schema evolves, the others stay as they are, or get their default, and so do fields that
    the source's structs lack. Otherwise `lacking_columns` are a problem.
    """
    if clause.values is not None:
        return clause.values
    given = {name.lower(): name for name in source.columns}
    return tuple(
        SetValue(
            (field.name,),
            merge.source_value(source, given[field.name.lower()]),
            keeps=merge.schema_evolution,
        )
        for field in table.columns
        if field.name.lower() in given
    )


def lacking_columns(table: TableVersion, source: DataFrame, merge: Merge) -> list[str]:
    """Return the columns that the source must have for ``*``, and does not have."""
    if merge.schema_evolution or all(c.values is not None for c in merge.clauses):
        return []
    given = {name.lower() for name in source.columns}
    lacking = [f for f in table.columns if f.name.lower() not in given]
    if COMPUTED in table.properties:
        computed = computed_of(table.properties, table.full_name)
        lacking = [f for f in lacking if computed.of(f.id) is None]
    return [path_text((f.name,)) for f in lacking]
