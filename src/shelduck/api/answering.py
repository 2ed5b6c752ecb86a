"""Reads of a table that may be answered from one of its rollups."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from shelduck.api.following import is_fresh
from shelduck.api.lookup import as_of_today, rows_of, version_at
from shelduck.api.results import TableName
from shelduck.api.rollup_tables import rollups_of
from shelduck.api.state import LakeState
from shelduck.api.unit import UnitOfWork
from shelduck.errors import InvalidRequest
from shelduck.model.keys import table_keys
from shelduck.model.rollup import keeps_rows, rollup_names, rollup_of
from shelduck.model.schema import FieldId
from shelduck.model.table import TableVersion
from shelduck.operations.rows import TableRows, table_rows
from shelduck.planning.rollup_choice import Candidate, Wanted, choose
from shelduck.spark.expect import as_expected, expected_columns
from shelduck.spark.rollup_rule import Chooser, RollupFrame
from shelduck.spark.session import DataFrame, StructType
from shelduck.sql.lexer import tokenize

_HINT = re.compile(r"/\*\+\s*no_rollup(\s*\(\s*\))?\s*\*/", re.IGNORECASE)


def without_hint(text: str) -> tuple[str, bool]:
    """Return a query without the hint ``/*+ NO_ROLLUP */``, and whether rollups may answer it."""
    if not _HINT.search(text):
        return text, True
    parts, last = [], 0
    for token in tokenize(text):
        # Comments stand between tokens; what looks like one in a string is none.
        parts += [_HINT.sub("", text[last : token.start]), text[token.start : token.end]]
        last = token.end
    found = "".join(parts)
    return found, found == text


@dataclass(frozen=True, slots=True)
class Reading:
    """What of a table is read, and as what; `Table.read` says it all."""

    version: int | None = None
    timestamp: str | datetime | None = None
    columns: Sequence[str] | None = None
    schema: str = "snapshot"
    expect: StructType | str | None = None
    adapt: bool = False
    rollups: bool = True


def read_any(state: LakeState, unit: UnitOfWork, name: TableName, what: Reading) -> DataFrame:
    """Return a table's rows as the unit sees them, or as of a snapshot.

    Of what the unit sees, queries may be answered from rollups.
    """
    if what.schema not in ("snapshot", "current"):
        raise InvalidRequest(f"schema={what.schema!r} is neither 'snapshot' nor 'current'")
    choose = None
    if what.version is None and what.timestamp is None:
        rows = rows_of(state, unit, name)
        choose = chooser_of(state, unit, rows.table, rows) if what.rollups else None
    else:
        table = version_at(state, name, what.version, what.timestamp)
        if what.schema == "current":
            table = as_of_today(state, unit, table)
        rows = table_rows(state.store, table, state.layouts)
    if what.expect is None:
        return rows.frame(state.spark, what.columns, choose=choose)
    if what.columns is not None:
        raise InvalidRequest("expect names the columns itself: leave columns out")
    return as_expected(
        lambda columns: rows.frame(state.spark, columns, choose=choose),
        rows.table,
        expected_columns(what.expect),
        adapt=what.adapt,
    )


def chooser_of(
    state: LakeState, unit: UnitOfWork, base: TableVersion, rows: TableRows
) -> Chooser | None:
    """Return what chooses a rollup of a table for a query, None where there is none to choose.

    Only rollups count that are fresh on the unit's snapshot, of which the rows are, too.
    """
    if not rollup_names(base.properties):
        return None
    candidates: list[Candidate] = []
    found: dict[str, TableRows] = {}
    for table in rollups_of(unit, base):
        if not is_fresh(state, unit, base, table):
            continue
        theirs = rows_of(state, unit, TableName.of(table))
        rollup, count = rollup_of(table.properties), _alive(theirs)
        if rollup is None or count is None:
            continue
        sources = {c.id: c.source for c in rollup.columns}
        order = tuple(s for i in _key_order(table) if (s := sources.get(i)) is not None)
        whole = keeps_rows(rollup, table_keys(table.properties), table_keys(base.properties))
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
        # Made once: Spark plans a query several times. Two threads may make two.
        if choice.name not in frames:
            frames[choice.name] = theirs.frame(state.spark)
        names = {f.id: f.name for f in theirs.table.columns}
        return RollupFrame.of(choice, frames[choice.name], names)

    return chosen


def _key_order(table: TableVersion) -> tuple[FieldId, ...]:
    keys = table_keys(table.properties)
    return () if keys is None else keys.columns


def _alive(rows: TableRows) -> int | None:
    """Return how many rows there are, None where a file does not tell."""
    count = sum(len(part.row_ids) for part in rows.inlined)
    for file in rows.files:
        if file.record_count is None:
            return None
        count += file.record_count - file.dead_rows
    return count
