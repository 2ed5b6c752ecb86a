"""Reads of a table that may be answered from one of its rollups."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from shelduck.errors import InvalidRequest, NewerFormat
from shelduck.model.tables.keys import table_keys
from shelduck.model.tables.rollup import keeps_rows, rollup_names, rollup_of
from shelduck.model.tables.schema import FieldId
from shelduck.model.tables.table import TableVersion
from shelduck.operations.read.rows import TableRows, table_rows
from shelduck.planning.rollup_choice import Candidate, Wanted, choose
from shelduck.spark.scan.expect import as_expected, expected_columns
from shelduck.spark.scan.rollup_rule import Chooser, RollupFrame
from shelduck.spark.scan.virtual import ORIGINS, with_virtual
from shelduck.spark.session import DataFrame, SparkSession, StructType
from shelduck.sql.tokens.lexer import tokenize
from shelduck.work.lookup import as_of_today, rows_of, version_at
from shelduck.work.results import TableName
from shelduck.work.rollup_tables import rollups_of
from shelduck.work.rows.following import is_fresh
from shelduck.work.unit import UnitOfWork

_HINT = re.compile(r"/\*\+\s*no_rollup(\s*\(\s*\))?\s*\*/", re.IGNORECASE)


def without_hint(text: str) -> tuple[str, bool]:
    """Return a query without the hint ``/*+ NO_ROLLUP */``, and whether rollups may answer it."""
    if not _HINT.search(text):
        return text, True
    parts, last = [], 0
    for token in tokenize(text):
        # Comments are between tokens; a hint inside of a string is part of a token.
        parts += [_HINT.sub("", text[last : token.start]), text[token.start : token.end]]
        last = token.end
    found = "".join(parts)
    return found, found == text


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

    Queries of what the unit sees may be answered from rollups.
    """
    if what.schema not in ("snapshot", "current"):
        raise InvalidRequest(f"schema must be 'snapshot' or 'current', not {what.schema!r}")
    choose = None
    if what.version is None and what.timestamp is None:
        rows = rows_of(unit, name, needs_all=False)
        choose = chooser_of(unit, rows.table, rows) if what.rollups else None
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


def chooser_of(unit: UnitOfWork, base: TableVersion, rows: TableRows) -> Chooser | None:
    """Return a function that chooses a rollup for a query, None if the table has no usable one.

    Only rollups that are fresh at the unit's snapshot, from which the rows are too, are considered.
    If a newer Shelduck made them, the table itself answers.
    """
    try:
        return _chooser(unit, base, rows)
    except NewerFormat:
        return None


def _chooser(unit: UnitOfWork, base: TableVersion, rows: TableRows) -> Chooser | None:
    if not rollup_names(base):
        return None
    candidates: list[Candidate] = []
    found: dict[str, TableRows] = {}
    for table in rollups_of(unit, base):
        if not is_fresh(unit, base, table):
            continue
        theirs = rows_of(unit, TableName.of(table))
        rollup, count = rollup_of(table), _alive(theirs)
        if rollup is None or count is None:
            continue
        sources = {c.id: c.source for c in rollup.columns}
        order = tuple(s for i in _key_order(table) if (s := sources.get(i)) is not None)
        whole = keeps_rows(rollup, table_keys(table), table_keys(base))
        candidates.append(Candidate(rollup.name, rollup, order, count, whole))
        found[rollup.name] = theirs
    total = _alive(rows)
    if not candidates or total is None:
        return None
    frames: dict[str, DataFrame] = {}

    def chosen(wanted: Wanted) -> RollupFrame | None:
        choice = choose(wanted, _key_order(base), total, candidates)
        if choice is None:
            return None
        theirs = found[choice.name]
        # Made once, as Spark plans a query several times. Two threads may make two.
        if choice.name not in frames:
            frames[choice.name] = theirs.frame(unit.state.spark)
        names = {f.id: f.name for f in theirs.table.columns}
        return RollupFrame.of(choice, frames[choice.name], names)

    return chosen


def _key_order(table: TableVersion) -> tuple[FieldId, ...]:
    keys = table_keys(table)
    return () if keys is None else keys.columns


def _alive(rows: TableRows) -> int | None:
    """Return how many rows there are, None if a file does not say."""
    count = sum(len(part.row_ids) for part in rows.inlined)
    for file in rows.files:
        if file.record_count is None:
            return None
        count += file.record_count - file.dead_rows
    return count
