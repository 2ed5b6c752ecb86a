"""Rows of a table joined with a source, and what a MERGE makes of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.model.quoting import backticked
from shelduck.model.table import TableVersion
from shelduck.spark.assign import Assigning, RenderExpression
from shelduck.spark.assignments import Assignments
from shelduck.spark.matching import as_condition
from shelduck.spark.merge_clauses import Action, Merge, When, assigned
from shelduck.spark.types import spark_type

ACTION = "_action"
_CLAUSE = "__shelduck_clause"
_TARGET, _SOURCE = "__shelduck_target", "__shelduck_source"


@dataclass(frozen=True, slots=True)
class Tally:
    """Rows by action, and how many rows of the table more than one row of the source changes."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    contested: int = 0


def merged_rows(
    target: DataFrame,
    source: DataFrame,
    table: TableVersion,
    merge: Merge,
    *,
    origins: Sequence[str],
    render_expression: RenderExpression,
) -> DataFrame:
    """Return a row for each change: `ACTION`, the table's new columns, then the origins.

    ``target`` has the table's columns and the origins. Rows that no clause takes are left out;
    those to delete have no columns, those to insert no origins. Types that do not fit are
    InvalidRequest at once.
    """
    chosen = _chosen(target, source, merge)
    assignments = [
        Assignments(table, assigned(c, table, source.schema, merge)) for c in merge.clauses
    ]
    now = [f"c{n}" for n in range(len(table.columns.names))]
    names = [[f"v{n}_{k}" for k in range(len(a.values))] for n, a in enumerate(assignments)]
    guarded = [
        F.when(F.col(_CLAUSE) == n, value).alias(name)
        for n, a in enumerate(assignments)
        for name, value in zip(a.given(names[n]), a.expressions(), strict=True)
    ]
    found = chosen.select(_CLAUSE, *_today(table, merge, now, origins), *guarded)
    assigning = Assigning(table.full_name, render_expression)
    made = [
        (n, a.columns(assigning, found.schema, names[n], None if is_new else now))
        for n, (a, clause) in enumerate(zip(assignments, merge.clauses, strict=True))
        if (is_new := clause.action is Action.INSERT) or clause.action is Action.UPDATE
    ]
    assigning.finish()
    actions = _case([(n, F.lit(c.action.value)) for n, c in enumerate(merge.clauses)], T.LongType())
    columns = [
        _case([(n, parts[at]) for n, parts in made], spark_type(f.type, f.name)).alias(f.name)
        for at, f in enumerate(table.columns)
    ]
    return found.select(actions.alias(ACTION), *columns, *origins)


def tally(rows: DataFrame, origins: Sequence[str]) -> Tally:
    """Count what `merged_rows` returned, by one job."""
    by_row = rows.groupBy(ACTION, *origins).agg(F.count("*").alias("times"))
    found = by_row.groupBy(ACTION).agg(
        F.sum("times"), F.count("*"), F.count(F.when(F.col("times") > 1, 1))
    )
    # Three rows of numbers.
    counts = {row[0]: row[1:] for row in found.collect()}
    inserted, _, _ = counts.get(Action.INSERT.value, (0, 0, 0))
    _, updated, twice_updated = counts.get(Action.UPDATE.value, (0, 0, 0))
    _, deleted, twice_deleted = counts.get(Action.DELETE.value, (0, 0, 0))
    return Tally(inserted, updated, deleted, twice_updated + twice_deleted)


def by_action(rows: DataFrame, *actions: Action) -> DataFrame:
    """Return the rows with one of these actions."""
    return rows.where(F.col(ACTION).isin([a.value for a in actions]))


def _chosen(target: DataFrame, source: DataFrame, merge: Merge) -> DataFrame:
    """Return the joined rows that a clause takes, with its number."""
    ours = target.withColumn(_TARGET, F.lit(True)).alias(merge.target_alias)
    theirs = source.withColumn(_SOURCE, F.lit(True)).alias(merge.source_alias)
    if merge.only_inserts:
        joined = theirs.join(ours, merge.on_column(), "left_anti")
        kinds = {When.NOT_MATCHED: F.lit(True)}
    else:
        joined = ours.join(theirs, merge.on_column(), merge.join)
        in_target, in_source = F.col(_TARGET).isNotNull(), F.col(_SOURCE).isNotNull()
        kinds = {
            When.MATCHED: in_target & in_source,
            When.NOT_MATCHED: ~in_target,
            When.NOT_MATCHED_BY_SOURCE: ~in_source,
        }
    cases = [
        (kinds[c.when] if c.condition is None else kinds[c.when] & as_condition(c.condition), n)
        for n, c in enumerate(merge.clauses)
    ]
    first, number = cases[0]
    clause = F.when(first, F.lit(number))
    for condition, number in cases[1:]:
        clause = clause.when(condition, F.lit(number))
    return joined.select("*", clause.alias(_CLAUSE)).where(F.col(_CLAUSE).isNotNull())


def _today(
    table: TableVersion, merge: Merge, names: Sequence[str], origins: Sequence[str]
) -> list[Column]:
    """Return the columns of the table under other names, and the origins, all NULL in new rows."""
    if merge.only_inserts:
        values = [
            F.lit(None).cast(spark_type(f.type, f.name)).alias(n)
            for f, n in zip(table.columns, names, strict=True)
        ]
        return values + [F.lit(None).cast(T.LongType()).alias(o) for o in origins]
    alias = backticked(merge.target_alias)
    values = [
        F.col(f"{alias}.{backticked(f.name)}").alias(n)
        for f, n in zip(table.columns, names, strict=True)
    ]
    return values + [F.col(f"{alias}.{o}").alias(o) for o in origins]


def _case(parts: Sequence[tuple[int, Column]], kind: T.DataType) -> Column:
    """Return the part whose number is the row's clause, NULL for no part."""
    if not parts:
        return F.lit(None).cast(kind)
    number, value = parts[0]
    case = F.when(F.col(_CLAUSE) == number, value)
    for other, its_value in parts[1:]:
        case = case.when(F.col(_CLAUSE) == other, its_value)
    return case
