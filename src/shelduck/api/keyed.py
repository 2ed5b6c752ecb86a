"""Writes to tables with a key model: what others left is folded first, then each key is once."""

from __future__ import annotations

from dataclasses import replace

from shelduck.api.evolving import evolved_rows
from shelduck.api.following import feed_since, stage_followed
from shelduck.api.lookup import rows_of
from shelduck.api.results import TableName
from shelduck.api.state import LakeState
from shelduck.api.unit import UnitOfWork
from shelduck.catalog.settled import is_settled, settled_at
from shelduck.errors import InvalidRequest
from shelduck.model.keys import DELETE_SIGN, KeyModel, table_keys
from shelduck.model.quoting import backticked, quote_name
from shelduck.model.rollup import rollup_names, rollup_of, rollup_table
from shelduck.model.settled import Settling
from shelduck.model.table import TableVersion
from shelduck.operations.append import append_rows
from shelduck.operations.done import Counts, Done
from shelduck.operations.load import Loaded, fold_rows, load_rows
from shelduck.operations.rows import TableRows
from shelduck.spark.assign import assign
from shelduck.spark.load_rows import ordered
from shelduck.spark.session import DataFrame
from shelduck.sql.defaults import expression_for_spark


def folds(table: TableVersion) -> bool:
    """Tell whether a table has at most one row of each key."""
    keys = table_keys(table.properties)
    return keys is not None and keys.folds


def is_plain(table: TableVersion) -> bool:
    """Tell whether an append is no more than new rows: no key is folded, and no rollup follows."""
    is_followed = bool(rollup_names(table.properties)) or rollup_of(table.properties) is not None
    return not folds(table) and not is_followed


def changed_rows(
    state: LakeState, unit: UnitOfWork, name: TableName, *, writes: bool = False
) -> TableRows:
    """Return where a table's rows are, for a statement that deletes some, or ``writes`` some.

    Raises InvalidRequest for a rollup, whose rows follow those of its base.
    """
    refuse_rollup(unit.workspace.table(name))
    return rows_of(state, unit, name, writes=writes)


def refuse_rollup(table: TableVersion) -> None:
    """Raise InvalidRequest for a rollup: only its base is changed by people."""
    rollup = rollup_of(table.properties)
    if rollup is not None:
        base = table.name.removesuffix(rollup_table("", rollup.name))
        raise InvalidRequest(
            f"{table.full_name} is rollup {rollup.name} of {base}: it follows what is done to"
            f" {base}; change that, or DROP ROLLUP {rollup.name}"
        )


def settled_rows(state: LakeState, unit: UnitOfWork, name: TableName) -> TableRows:
    """Return where a table's rows are, for a statement that writes some.

    In a table with a key model, rows that another writer has put there without it are folded
    first, in the same commit.
    """
    rows = changed_rows(state, unit, name, writes=True)
    if not folds(rows.table) or unit.settles(rows.table.id):
        return rows
    done = folded_done(state, unit, rows)
    if done.is_nothing:
        return rows
    stage_followed(state, unit, replace(done, counts=Counts(files=done.counts.files)))
    return rows_of(state, unit, name, writes=True)


def folded_done(state: LakeState, unit: UnitOfWork, rows: TableRows) -> Done:
    """Return the folding of what other writers have put into a table with a key model."""
    table, base = rows.table, unit.workspace.base
    settling = Settling(table.id, frozenset({table.id}), base.id, alone=True)
    unit.settle(settling)
    if table.id < 0 or not (rows.files or any(part.rows for part in rows.inlined)):
        return Done(table)
    with state.store.read() as connection:
        if is_settled(connection, settling, base):
            return Done(table)
        since = settled_at(connection, table.id)
    changes = feed_since(state, unit, table, since)
    return fold_rows(state.spark, rows, since, changes, show_progress=state.show_progress)


def load(
    state: LakeState,
    unit: UnitOfWork,
    name: TableName,
    df: DataFrame,
    *,
    by_position: bool = False,
    merge_schema: bool = False,
    delete_sign: str | None = None,
    in_one_task: bool = False,
) -> Loaded:
    """Load rows as one statement of ``unit``, by the key model of the table."""
    rows = settled_rows(state, unit, name)
    df, sign = _with_sign_last(df, rows.table, delete_sign)
    alter = None
    if merge_schema:
        plain = df if sign is None else df.drop(sign)
        rows, alter = evolved_rows(rows, plain.schema)
    if not folds(rows.table):
        done = append_rows(
            state.spark,
            df,
            rows.table,
            by_position=by_position,
            in_one_task=in_one_task,
            show_progress=state.show_progress,
        )
        return Loaded(done if done.is_nothing else replace(done, alter=alter))
    fitting = assign(
        df,
        rows.table,
        render_expression=expression_for_spark,
        by_position=by_position,
        keep=() if sign is None else (sign,),
    )
    loaded = load_rows(
        state.spark,
        rows,
        ordered(fitting, sign),
        show_progress=state.show_progress,
    )
    done = loaded.done
    return loaded if done.is_nothing else replace(loaded, done=replace(done, alter=alter))


def _with_sign_last(
    df: DataFrame, table: TableVersion, sign: str | None
) -> tuple[DataFrame, str | None]:
    """Return the rows with the column that marks deleted keys behind the others, and its name."""
    wanted = sign or DELETE_SIGN
    found = next((c for c in df.columns if c.lower() == wanted.lower()), None)
    if found is None:
        if sign is None:
            return df, None
        raise InvalidRequest(
            f"the rows for {table.full_name} have no column {quote_name(sign)} that says which"
            " keys are deleted"
        )
    keys = table_keys(table.properties)
    if keys is None or keys.model is not KeyModel.UNIQUE:
        raise InvalidRequest(
            f"{quote_name(found)} deletes by key, which only UNIQUE KEY tables know;"
            f" {table.full_name} is none: use DELETE FROM"
        )
    others = [c for c in df.columns if c != found]
    return df.select(*map(backticked, (*others, found))), found
