"""Reads of a table: which version of it, which columns, and in which form."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from shelduck.errors import InvalidRequest
from shelduck.operations.read.rows import TableRows, table_rows
from shelduck.spark.scan.expect import as_expected, expected_columns
from shelduck.spark.scan.virtual import ORIGINS, with_virtual
from shelduck.spark.session import DataFrame, SparkSession, StructType
from shelduck.work.hooks import hooks_of
from shelduck.work.lookup import as_of_today, rows_of, version_at
from shelduck.work.results import TableName
from shelduck.work.unit import UnitOfWork


@dataclass(frozen=True, slots=True)
class Reading:
    """What to read of a table, and how; see `Table.read`."""

    version: int | None = None
    timestamp: str | datetime | None = None
    columns: Sequence[str] | None = None
    schema: str = "snapshot"
    expect: StructType | str | None = None
    adapt: bool = False
    rollups: bool = True
    virtual: Collection[str] = ()


def read_any(unit: UnitOfWork, name: TableName, what: Reading) -> DataFrame:
    """Return a table's rows as the unit sees them, or as of a snapshot.

    Queries of what the unit sees may be answered otherwise, as `Hooks.chooser` says.
    """
    if what.schema not in ("snapshot", "current"):
        raise InvalidRequest(f"schema must be 'snapshot' or 'current', not {what.schema!r}")
    choose = None
    if what.version is None and what.timestamp is None:
        rows = rows_of(unit, name, needs_all=False)
        if what.rollups:
            choose = next((hooks.chooser(unit, rows) for hooks in hooks_of(rows.table)), None)
    else:
        table = version_at(unit.state, name, what.version, what.timestamp)
        if what.schema == "current":
            table = as_of_today(unit, table)
        rows = table_rows(unit.state.store, table, unit.state.layouts, lists=unit.state.lists)
    known = {name.lower() for name in rows.table.columns.names}
    virtual = [name for name in what.virtual if name not in known]
    if virtual:
        return virtual_frame(unit.state.spark, rows, virtual)
    if what.expect is None:
        return rows.frame(unit.state.spark, what.columns, choose=choose)
    if what.columns is not None:
        raise InvalidRequest(
            "pass either expect or columns, not both: expect already lists the columns"
        )
    return as_expected(
        lambda columns: rows.frame(unit.state.spark, columns, choose=choose),
        rows.table,
        expected_columns(what.expect),
        adapt=what.adapt,
    )


def virtual_frame(spark: SparkSession, rows: TableRows, names: Sequence[str]) -> DataFrame:
    """Return the rows of a table with some of DuckLake's virtual columns."""
    frame = rows.frame(spark, origins=[ORIGINS[name] for name in names])
    paths = {file.id: file.path for file in rows.files if "filename" in names}
    return with_virtual(frame, rows.table.columns.names, names, paths)
