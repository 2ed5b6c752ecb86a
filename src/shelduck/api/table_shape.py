"""Verbs over the shape of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shelduck.api.compaction import refuse_in_transaction
from shelduck.api.handle import TableHandle
from shelduck.api.jobs import SchemaChangeJob, submit
from shelduck.api.results import Result
from shelduck.api.unit import UnitOfWork, carry_out
from shelduck.evolution.alter import AlterPlan, AlterStep, plan_alter
from shelduck.model.promotions import promotion
from shelduck.model.table import TableVersion
from shelduck.model.table_change import TableChange
from shelduck.operations.check import require_no_null
from shelduck.operations.compact import survey
from shelduck.planning.shadows import is_heavy, plan_shadows


class ShapeVerbs(TableHandle):
    """Changing columns and the name."""

    def alter(self, *changes: TableChange) -> Result | SchemaChangeJob:
        """Change the schema; all changes are one snapshot, and no file is rewritten.

        Types that old values are not stored as are converted by a job, which is returned: its
        `SchemaChangeJob.wait` does the work, in this process or any other.

        ``changes`` come from `shelduck.add_column`, `rename_column`, `set_partitioning` and their
        like, and are applied in order.

        Raises:
            NotFound, AlreadyExists, InvalidRequest: one of them cannot be done; nothing is changed.
            Unsupported: one needs new bytes, or DuckLake has no place for it.
            Conflict: another commit changed the table at the same time, again and again.
        """
        table = self._version()
        if any(is_heavy(table, change) for change in changes):
            refuse_in_transaction(self._unit, "a change that converts values")
            return submit(self._state, self.name, table, changes)

        def stage(unit: UnitOfWork) -> None:
            plan = plan_alter(unit.workspace.table(self.name), changes)
            if plan.change is None:
                return
            if plan.checks_null:
                self._check_null(unit, plan)
            unit.workspace.alter_table(plan.change)

        return carry_out(self._state, self._unit, stage)

    def plan_alter(self, *changes: TableChange) -> AlterPlan:
        """Return what `alter` would do, step by step, without doing it; print it.

        Raises what `alter` raises, but does not look for NULL in rows.
        """
        table = self._version()
        if any(is_heavy(table, change) for change in changes):
            return self._plan_conversion(table, changes)
        return plan_alter(table, changes)

    def _plan_conversion(self, table: TableVersion, changes: Sequence[TableChange]) -> AlterPlan:
        """Return what converting columns takes; footers tell, no row is read."""
        shadows = plan_shadows(table, changes)
        files = survey(self._state.store, table, self._state.layouts).rows.files
        size = sum(f.file_size_bytes for f in files)
        steps = [
            AlterStep(
                str(change),
                "heavy",
                f"{promotion(s.source, s.target).reason}; a job writes the files anew, with all"
                " columns that it converts at once, while everybody uses the table",
                len(files),
                size,
            )
            for change, s in zip(changes, shadows, strict=True)
        ]
        return AlterPlan(table.full_name, tuple(steps), None, frozenset())

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

    def _check_null(self, unit: UnitOfWork, plan: AlterPlan) -> None:
        table = unit.workspace.table(self.name)
        require_no_null(
            lambda: self._state.spark,
            self._state.store,
            table,
            self._state.layouts,
            plan.checks_null,
            staged=unit.workspace.staged_rows(table),
        )
