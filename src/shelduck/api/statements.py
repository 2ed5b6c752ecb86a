"""SQL statements carried out through the same verbs as the Python API."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from shelduck.api import describe
from shelduck.api.catalog_verbs import CatalogVerbs
from shelduck.api.results import Result, Staged, TableName, Unchanged
from shelduck.api.state import LakeState
from shelduck.api.table import Table, read_version, table_name
from shelduck.api.unit import UnitOfWork, carry_out
from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.schema import FieldId, Schema, new_schema
from shelduck.model.schema_change import with_default
from shelduck.model.table import TableVersion
from shelduck.model.types import Member
from shelduck.operations.append import append_rows
from shelduck.spark.query import answer, run_query
from shelduck.spark.session import DataFrame
from shelduck.spark.types import members_of
from shelduck.sql import statements as st
from shelduck.sql.defaults import default_for_spark
from shelduck.sql.parse import parse

_RESULT = "snapshot bigint, operation string, rows bigint, files bigint"


def run_sql(state: LakeState, unit: UnitOfWork | None, text: str) -> DataFrame:
    """Run the statements of ``text`` in order; return the DataFrame of the last one."""
    if unit is not None:
        unit.require_open()
    found: DataFrame | None = None
    runner = _Runner(state, unit)
    for statement in parse(text):
        found = runner.run(statement)
    if found is None:
        raise InvalidRequest("there is no statement in the text")
    return found


class _Runner:
    """Carries out one statement after another on a lake or inside a transaction."""

    def __init__(self, state: LakeState, unit: UnitOfWork | None) -> None:
        self.state = state
        self.unit = unit
        self.verbs = CatalogVerbs(state, unit)

    def run(self, statement: st.Statement) -> DataFrame:
        """Return the rows of a query, or one row that tells what a command did."""
        found = _RUN[type(statement)](self, statement)
        if isinstance(found, DataFrame):
            return found
        operation = re.sub(r"(?<!^)(?=[A-Z])", " ", type(statement).__name__).upper()
        snapshot = None if isinstance(found, Staged) else found.snapshot
        row = (snapshot, operation, found.rows, found.files)
        return answer(self.state.spark, _RESULT, [row])

    def query(self, query: st.Query, prefix: str = "") -> DataFrame:
        """Return the DataFrame of a query; all its tables are read at one snapshot."""
        unit = self._view()
        frames: dict[str, DataFrame] = {}
        text = query.text
        for relation in query.relations:
            word = relation.placeholder
            try:
                frames[word] = self._relation(unit, relation)
            except InvalidRequest:
                # Not of this lake: a temporary view, or a table of another catalog of the session.
                # Those have no versions of ours, so time travel always means the lake.
                travels = relation.version is not None or relation.timestamp is not None
                if travels or not self.state.spark.catalog.tableExists(str(relation.name)):
                    raise
                text = text.replace(word, str(relation.name))
        return run_query(self.state.spark, prefix + text, frames)

    def _relation(self, unit: UnitOfWork, relation: st.Relation) -> DataFrame:
        name = self.name(relation.name)
        version, timestamp = relation.version, relation.timestamp
        return read_version(self.state, unit, name, version=version, timestamp=timestamp)

    def explain(self, statement: st.Explain) -> DataFrame:
        """Return Spark's plan of a query as text."""
        mode = "" if statement.mode == "simple" else f"{statement.mode.upper()} "
        return self.query(statement.query, f"EXPLAIN {mode}")

    def create_schema(self, statement: st.CreateSchema) -> Result:
        """CREATE SCHEMA."""
        return self.verbs.create_schema(
            statement.name.schema, if_not_exists=statement.if_not_exists
        )

    def drop_schema(self, statement: st.DropSchema) -> Result:
        """DROP SCHEMA."""
        return self.verbs.drop_schema(
            statement.name.schema, if_exists=statement.if_exists, cascade=statement.cascade
        )

    def use_schema(self, statement: st.UseSchema) -> Result:
        """USE: names without a schema mean this one from now on."""
        workspace = self._view().workspace
        self.state.default_schema = workspace.schema(statement.name.schema).name
        return Unchanged(workspace.base.id)

    def create_table(self, statement: st.CreateTable) -> Result:
        """CREATE TABLE, also OR REPLACE and AS SELECT; with rows it is one snapshot too."""
        if statement.partitioned_by:
            raise Unsupported(
                f"CREATE TABLE {statement.name}: PARTITIONED BY is not supported yet; leave it out"
            )
        if statement.properties:
            raise Unsupported(
                f"CREATE TABLE {statement.name}: Shelduck tables have no properties;"
                " leave TBLPROPERTIES out"
            )
        name = self.name(statement.name)
        view = self._view().workspace
        if statement.if_not_exists and view.has_table(name):
            return Unchanged(view.base.id)
        rows = self.query(statement.as_query) if statement.as_query else None
        columns, comments = _columns(statement, rows)

        def stage(unit: UnitOfWork) -> None:
            if statement.or_replace and unit.workspace.has_table(name):
                unit.workspace.drop_table(unit.workspace.table(name))
            unit.workspace.create_table(name, columns, comments)

        if rows is None:
            return carry_out(self.state, self.unit, stage)
        unit = self.unit or UnitOfWork(self.state, self.state.commit_info())
        stage(unit)
        made = unit.workspace.table(name)
        try:
            written = append_rows(
                self.state.spark, rows, made, show_progress=self.state.show_progress
            )
        except BaseException:
            if self.unit is None:
                unit.rollback()
            else:
                unit.workspace.drop_table(made)
            raise
        unit.own(made, written)
        unit.stage_rows(made, written)
        if self.unit is not None:
            return Staged(written.rows, len(written.files), written.bytes)
        return unit.commit()

    def drop_table(self, statement: st.DropTable) -> Result:
        """DROP TABLE."""
        return self.verbs.drop_table(str(self.name(statement.name)), if_exists=statement.if_exists)

    def alter_table(self, statement: st.AlterTable) -> Result:
        """ALTER TABLE and COMMENT ON: all changes in one snapshot."""
        name = self.name(statement.name)
        if statement.if_exists and not self._view().workspace.has_table(name):
            return Unchanged(self._view().workspace.base.id)
        return self.table(statement.name).alter(*statement.changes)

    def rename_table(self, statement: st.RenameTable) -> Result:
        """ALTER TABLE … RENAME TO, inside one schema."""
        old = self.name(statement.name)
        if statement.if_exists and not self._view().workspace.has_table(old):
            return Unchanged(self._view().workspace.base.id)
        new = self.name(statement.new_name, default=old.schema)
        if new.schema.lower() != old.schema.lower():
            raise Unsupported(
                f"cannot rename {old} to {new}: DuckLake keeps a table in its schema;"
                " create it there AS SELECT and drop this one"
            )
        return self.table(statement.name).rename(new.name)

    def insert(self, statement: st.Insert) -> Result:
        """INSERT INTO … VALUES or SELECT."""
        if statement.overwrite:
            raise Unsupported(
                f"INSERT OVERWRITE {statement.name} is not supported yet;"
                " CREATE OR REPLACE TABLE … AS SELECT replaces all rows"
            )
        table = self.table(statement.name)
        source = statement.source
        if statement.defaults:
            source = _with_defaults(statement, table.columns)
        rows = self.query(source)
        if source.text.lstrip()[:6].upper() == "VALUES":
            # Spark cuts even two literal rows into several tasks, and each would write a file.
            rows = rows.coalesce(1)
        if statement.columns is None:
            return table.append(rows, by_position=not statement.by_name)
        if len(statement.columns) != len(rows.columns):
            raise InvalidRequest(
                f"INSERT INTO {table.name} lists {len(statement.columns)} column(s),"
                f" but its rows have {len(rows.columns)}"
            )
        return table.append(rows.toDF(*statement.columns))

    def show_schemas(self, statement: st.ShowSchemas) -> DataFrame:
        """SHOW SCHEMAS, with the column that Spark gives."""
        names = [n for n in self.verbs.schemas() if _is_like(n, statement.like)]
        return answer(self.state.spark, "namespace string", [(n,) for n in sorted(names)])

    def show_tables(self, statement: st.ShowTables) -> DataFrame:
        """SHOW TABLES, with the columns that Spark gives."""
        wanted = statement.schema.schema if statement.schema else self.state.default_schema
        schema = self._view().workspace.schema(wanted).name
        rows = [
            (t.schema, t.name, False)
            for t in sorted(self.verbs.tables(schema), key=lambda t: t.name)
            if _is_like(t.name, statement.like)
        ]
        columns = "namespace string, tableName string, isTemporary boolean"
        return answer(self.state.spark, columns, rows)

    def show_columns(self, statement: st.ShowColumns) -> DataFrame:
        """SHOW COLUMNS."""
        rows = [(n,) for n in self.version(statement.name).columns.names]
        return answer(self.state.spark, "col_name string", rows)

    def show_create_table(self, statement: st.ShowCreateTable) -> DataFrame:
        """SHOW CREATE TABLE."""
        text = describe.create_statement(self.version(statement.name))
        return answer(self.state.spark, "createtab_stmt string", [(text,)])

    def describe(self, statement: st.Describe) -> DataFrame:
        """DESCRIBE a table or a column, with the columns that Spark gives."""
        found = self.version(statement.name)
        if statement.column is not None:
            rows = describe.column_rows(found, statement.column)
            return answer(self.state.spark, "info_name string, info_value string", rows)
        lines = describe.table_rows(found, extended=statement.extended)
        columns = "col_name string, data_type string, comment string"
        return answer(self.state.spark, columns, lines)

    def name(self, found: st.TableName, default: str | None = None) -> TableName:
        """Return the schema and table that a name in a statement means."""
        return table_name(found.parts, default or self.state.default_schema)

    def table(self, found: st.TableName) -> Table:
        """Return the table object that a name in a statement means."""
        return Table(self.state, self.name(found), self.unit)

    def version(self, found: st.TableName) -> TableVersion:
        """Return the table as it is now."""
        return self._view().workspace.table(self.name(found))

    def _view(self) -> UnitOfWork:
        return self.unit or UnitOfWork(self.state, self.state.commit_info())


