"""New rows of a table: written for its current columns, committed for its columns at the commit.

If possible, written files are committed as they are. If an ALTER in the meantime needs values that
the files do not hold, the rows are computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from shelduck.catalog.commit.rebase import moved
from shelduck.catalog.running.writers import LeaseLost
from shelduck.engine.rows.assign import assign
from shelduck.engine.rows.needed_columns import NamedRows, rescue_rows
from shelduck.engine.session import DataFrame, StructType
from shelduck.errors import Conflict, InvalidRequest
from shelduck.lake.done import Done, Loaded, discard
from shelduck.lake.lookup import replaced_columns, table_of_id
from shelduck.lake.results import Result, Staged, TableName
from shelduck.lake.state import LakeState, Writer
from shelduck.lake.unit import UnitOfWork, carry_out, counted
from shelduck.model.changes.change import AppendFiles, InlineRows, RowChange
from shelduck.model.changes.evolution import NO_EVOLUTION, Evolution
from shelduck.model.tables.constraints import CONSTRAINTS
from shelduck.model.tables.keys import DELETE_SIGN, KeyModel, folds, table_keys
from shelduck.model.tables.properties import require_known
from shelduck.model.tables.rollup import is_followed
from shelduck.model.tables.schema import FieldId
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.tables.twin import TWIN, refuse_tagged
from shelduck.model.tables.view import materialized
from shelduck.model.text.names import backticked, quote_name
from shelduck.model.types.data_types import Member
from shelduck.read.table_rows import TableRows
from shelduck.write.changes.append import append_rows, placing
from shelduck.write.changes.edits import row_rules
from shelduck.write.hooks import carry_out_rows, settled_rows, stage_rows
from shelduck.write.merge.load_rows import ordered
from shelduck.write.schema_evolution import evolved, evolved_rows, require_expected, telling_plan


@dataclass(frozen=True, slots=True)
class Manner:
    """How rows are appended: the arguments of `Table.append`."""

    by_position: bool = False
    evolution: Evolution = NO_EVOLUTION
    delete_sign: str | None = None
    in_one_task: bool = False


class _Outdated(Conflict):
    """The written files lack values that the current columns need."""


_LOST = (_Outdated, LeaseLost)


def append(
    state: LakeState, unit: UnitOfWork | None, name: TableName, df: DataFrame, how: Manner
) -> Result:
    """Append rows, in a separate commit or in the open unit."""
    # The commit compares with what others did since: the table need not be read again for it.
    first = unit or UnitOfWork(state)
    first.require_open()
    planned = first.workspace.table(name)
    if TWIN in planned.properties:
        refuse_tagged(planned)
    rows = NamedRows(df, planned, how.by_position, how.delete_sign or DELETE_SIGN)
    if how.delete_sign is not None or not is_plain(planned):
        return carry_out_rows(state, unit, lambda into: _loaded_into(into, rows, how), again=True)

    def again(own: UnitOfWork) -> Written | None:
        found = _under(own, rows)
        if is_plain(found.planned):
            return _written(state, None, found, how)
        stage_rows(own, _loaded_into(own, found, how))
        return None

    return land(state, unit, _written(state, unit, rows, how), first=first, again=again)


@dataclass(frozen=True, slots=True)
class Written:
    """New rows of a table that wait for a commit, which fits them to its newest columns.

    ``given`` are the columns that have values, by default all. The table must have the columns that
    the writer ``expects``, also at the commit. Nobody but its owner ends the ``writer``.
    """

    done: Done
    writer: Writer | None = None
    given: frozenset[FieldId] | None = None
    expects: Sequence[Member] = ()

    @property
    def planned(self) -> TableVersion:
        """The table without the columns that the rows add."""
        return self.done.table if self.done.alter is None else self.done.alter.table

    def stage(self, into: UnitOfWork) -> None:
        """Stage the rows; raises a Conflict if they lack values that the table now needs."""
        if self.done.is_nothing:
            return
        require_expected(table_of_id(into, self.planned), self.expects)
        fitted = _fitted(into, self.done, self.planned, self.given)
        if self.expects:
            # The commit fits rows to other columns; here, it has them looked at again.
            fitted = replace(fitted, changes=tuple(_planned_for(None, c) for c in fitted.changes))
        if self.writer is not None:
            into.writer, into.borrows_writer = self.writer, True
        into.stage(fitted)


def land(
    state: LakeState,
    unit: UnitOfWork | None,
    written: Written,
    *,
    first: UnitOfWork | None = None,
    again: Callable[[UnitOfWork], Written | None] | None = None,
) -> Result:
    """Commit new rows of a table, or stage them into the open unit, even if the table was renamed.

    ``first`` is as for `carry_out`. ``again`` returns the rows, written for another snapshot, or
    stages them itself; without it, rows that lack values are a Conflict.
    """
    if unit is not None:
        unit.own(written.done)
        carry_out(state, unit, written.stage)
        return Staged(**counted(written.done.counts))
    landing = _Landing(written, again)
    prepare = None if again is None else landing.prepare
    try:
        return carry_out(state, None, landing.stage, first=first, prepare=prepare, lost=_LOST)
    except BaseException:
        landing.discard()
        raise
    finally:
        landing.end()


class _Landing:
    """Written rows on their way into a commit, and ``again``, which writes them for another one."""

    def __init__(
        self, written: Written, again: Callable[[UnitOfWork], Written | None] | None
    ) -> None:
        self._now: Written | None = written
        self._again = again
        self._tried: list[UnitOfWork] = []

    def prepare(self, own: UnitOfWork, before: Exception | None) -> None:
        """Write the rows again if the last attempt found that they do not serve."""
        if self._again is not None and (self._now is None or isinstance(before, _LOST)):
            self.discard()
            self.end()
            self._now = self._again(own)

    def stage(self, own: UnitOfWork) -> None:
        """Stage the rows, unless `prepare` has."""
        self._tried.append(own)
        if self._now is not None:
            self._now.stage(own)

    def discard(self) -> None:
        """Remove the files, unless a commit may name them."""
        if self._now is not None and not any(unit.may_have_landed for unit in self._tried):
            discard(self._now.planned, self._now.done.paths)

    def end(self) -> None:
        """End the writer."""
        if self._now is not None and self._now.writer is not None:
            self._now.writer.give_up()


def is_plain(table: TableVersion) -> bool:
    """Return whether an append only adds rows: no key is folded, no rollup updated, none refused.

    Raises NewerFormat if only a newer Shelduck can tell.
    """
    if not table.properties:
        return True
    require_known(table)
    return not (folds(table) or is_followed(table) or materialized(table))


def load(unit: UnitOfWork, name: TableName, df: DataFrame, how: Manner = Manner()) -> Loaded:
    """Load rows as one statement of ``unit``, by the rules of the table."""
    rows = settled_rows(unit, name)
    df, sign = _with_sign_last(df, rows.table, how.delete_sign)
    evolution, given = how.evolution, StructType()
    if not evolution.is_none:
        given = (df if sign is None else df.drop(sign)).schema
    rows, alter = evolved_rows(rows, given, evolution)
    if evolution.rescue is not None:
        apart = () if sign is None else (sign,)
        df, _ = rescue_rows(df, rows.table, evolution.rescue, keep=apart)
    with telling_plan(unit.state, rows.table, given, evolution):
        loaded = _loaded(unit, rows, df, how, sign)
    done = loaded.done
    return loaded if done.is_nothing else replace(loaded, done=replace(done, alter=alter))


def _loaded(
    unit: UnitOfWork, rows: TableRows, df: DataFrame, how: Manner, sign: str | None
) -> Loaded:
    spark, table = unit.state.spark, rows.table
    placed = placing(unit.state, table, by_position=how.by_position)
    rules = row_rules(table)
    if rules is None:
        return Loaded(append_rows(spark, df, table, placed, in_one_task=how.in_one_task))
    keep = () if sign is None else (sign,)
    fitting = assign(df, table, by_position=how.by_position, keep=keep)
    return rules.load(spark, rows, ordered(fitting, sign), placed)


def _with_sign_last(
    df: DataFrame, table: TableVersion, sign: str | None
) -> tuple[DataFrame, str | None]:
    """Return the rows with the column that marks deleted keys at the end, and its name."""
    wanted = sign or DELETE_SIGN
    found = next((c for c in df.columns if c.lower() == wanted.lower()), None)
    if found is None:
        if sign is None:
            return df, None
        raise InvalidRequest(
            f"the rows for {table.full_name} do not have the column {quote_name(sign)}, which marks"
            " deleted keys"
        )
    keys = table_keys(table)
    if keys is None or keys.model is not KeyModel.UNIQUE:
        raise InvalidRequest(
            f"column {quote_name(found)} marks deleted keys, but {table.full_name} is not a UNIQUE"
            " KEY table; use DELETE FROM"
        )
    others = [c for c in df.columns if c != found]
    return df.select(*map(backticked, (*others, found))), found


def _written(state: LakeState, unit: UnitOfWork | None, rows: NamedRows, how: Manner) -> Written:
    planned, alter = evolved(rows.planned, rows.df.schema, how.evolution)
    fitting, given = rows.df, rows.given
    if how.evolution.rescue is not None:
        fitting, kept = rescue_rows(fitting, planned, how.evolution.rescue)
        given |= {kept}
    writer = Writer(state.store, state.leases) if unit is None else unit.writer
    try:
        with telling_plan(state, planned, rows.df.schema, how.evolution):
            # A schema change must not end between this statement and the commit of its unit.
            target = planned if unit is None else writer.register(planned)
            done = append_rows(
                state.spark,
                fitting,
                target,
                placing(state, target, by_position=rows.by_position),
                in_one_task=how.in_one_task,
                register=writer.register,
            )
    except BaseException:
        if unit is None:
            writer.give_up()
        raise
    own = writer if unit is None else None
    return Written(replace(done, alter=alter), own, given, how.evolution.expects)


def _loaded_into(into: UnitOfWork, rows: NamedRows, how: Manner) -> Loaded:
    require_expected(table_of_id(into, rows.planned), how.evolution.expects)
    meant = _under(into, rows)
    now = replace(how, by_position=meant.by_position)
    return load(into, TableName.of(meant.planned), meant.df, now)


def _under(unit: UnitOfWork, rows: NamedRows) -> NamedRows:
    """Return rows under the current names of their table and its columns.

    Raises Conflict if the table, or one of the columns, is gone.
    """
    now = table_of_id(unit, rows.planned)
    replaced = replaced_columns(unit, rows.planned, now)
    if now.columns != rows.planned.columns:
        moved(rows.planned, now, rows.given, replaced).refuse()
    return rows.under(now, replaced)


def _fitted(
    unit: UnitOfWork, done: Done, planned: TableVersion, given: frozenset[FieldId] | None
) -> Done:
    """Return what was written, as new rows of the current table."""
    now = table_of_id(unit, planned)
    if is_plain(planned) and not is_plain(now):
        raise _Outdated(f"{now.full_name} got rollups while rows were written; append again")
    # If two columns got the same id, each would read the values of the other.
    is_free = done.alter is None or now.max_column_id == planned.max_column_id
    is_held = now.properties.get(CONSTRAINTS) == planned.properties.get(CONSTRAINTS)
    if now.columns == planned.columns and is_free and is_held:
        if done.alter is not None:
            return replace(done, alter=replace(done.alter, table=now))
        return replace(done, changes=tuple(_planned_for(now, c) for c in done.changes))
    seen = moved(done.table, now, given, replaced_columns(unit, done.table, now))
    is_made_anew = done.alter is not None or any(isinstance(c, InlineRows) for c in done.changes)
    if is_made_anew or seen.must_repeat:
        raise _Outdated(
            f"the columns of {now.full_name} changed while rows were written; append again"
        )
    changes = tuple(
        replace(c, files=seen.files(c.files), planned=now) if isinstance(c, AppendFiles) else c
        for c in done.changes
    )
    return replace(done, changes=changes)


def _planned_for(now: TableVersion | None, change: RowChange) -> RowChange:
    if isinstance(change, AppendFiles | InlineRows):
        return replace(change, planned=now)
    return change
