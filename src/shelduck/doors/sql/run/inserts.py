"""INSERT: of values or of a query, OVERWRITE, REPLACE WHERE, PARTITION, WITH SCHEMA EVOLUTION."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from shelduck.doors.sql.describe import spark_text
from shelduck.doors.sql.runner import Runner, by_statement
from shelduck.engine.named_errors import AnalysisException, first_line
from shelduck.engine.query import replaces_partitions, temporary_views, with_values
from shelduck.engine.rows.assign import has_rules
from shelduck.engine.rows.store_rules import TEXTS, require_text
from shelduck.engine.session import DataFrame
from shelduck.engine.values import default_sql
from shelduck.errors import InvalidRequest
from shelduck.lake.done import Done, Loaded, inlined
from shelduck.lake.results import Result, Staged
from shelduck.lake.unit import UnitOfWork, carry_out
from shelduck.model.changes.evolution import FULL_EVOLUTION, NO_EVOLUTION
from shelduck.model.tables.computed import COMPUTED, computed_of
from shelduck.model.tables.keys import folds
from shelduck.model.tables.schema import Field, Schema
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.quoting import backticked, quote_name
from shelduck.read.scan.matching import Where
from shelduck.read.table_rows import TableRows
from shelduck.text.ddl.partition_clauses import is_null_key
from shelduck.text.statements import statement_values as st
from shelduck.text.tokens.arguments import text_of
from shelduck.write.appending import Manner, append, is_plain, load
from shelduck.write.changes.append import append_rows
from shelduck.write.changes.inlining import limits_of, literal_batch
from shelduck.write.changes.overwrite import (
    overwrite_matching,
    overwrite_partitions,
    overwrite_table,
    overwrite_where,
)
from shelduck.write.changes.update import Replacing
from shelduck.write.hooks import carry_out_rows, settled_rows
from shelduck.write.schema_evolution import evolving
from shelduck.write.statement.insert import is_values, literal_rows, time_word, with_times

_MOST_LITERALS = 1000
_SOURCE = "__shelduck_new"
_UNREAD = "INVALID_INLINE_TABLE.FAILED_SQL_EXPRESSION_EVALUATION"


def insert(runner: Runner, statement: st.Insert) -> Result:
    """INSERT INTO … VALUES or SELECT, and the forms that replace rows or change columns."""
    if statement.default_values:
        plain = _plain_columns(runner.version(statement.name))
        row = ", ".join(default_sql(field) or "NULL" for field in plain)
        names = tuple(field.name for field in plain)
        statement = replace(statement, source=st.Query(f"VALUES ({row})"), columns=names)
    replaces = statement.mode != "append" or statement.partition or statement.schema_evolution
    done = None if replaces else _insert_literals(runner, statement)
    if done is not None:
        return done
    table = runner.table(statement.name)
    source = statement.source
    if is_values(source):
        # Only VALUES can contain DEFAULT, so only VALUES needs the columns of the table here.
        columns = table.columns
        source = replace(source, text=with_times(source.text, _times(statement, columns)))
        source = _with_defaults(replace(statement, source=source), columns)
    if replaces:
        return _insert_over(runner, statement, source)
    rows = _planned(runner, statement, source)
    # Spark splits even two rows of a VALUES list into tasks, and each would write a file.
    if statement.columns is None:
        how = Manner(by_position=not statement.by_name, in_one_task=is_values(source))
        return append(runner.state, runner.unit, table.name, rows, how)
    if len(statement.columns) != len(rows.columns):
        raise InvalidRequest(
            f"INSERT INTO {table.name} lists {len(statement.columns)} column(s),"
            f" but its rows have {len(rows.columns)}"
        )
    how = Manner(in_one_task=is_values(source))
    return append(runner.state, runner.unit, table.name, rows.toDF(*statement.columns), how)


def _planned(runner: Runner, statement: st.Insert, source: st.Query) -> DataFrame:
    """Return the rows of an INSERT; Spark reads the texts of dates and times when it plans them."""
    try:
        return runner.query(source)
    except AnalysisException as error:
        if source.text == statement.source.text or error.getCondition() != _UNREAD:
            raise
        raise InvalidRequest(
            f"INSERT INTO {statement.name}: a text is not the date or time that its column needs:"
            f" {first_line(error)}"
        ) from error


def _insert_literals(runner: Runner, statement: st.Insert) -> Result | None:
    """Insert a few rows of plain literals without Spark; None if Spark is needed."""
    if statement.by_name or statement.defaults:
        return None
    rows = literal_rows(statement.source.text, _MOST_LITERALS)
    if rows is None:
        return None
    has_staged = False

    def stage(unit: UnitOfWork) -> None:
        nonlocal has_staged
        # When staged again after a Conflict, the name may be another table.
        has_staged = False
        table = unit.workspace.table(runner.name(statement.name))
        if runner.unit is not None:
            # A schema change must not end between this statement and the commit.
            table = unit.writer.register(table)
        is_ruled = has_rules(table)
        if is_ruled or not is_plain(table) or len(rows) > limits_of(runner.state.store, table).new:
            return
        batch = literal_batch(table.columns, statement.columns, rows)
        if batch is not None:
            unit.stage(inlined(table, batch))
            has_staged = True

    result = carry_out(runner.state, runner.unit, stage)
    if not has_staged:
        return None
    return result if runner.unit is None else Staged(rows=len(rows), inserted=len(rows))


def _with_defaults(statement: st.Insert, columns: Schema) -> st.Query:
    """Return the source with every DEFAULT replaced by the SQL of its column's default."""
    text = statement.source.text
    for cell in statement.defaults:
        names = statement.targets(columns.names)
        if cell.position >= len(names):
            raise InvalidRequest(f"INSERT INTO {statement.name}: DEFAULT is after the last column")
        field = columns.get((names[cell.position],), str(statement.name))
        text = text.replace(cell.placeholder, default_sql(field) or "NULL")
    return replace(statement.source, text=text)


