"""ALTER TABLE of a table with rollups: which clause changes which rollup, and how.

The changes of the base and of its rollups are staged for one commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from shelduck.errors import AlreadyExists, Conflict, InvalidRequest, NotFound, ShelduckError
from shelduck.lake.evolution.alter_plan import REMAKING, AlterPlan, AlterStep
from shelduck.lake.evolution.plan import names_rollup, plan_alter
from shelduck.lake.lookup import require_checked, require_satisfied, table_of_id
from shelduck.lake.results import Committed, TableName
from shelduck.lake.state import LakeState
from shelduck.lake.unit import UnitOfWork
from shelduck.model.changes.change import AlterTable, alteration, altered, changed_texts
from shelduck.model.changes.job import Job, JobIndex, JobState, JobStep
from shelduck.model.changes.modify import ModifyColumn, OrderColumns, TableChange
from shelduck.model.changes.schema_change import (
    AddColumn,
    ChangeType,
    DropColumn,
    MoveColumn,
    RenameColumn,
)
from shelduck.model.tables.keys import KEYS, KeyModel, table_keys
from shelduck.model.tables.rollup import (
    Measure,
    Rollup,
    RollupColumn,
    definition_of,
    keeps_rows,
    uuid_of_next,
    with_rollup,
    with_rollup_names,
)
from shelduck.model.tables.schema import Field, Path, path_text
from shelduck.model.tables.table_version import Conversion, TableVersion
from shelduck.model.text.names import quote_name
from shelduck.read.table_rows import TableRows
from shelduck.rollups.following import make_anew, remake
from shelduck.rollups.rollup_plan import (
    has_other_values,
    is_current,
    measured_type,
    plan_again,
    renumbered,
)
from shelduck.rollups.rollup_tables import rollups_of, stage_rollup
from shelduck.write.hooks import settled_rows


def parted(
    base: TableVersion, rollups: Sequence[TableVersion], changes: Sequence[TableChange]
) -> Parted:
    """Return what the changes are for the base and for each rollup.

    Raises NotFound, AlreadyExists and InvalidRequest for changes that rollups do not allow.
    """
    found = Parted(base, {definition_of(r).name.lower(): r for r in rollups})
    for change in changes:
        found.take(change)
    return found


def plan_with_rollups(
    base: TableVersion, rollups: Sequence[TableVersion], changes: Sequence[TableChange]
) -> AlterPlan:
    """Return the plan for changes of a table, followed by what they do to its rollups."""
    if not rollups and not names_rollup(changes):
        return plan_alter(base, changes)
    parts = parted(base, rollups, changes)
    plans = parts.plans()
    steps = [step for plan in plans for step in plan.steps]
    rebuilt = parts.made_anew(parts.plan)
    steps += [AlterStep(f"rebuild {t.name}", str(REMAKING), REMAKING.reason) for t in rebuilt]
    return replace(plans[0], table=base.full_name, steps=tuple(steps), remakes=bool(rebuilt))


def stage_alter(
    unit: UnitOfWork,
    table: TableVersion,
    changes: Sequence[TableChange],
    *,
    remakes: bool = False,
    required: bool = False,
) -> None:
    """Stage changes of a table's columns and of its rollups.

    With ``remakes``, the same commit rebuilds the rollups whose rows change. With ``required``, it
    is a Conflict if others changed the table's rows in the meantime.

    Raises Conflict if the changes now need a job, and what `plan_alter` and `parted` raise.
    """
    parts = parted(table, list(rollups_of(unit, table)), changes)
    plan = parts.plan
    anew = parts.made_anew(plan)
    if (anew and not remakes) or (plan is not None and plan.is_heavy):
        raise Conflict(f"another commit changed {table.full_name}; alter it again")
    if plan is not None:
        require_checked(unit, table, plan)
    parts.stage(unit)
    if plan is not None and plan.checks_rows:
        require_satisfied(unit, TableName.of(table), plan.checks_rows)
    for found in anew:
        after = unit.workspace.table(TableName.of(found))
        now = unit.workspace.table(TableName.of(table))
        remake(unit, now, after, required=required)


def alter_with_rollups(
    state: LakeState, job: Job, table: TableVersion, worker: str, *, required: bool
) -> Committed:
    """Publish the clauses of a job and the rollups that they change, all in one snapshot.

    Raises Conflict if the job was cancelled or taken over, or the table was changed; with
    ``required``, also if its rows were changed.
    """
    with UnitOfWork(state, state.commit_info(f"job {job.id}")) as unit:
        name = TableName.of(table_of_id(unit, table))
        settled_rows(unit, name)
        now = unit.workspace.table(name)
        try:
            stage_alter(unit, now, job.work.clauses, remakes=True, required=required)
        except Conflict as error:
            raise InvalidRequest(str(error)) from None
        running = frozenset({JobState.RUNNING})
        unit.job = JobStep(job.id, running, JobState.FINISHED, worker=worker)
        done = unit.commit()
    if not isinstance(done, Committed):
        raise InvalidRequest(f"another commit has already made the changes of the job to {name}")
    return done


def stage_converted(
    unit: UnitOfWork, rows: TableRows, change: AlterTable, conversions: Sequence[Conversion]
) -> AlterTable:
    """Stage the rollups of a base into which ``change`` puts converted columns.

    ``rows`` are those of the base, whose files already hold the converted columns. A rollup of such
    columns then refers to the new ones, and is rebuilt if its types or values change. Returns the
    change of the base without rollups that are no longer possible; it is not staged here.
    """
    base = altered(change.table, change)
    now = replace(rows, table=base)
    left = []
    for table in list(rollups_of(unit, change.table)):
        told = renumbered(table, conversions)
        rollup = definition_of(told)
        if is_current(base, told) and not has_other_values(table, conversions):
            left.append(rollup.name)
            unit.workspace.alter_table(alteration(table, told))
            continue
        planned = plan_again(base, told)
        unit.workspace.drop_table(table)
        if planned is not None:
            left.append(rollup.name)
            made = stage_rollup(unit, base, planned, uuid_of_next(table.uuid))
            make_anew(unit, base, made, now, required=True)
    properties = with_rollup_names(base.properties, tuple(left))
    texts = changed_texts(change.table.properties, properties)
    return replace(change, properties=texts)


@dataclass
class Parted:
    """Changes of a base, and of its rollups by their names in lower case.

    ``now`` and ``tables`` are the base and the rollups after the changes so far, on which later
    ones build, and ``held`` what the rollups then contain.
    """

    base: TableVersion
    rollups: dict[str, TableVersion]
    own: list[TableChange] = field(default_factory=list)
    theirs: dict[str, list[TableChange]] = field(default_factory=dict)
    now: TableVersion = field(init=False)
    tables: dict[str, TableVersion] = field(init=False)
    held: dict[str, Rollup] = field(init=False)
    _added: dict[str, AddColumn] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.now = self.base
        self.tables = {name: self._as_free(table) for name, table in self.rollups.items()}
        self.held = {name: definition_of(table) for name, table in self.rollups.items()}

    def take(self, change: TableChange) -> None:
        """Assign one change."""
        match change:
            case AddColumn():
                self._add(change)
            case DropColumn():
                self._drop(change)
            case RenameColumn():
                self._rename(change)
            case ModifyColumn() if change.rollup is not None:
                self._move(change)
            case OrderColumns() if change.rollup is not None:
                self._for(change.rollup, replace(change, rollup=None))
            case ModifyColumn() | ChangeType():
                self._retype(change)
            case _:
                self._for_base(change)

    @cached_property
    def plan(self) -> AlterPlan | None:
        """The plan of the base's own changes, None if there are none."""
        return plan_alter(self.base, self.own) if self.own else None

    def plans(self) -> list[AlterPlan]:
        """Return this plan, and those for what rollups themselves are to change."""
        own = [] if self.plan is None else [self.plan]
        return own + [self._plan_of(name) for name in self.theirs]

    def stage(self, unit: UnitOfWork) -> None:
        """Stage the change of the base and those of its rollups, but no rows."""
        if self.plan is not None and self.plan.change is not None:
            unit.workspace.alter_table(self.plan.change)
        for name in self.theirs:
            found, _ = self._change_of(name)
            if found is not None:
                unit.workspace.alter_table(found)

    def made_anew(self, plan: AlterPlan | None) -> list[TableVersion]:
        """Return the rollups whose rows have to be rebuilt with this plan of the base.

        Some of their rows become one, or their columns get other types or values.
        """
        change = None if plan is None else plan.change
        base = self.base if change is None else altered(self.base, change)
        conversions = [] if plan is None else [s.conversion for s in plan.shadows]
        return [
            table for name, table in self.rollups.items() if self._is_anew(name, base, conversions)
        ]

    def indexes(self, plan: AlterPlan | None) -> tuple[JobIndex, ...]:
        """Return the table and the rollups that a job for these changes would change.

        ``plan`` is the plan of the table's own changes.
        """
        found = [] if plan is None else [JobIndex(self.base.name, self.base.id)]
        anew = self.made_anew(plan)
        for name, table in self.rollups.items():
            if name in self.theirs or table in anew:
                found.append(JobIndex(self.held[name].name, table.id))
        return tuple(found)

    def _is_anew(self, name: str, base: TableVersion, conversions: Sequence[Conversion]) -> bool:
        table = self.rollups[name]
        change, refolds = self._change_of(name)
        if refolds or has_other_values(table, conversions):
            return True
        after = renumbered(table if change is None else altered(table, change), conversions)
        # A rollup that was already stale is left to a refresh.
        return is_current(self.base, table) and not is_current(base, after)

    def _plan_of(self, name: str) -> AlterPlan:
        return plan_alter(self._as_free(self.rollups[name]), self.theirs[name])

    def _change_of(self, name: str) -> tuple[AlterTable | None, bool]:
        """Return the change of a rollup itself, and whether some of its rows become one."""
        table = self.rollups[name]
        if name not in self.theirs:
            return None, False
        plan = self._plan_of(name)
        if plan.change is None:
            return None, plan.refolds
        given = table.properties
        keys = plan.change.properties.get(KEYS)
        if keys is not None:
            given = given | {KEYS: keys}
        parts = {c.id: c for c in self.held[name].columns}
        rollup = replace(self.held[name], columns=tuple(parts[f.id] for f in plan.change.columns))
        texts = changed_texts(table.properties, with_rollup(given, rollup))
        return replace(plan.change, table=table, properties=texts), plan.refolds

    def _as_free(self, table: TableVersion) -> TableVersion:
        """Return a rollup with the type widening that its base allows."""
        wide = {k: v for k, v in self.base.properties.items() if k.startswith("delta.")}
        return replace(table, properties=table.properties | wide)

    def _add(self, change: AddColumn) -> None:
        plain = replace(change, rollup=None)
        key, before = change.path[0].lower(), self._added.get(change.path[0].lower())
        is_there = before is None and self.now.columns.find(change.path) is not None
        if change.rollup is not None and is_there:
            raise AlreadyExists(
                f"cannot add column {quote_name(change.path[0])} to rollup {change.rollup}: base"
                f" table {self.base.full_name} already has it; create a new rollup with it",
                about="column",
            )
        if before is None or change.rollup is None:
            # A position in a rollup does not apply to the base, where the column comes last.
            self._for_base(plain if change.rollup is None else replace(plain, position=None))
            self._added[key] = plain
        elif replace(before, position=None) != replace(plain, position=None):
            raise InvalidRequest(
                f"Repeatedly add same column with different definition: {change.path[0]}"
            )
        for name in self._takers(change):
            self._for(name, self._in_rollup(plain, name))
            self._hold(name, plain)

    def _hold(self, name: str, change: AddColumn) -> None:
        """Record what a new column of a rollup comes from."""
        made = self.tables[name].columns.find(change.path)
        source = self.now.columns.find(change.path)
        if made is None or source is None:
            return
        keys = table_keys(self.now)
        how = None if keys is None else keys.aggregation(source.id)
        measure = None if how is None else Measure(how.value)
        held = self.held[name]
        column = RollupColumn(made.id, source.id, measure)
        self.held[name] = replace(held, columns=(*held.columns, column))

    def _takers(self, change: AddColumn) -> list[str]:
        """Return the rollups that get a new column."""
        keys = table_keys(self.base)
        found = [] if change.rollup is None else [self._known(change.rollup)]
        if keys is None or not keys.folds or len(change.path) > 1:
            return found
        is_key = change.key or (keys.model is KeyModel.AGGREGATE and change.aggregation is None)
        if not is_key:
            return found
        for name, table in self.rollups.items():
            needs_all = keys.model is KeyModel.UNIQUE or any(
                c.measure in (Measure.REPLACE, Measure.REPLACE_IF_NOT_NULL)
                for c in definition_of(table).columns
            )
            if needs_all and name not in found:
                found.append(name)
        return found

    def _in_rollup(self, change: AddColumn, name: str) -> AddColumn:
        table = self.tables[name]
        if table.columns.find(change.path) is not None:
            raise InvalidRequest(f"Repeatedly add column: {change.path[0]}")
        keys = table_keys(self.base)
        if self._combines(name) and (keys is None or not keys.folds):
            raise InvalidRequest(
                f"cannot add column {quote_name(change.path[0])} to rollup"
                f" {definition_of(table).name} of {self.base.full_name}: the rollup combines rows;"
                " add the column to the base table, and create another rollup"
            )
        if change.aggregation is not None:
            kind = measured_type(change.type, Measure(change.aggregation.value))
            change = replace(change, type=kind)
        after = change.position.after if change.position is not None else None
        if after is not None and table.columns.find((after,)) is None:
            change = replace(change, position=None)
        return replace(change, nullable=True) if change.default is None else change

    def _drop(self, change: DropColumn) -> None:
        if change.rollup is not None:
            name = self._known(change.rollup)
            gone = self.tables[name].columns.get(change.path, change.rollup)
            self._refuse_last_measure(name, gone)
            self._for(name, replace(change, rollup=None))
            return
        keys = table_keys(self.base)
        holders = self._holders(change.path)
        self._for_base(change)
        for name, part, held in holders:
            if part.measure is not None and (keys is None or not keys.folds):
                raise InvalidRequest(
                    f"cannot drop column {path_text(change.path)}: rollup"
                    f" {self.held[name].name} uses it; drop the rollup first"
                )
            self._for(name, DropColumn((held.name,)))

    def _refuse_last_measure(self, name: str, gone: Field) -> None:
        """Raise InvalidRequest if a rollup with groups would have only their keys left.

        The rules for a new rollup do not allow that, so it could not be built again.
        """
        keys = table_keys(self.base)
        if not self._combines(name) or (keys is not None and keys.folds):
            return
        measures = {c.id for c in self.held[name].columns if c.measure is not None} - {gone.id}
        left = [f for f in self.tables[name].columns if f.id in measures]
        if not left:
            raise InvalidRequest(
                f"cannot drop column {quote_name(gone.name)} of rollup {self.held[name].name} of"
                f" {self.base.full_name}: it is the last aggregate; drop the rollup instead"
            )

    def _holders(self, path: Path) -> list[tuple[str, RollupColumn, Field]]:
        """Return the columns of rollups that come from one column of the base."""
        column = self.now.columns.find(path)
        if column is None:
            return []
        return [
            (name, part, held)
            for name, rollup in self.held.items()
            for part in rollup.columns
            if part.source == column.id
            and (held := self.tables[name].columns.by_id(part.id)) is not None
        ]

    def _rename(self, change: RenameColumn) -> None:
        column = self.now.columns.find(change.path)
        holders = self._holders(change.path)
        self._for_base(change)
        for name, _, held in holders:
            if column is None or held.name.lower() != column.name.lower():
                continue
            other = self.tables[name].columns.find((change.new_name,))
            if other is not None and other.id != held.id:
                raise AlreadyExists(
                    f"column {quote_name(change.new_name)} already exists in rollup"
                    f" {self.held[name].name} of {self.base.full_name}; choose another name, or"
                    " drop the rollup first",
                    about="column",
                )
            self._for(name, RenameColumn((held.name,), change.new_name))

    def _retype(self, change: ModifyColumn | ChangeType) -> None:
        """Change a type: equal values stay as they are in rollups too, others are rebuilt."""
        before = self.now
        column = before.columns.find(change.path)
        holders = self._holders(change.path)
        self._for_base(change)
        if column is None or not column.is_leaf:
            return
        has_using = isinstance(change, ChangeType) and change.using is not None
        if column.type == change.type and not has_using:
            return
        is_light = not _is_heavy(before, change)
        keys = table_keys(self.base)
        for name, _, held in holders:
            if is_light and held.type == column.type:
                self._for(name, ChangeType((held.name,), change.type))
            elif not is_light and self._combines(name) and not (keys and keys.folds):
                raise InvalidRequest(
                    f"cannot change the type of column {path_text(change.path)}: rollup"
                    f" {self.held[name].name} uses it; drop the rollup first"
                )

    def _combines(self, rollup: str) -> bool:
        """Return whether one row of a rollup may combine several rows of the base."""
        own = table_keys(self.rollups[rollup])
        return not keeps_rows(self.held[rollup], own, table_keys(self.base))

    def _move(self, change: ModifyColumn) -> None:
        if change.position is None:
            raise InvalidRequest(
                f"FROM {change.rollup} is only for moving a column within a rollup; leave it out"
                " to change the type in the table and in all rollups"
            )
        assert change.rollup is not None
        self._for(change.rollup, MoveColumn(change.path, change.position))

    def _known(self, rollup: str) -> str:
        if rollup.lower() == self.base.name.lower():
            raise InvalidRequest(
                f"{rollup} is the table itself, not a rollup of it; leave out TO or FROM {rollup}"
            )
        if rollup.lower() not in self.rollups:
            names = [definition_of(r).name for r in self.rollups.values()]
            raise NotFound(
                f"Index[{rollup}] does not exist in table[{self.base.name}]; existing rollups:"
                f" {', '.join(names) or 'none'}",
                about="rollup",
            )
        return rollup.lower()

    def _for(self, rollup: str, change: TableChange) -> None:
        name = self._known(rollup)
        self.theirs.setdefault(name, []).append(change)
        self.tables[name] = _after(self.tables[name], change)

    def _for_base(self, change: TableChange) -> None:
        self.own.append(change)
        self.now = _after(self.now, change)


def _after(table: TableVersion, change: TableChange) -> TableVersion:
    """Return a table after a change; errors are found when all changes are planned together."""
    try:
        plan = plan_alter(table, [change])
    except ShelduckError:
        return table
    # Columns that a job fills have no values yet.
    return table if plan.change is None or plan.shadows else altered(table, plan.change)


def _is_heavy(table: TableVersion, change: TableChange) -> bool:
    """Return whether a job converts the values, as for every new type without type widening."""
    try:
        return plan_alter(table, [change]).is_heavy
    except ShelduckError:
        return True
