"""A table, with the verbs of all subjects, and the verbs over tables and schemas by name.

Both are the same on a lake and inside a transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shelduck.alter.verb import RollupVerbs, ShapeVerbs
from shelduck.catalog.read import read as catalog_read
from shelduck.engine.session import StructType
from shelduck.engine.types import members_of, struct_type
from shelduck.errors import InvalidRequest, NotFound
from shelduck.files.verb import UpkeepVerbs
from shelduck.formats.adopt import AdoptVerbs
from shelduck.formats.export_verbs import ExportVerbs
from shelduck.jobs.widening import WideningVerbs
from shelduck.keys.key_draft import with_aggregates
from shelduck.keys.unique_keys import KeyVerbs
from shelduck.lake.lookup import LakeHandle
from shelduck.lake.pinned_views import pin_view
from shelduck.lake.results import Result, Snapshots, TableName, require_limit
from shelduck.lake.table_changes import ChangeVerbs
from shelduck.lake.unit import UnitOfWork, carry_out, view_of
from shelduck.lake.workspace import Workspace
from shelduck.model.tables.keys import KeySpec
from shelduck.model.tables.schema import Schema
from shelduck.model.text.names import html_table, html_text, quote_name, schema_word, split_name
from shelduck.model.types.data_types import Member, declared_type, type_text
from shelduck.objects.restore import RestoreVerbs
from shelduck.objects.statement.create_table import CreateTableStatement, creating
from shelduck.objects.statement.schemas_and_tables import dropped_table
from shelduck.objects.targets import MetadataVerbs
from shelduck.streams.verb import StreamVerbs
from shelduck.text.ddl.partitioning import partition_keys
from shelduck.text.ddl.sorting import sort_keys
from shelduck.text.tokens.parts import NamedTable
from shelduck.write.edit_verbs import EditVerbs


class Table(
    EditVerbs,
    ExportVerbs,
    AdoptVerbs,
    ChangeVerbs,
    KeyVerbs,
    MetadataVerbs,
    RestoreVerbs,
    RollupVerbs,
    ShapeVerbs,
    StreamVerbs,
    UpkeepVerbs,
    WideningVerbs,
):
    """One table by name.

    Every call uses the newest snapshot (inside a transaction, its snapshot and its own changes), so
    an object never becomes stale. Calls that write either commit one snapshot and
    return `Committed`, or, inside a transaction, return `Staged`.
    """

    @property
    def schema(self) -> StructType:
        """The columns as Spark knows them."""
        return struct_type(self._version().columns)

    @property
    def columns(self) -> Schema:
        """The columns with their ids, DuckLake types and defaults."""
        return self._version().columns

    def history(self, *, limit: int | None = None, before: int | None = None) -> Snapshots:
        """Return the snapshots that changed this table, newest first.

        Args:
            limit: At most so many.
            before: Only older ones than this snapshot, such as the last one of the page before.
        """
        require_limit(limit)
        table = self._version()
        found = self._state.store.ask(catalog_read.table_history, table, limit=limit, before=before)
        return Snapshots(found)

    def _repr_html_(self) -> str:
        """Return the columns; the name alone if the catalog does not answer."""
        try:
            table = self._version()
        except Exception:  # noqa: BLE001 - a notebook shows the object, not its error
            return html_text(repr(self))
        rows = [
            (
                *(f.id, quote_name(f.name), type_text(f.type), "yes" if f.nullable else "no"),
                f.default.text if f.default else None,
                table.comments.get(f.id),
            )
            for f in table.columns
        ]
        names = ("id", "column", "type", "nullable", "default", "comment")
        return html_table(names, rows, table.full_name)


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
        return dropped_table(self._state, self._unit, wanted, if_exists=if_exists)

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
        return self._state.store.ask(catalog_read.was_table, name.home, name.name)


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
