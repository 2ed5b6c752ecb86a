"""ALTER, its plan, RENAME and DROP of a table, and its rollups: heavy changes are jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from shelduck import clock
from shelduck.alter.undrop import stage_undrop
from shelduck.catalog.commit.view_follower import ViewFollower
from shelduck.errors import Conflict, InvalidRequest, Unsupported
from shelduck.jobs.dictionary_proof import with_dictionaries
from shelduck.jobs.jobs import SchemaChangeJob, submit, submit_remaking, submit_rollups
from shelduck.keys.unique_keys import require_apart, told_of_keys
from shelduck.lake.evolution.alter_plan import AlterPlan
from shelduck.lake.evolution.plan import names_rollup, plan_alter
from shelduck.lake.followed_views import planned_views
from shelduck.lake.lookup import (
    TableHandle,
    require_checked,
    require_satisfied,
    require_unconverted,
    streams_into,
    with_cost,
)
from shelduck.lake.preflight import Preflight, preflight
from shelduck.lake.results import Committed, Result, Staged
from shelduck.lake.unit import UnitOfWork, carry_out, refuse_in_transaction
from shelduck.model.changes.change import AlterTable
from shelduck.model.changes.constraining import AddConstraint
from shelduck.model.changes.modify import TableChange
from shelduck.model.changes.schema_change import AddColumn, ChangeType
from shelduck.model.shadows.shadows import of_dictionaries, of_numbers
from shelduck.model.tables.rollup import Measure, MeasureSpec, RollupSpec, refuse_rollup
from shelduck.model.tables.table_version import Feature, TableVersion
from shelduck.model.text.names import split_name
from shelduck.rollups import following
from shelduck.rollups.altered_bases import parted, plan_with_rollups, stage_alter
from shelduck.rollups.rollup_tables import drop_rollup, rollups_of
from shelduck.text.ddl.defaults import value_at


def _noted(done: Result, plans: Sequence[AlterPlan]) -> Result:
    note = "; ".join(dict.fromkeys(plan.note for plan in plans if plan.note))
    return replace(done, note=note) if note and isinstance(done, Committed) else done


def _proof(
    unit: UnitOfWork, table: TableVersion, plan: AlterPlan, *, opens: bool = True
) -> Preflight | None:
    """Return what is proven about the values of a plan, None if nothing can be.

    Files are looked at only if it ``opens`` them.
    """
    found = preflight(unit, table, plan) if of_numbers(plan.shadows) else None
    if opens and of_dictionaries(plan.shadows):
        return with_dictionaries(unit, table, plan, found)
    return found


def _refuse(
    unit: UnitOfWork, table: TableVersion, plan: AlterPlan, found: Preflight | None
) -> None:
    """Raise the error of a job for values that certainly fail, and for keys that become equal."""
    if found is not None:
        found.refuse()
    if plan.meeting and not plan.folds:
        require_apart(unit, table, plan, found)


def _require_format(unit: UnitOfWork, table: TableVersion, plan: AlterPlan) -> None:
    """Raise what `Format.require` raises, for the names and the partitioning of a plan."""
    if (change := plan.change) is not None:
        form = unit.state.store.format
        form.require(table.full_name, change.new_names, change.partition or ())


class ShapeVerbs(TableHandle, in_parts=True):
    """Changing columns and the name."""

    def alter(
        self, *changes: TableChange, timeout: int | None = None, wait: bool = False
    ) -> Result | SchemaChangeJob:
        """Change the schema; all changes are one snapshot, and no file is rewritten.

        If values have to be converted, or files or rollups rebuilt, a job is returned: its
        `SchemaChangeJob.wait` does the work, in this process or any other, and publishes all
        changes of the call at once, including those of rollups. If the catalog proves that all
        values of a narrower number fit, no job is needed.

        Args:
            changes: From `shelduck.add_column`, `rename_column`, `set_partitioning` and the like,
                applied in order.
            timeout: Seconds after which a job is cancelled; by default a day, the option
                alter_table_timeout_second.
            wait: Whether to run a job to its end before returning, and return what
                `SchemaChangeJob.wait` does. For a small table, this takes fewer steps.

        Raises:
            NotFound, AlreadyExists, InvalidRequest: a change is not possible; nothing is changed.
                AlreadyExists also if the table has an open job; InvalidRequest also if the catalog
                or a dictionary in a file shows a value that cannot be converted.
            Unsupported: values cannot be converted, or DuckLake does not support the change.
            Conflict: other commits kept changing the table at the same time.
        """
        changes = self._with_moments(changes)
        view = self._view()
        # A light change opens a DuckDB file once; a job does not keep it from its workers.
        with self._state.store.session():
            table = view.workspace.table(self.name)
            if Feature.IS_ROLLUP in table.features:
                refuse_rollup(table)
            follows = Feature.HAS_ROLLUPS in table.features or names_rollup(changes)
            plan = None if follows else self._planned(view, table, changes)
            if plan is not None and not plan.is_heavy:
                return self._alter_lightly(view, table, changes, plan)
        if plan is None:
            job = self._alter_with_rollups(view, table, changes, timeout)
            return job.wait() if wait and isinstance(job, SchemaChangeJob) else job
        refuse_in_transaction(self._unit, "a change that converts values")
        _require_format(view, table, plan)
        if plan.change is not None and any(not isinstance(c, ChangeType) for c in changes):
            self._views_after(view, plan.change).require_all(table.full_name, plan.change.views)
        # Dictionaries take seconds, in which others may open a DuckDB file.
        if plan.meeting:
            _refuse(view, table, plan, _proof(view, table, plan))
        elif of_dictionaries(plan.shadows):
            _refuse(view, table, plan, with_dictionaries(view, table, plan, None))
        return submit(self._state, table, plan, changes, timeout, wait=wait)

    def undrop_column(self, path: str) -> Result:
        """Bring the column back that was dropped last under this name, with the values in files.

        It has its old type, default, comment and place again. Rows written since read NULL, or the
        initial default that the column had. No file is written.

        Args:
            path: The name that it had, or the path of a struct's field.

        Raises:
            NotFound: no column of that name was dropped; the message lists those that were.
            AlreadyExists: a column has the name; rename it first.
            InvalidRequest: rows that had it were written again without it, by an UPDATE or a
                compaction; the message says where their values are. Or it is NOT NULL, and rows
                were written since.
            Unsupported: the table has keys, or is a rollup.
        """
        wanted = split_name(path)
        return carry_out(
            self._state, self._unit, lambda unit: stage_undrop(unit, self.name, wanted)
        )

    def _with_moments(self, changes: Sequence[TableChange]) -> tuple[TableChange, ...]:
        """Return the changes; new columns have the present value of defaults that are expressions.

        It is computed once, and rows that are there read it for ever. Conditions get their time
        zone.
        """

        def told(change: TableChange) -> TableChange:
            if isinstance(change, AddConstraint):
                return change.made_in(self._state.zone)
            if not isinstance(change, AddColumn) or change.default is None:
                return change
            if change.default.literal or change.initial is not None:
                return change
            local = clock.now().astimezone(self._state.time_zone())
            return replace(change, initial=value_at(change.default, change.type, local))

        return tuple(map(told, changes))

    def _alter_lightly(
        self, view: UnitOfWork, table: TableVersion, changes: Sequence[TableChange], plan: AlterPlan
    ) -> Result:
        def stage(unit: UnitOfWork) -> None:
            nonlocal plan
            now = unit.workspace.table(self.name)
            plan = plan if now == table else self._planned(unit, now, changes)
            self._stage(unit, plan)

        done = carry_out(self._state, self._unit, stage, first=view)
        return _noted(done, [plan])

    def _alter_with_rollups(
        self,
        view: UnitOfWork,
        table: TableVersion,
        changes: Sequence[TableChange],
        timeout: int | None,
    ) -> Result | SchemaChangeJob:
        """Change a table and its rollups at once, by a job if rows have to be rebuilt."""
        parts = parted(table, list(rollups_of(view, table)), changes)
        plan = parts.plan
        indexes = parts.indexes(plan)
        if plan is not None and plan.is_heavy:
            refuse_in_transaction(self._unit, "a change that converts values")
            if parts.theirs:
                raise Unsupported(
                    f"ALTER TABLE {self.name}: converting values or dropping a key cannot be"
                    " combined with changes of columns that rollups contain; write two statements"
                )
            _refuse(view, table, plan, _proof(view, table, plan))
            return submit(self._state, table, plan, changes, timeout, indexes=indexes)
        if parts.made_anew(plan):
            refuse_in_transaction(self._unit, "a change that rebuilds rollups")
            return submit_remaking(self._state, table, changes, indexes, timeout)

        def stage(unit: UnitOfWork) -> None:
            stage_alter(unit, unit.workspace.table(self.name), changes)

        done = carry_out(self._state, self._unit, stage, first=view)
        if self._unit is None:
            following.refresh_by_id(self._state, table)
        return _noted(done, parts.plans())

    def _planned(
        self, unit: UnitOfWork, table: TableVersion, changes: Sequence[TableChange]
    ) -> AlterPlan:
        """Return the plan of a table without rollups, a light one if all values are proven to fit.

        Raises the error of its job if the catalog shows that a value does not.
        """
        plan = plan_alter(table, changes)
        found = _proof(unit, table, plan, opens=False) if plan.is_heavy else None
        if found is None:
            return plan
        if found.narrows:
            return plan_alter(table, changes, narrows=found.narrows)
        if self._unit is None:
            found.refuse()
        return plan

    def _stage(self, unit: UnitOfWork, plan: AlterPlan) -> None:
        if plan.is_heavy:
            raise Conflict(f"another commit changed {self.name}; alter it again")
        if plan.checks_null:
            require_checked(unit, unit.workspace.table(self.name), plan)
        if plan.change is not None:
            if plan.change.properties:
                require_unconverted(unit, plan.change)
            unit.workspace.alter_table(plan.change)
        if plan.checks_rows:
            require_satisfied(unit, self.name, plan.checks_rows)

    def plan_alter(self, *changes: TableChange) -> AlterPlan:
        """Return what `alter` would do, step by step, without doing it; print it.

        Raises what `alter` raises, but does not look for NULL in rows, and tells which values
        would fail. What a job would rewrite is taken from the catalog. If Spark runs, the
        dictionaries of large files are read for texts and floats; else no file is. Rows that
        the catalog keeps count as one file for each version of their columns, without bytes.
        """
        changes = self._with_moments(changes)
        view = self._view()
        table = view.workspace.table(self.name)
        plan = plan_with_rollups(table, list(rollups_of(view, table)), changes)
        _require_format(view, table, plan)
        # It starts no Spark, which the page does not have.
        found = _proof(view, table, plan, opens=self._state.has_spark)
        if found is not None:
            narrows = found.narrows
            plan = plan_alter(table, changes, narrows=narrows) if narrows else found.told(plan)
        if plan.meeting:
            plan = told_of_keys(view, table, plan, found)
        if plan.change is not None:
            told = [
                f"table {sink.full_name} follows: the next batch of its stream brings the change"
                for sink, one in (streams_into(view) if plan.change.changed else ())
                if one.source == table.uuid
            ]
            plan = replace(plan, views=(*self._views_after(view, plan.change).told, *told))
        return with_cost(self._state, table, plan)

    def _views_after(self, unit: UnitOfWork, change: AlterTable) -> ViewFollower:
        """Return the views of the lake as a change will leave them."""
        workspace = unit.workspace
        with workspace.reading() as connection:
            named = workspace.schemas(), workspace.table
            return planned_views(connection, *named, change, workspace.macros())

    def rename(self, new_name: str) -> Result:
        """Rename the table inside its schema; this object follows, and files stay where they are.

        ``new_name`` is one name; dots are part of it. Raises AlreadyExists if it is taken.
        """

        def stage(unit: UnitOfWork) -> None:
            following.rename_with_rollups(unit, unit.workspace.table(self.name), new_name)

        result = carry_out(self._state, self._unit, stage)
        self.name = replace(self.name, name=new_name)
        return result

    def drop(self) -> Result:
        """Drop the table; older snapshots still show it."""

        def stage(unit: UnitOfWork) -> None:
            following.drop_with_rollups(unit, unit.workspace.table(self.name))

        return carry_out(self._state, self._unit, stage)


class RollupVerbs(TableHandle, in_parts=True):
    """Making, dropping and refreshing rollups."""

    def add_rollup(
        self,
        name: str,
        columns: Sequence[str],
        aggregates: Mapping[str, str | tuple[str, str]] | None = None,
        *,
        timeout: int | None = None,
    ) -> SchemaChangeJob:
        """Return the job that builds a rollup: call its `SchemaChangeJob.wait`.

            table.add_rollup("by_city", ["city"], {"cost": ("sum", "cost"), "n": "count"}).wait()

        From then on Shelduck's writes but ADD FILES update it in the same snapshot, and queries are
        answered from it if that is less work. All readers see it as the table ``t$name``.

        Args:
            name: The name of the rollup.
            columns: Columns of this table. In a DUPLICATE table, the rollup is sorted by them or,
                with ``aggregates``, rows are grouped by them. A UNIQUE rollup has all keys, in
                another order; an AGGREGATE rollup may leave some out.
            aggregates: For tables that keep all rows: the new columns, each ``"count"`` or a pair
                of ``sum``, ``min``, ``max`` or ``count`` and the column to combine.
            timeout: Seconds after which the job is cancelled; by default a day.

        Raises:
            InvalidRequest, NotFound: the rollup could not be kept up to date, or would be useless.
            AlreadyExists: the name is taken, or the table has an open job.
        """
        refuse_in_transaction(self._unit, "making a rollup")
        made = tuple(_measure(n, how) for n, how in (aggregates or {}).items())
        view = self._view()
        table = view.workspace.table(self.name)
        refuse_rollup(table)
        spec = RollupSpec(name, tuple(columns), made)
        return submit_rollups(view, table, [spec], timeout)

    def drop_rollup(self, name: str) -> Result:
        """Drop a rollup; older snapshots still show it. NotFound lists the existing ones."""

        def stage(unit: UnitOfWork) -> None:
            drop_rollup(unit, unit.workspace.table(self.name), name)

        return carry_out(self._state, self._unit, stage)

    def refresh_rollups(self) -> Result:
        """Update all rollups that another writer left outdated, in one snapshot.

        The next write of Shelduck does this too; until then, queries read the table itself.
        """
        if self._unit is not None:
            following.refresh(self._unit, self._unit.workspace.table(self.name))
            return Staged()
        return following.refresh_all(self._state, self.name)


def _measure(name: str, how: str | tuple[str, str]) -> MeasureSpec:
    word, column = (how, None) if isinstance(how, str) else how
    found = next((m for m in Measure if m.value == str(word).upper()), None)
    if found is None or (column is None and found is not Measure.COUNT):
        raise InvalidRequest(
            f'aggregate {name!r} must be "count" or a pair such as ("sum", "cost"), not {how!r}'
        )
    return MeasureSpec(name, found, column)
