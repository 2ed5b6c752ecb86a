"""Verbs over tables and schemas by name, the same on a lake and inside a transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from shelduck.catalog.read import read as catalog_read
from shelduck.engine.session import StructType
from shelduck.engine.types import members_of
from shelduck.errors import InvalidRequest, NotFound
from shelduck.keys.key_draft import keyed_table
from shelduck.keys.verb import with_aggregates
from shelduck.lake.evolution.arrangement import new_arrangement
from shelduck.lake.handle import LakeHandle
from shelduck.lake.pinned_views import pin_view
from shelduck.lake.results import Result, TableName
from shelduck.lake.satisfied import require_satisfied
from shelduck.lake.state import LakeState
from shelduck.lake.unit import UnitOfWork, carry_out, view_of
from shelduck.lake.workspace import Workspace
from shelduck.model.changes.constraining import apply_constraint
from shelduck.model.changes.definition import with_default
from shelduck.model.tables.computed import declared
from shelduck.model.tables.keys import KeySpec
from shelduck.model.tables.properties import checked_properties
from shelduck.model.tables.schema import Schema, comments_of, new_schema
from shelduck.model.text.names import split_name
from shelduck.model.text.quoting import schema_word
from shelduck.model.types.data_types import Member, declared_type
from shelduck.objects.table import Table
from shelduck.rollups.rollup_shape import create_with_rollups, drop_with_rollups
from shelduck.text.ddl.partitioning import partition_keys
from shelduck.text.ddl.sorting import sort_keys
from shelduck.text.statements.statement_values import CreateTableStatement
from shelduck.text.tokens.parts import NamedTable


class CatalogVerbs(LakeHandle):
    """The verbs that `Lake` and `Transaction` share: tables and schemas by name."""

    def table(self, name: str) -> Table:
        """Return the table ``name`` or ``schema.name``; NotFound lists similar names.

        A dropped table can still be read as of a snapshot that has it.
        """
        found = Table(self._state, self._name(name), self._unit)
        try:
            _ = found.columns
        except NotFound:
            if self._unit is not None or not self._was_table(found.name):
                raise
        return found

    def tables(self, schema: str | None = None) -> list[TableName]:
        """Return the tables of one schema, or of all, by name.

        Inside a transaction, its own changes count. Raises NotFound for a schema that does not
        exist.
        """
        workspace = self._workspace()
        with self._state.store.session():
            found = workspace.schemas()
            if schema is not None:
                found = [workspace.schema(workspace.word_of(schema))]
            return [TableName(s.name, t) for s in found for t in workspace.table_names(s)]

    def schemas(self) -> list[str]:
        """Return the names of all schemas; inside a transaction, its own changes count.

        A schema inside another one is ``a.b``; a name with a dot has backticks.
        """
        return [s.text for s in self._workspace().schemas()]

    def create_table(
        self,
        name: str,
        columns: Mapping[str, str] | StructType,
        *,
        if_not_exists: bool = False,
        comment: str | None = None,
        partitioned_by: Sequence[str] = (),
        sorted_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        keys: KeySpec | None = None,
        aggregates: Mapping[str, str] | None = None,
    ) -> Table:
        """Create a table and return it; no file is written.

        Args:
            name: ``table`` or ``schema.table``; backticks or double quotes protect special names.
            columns: Names with types as Spark SQL writes them (``"array<string>"``,
                ``"bigint NOT NULL"``), or a Spark schema such as ``df.schema``, whose columns
                become nullable. In a mapping, backticks protect special names, as in `add_column`.
            if_not_exists: Return the existing table, whatever its columns.
            comment: Kept with the table.
            partitioned_by: Keys such as ``"region"``, ``"bucket(16, id)"`` or ``"days(ts)"``: a
                file holds rows of one value of each.
            sorted_by: What the rows of a file are sorted by: ``"ts DESC"``, ``"upper(name)"``.
            properties: Such as ``{"delta.enableTypeWidening": "true"}``.
            keys: A key model from `shelduck.unique`, `shelduck.aggregate` or `shelduck.duplicate`.
            aggregates: How each column outside of the key of an AGGREGATE table is combined:
                ``sum``, ``min``, ``max``, ``replace`` or ``replace_if_not_null``, by name.

        Raises:
            AlreadyExists: the name is taken by a table or a view.
            NotFound: the schema does not exist.
            InvalidRequest: a name or type cannot be parsed, or a column is listed twice.
            Unsupported: DuckLake does not support a Spark type.
        """
        statement = CreateTableStatement(
            NamedTable(split_name(name)),
            if_not_exists=if_not_exists,
            comment=comment or None,
            partitioned_by=partition_keys(partitioned_by),
            sorted_by=sort_keys(sorted_by),
            properties=dict(properties or {}),
            keys=with_aggregates(keys, aggregates, name) if aggregates else keys,
        )
        wanted = self._name(name)
        stage = creating(self._state, statement, wanted, _members(columns, ntz=self._state.ntz))
        carry_out(self._state, self._unit, stage)
        return Table(self._state, wanted, self._unit)

    def drop_table(self, name: str, *, if_exists: bool = False) -> Result:
        """Drop a table and its rollups; older snapshots still show them.

        Args:
            name: ``"t"`` or ``"schema.t"``.
            if_exists: Do nothing if there is no such table; otherwise that is NotFound.
        """
        wanted = self._name(name)

        def stage(unit: UnitOfWork) -> None:
            if if_exists and not unit.workspace.has_table(wanted):
                return
            drop_with_rollups(unit, unit.workspace.table(wanted))

        return carry_out(self._state, self._unit, stage)

    def pin(self, table: str, version: int, name: str, *, replace: bool = False) -> Result:
        """Make a view that shows today's rows of a table in the columns of an older snapshot.

        Old clients read it and keep their columns, whatever happens to the table: renames are
        undone, dropped columns show their default, newer ones are left out, and values are cast
        back. A value that the older type cannot hold fails the query. Every change of the table
        brings the view up to date, in Spark and in DuckDB.

        Args:
            table: ``"t"`` or ``"schema.t"``.
            version: A snapshot id, as in `Table.read`; the snapshot may expire afterwards.
            name: The view, ``"v"`` or ``"schema.v"``.
            replace: Replace the view if it exists; otherwise that is AlreadyExists.

        Raises:
            NotFound: there is no such table, or it did not exist at that snapshot.
            Unsupported: Spark and DuckDB cannot show the table in these columns alike.
        """
        wanted = self._name(table), version, self._name(name)
        return pin_view(self._state, self._unit, *wanted, replaces=replace)

    def create_schema(self, name: str, *, if_not_exists: bool = False) -> Result:
        """Create a schema, which is a namespace for tables.

        Args:
            name: ``a``, or ``a.b`` for b inside the schema a. Before DuckLake 1.1 there are no
                schemas inside schemas, and dots are part of the name.
            if_not_exists: Do nothing if there is such a schema; otherwise that is AlreadyExists.

        Raises NotFound if there is no schema a.
        """
        is_path = self._state.store.format.nests or name.startswith(("`", '"'))
        word = schema_word(split_name(name)) if is_path else name

        def stage(unit: UnitOfWork) -> None:
            unit.workspace.create_schema(word, if_not_exists=if_not_exists)

        return carry_out(self._state, self._unit, stage)

    def drop_schema(self, name: str, *, if_exists: bool = False, cascade: bool = False) -> Result:
        """Drop a schema; older snapshots still show it and its tables.

        Args:
            name: ``a``, or ``a.b`` for b inside a; if there is none, dots are part of the name.
            if_exists: Do nothing if there is no such schema; otherwise that is NotFound.
            cascade: Drop its tables and views too, and the schemas inside it.

        Raises InvalidRequest for ``main``, and without ``cascade`` for a schema that is not empty.
        """

        def stage(unit: UnitOfWork) -> None:
            word = unit.workspace.word_of(name)
            unit.workspace.drop_schema(word, if_exists=if_exists, cascade=cascade)

        return carry_out(self._state, self._unit, stage)

    def _workspace(self) -> Workspace:
        return view_of(self._state, self._unit).workspace

    def _was_table(self, name: TableName) -> bool:
        with self._state.store.read() as connection:
            return catalog_read.was_table(connection, name.home, name.name)


def creating(
    state: LakeState, statement: CreateTableStatement, name: TableName, members: list[Member]
) -> Callable[[UnitOfWork], None]:
    """Return what stages a CREATE TABLE; all that needs no catalog is checked before.

    ``members`` are the columns: the statement may have a query instead.
    """
    told = str(statement.name)
    columns = new_schema(members)
    comments = comments_of(columns, members)
    if statement.comment is not None:
        comments[None] = statement.comment
    if statement.columns:
        pairs = zip(columns, statement.columns, strict=True)
        columns = Schema(tuple(with_default(made, said.default, told) for made, said in pairs))
    arrangement = new_arrangement(columns, statement.partitioned_by, statement.sorted_by, told)
    properties = checked_properties(statement.properties, told)
    if statement.keys is not None:
        given = properties, arrangement
        properties, arrangement = keyed_table(columns, statement.keys, *given, told)
    if statement.computed:
        computed = tuple(one.made_in(state.zone) for one in statement.computed)
        columns, properties = declared(columns, computed, properties, told)
    checks: list[str] = []
    for constraint in statement.constraints:
        made = constraint.made_in(state.zone)
        properties, checked = apply_constraint(properties, made, columns, told)
        checks += [] if checked is None else [checked]

    def stage(unit: UnitOfWork) -> None:
        may_exist = statement.if_not_exists and statement.as_query is None
        if may_exist and unit.workspace.has_table(name):
            return
        if statement.must_exist or (statement.or_replace and unit.workspace.has_table(name)):
            drop_with_rollups(unit, unit.workspace.table(name))
        unit.workspace.create_table(
            name, columns, comments, arrangement=arrangement, properties=properties
        )
        if checks or statement.computed:
            require_satisfied(unit, name, checks)
        if statement.rollups:
            create_with_rollups(unit, name, statement.rollups)

    return stage


def _members(columns: Mapping[str, str] | StructType, *, ntz: bool) -> list[Member]:
    if isinstance(columns, StructType):
        return members_of(columns)
    found: list[Member] = []
    for name, text in columns.items():
        if not isinstance(text, str):
            raise InvalidRequest(
                f"the type of column {name!r} must be text such as 'bigint', not {text!r}"
            )
        parts = split_name(name) if name else (name,)
        if len(parts) > 1:
            raise InvalidRequest(
                f"column {name!r} must be one name, not a path; put a name with dots in backticks,"
                f" or declare the struct as {parts[0]!r}: 'struct<…>'"
            )
        words = text.split()
        not_null = [w.lower() for w in words[-2:]] == ["not", "null"]
        kind = declared_type(" ".join(words[:-2]) if not_null else text, ntz=ntz)
        found.append(Member(parts[0], kind, nullable=not not_null))
    return found
