"""Verbs over tables and schemas by name, the same on a lake and inside a transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shelduck.api.keys import with_aggregates
from shelduck.api.lookup import table_name
from shelduck.api.results import Result, TableName
from shelduck.api.rollup_shape import drop_with_rollups
from shelduck.api.state import LakeState
from shelduck.api.table import Table
from shelduck.api.unit import UnitOfWork, carry_out, view_of
from shelduck.api.workspace import Workspace
from shelduck.catalog import read as catalog_read
from shelduck.errors import InvalidRequest, NotFound
from shelduck.evolution.keys import keyed_table
from shelduck.evolution.layout import NO_LAYOUT, LayoutDraft, new_layout
from shelduck.model.keys import KeySpec
from shelduck.model.names import split_name
from shelduck.model.properties import checked_properties
from shelduck.model.schema import FieldId, Schema, new_schema
from shelduck.model.types import Member, declared_type
from shelduck.spark.session import StructType
from shelduck.spark.types import members_of
from shelduck.sql.partitioning import partition_keys
from shelduck.sql.sorting import sort_keys


class CatalogVerbs:
    """What `Lake` and `Transaction` share: tables and schemas by name."""

    def __init__(self, state: LakeState, unit: UnitOfWork | None) -> None:
        self._state = state
        self._unit = unit

    def table(self, name: str) -> Table:
        """Return the table ``name`` or ``schema.name``; NotFound tells the nearest names.

        One that was dropped can still be read as of a snapshot that has it.
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

        Inside a transaction they are those that it will leave. Raises NotFound for a schema that
        does not exist.
        """
        workspace = self._workspace()
        with self._state.store.session():
            found = workspace.schemas() if schema is None else [workspace.schema(schema)]
            return [TableName(s.name, t) for s in found for t in workspace.table_names(s)]

    def schemas(self) -> list[str]:
        """Return the names of all schemas, those that the transaction will leave inside of one."""
        return [s.name for s in self._workspace().schemas()]

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
            name: ``table`` or ``schema.table``; back ticks or double quotes protect odd names.
            columns: Names with types as Spark SQL writes them (``"array<string>"``,
                ``"bigint NOT NULL"``), or a Spark schema such as ``df.schema``, whose columns
                become nullable. Back ticks protect odd names in the first, as in `add_column`.
            if_not_exists: Return the table that is there, whatever its columns.
            comment: Kept with the table.
            partitioned_by: Keys such as ``"region"``, ``"bucket(16, id)"`` or ``"days(ts)"``: a
                file holds rows of one value of each.
            sorted_by: By what the rows of a file are sorted: ``"ts DESC"``, ``"upper(name)"``.
            properties: Such as ``{"delta.enableTypeWidening": "true"}``.
            keys: A key model from `shelduck.unique`, `shelduck.aggregate` or `shelduck.duplicate`.
            aggregates: How each column that is no key of an AGGREGATE table is combined: ``sum``,
                ``min``, ``max``, ``replace`` or ``replace_if_not_null``, by name.

        Raises:
            AlreadyExists: the name is taken by a table or a view.
            NotFound: there is no such schema.
            InvalidRequest: a name or type cannot be read, or a column is named twice.
            Unsupported: DuckLake has no place for a Spark type.
        """
        made = new_schema(_members(columns))
        comments: dict[FieldId | None, str] = {None: comment} if comment else {}
        layout = new_layout(made, partition_keys(partitioned_by), sort_keys(sorted_by), name)
        model = with_aggregates(keys, aggregates, name)
        given = checked_properties(properties or {}, name)
        wanted, layout = keyed_table(made, model, given, layout, name)
        found = (self._name(name), made, comments, layout)
        self.create_table_of(*found, if_not_exists=if_not_exists, properties=wanted)
        return Table(self._state, self._name(name), self._unit)

    def create_table_of(
        self,
        name: TableName,
        columns: Schema,
        comments: Mapping[FieldId | None, str],
        layout: LayoutDraft = NO_LAYOUT,
        *,
        if_not_exists: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> Result:
        """Create a table from columns that have their ids, defaults and comments already."""

        def stage(unit: UnitOfWork) -> None:
            if if_not_exists and unit.workspace.has_table(name):
                return
            unit.workspace.create_table(
                name, columns, comments, layout=layout, properties=properties
            )

        return carry_out(self._state, self._unit, stage)

    def drop_table(self, name: str, *, if_exists: bool = False) -> Result:
        """Drop a table; older snapshots still show it.

        Raises NotFound unless ``if_exists``.
        """
        wanted = self._name(name)

        def stage(unit: UnitOfWork) -> None:
            if if_exists and not unit.workspace.has_table(wanted):
                return
            drop_with_rollups(unit, unit.workspace.table(wanted))

        return carry_out(self._state, self._unit, stage)

    def create_schema(self, name: str, *, if_not_exists: bool = False) -> Result:
        """Create a schema (a namespace for tables); ``name`` is one name, dots are part of it.

        Raises AlreadyExists unless ``if_not_exists``.
        """

        def stage(unit: UnitOfWork) -> None:
            unit.workspace.create_schema(name, if_not_exists=if_not_exists)

        return carry_out(self._state, self._unit, stage)

    def drop_schema(self, name: str, *, if_exists: bool = False, cascade: bool = False) -> Result:
        """Drop a schema, with ``cascade`` its tables too; older snapshots still show them.

        Raises NotFound unless ``if_exists``, and InvalidRequest when it holds tables or views or is
        ``main``.
        """

        def stage(unit: UnitOfWork) -> None:
            unit.workspace.drop_schema(name, if_exists=if_exists, cascade=cascade)

        return carry_out(self._state, self._unit, stage)

    def _workspace(self) -> Workspace:
        return view_of(self._state, self._unit).workspace

    def _was_table(self, name: TableName) -> bool:
        with self._state.store.read() as connection:
            return catalog_read.was_table(connection, name.schema, name.name)

    def _name(self, text: str) -> TableName:
        return table_name(split_name(text), self._state.default_schema)


def _members(columns: Mapping[str, str] | StructType) -> list[Member]:
    if isinstance(columns, StructType):
        return members_of(columns)
    found: list[Member] = []
    for name, text in columns.items():
        if not isinstance(text, str):
            raise InvalidRequest(
                f"the type of column {name!r} is written as text, such as 'bigint', not as {text!r}"
            )
        parts = split_name(name) if name else (name,)
        if len(parts) > 1:
            raise InvalidRequest(
                f"column {name!r} is one name: protect the dot with back ticks, or write the"
                f" struct as {parts[0]!r}: 'struct<…>'"
            )
        words = text.split()
        not_null = [w.lower() for w in words[-2:]] == ["not", "null"]
        kind = declared_type(" ".join(words[:-2]) if not_null else text)
        found.append(Member(parts[0], kind, nullable=not not_null))
    return found
