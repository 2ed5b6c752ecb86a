"""Importing Delta tables: `Lake.import_delta`."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import partial

from shelduck.catalog.commit.own_rows import newest_landed
from shelduck.catalog.read import read as catalog_read
from shelduck.catalog.running.identity_numbers import reserve_numbers
from shelduck.errors import AlreadyExists, Unsupported
from shelduck.formats.delta.import_plan import ImportPlan, plan_import, stage_step
from shelduck.formats.delta.log import delta_root, read_log
from shelduck.formats.delta.steps import Imported, ImportStep
from shelduck.lake.done import Done
from shelduck.lake.evolution.arrangement import Arrangement
from shelduck.lake.lookup import LakeHandle, require_unconverted
from shelduck.lake.results import Committed, TableName
from shelduck.lake.state import LakeState
from shelduck.lake.unit import UnitOfWork
from shelduck.model.changes.change import CommitInfo, alteration
from shelduck.model.changes.records import Batch
from shelduck.model.files.data_file import DataFile
from shelduck.model.tables.table_version import TableVersion
from shelduck.write.hooks import carry_out_rows
from shelduck.write.progress import counted


@dataclass(frozen=True, slots=True)
class DeltaImported:
    """The result of an import.

    ``snapshots`` are those that it made, by the Delta version that each shows; a version that
    changed neither columns nor rows has none. ``files`` and ``rows`` count the adopted data files
    and all rows in them. ``notes`` describe what was not carried over, and what other readers have
    to know.
    """

    table: TableName
    snapshots: dict[int, int] = field(default_factory=dict)
    files: int = 0
    rows: int = 0
    notes: tuple[str, ...] = ()

    @property
    def versions(self) -> tuple[int, ...]:
        """The Delta versions that became snapshots, in order."""
        return tuple(self.snapshots)

    def __str__(self) -> str:
        count = f"{len(self.snapshots)} version(s), {self.files} file(s), {self.rows} row(s)"
        return "\n".join([f"{self.table}: {count}", *(f"- {note}" for note in self.notes)])


class LakeBorders(LakeHandle, in_parts=True):
    """Tables of other formats."""

    def import_delta(self, path: str | os.PathLike[str], table: str) -> DeltaImported:
        """Make a Delta table part of the lake with its history; no data file is copied.

        Each version of the Delta table whose data files all exist becomes a snapshot, oldest first.
        All of them are checked before the first is committed. Call it again to continue an
        interrupted import, or to import later versions of the Delta table. The data files stay
        where they are and must not change: no VACUUM may remove what snapshots show.

        Args:
            path: The directory of the Delta table, where its ``_delta_log`` is.
            table: ``table`` or ``schema.table``, a new one or one that was imported from there.

        Raises:
            InvalidRequest: there is no Delta table, some of its files are missing or do not fit
                (all of these are listed), or the table was changed since it was imported.
            AlreadyExists: the table exists and was not imported from that Delta table.
            Unsupported: the Delta table needs a feature or a type that Shelduck does not support.
            CorruptLake: its log or a deletion vector is damaged.
            Conflict: another commit changed the table during the import; call it again.
        """
        return _Import(self._state, self._name(table), delta_root(os.fspath(path))).run()


@dataclass
class _Import:
    state: LakeState
    name: TableName
    root: str

    def run(self) -> DeltaImported:
        if self.state.info.encrypted:
            raise Unsupported(
                f"cannot import {self.root} without a copy: files of an encrypted lake have keys;"
                " read it, and write the rows into a table"
            )
        log = read_log(self.root)
        own_path = self.state.info.data_path
        plan = plan_import(
            self.state.spark,
            log,
            self._known(),
            own_path=own_path,
            zone=self.state.zone,
            show_progress=self.state.show_progress,
        )
        return self._carry_out(plan)

    def _carry_out(self, plan: ImportPlan) -> DeltaImported:
        snapshots: dict[int, int] = {}
        files = rows = 0
        steps = [step for step in plan.steps if not step.is_nothing]
        told, show = f"importing {self.name}", self.state.show_progress
        for step in counted(steps, told, len(steps), unit="version(s)", show=show):
            done = carry_out_rows(self.state, None, partial(self._prepare, step))
            if isinstance(done, Committed):
                snapshots[step.version] = done.snapshot
                files += done.files
                rows += done.inserted
        return DeltaImported(self.name, snapshots, files, rows, plan.notes)

    def _known(self) -> Imported | None:
        """Return the table as imported so far, None if there is none."""
        unit = UnitOfWork(self.state)
        found = unit.workspace.find_table(self.name)
        if found is None:
            return None
        with self.state.store.read() as connection:
            version = newest_landed(connection, self._series(found))
            if version is None:
                raise AlreadyExists(
                    f"table {self.name} already exists and was not imported from the Delta table at"
                    f" {self.root}; choose another name",
                    about="table",
                )
            files = catalog_read.data_files(connection, found)
            inlined = any(r.rows for r in catalog_read.inlined_rows(connection, found))
        return Imported(found, files, inlined, version)

    def _series(self, table: TableVersion) -> str:
        # Stored in the catalog: with another text, an import would not recognize its own table.
        return f"import of Delta table {self.root} into {table.uuid}"

    def _prepare(self, step: ImportStep, unit: UnitOfWork) -> Done:
        """Stage a version; its number is recorded with the commit, so that it lands once."""
        workspace, columns = unit.workspace, step.columns
        unit.annotate(CommitInfo(None, step.message, step.extra_info))
        if step.is_first:
            workspace.create_table(
                *(self.name, columns.schema, columns.comments),
                arrangement=Arrangement(columns.partition, ()),
                properties=columns.properties,
            )
        table = workspace.table(self.name)
        unit.batch = Batch(self._series(table), step.version)
        files: dict[str, DataFile] = {}
        if step.ended or step.deletes:
            with workspace.reading() as connection:
                files = {f.path: f for f in catalog_read.data_files(connection, table)}
        if step.alters:
            then = replace(
                table,
                columns=columns.schema,
                comments=columns.comments,
                properties=columns.properties,
                partition=columns.partition,
            )
            change = alteration(table, then, columns.unsafe_bounds)
            require_unconverted(unit, change)
            workspace.alter_table(change)
            table = workspace.table(self.name)
        if step.last_number is not None:
            reserve_numbers(self.state.store, table, 0, [step.last_number])
        if step.deletes:
            unit.writer.register(table)
        return stage_step(step, table, files, self.root)