_RUN: dict[type, Callable[[_Runner, Any], DataFrame | Result]] = {
    st.Query: _Runner.query,
    st.Explain: _Runner.explain,
    st.CreateSchema: _Runner.create_schema,
    st.DropSchema: _Runner.drop_schema,
    st.UseSchema: _Runner.use_schema,
    st.CreateTable: _Runner.create_table,
    st.DropTable: _Runner.drop_table,
    st.AlterTable: _Runner.alter_table,
    st.RenameTable: _Runner.rename_table,
    st.Insert: _Runner.insert,
    st.ShowSchemas: _Runner.show_schemas,
    st.ShowTables: _Runner.show_tables,
    st.ShowColumns: _Runner.show_columns,
    st.ShowCreateTable: _Runner.show_create_table,
    st.Describe: _Runner.describe,
}


def _columns(
    statement: st.CreateTable, rows: DataFrame | None
) -> tuple[Schema, dict[FieldId | None, str]]:
    if rows is not None and statement.columns:
        raise InvalidRequest(
            f"CREATE TABLE {statement.name} gives columns and AS SELECT; leave one out"
        )
    if rows is not None:
        columns = new_schema(members_of(rows.schema))
    else:
        columns = new_schema([Member(c.name, c.type, c.nullable) for c in statement.columns])
    comments: dict[FieldId | None, str] = {}
    if statement.comment is not None:
        comments[None] = statement.comment
    fields = []
    for made, wanted in zip(columns, statement.columns or columns.fields, strict=True):
        if isinstance(wanted, st.ColumnDefinition):
            if wanted.comment is not None:
                comments[made.id] = wanted.comment
            made = with_default(made, wanted.default, str(statement.name))  # noqa: PLW2901
        fields.append(made)
    return Schema(tuple(fields)), comments


def _with_defaults(statement: st.Insert, columns: Schema) -> st.Query:
    """Return the source with every DEFAULT replaced by the SQL of its column's default."""
    text = statement.source.text
    for cell in statement.defaults:
        names = statement.columns or tuple(columns.names)
        if cell.position >= len(names):
            raise InvalidRequest(
                f"INSERT INTO {statement.name}: DEFAULT stands past the last column"
            )
        field = columns.get((names[cell.position],), str(statement.name))
        text = text.replace(cell.placeholder, default_for_spark(field))
    return replace(statement.source, text=text)


def _is_like(name: str, pattern: str | None) -> bool:
    """Tell whether a name fits Spark's pattern: ``*`` is anything, ``|`` separates patterns."""
    if pattern is None:
        return True
    return any(
        re.fullmatch(".*".join(map(re.escape, part.strip().split("*"))), name, re.IGNORECASE)
        for part in pattern.split("|")
    )
