"""Rows of a table joined with a source, and the effect of a MERGE on each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.bridge import Named, Sql, select_named
from shelduck.engine.rows.assign import Assigning, Demand, has_rules
from shelduck.engine.rows.assignments import Assignments
from shelduck.engine.rows.table_rules import ruled
from shelduck.engine.types import spark_type
from shelduck.model.tables.schema import Field
from shelduck.model.tables.table_version import TableVersion
from shelduck.read.scan.scan_frames import ORIGINS
from shelduck.write.merge.merge_clauses import (
    Merge,
    MergeAction,
    MergeClause,
    assigned,
    lacking_columns,
)
from shelduck.write.merge.merge_scopes import CLAUSE, ScopeNames, first_case, taken_rows, values_of
from shelduck.write.parquet.origins import ACTION

_EVERY_FIELD = Demand(
    "the source",
    "give every column and field, list the columns, or use MERGE WITH SCHEMA EVOLUTION, which"
    " leaves them out",
)
_STAYS = Sql(f"{ACTION} IN ({MergeAction.INSERT.value}, {MergeAction.UPDATE.value})")


@dataclass(frozen=True, slots=True)
class Tally:
    """Rows by action, and how many rows of the table are changed by more than one source row."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    contested: int = 0


def merged_rows(
    target: DataFrame, source: DataFrame, table: TableVersion, merge: Merge, *, shares: bool = False
) -> DataFrame:
    """Return a row for each change: `ACTION`, the table's new columns, then the origins.

    ``target`` has the table's columns and the origins. Rows that no clause takes are left out; rows
    to delete have no columns, rows to insert no origins. Types that do not fit are InvalidRequest
    at once. ``shares`` is as in `taken_rows`.
    """
    assignments = [Assignments(table, assigned(c, table, source, merge)) for c in merge.clauses]
    clauses = list(zip(merge.clauses, assignments, strict=True))
    needs = {n for c, a in clauses if c.action is MergeAction.UPDATE for n in a.needed()}
    names = ScopeNames.of(table, [len(a.values) for a in assignments], needs)
    values = [a.struct(given) for a, given in zip(assignments, names.values, strict=True)]
    found = taken_rows(
        target, source, table, merge, names=names, values=values, origins=ORIGINS, shares=shares
    )
    schema = values_of(found)
    demand = None if merge.schema_evolution else _EVERY_FIELD
    assigning = Assigning.into(table, demand)
    assigning.lacking += lacking_columns(table, source, merge)
    made = [
        (n, a.columns(assigning, schema, names.values[n], None if is_new else names.now))
        for n, (clause, a) in enumerate(clauses)
        if (is_new := clause.action is MergeAction.INSERT) or clause.action is MergeAction.UPDATE
    ]
    assigning.finish()
    actions = _case([(n, _action(c)) for n, c in enumerate(merge.clauses)])
    columns = [
        Named(f.name, _case([(n, parts[at]) for n, parts in made]))
        if made
        else Named(f.name, Sql("NULL"), spark_type(f.type, f.name))
        for at, f in enumerate(table.columns)
    ]
    kept = [Named(o, o) for o in ORIGINS]
    named = [Named(ACTION, actions), *columns, *kept]
    if not has_rules(table):
        return select_named(found, named)
    changed = select_named(found, [*named, Named(CLAUSE, CLAUSE)])
    is_given = partial(_is_given, assignments)
    return ruled(changed, table, is_given, assigning.fitting, only=_STAYS).drop(CLAUSE)


def _is_given(assignments: Sequence[Assignments], field: Field) -> Column:
    """Return whether the clause of a row gives the value of a column."""
    return F.col(CLAUSE).isin([n for n, a in enumerate(assignments) if a.gives(field)])


def _action(clause: MergeClause) -> Sql | Column:
    if clause.action is MergeAction.ERROR:
        return F.raise_error(clause.message).cast(T.LongType())
    return Sql(clause.action.value)


def tally(rows: DataFrame) -> Tally:
    """Count the rows of `merged_rows`, by one job.

    A row of the table that is both updated and deleted is contested, and counts as updated.
    """
    by_row = rows.groupBy(*ORIGINS).agg(F.count("*").alias("times"), F.min(ACTION).alias(ACTION))
    found = by_row.groupBy(ACTION).agg(
        F.sum("times"), F.count("*"), F.count(F.when(F.col("times") > 1, 1))
    )
    # Three rows of numbers.
    counts = {row[0]: row[1:] for row in found.collect()}
    inserted, _, _ = counts.get(MergeAction.INSERT.value, (0, 0, 0))
    _, updated, twice_updated = counts.get(MergeAction.UPDATE.value, (0, 0, 0))
    _, deleted, twice_deleted = counts.get(MergeAction.DELETE.value, (0, 0, 0))
    return Tally(inserted, updated, deleted, twice_updated + twice_deleted)


def by_action(rows: DataFrame, *actions: MergeAction) -> DataFrame:
    """Return the rows with one of these actions."""
    return rows.where(f"{ACTION} IN ({', '.join(str(a.value) for a in actions)})")


def _case(parts: Sequence[tuple[int, str | Column]]) -> Sql | Column:
    """Return the part whose number is the row's clause, NULL for no part."""
    return first_case([(Sql(f"{CLAUSE} = {number}"), value) for number, value in parts])