def _times(statement: st.Insert, columns: Schema) -> list[str | None]:
    """Return for each place of the rows the type of its column, where that is a date or a time."""
    names = statement.targets(columns.names)
    fields = [next((f for f in columns if f.name.lower() == n.lower()), None) for n in names]
    return [time_word(f) for f in fields]


def _insert_over(runner: Runner, statement: st.Insert, source: st.Query) -> Result:
    """Append rows of ``source``, in which DEFAULT is resolved, or replace others by them."""
    evolution = FULL_EVOLUTION if statement.schema_evolution else NO_EVOLUTION

    def prepare(unit: UnitOfWork) -> Done | Loaded:
        inside = Runner(runner.state, unit)
        rows = settled_rows(unit, inside.name(statement.name))
        own = _values(inside, source)
        new = _named(statement, rows.table, own)
        if statement.mode == "append" and folds(rows.table):
            return load(unit, inside.name(statement.name), new, Manner(evolution=evolution))

        def write(rows: TableRows) -> Done:
            if statement.matching is not None:
                return _matched(runner, inside, statement, rows, (own, new))
            return _written(runner, inside, statement, rows, new)

        return evolving(runner.state, rows, new.schema, evolution, write)

    return carry_out_rows(runner.state, runner.unit, prepare)


def _values(inside: Runner, source: st.Query) -> DataFrame:
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


def _matched(
    runner: Runner,
    inside: Runner,
    statement: st.Insert,
    rows: TableRows,
    source: tuple[DataFrame, DataFrame],
) -> Done:
    """Replace the rows that match a new one; ``source`` has those under both kinds of names."""
    spark, matching = runner.state.spark, statement.matching
    assert matching is not None
    own, new = source
    table, alias = matching.target or rows.table.name, matching.alias or _SOURCE
    for name in matching.columns:
        rows.table.columns.get((name,), rows.table.full_name)
    condition = matching.condition
    equal = " AND ".join(
        f"{backticked(alias)}.{column} = {backticked(table)}.{column}"
        for column in map(backticked, matching.columns)
    )

    @contextmanager
    def chosen(written: DataFrame) -> Iterator[Where]:
        # The condition has the names of the query.
        names = zip(new.columns, own.columns, strict=True)
        known = written.selectExpr(*[f"{backticked(n)} AS {backticked(o)}" for n, o in names])
        with inside.views(condition) as told, temporary_views(spark, {_SOURCE: known}) as made:
            on = equal if condition is None else told(condition.text)
            text = f"EXISTS (SELECT 1 FROM {made[_SOURCE]} AS {backticked(alias)} WHERE {on})"
            yield Where(text, table)

    how = Replacing(
        limits=limits_of(runner.state.store, rows.table), show_progress=runner.state.show_progress
    )
    return overwrite_matching(spark, rows, new, chosen, how)


def _named(statement: st.Insert, table: TableVersion, rows: DataFrame) -> DataFrame:
    """Return the rows under the names of their target columns."""
    fixed = _fixed(statement, table)
    if not statement.by_name:
        listed = statement.targets(table.columns.names)
        if len(listed) > len(rows.columns):
            listed = statement.targets([f.name for f in _plain_columns(table)])
        if statement.schema_evolution and statement.columns is None:
            # Those behind the table's columns are new ones, under their own names.
            listed += tuple(rows.columns[len(listed) :])
        if len(listed) != len(rows.columns):
            raise InvalidRequest(
                f"INSERT into {table.full_name} needs rows with {len(listed)} column(s),"
                f" {', '.join(map(quote_name, listed))}, but its rows have {len(rows.columns)}"
            )
        rows = rows.toDF(*listed)
    return with_values(rows, fixed)


def _plain_columns(table: TableVersion) -> list[Field]:
    """Return the columns that the table does not compute itself."""
    if COMPUTED not in table.properties:
        return list(table.columns)
    computed = computed_of(table.properties, table.full_name)
    return [f for f in table.columns if computed.of(f.id) is None]


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
            found[field.name] = partition_value(field, given.value, table.full_name)
    return found


def partition_value(field: Field, literal: str, table: str) -> str:
    """Return a literal of a PARTITION clause as SQL, to be stored or compared as any other value.

    As in Spark, a text can be a value of each type, and each literal can be a text.
    """
    kind = spark_text(field)
    if is_null_key(literal):
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


RUN = by_statement(insert)
