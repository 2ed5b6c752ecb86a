"""A table of a lake: read it, append to it, change its shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from shelduck.api.instants import instant
from shelduck.api.results import Result, Staged, TableName
from shelduck.api.state import LakeState
from shelduck.api.unit import UnitOfWork, carry_out
from shelduck.catalog import read as catalog_read
from shelduck.errors import Conflict, InvalidRequest, OutcomeUnknown, Unsupported
from shelduck.evolution.alter import AlterPlan, plan_alter
from shelduck.model.schema import Schema
from shelduck.model.schema_change import SchemaChange
from shelduck.model.table import Snapshot, TableVersion
from shelduck.operations.append import append_rows, discard
from shelduck.operations.check import require_no_null
from shelduck.operations.read import read_table
from shelduck.spark.session import DataFrame, StructType
from shelduck.spark.types import struct_type
from shelduck.spark.write import WrittenFiles


class Table:
    """One table by name.

    Every call looks at the newest snapshot (inside a transaction: at the transaction's), so an
    object never grows stale. Calls that write either commit one snapshot and return `Committed`,
    or, inside a transaction, return `Staged`.
    """

    def __init__(self, state: LakeState, name: TableName, unit: UnitOfWork | None = None) -> None:
        self._state = state
        self._unit = unit
        self.name = name

    @property
    def schema(self) -> StructType:
        """The columns as Spark knows them."""
        return struct_type(self._version().columns)

    @property
    def columns(self) -> Schema:
        """The columns with their ids, DuckLake types and defaults."""
        return self._version().columns

    def read(
        self,
        *,
        version: int | None = None,
        timestamp: str | datetime | None = None,
        columns: Sequence[str] | None = None,
    ) -> DataFrame:
        """Return the rows as a DataFrame, with the columns that the table had at that snapshot.

        The rows stay those of one snapshot whatever happens to the table. Every column is nullable.

        Args:
            version: A snapshot id, as in `Committed.snapshot` and `history`.
            timestamp: The last snapshot at or before it; text without an offset is UTC.
            columns: The top-level columns to read, all when None.

        Raises:
            NotFound: the table, a column or the snapshot does not exist.
            InvalidRequest: both ``version`` and ``timestamp`` are given.
            Unsupported: a file or type cannot be read right; the message names the way out.
        """
        unit = self._unit or UnitOfWork(self._state, self._state.commit_info())
        unit.require_open()
        return read_version(
            self._state, unit, self.name, version=version, timestamp=timestamp, columns=columns
        )

    def append(self, df: DataFrame, *, by_position: bool = False) -> Result:
        """Append rows. Columns go by name; missing ones get their default, extra ones are an error.

        Args:
            df: The rows. docs/types.md says which types a column takes; nothing is cut or rounded.
            by_position: Take columns by their place instead; struct fields always go by name.

        Raises:
            InvalidRequest: columns or types do not fit, told before any work; or a value does not
                (NULL in a NOT NULL column, overflow), told while writing. The table is unchanged.
            Unsupported: the table is partitioned, or has a type that Spark cannot write.
            Conflict: the columns changed while rows were written; append again.
            OutcomeUnknown: look for the rows before appending them again.
        """
        if not isinstance(df, DataFrame):
            raise InvalidRequest(
                f"append to {self.name} takes a Spark DataFrame, not {type(df).__name__};"
                " spark.createDataFrame(...) makes one"
            )
        planned = self._version()
        written = append_rows(
            self._state.spark,
            df,
            planned,
            by_position=by_position,
            show_progress=self._state.show_progress,
        )
        if not written.files:
            return Staged() if self._unit else carry_out(self._state, None, lambda _unit: None)
        return self._commit_rows(planned, written)

    def alter(self, *changes: SchemaChange) -> Result:
        """Change the schema; all changes are one snapshot, and no file is rewritten.

        ``changes`` come from `shelduck.add_column`, `rename_column` and their like, and are applied
        in order.

        Raises:
            NotFound, AlreadyExists, InvalidRequest: one of them cannot be done; nothing is changed.
            Unsupported: one needs new bytes, or DuckLake has no place for it.
            Conflict: another commit changed the table at the same time, again and again.
        """

        def stage(unit: UnitOfWork) -> None:
            plan = plan_alter(unit.workspace.table(self.name), changes)
            if plan.change is None:
                return
            if plan.checks_null:
                self._check_null(unit, plan)
            unit.workspace.alter_table(plan.change)

        return carry_out(self._state, self._unit, stage)

    def plan_alter(self, *changes: SchemaChange) -> AlterPlan:
        """Return what `alter` would do, step by step, without doing it; print it.

        Raises what `alter` raises, but does not look for NULL in rows.
        """
        return plan_alter(self._version(), changes)

    def rename(self, new_name: str) -> Result:
        """Rename the table inside its schema; this object follows it, files stay where they are.

        ``new_name`` is one name, dots are part of it. Raises AlreadyExists when it is taken.
        """

        def stage(unit: UnitOfWork) -> None:
            unit.workspace.rename_table(unit.workspace.table(self.name), new_name)

        result = carry_out(self._state, self._unit, stage)
        self.name = replace(self.name, name=new_name)
        return result

    def drop(self) -> Result:
        """Drop the table; older snapshots still show it."""

        def stage(unit: UnitOfWork) -> None:
            unit.workspace.drop_table(unit.workspace.table(self.name))

        return carry_out(self._state, self._unit, stage)

    def history(self) -> list[Snapshot]:
        """Return the snapshots that changed this table, newest first."""
        table = self._version()
        with self._state.store.read() as connection:
            return catalog_read.table_history(connection, table)

    def __repr__(self) -> str:
        return f"Table({str(self.name)!r})"

    def _version(self) -> TableVersion:
        if self._unit is not None:
            self._unit.require_open()
            return self._unit.workspace.table(self.name)
        return version_at(self._state, self.name, None, None)

    def _check_null(self, unit: UnitOfWork, plan: AlterPlan) -> None:
        table = unit.workspace.table(self.name)
        _refuse_staged(unit, table)
        require_no_null(
            lambda: self._state.spark,
            self._state.store,
            table,
            self._state.layouts,
            plan.checks_null,
        )

    def _commit_rows(self, planned: TableVersion, written: WrittenFiles) -> Result:
        def stage(unit: UnitOfWork) -> None:
            current = unit.workspace.table(self.name)
            if current.id != planned.id or current.columns != planned.columns:
                raise Conflict(
                    f"table {self.name} changed its columns while rows were written for it;"
                    " nothing was appended: append again"
                )
            unit.stage_rows(current, written)

        if self._unit is not None:
            self._unit.own(planned, written)
            carry_out(self._state, self._unit, stage)
            return Staged(written.rows, len(written.files), written.bytes)
        try:
            return carry_out(self._state, None, stage)
        except OutcomeUnknown:
            raise
        except BaseException:
            discard(planned, written)
            raise


def _refuse_staged(unit: UnitOfWork, table: TableVersion) -> None:
    if unit.workspace.is_changed(table):
        raise Unsupported(
            f"table {table.full_name} has uncommitted changes in this transaction, and reading them"
            " is not supported yet; read before the change, or after the commit"
        )


def read_version(
    state: LakeState,
    unit: UnitOfWork,
    name: TableName,
    *,
    version: int | None,
    timestamp: str | datetime | None,
    columns: Sequence[str] | None = None,
) -> DataFrame:
    """Return a table's rows as the unit sees them, or as of a snapshot."""
    if version is None and timestamp is None:
        found = unit.workspace.table(name)
        _refuse_staged(unit, found)
    else:
        found = version_at(state, name, version, timestamp)
    return read_table(state.spark, state.store, found, state.layouts, columns)


def version_at(
    state: LakeState, name: TableName, version: int | None, timestamp: str | datetime | None
) -> TableVersion:
    """Return a table at a snapshot: an id, the last at or before an instant, or the newest."""
    when = None if timestamp is None else instant(timestamp)
    with state.store.read() as connection:
        snapshot = catalog_read.snapshot(connection, version=version, timestamp=when)
        return catalog_read.table(connection, snapshot, name.schema, name.name, state.info)


def table_name(parts: tuple[str, ...], default_schema: str) -> TableName:
    """Return the schema and name that ``table`` or ``schema.table`` means."""
    if len(parts) == 1:
        return TableName(default_schema, parts[0])
    if len(parts) == 2:
        return TableName(parts[0], parts[1])
    raise InvalidRequest(f"{'.'.join(parts)!r} has too many parts: write table or schema.table")
