"""Rollups and their bases: what the catalog says of them, and with Spark what is in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck.catalog.commit.settled import forget_settled, settled_ahead
from shelduck.catalog.databases.store import write_with_retries
from shelduck.catalog.read.read import Connection
from shelduck.engine.types import spark_type
from shelduck.lake.lookup import rows_of
from shelduck.lake.results import TableName
from shelduck.lake.state import LakeState
from shelduck.lake.unit import UnitOfWork
from shelduck.model.changes.problem import Problem
from shelduck.model.tables.keys import table_keys
from shelduck.model.tables.rollup import (
    Measure,
    RollupColumn,
    definition_of,
    rollup_names,
    rollup_of,
)
from shelduck.model.tables.schema import Field
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import backticked
from shelduck.model.types.data_types import FLOATS
from shelduck.read.scan.expect import has_no_hash
from shelduck.rollups.following import base_of, is_fresh
from shelduck.rollups.rollup_plan import is_current
from shelduck.rollups.rollup_tables import rollup_name

_STALE = "queries read {} itself; its next write or refresh_rollups() makes up for it"


def settled_too_late(connection: Connection, names: Mapping[int, str]) -> Iterator[Problem]:
    """Find tables that count as complete up to a snapshot that does not exist yet."""
    for table, at in settled_ahead(connection).items():
        name = f"shelduck_settled (table_id {table})"
        wrong = f"it counts as complete up to snapshot {at}, and there is no such snapshot yet"
        remedy = "delete the row: the next write makes it complete again"
        yield Problem(names.get(table, ""), "rollup", name, wrong, remedy, "deletes the row")


def forget_settled_too_late(state: LakeState) -> None:
    """Forget what counts as complete up to a snapshot that does not exist yet."""
    write_with_retries(state.store, lambda c: forget_settled(c, settled_ahead(c)))


def rollup_notes(unit: UnitOfWork, name: TableName) -> Iterator[Problem]:
    """Return what is worth knowing of the rollups of a table, or of a rollup without a base.

    Nothing of it gives a wrong answer: queries use only rollups that are up to date.
    """
    table = unit.workspace.table(name)
    own = rollup_of(table)
    if own is not None:
        base = base_of(unit, table)
        if base is None:
            yield _note(table, "its base does not exist, so nobody updates it", "drop the table")
        elif own.name not in rollup_names(base):
            wrong = f"{base.full_name} does not list it, so nobody updates it"
            remedy = "it may belong to a job that is at work; otherwise drop the table"
            yield _note(table, wrong, remedy)
    for short in rollup_names(table):
        found = _rollup(unit, table, short)
        if found is None:
            wrong = f"{table.full_name} lists it, but its table does not exist"
            remedy = f"use ALTER TABLE {table.name} DROP ROLLUP {short}, or add it again"
            missing = str(rollup_name(table, short))
            yield Problem(table.full_name, "rollup", missing, wrong, remedy)
        elif not is_current(table, found):
            wrong = "its columns are not those of its base any more, so it is stale"
            yield _note(found, wrong, _STALE.format(table.full_name))
        elif not is_fresh(unit, table, found):
            wrong = "it is stale: others changed its base or itself"
            yield _note(found, wrong, _STALE.format(table.full_name))


def wrong_rollups(unit: UnitOfWork, name: TableName) -> Iterator[Problem]:
    """Compare each rollup of a table that is up to date with its base; one query each."""
    base = unit.workspace.table(name)
    for short in rollup_names(base):
        found = _rollup(unit, base, short)
        if found is None or not is_fresh(unit, base, found):
            continue
        spark = unit.state.spark
        held = rows_of(unit, TableName.of(found)).frame(spark)
        wrong = wrong_rollup(held, rows_of(unit, name).frame(spark), found, base)
        if wrong is not None:
            remedy = f"drop and add the rollup: ALTER TABLE {base.name} DROP ROLLUP {short}"
            yield Problem(found.full_name, "rollup", found.full_name, wrong, remedy)


def _rollup(unit: UnitOfWork, base: TableVersion, short: str) -> TableVersion | None:
    found = unit.workspace.find_table(rollup_name(base, short))
    own = None if found is None else rollup_of(found)
    return found if own is not None and own.base == base.uuid else None


def _note(rollup: TableVersion, wrong: str, remedy: str) -> Problem:
    return Problem(rollup.full_name, "rollup", rollup.full_name, wrong, remedy)


_FROM, _KEY = "__shelduck_from_base", "__shelduck_{}"


def wrong_rollup(
    held: DataFrame, rows: DataFrame, table: TableVersion, base: TableVersion
) -> str | None:
    """Return how a rollup differs from its base, None if it does not; one query.

    ``held`` are the rows of the rollup ``table``, ``rows`` those of the ``base``. Spark groups and
    combines them; no code that keeps rollups is used. Sums of floating point numbers are left out:
    they depend on the order. So are maps and variants.
    """
    fields = [f for f in table.columns if not _is_inexact(f, table)]
    own = [F.col(backticked(f.name)) for f in fields]
    wanted = _wanted(rows, fields, table, base)
    # All columns are alike then, whatever their names and their NULLs are.
    names = [_KEY.format(n) for n in range(len(fields))]
    both = (
        held.select(*own, F.lit(-1))
        .toDF(*names, _FROM)
        .unionAll(wanted.select("*", F.lit(1)).toDF(*names, _FROM))
    )
    apart = both.groupBy(*names).agg(F.sum(_FROM).alias(_FROM)).where(f"{_FROM} != 0")
    found = apart.agg(
        F.count_if(F.col(_FROM) < 0), F.count_if(F.col(_FROM) > 0), F.first(F.struct(*names))
    ).collect()[0]
    if not found[0] and not found[1]:
        return None
    shown = ", ".join(f"{f.name} = {v}" for f, v in zip(fields, found[2], strict=True))
    return (
        f"{found[0]} of its rows do not follow from {base.full_name}, and {found[1]} rows are"
        f" missing, such as {shown}"
    )


def _wanted(
    rows: DataFrame, fields: list[Field], table: TableVersion, base: TableVersion
) -> DataFrame:
    rollup, keys = definition_of(table), table_keys(table)
    by_id = {c.id: c for c in rollup.columns}
    if keys is None or not keys.folds or _keeps_all(rollup.columns, table, base):
        made = [_source(by_id[f.id], base).cast(spark_type(f.type, f.name)) for f in fields]
        return rows.select(*made)
    grouped, combined = [], []
    for number, field in enumerate(fields):
        column, name = by_id[field.id], _KEY.format(number)
        if field.id in keys.columns:
            grouped.append(_source(column, base).alias(name))
        else:
            combined.append(_all(column, field, base).alias(name))
    groups = rows.groupBy(*grouped)
    found = groups.agg(*combined) if combined else rows.select(*grouped).distinct()
    return found.select(*[_KEY.format(n) for n in range(len(fields))])


def _keeps_all(columns: tuple[RollupColumn, ...], table: TableVersion, base: TableVersion) -> bool:
    """Return whether each row of the base, one of its key, is a row of the rollup."""
    keys, own = table_keys(base), table_keys(table)
    if keys is None or own is None or not keys.folds:
        return False
    return {c.source for c in columns if c.id in own.columns} >= {*keys.columns}


def _source(column: RollupColumn, base: TableVersion) -> Column:
    field = base.columns.by_id(column.source or 0)
    assert field is not None
    return F.col(backticked(field.name))


def _all(column: RollupColumn, field: Field, base: TableVersion) -> Column:
    kind = spark_type(field.type, field.name)
    match column.measure:
        case Measure.COUNT if column.source is None:
            return F.count(F.lit(1))
        case Measure.COUNT:
            return F.count(_source(column, base))
        case Measure.SUM:
            return F.sum(_source(column, base).cast(kind)).cast(kind)
        case Measure.MIN:
            return F.min(_source(column, base))
        case Measure.MAX:
            return F.max(_source(column, base))
    raise AssertionError(f"{column.measure} needs all keys of the base")


def _is_inexact(field: Field, table: TableVersion) -> bool:
    """Return whether equal rows may have another value: a sum of floats, or no way to compare."""
    rollup = definition_of(table)
    measures = {c.id: c.measure for c in rollup.columns}
    is_rounded = measures[field.id] is Measure.SUM and str(field.shape) in FLOATS
    return is_rounded or has_no_hash(field)
