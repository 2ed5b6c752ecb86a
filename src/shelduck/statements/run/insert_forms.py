"""Other forms of INSERT: OVERWRITE, REPLACE WHERE, PARTITION and WITH SCHEMA EVOLUTION."""

from __future__ import annotations

from dataclasses import replace

from shelduck.errors import InvalidRequest
from shelduck.model.changes.evolution import FULL_EVOLUTION, NO_EVOLUTION
from shelduck.model.tables.keys import folds
from shelduck.model.tables.schema import Field
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.quoting import backticked, quote_name
from shelduck.operations.done import Done, Loaded
from shelduck.operations.read.table_rows import TableRows
from shelduck.operations.write.append import append_rows
from shelduck.operations.write.inlining import limits_of
from shelduck.operations.write.overwrite import (
    overwrite_partitions,
    overwrite_table,
    overwrite_where,
)
from shelduck.operations.write.update import Replacing
from shelduck.rows.appending import Manner, load
from shelduck.rows.evolving import evolved_rows, telling_plan
from shelduck.spark.query import replaces_partitions, with_values
from shelduck.spark.rows.store_rules import TEXTS, require_text
from shelduck.spark.scan.matching import Where
from shelduck.spark.session import DataFrame
from shelduck.sql.rows.insert import is_values, text_of
from shelduck.sql.statements import row_statements as st
from shelduck.sql.tokens.parts import Query
from shelduck.statements.describe import spark_text
from shelduck.statements.runner import Runner
from shelduck.work.hooks import carry_out_rows, settled_rows
from shelduck.work.results import Result
from shelduck.work.unit import UnitOfWork


def insert_over(runner: Runner, statement: st.Insert, source: Query) -> Result:
    """Append rows of ``source``, in which DEFAULT is resolved, or replace others by them."""
    if statement.schema_evolution and not (statement.by_name or statement.columns):
        raise InvalidRequest(
            f"INSERT WITH SCHEMA EVOLUTION INTO {statement.name} matches columns by name; write BY"
            " NAME before the query, or list the columns"
        )

    evolution = FULL_EVOLUTION if statement.schema_evolution else NO_EVOLUTION

    def prepare(unit: UnitOfWork) -> Done | Loaded:
        inside = Runner(runner.state, unit)
        rows = settled_rows(unit, inside.name(statement.name))
        new = _named(statement, rows.table, _values(inside, source))
        if statement.mode == "append" and folds(rows.table):
            return load(unit, inside.name(statement.name), new, Manner(evolution=evolution))
        rows, alter = evolved_rows(rows, new.schema, evolution)
        with telling_plan(runner.state, rows.table, new.schema, evolution):
            done = _written(runner, inside, statement, rows, new)
        return done if done.is_nothing else replace(done, alter=alter)

    return carry_out_rows(runner.state, runner.unit, prepare)


def _values(inside: Runner, source: Query) -> DataFrame:
    rows = inside.query(source)
    # Spark splits even two literal rows into several tasks, and each would write a file.
    return rows.coalesce(1) if is_values(source) else rows


def _written(
    runner: Runner, inside: Runner, statement: st.Insert, rows: TableRows, new: DataFrame
) -> Done:
    spark, show = runner.state.spark, runner.state.show_progress
    limits = limits_of(runner.state.store, rows.table)
    if statement.mode == "append":
        return append_rows(spark, new, rows.table, limits=limits, show_progress=show)
    how = Replacing(limits=limits, show_progress=show)
    if statement.replaced is not None:
        condition = statement.replaced.condition
        assert condition is not None
        with inside.views(condition) as named:
            where = Where(named(condition.text), statement.replaced.target.alias)
            return overwrite_where(spark, rows, new, where, how)
    if rows.table.partition and replaces_partitions(spark):
        return overwrite_partitions(spark, rows, new, how)
    fixed = _fixed(statement, rows.table)
    if fixed:
        same = " AND ".join(f"{backticked(name)} <=> {value}" for name, value in fixed.items())
        return overwrite_where(spark, rows, new, Where(same), how)
    return overwrite_table(spark, rows, new, how)


def _named(statement: st.Insert, table: TableVersion, rows: DataFrame) -> DataFrame:
    """Return the rows under the names of their target columns."""
    fixed = _fixed(statement, table)
    if not statement.by_name:
        listed = statement.targets(table.columns.names)
        if len(listed) != len(rows.columns):
            raise InvalidRequest(
                f"INSERT into {table.full_name} needs rows with {len(listed)} column(s),"
                f" {', '.join(map(quote_name, listed))}, but its rows have {len(rows.columns)}"
            )
        rows = rows.toDF(*listed)
    return with_values(rows, fixed)


def _fixed(statement: st.Insert, table: TableVersion) -> dict[str, str]:
    """Return the values of the PARTITION clause by column, as SQL."""
    identities = {k.column_id for k in table.partition if k.transform == "identity"}
    found: dict[str, str] = {}
    for given in statement.partition:
        field = table.columns.get((given.column,), table.full_name)
        if field.id not in identities:
            raise InvalidRequest(
                f"{table.full_name} is not partitioned by {quote_name(field.name)} itself; use"
                " REPLACE WHERE instead of PARTITION, or leave it out"
            )
        if given.value is not None:
            found[field.name] = _value(field, given.value, table.full_name)
    return found


def _value(field: Field, literal: str, table: str) -> str:
    """Return a literal of the PARTITION clause as SQL, to be stored as any other value.

    As in Spark, a text can be a value of each type, and each literal can be a text.
    """
    kind = spark_text(field)
    if literal.upper() == "NULL":
        return f"CAST(NULL AS {kind})"
    if str(field.type) in TEXTS:
        # VARCHAR(n) would cut it.
        return f"CAST({literal} AS STRING)"
    text = text_of(literal)
    if text is None and kind == "boolean":
        # Spark reads every value of the clause as a text, so 1 and 0 are truth values.
        text = literal.rstrip("LSYlsy")
    if text is None:
        return literal
    require_text(field.type, text, f"column {quote_name(field.name)} of {table}")
    return f"CAST(CAST({literal} AS STRING) AS {kind})"
