"""Writes to tables with a key model: rows of other writers are folded first, so keys are unique."""

from __future__ import annotations

from dataclasses import dataclass, replace

from shelduck.catalog.commit.settled import is_settled, settled_at
from shelduck.errors import InvalidRequest
from shelduck.model.changes.evolution import NO_EVOLUTION, Evolution
from shelduck.model.changes.records import Settling
from shelduck.model.tables.keys import DELETE_SIGN, KeyModel, table_keys
from shelduck.model.tables.properties import require_known
from shelduck.model.tables.rollup import is_followed, rollup_of, rollup_table
from shelduck.model.tables.table_version import Feature, TableVersion
from shelduck.model.text.quoting import backticked, quote_name
from shelduck.operations.done import Counts, Done
from shelduck.operations.read.table_rows import TableRows
from shelduck.operations.write.append import append_rows
from shelduck.operations.write.inlining import limits_of
from shelduck.operations.write.load import Loaded, fold_rows, load_rows
from shelduck.rows.evolving import evolved_rows, telling_plan
from shelduck.spark.merge.load_rows import ordered
from shelduck.spark.rows.assign import assign
from shelduck.spark.rows.rescuing import rescue_rows
from shelduck.spark.session import DataFrame, StructType
from shelduck.sql.ddl.defaults import expression_for_spark
from shelduck.work.hooks import stage_rows
from shelduck.work.lookup import rows_of
from shelduck.work.results import TableName
from shelduck.work.table_changes import feed_since
from shelduck.work.unit import UnitOfWork


def folds(table: TableVersion) -> bool:
    """Return whether a table has at most one row of each key."""
    if Feature.KEYS not in table.features:
        return False
    keys = table_keys(table)
    return keys is not None and keys.folds


def is_plain(table: TableVersion) -> bool:
    """Return whether an append only adds rows: no key is folded, and no rollup is updated.

    Raises NewerFormat if only a newer Shelduck can tell.
    """
    if not table.properties:
        return True
    require_known(table)
    return not folds(table) and not is_followed(table)


def changed_rows(unit: UnitOfWork, name: TableName, *, writes: bool = False) -> TableRows:
    """Return where a table's rows are, for a statement that deletes, or ``writes``, some.

    Raises InvalidRequest for a rollup, whose rows follow those of its base.
    """
    refuse_rollup(unit.workspace.table(name))
    return rows_of(unit, name, writes=writes, deletes=True, needs_all=False)


def refuse_rollup(table: TableVersion) -> None:
    """Raise InvalidRequest for a rollup: users can change only its base."""
    rollup = rollup_of(table) if Feature.ROLLUP in table.features else None
    if rollup is not None:
        base = table.name.removesuffix(rollup_table("", rollup.name))
        raise InvalidRequest(
            f"cannot change {table.full_name}: it is rollup {rollup.name} of {base} and follows its"
            f" changes; change {base}, or use DROP ROLLUP {rollup.name}"
        )


def settled_rows(unit: UnitOfWork, name: TableName) -> TableRows:
    """Return where a table's rows are, for a statement that writes some.

    In a table with a key model, rows that another writer added without folding are folded first, in
    the same commit.
    """
    rows = changed_rows(unit, name, writes=True)
    if not folds(rows.table) or unit.settles(rows.table.id):
        return rows
    done = folded_done(unit, rows)
    if done.is_nothing:
        return rows
    stage_rows(unit, replace(done, counts=Counts(files=done.counts.files)))
    return rows_of(unit, name, writes=True, needs_all=False)


def folded_done(unit: UnitOfWork, rows: TableRows) -> Done:
    """Return the folding of rows that other writers put into a table with a key model."""
    table, base = rows.table, unit.workspace.base
    settling = Settling(table.id, frozenset({table.id}), base.id, alone=True)
    unit.settle(settling)
    if table.id < 0 or not (rows.files or any(part.rows for part in rows.inlined)):
        return Done(table)
    with unit.state.store.read() as connection:
        if is_settled(connection, settling, base):
            return Done(table)
        since = settled_at(connection, table.id)
    changes = feed_since(unit, table, since)
    return fold_rows(unit.state.spark, rows, since, changes, show_progress=unit.state.show_progress)


def load(
    unit: UnitOfWork,
    name: TableName,
    df: DataFrame,
    *,
    by_position: bool = False,
    evolution: Evolution = NO_EVOLUTION,
    delete_sign: str | None = None,
    in_one_task: bool = False,
) -> Loaded:
    """Load rows as one statement of ``unit``, according to the key model of the table."""
    rows = settled_rows(unit, name)
    df, sign = _with_sign_last(df, rows.table, delete_sign)
    given = StructType()
    if not evolution.is_none:
        given = (df if sign is None else df.drop(sign)).schema
    rows, alter = evolved_rows(rows, given, evolution)
    if evolution.rescue is not None:
        apart = () if sign is None else (sign,)
        df, _ = rescue_rows(df, rows.table, evolution.rescue, keep=apart)
    with telling_plan(unit.state, rows.table, given, evolution):
        how = _Landing(by_position, in_one_task, sign)
        loaded = _loaded(unit, rows, df, how)
    done = loaded.done
    return loaded if done.is_nothing else replace(loaded, done=replace(done, alter=alter))


@dataclass(frozen=True, slots=True)
class _Landing:
    """How fitting rows are loaded."""

    by_position: bool
    in_one_task: bool
    sign: str | None


def _loaded(unit: UnitOfWork, rows: TableRows, df: DataFrame, how: _Landing) -> Loaded:
    limits = limits_of(unit.state.store, rows.table)
    if not folds(rows.table):
        done = append_rows(
            unit.state.spark,
            df,
            rows.table,
            by_position=how.by_position,
            in_one_task=how.in_one_task,
            show_progress=unit.state.show_progress,
            limits=limits,
        )
        return Loaded(done)
    fitting = assign(
        df,
        rows.table,
        render_expression=expression_for_spark,
        by_position=how.by_position,
        keep=() if how.sign is None else (how.sign,),
    )
    return load_rows(
        unit.state.spark,
        rows,
        ordered(fitting, how.sign),
        limits=limits,
        show_progress=unit.state.show_progress,
    )


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
