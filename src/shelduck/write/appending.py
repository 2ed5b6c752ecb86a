"""New rows of a table: written for its current columns, committed for its columns at the commit.

If possible, written files are committed as they are. If an ALTER in the meantime needs values that
the files do not hold, the rows are computed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from shelduck.catalog.commit.rebase import moved
from shelduck.catalog.databases.retry import tries
from shelduck.catalog.running.writers import LeaseLost
from shelduck.engine.rows.assign import assign
from shelduck.engine.rows.needed_columns import NamedRows
from shelduck.engine.rows.rescuing import rescue_rows
from shelduck.engine.session import DataFrame, StructType
from shelduck.errors import Conflict, InvalidRequest
from shelduck.lake.done import Done, Loaded, discard
from shelduck.lake.leases import Writer
from shelduck.lake.lookup import replaced_columns, table_of_id
from shelduck.lake.results import Result, Staged, TableName
from shelduck.lake.state import LakeState
from shelduck.lake.unit import UnitOfWork, carry_out, counted
from shelduck.model.changes.change import AppendFiles, InlineRows, RowChange
from shelduck.model.changes.evolution import NO_EVOLUTION, Evolution
from shelduck.model.tables.constraints import CONSTRAINTS
from shelduck.model.tables.keys import DELETE_SIGN, KeyModel, folds, table_keys
from shelduck.model.tables.properties import require_known
from shelduck.model.tables.rollup import is_followed
from shelduck.model.tables.schema import FieldId
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import backticked, quote_name
from shelduck.model.types.data_types import Member
from shelduck.read.table_rows import TableRows
from shelduck.text.ddl.defaults import expression_for_spark
from shelduck.write.changes.append import append_rows
from shelduck.write.changes.inlining import limits_of
from shelduck.write.changes.update import Replacing, row_rules
from shelduck.write.hooks import carry_out_rows, settled_rows
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


def append(
    state: LakeState, unit: UnitOfWork | None, name: TableName, df: DataFrame, how: Manner
) -> Result:
    """Append rows, in a separate commit or in the open unit."""
    # The commit compares with what others did since: the table need not be read again for it.
    first = unit or UnitOfWork(state)
    first.require_open()
    planned = first.workspace.table(name)
    rows = NamedRows(df, planned, how.by_position, how.delete_sign or DELETE_SIGN)
    if how.delete_sign is not None or not is_plain(planned):
        return _load(state, unit, rows, how)
    for each in tries():
        with each.may_lose(_Outdated, LeaseLost):
            return _append(state, unit, rows, how, first)
        first = UnitOfWork(state)
        rows = _under(first, rows)
        if not is_plain(rows.planned):
            return _load(state, unit, rows, how)
    raise AssertionError("unreachable")


def land(
    state: LakeState,
    unit: UnitOfWork | None,
    done: Done,
    writer: Writer | None = None,
    *,
    given: frozenset[FieldId] | None = None,
    first: UnitOfWork | None = None,
    expects: Sequence[Member] = (),
) -> Result:
    """Commit new rows of a table, or stage them into the open unit, even if the table was renamed.

    ``given`` are the columns that have values, by default all. ``first`` is as for `carry_out`. The
    table must have the columns that the writer ``expects``, also at the commit.
    """
    if done.is_nothing:
        return Staged() if unit else carry_out(state, None, lambda _unit: None)
    planned = done.table if done.alter is None else done.alter.table

    tried: list[UnitOfWork] = []

    def stage(into: UnitOfWork) -> None:
        tried.append(into)
        require_expected(table_of_id(into, planned), expects)
        fitted = _fitted(into, done, planned, given)
        if expects:
            # The commit fits rows to other columns; here, it has them looked at again.
            fitted = replace(fitted, changes=tuple(_planned_for(None, c) for c in fitted.changes))
        if writer is not None and unit is None:
            # Another attempt needs it, so its owner releases it.
            into.writer, into.borrows_writer = writer, True
        into.stage(fitted)

    if unit is not None:
        unit.own(done)
        carry_out(state, unit, stage)
        return Staged(**counted(done.counts))
    try:
        return carry_out(state, None, stage, first=first)
    except BaseException:
        if not any(own.may_have_landed for own in tried):
            discard(planned, done.paths)
        raise


def is_plain(table: TableVersion) -> bool:
    """Return whether an append only adds rows: no key is folded, and no rollup is updated.

    Raises NewerFormat if only a newer Shelduck can tell.
    """
    if not table.properties:
        return True
    require_known(table)
    return not folds(table) and not is_followed(table)


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
    spark, show, table = unit.state.spark, unit.state.show_progress, rows.table
    limits = limits_of(unit.state.store, table)
    rules = row_rules(table)
    if rules is None:
        done = append_rows(
            spark,
            df,
            table,
            by_position=how.by_position,
            in_one_task=how.in_one_task,
            show_progress=show,
            limits=limits,
        )
        return Loaded(done)
    keep, render = () if sign is None else (sign,), expression_for_spark
    fitting = assign(df, table, render_expression=render, by_position=how.by_position, keep=keep)
    return rules.load(spark, rows, ordered(fitting, sign), Replacing(how.by_position, limits, show))


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


def _append(
    state: LakeState, unit: UnitOfWork | None, rows: NamedRows, how: Manner, first: UnitOfWork
) -> Result:
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
                by_position=rows.by_position,
                in_one_task=how.in_one_task,
                show_progress=state.show_progress,
                limits=limits_of(state.store, target),
                register=writer.register,
            )
        done = replace(done, alter=alter)
        expects = how.evolution.expects
        return land(state, unit, done, writer, given=given, first=first, expects=expects)
    finally:
        if unit is None:
            writer.give_up()


def _load(state: LakeState, unit: UnitOfWork | None, rows: NamedRows, how: Manner) -> Result:
    def prepare(into: UnitOfWork) -> Loaded:
        require_expected(table_of_id(into, rows.planned), how.evolution.expects)
        meant = _under(into, rows)
        now = replace(how, by_position=meant.by_position)
        return load(into, TableName.of(meant.planned), meant.df, now)

    return carry_out_rows(state, unit, prepare, again=True)


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
