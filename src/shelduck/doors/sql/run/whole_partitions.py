"""Statements that Hive and Databricks have about partitions, all columns and dropped tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import quote

from shelduck.catalog.read.metadata_rows import Partition
from shelduck.catalog.read.overview.partitions import partition_rows
from shelduck.catalog.read.read import dropped_at
from shelduck.catalog.running.identity_numbers import reserve_numbers
from shelduck.doors.sql.describe import spark_text
from shelduck.doors.sql.run.ddl import alter_table, copy_table
from shelduck.doors.sql.run.inserts import partition_value
from shelduck.doors.sql.runner import Runner, by_statement
from shelduck.engine.query import answer
from shelduck.engine.session import DataFrame
from shelduck.errors import AlreadyExists, InvalidRequest, NotFound, Unsupported
from shelduck.lake.results import PlainRows, Result, Unchanged
from shelduck.lake.unit import UnitOfWork, carry_out
from shelduck.model.changes import schema_change
from shelduck.model.changes.change import alteration
from shelduck.model.changes.modify import OrderColumns, TableChange
from shelduck.model.tables.analyzed import AnalyzedColumn, with_analyzed
from shelduck.model.tables.computed import identity_of
from shelduck.model.tables.partition import IDENTITY, NULL_DIRECTORY
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.quoting import backticked, quote_name
from shelduck.read.scan.value_counts import count_values, countable
from shelduck.text.statements import statement_values as st


def drop_partitions(runner: Runner, statement: st.DropPartitions) -> Result:
    """Delete the rows of partitions; NotFound if there are none, unless IF EXISTS."""
    table = runner.version(statement.name)
    condition = " OR ".join(f"({chosen_by(spec, table)})" for spec in statement.specs)
    done = runner.table(statement.name).delete(condition)
    if not done.deleted and not statement.if_exists:
        told = " or ".join(map(str, statement.specs))
        raise NotFound(f"{table.full_name} has no rows in a partition with {told}")
    return done


def chosen_by(spec: st.PartitionSpec, table: TableVersion) -> str:
    """Return the condition of a PARTITION clause; its literals are values of their columns.

    Raises InvalidRequest for a column that is not a partition key itself.
    """
    keys = {k.column_id for k in table.partition if k.transform == IDENTITY}
    parts = []
    for column, comparison, literal in spec.values:
        field = table.columns.get((column,), table.full_name)
        if field.id not in keys:
            raise InvalidRequest(
                f"{table.full_name} is not partitioned by {quote_name(field.name)} itself; use"
                " DELETE FROM t WHERE"
            )
        value = partition_value(field, literal, table.full_name)
        word = "<=>" if comparison == "=" else comparison
        parts.append(f"{backticked(field.name)} {word} {value}")
    return " AND ".join(parts)


def show_partitions(runner: Runner, statement: st.ShowPartitions) -> PlainRows:
    """SHOW PARTITIONS, with the column that Spark gives: ``key=value/key=value``."""
    table = runner.version(statement.name)
    if not table.partition:
        raise InvalidRequest(f"table {table.full_name} is not partitioned")
    with runner.state.store.read() as connection:
        found = [row.partition for row in partition_rows(connection, table) if row.partition]
    if statement.within is not None and found:
        found = _within(runner, table, statement.within, found)
    texts = {"/".join(_directory(key, value) for key, value in keys) for keys in found}
    return PlainRows("partition string", [(text,) for text in sorted(texts)])


def _within(
    runner: Runner, table: TableVersion, spec: st.PartitionSpec, found: Sequence[Partition]
) -> list[Partition]:
    """Return the partitions with the values of a PARTITION clause, as Spark compares them."""
    chosen = chosen_by(spec, table)
    fields = [table.columns.get((column,), table.full_name) for column, *_ in spec.values]
    # Those of older keys are in no partition of these.
    found = [keys for keys in found if {f.name for f in fields} <= {name for name, _ in keys}]
    texts = [tuple(dict(keys)[f.name] for f in fields) for keys in found]
    shape = ", ".join(f"{backticked(field.name)} STRING" for field in fields)
    values = [f"CAST({c} AS {spark_text(f)}) AS {c}" for f in fields if (c := backticked(f.name))]
    rows = answer(runner.state.spark, shape, texts).selectExpr(*values).selectExpr(chosen)
    return [keys for keys, [is_in] in zip(found, rows.collect(), strict=True) if is_in]


def _directory(key: str, value: str | None) -> str:
    return f"{key}={NULL_DIRECTORY if value is None else quote(value, safe=' ')}"


def replace_columns(runner: Runner, statement: st.ReplaceColumns) -> Result:
    """ALTER TABLE … REPLACE COLUMNS, as the changes of single columns that it stands for."""
    name = runner.name(statement.name)
    if statement.if_exists and not runner.view().workspace.has_table(name):
        return Unchanged(runner.view().workspace.base.id)
    table = runner.version(statement.name)
    known = {field.name.lower(): field for field in table.columns}
    wanted = {column.name.lower(): column for column in statement.columns}
    if len(wanted) < len(statement.columns):
        raise InvalidRequest(f"REPLACE COLUMNS of {table.full_name} names a column twice")
    changes: list[TableChange] = []
    for key, column in wanted.items():
        field = known.get(key)
        if field is None:
            path = (column.name,)
            added = schema_change.AddColumn(
                path, column.type, column.default, column.nullable, column.comment
            )
            changes.append(added)
            continue
        if field.type != column.type:
            changes.append(schema_change.ChangeType((field.name,), column.type))
        if field.nullable and not column.nullable:
            changes.append(schema_change.SetNullable((field.name,), nullable=False))
        if column.default is not None:
            changes.append(schema_change.SetDefault((field.name,), column.default))
        if column.comment is not None:
            changes.append(schema_change.SetComment((field.name,), column.comment))
    gone = [field for key, field in known.items() if key not in wanted]
    changes += [schema_change.DropColumn((field.name,)) for field in gone]
    kept = [key for key in known if key in wanted]
    if [*kept, *(key for key in wanted if key not in known)] != list(wanted):
        changes.append(OrderColumns(tuple(c.name for c in statement.columns)))
    if not changes:
        return Unchanged(table.snapshot.id)
    return alter_table(runner, st.AlterTableStatement(statement.name, tuple(changes)))


def undrop_table(runner: Runner, statement: st.UndropTable) -> Result:
    """UNDROP TABLE: a copy of the table as it was before it was dropped."""
    name = runner.name(statement.name)
    if runner.view().workspace.has_table(name):
        raise AlreadyExists(f"table {name} exists; UNDROP TABLE brings back one that was dropped")
    with runner.state.store.read() as connection:
        end = dropped_at(connection, name.home, name.name)
    if end is None:
        raise NotFound(
            f"no table {name} was dropped, or its snapshots expired; see SHOW TABLES", about="table"
        )
    copied = st.CopyTableStatement(statement.name, statement.name, True, version=end - 1)
    return copy_table(runner, copied)


def sync_identity(runner: Runner, statement: st.SyncIdentity) -> Result:
    """ALTER TABLE … SYNC IDENTITY: read the rows, and reserve the numbers that they have."""
    name = runner.name(statement.name)
    if statement.if_exists and not runner.view().workspace.has_table(name):
        return Unchanged(runner.view().workspace.base.id)
    table = runner.version(statement.name)
    field = table.columns.get((statement.column,), table.full_name)
    found = identity_of(table)
    if found is None or found[0].id != field.id:
        raise InvalidRequest(
            f"column {quote_name(field.name)} of {table.full_name} is not an identity; declare one"
            " with the table, as GENERATED BY DEFAULT AS IDENTITY"
        )
    column = backticked(field.name)
    ends = runner.table(statement.name).read().selectExpr(f"min({column})", f"max({column})")
    numbers = [end for end in ends.collect()[0] if end is not None]
    reserve_numbers(runner.state.store, table, 0, numbers)
    return Unchanged(table.snapshot.id)


def analyze(runner: Runner, statement: st.Analyze) -> Result:
    """ANALYZE TABLE: count values of columns; without FOR COLUMNS nothing is left to compute."""
    table = runner.version(statement.name)
    if statement.columns == ():
        return Unchanged(table.snapshot.id)
    found = _counted(table, runner.table(statement.name).read(), statement.columns)

    def stage(unit: UnitOfWork) -> None:
        now = unit.workspace.table(runner.name(statement.name))
        properties = with_analyzed(now.properties, now.columns, found if now.id == table.id else ())
        if properties != now.properties:
            unit.workspace.alter_table(alteration(now, replace(now, properties=properties)))

    return carry_out(runner.state, runner.unit, stage)


def _counted(
    table: TableVersion, rows: DataFrame, names: Sequence[str] | None
) -> list[AnalyzedColumn]:
    """Return the counts of columns; Unsupported for one whose values Spark does not count."""
    able = countable(rows)
    fields = [f for f in table.columns if f.name in able]
    if names is not None:
        fields = [table.columns.get((name,), table.full_name) for name in names]
    for field in fields:
        if field.name not in able:
            raise Unsupported(
                f"cannot count the values of column {field.name!r} of {table.full_name}, which are"
                f" of type {field.type}; name other columns, or use FOR ALL COLUMNS"
            )
    count, counted = count_values(rows, [f.name for f in fields])
    return [
        AnalyzedColumn(field.id, str(field.type), table.snapshot.id, count, *one)
        for field, one in zip(fields, counted, strict=True)
    ]


RUN = by_statement(
    *(drop_partitions, show_partitions, replace_columns, undrop_table, sync_identity, analyze)
)
