"""CALL check: what is wrong in a lake or a table."""

from __future__ import annotations

from collections.abc import Callable

from shelduck.sql.tokens.parts import Argument
from shelduck.statements import arguments as read
from shelduck.statements.runner import Answer, Runner
from shelduck.verbs.lake.check import check_lake
from shelduck.work.compaction import refuse_in_transaction
from shelduck.work.results import PlainRows

_COLUMNS = (
    "table string, kind string, object string, wrong string, remedy string, level string,"
    " repair string"
)


def check(
    runner: Runner, table: Argument = None, *, rows: Argument = False, repair: Argument = False
) -> PlainRows:
    """Check a lake, or one table, and repair it; one row for each problem, note and repair."""
    refuse_in_transaction(runner.unit, "check()")
    name = None if table is None else read.text(table, "table")
    found = check_lake(
        runner.state, name, rows=read.flag(rows, "rows"), repair=read.flag(repair, "repair")
    )
    told = [
        (p.table or None, p.kind, p.object, p.wrong, p.remedy, level, p.repair or None)
        for level, p in found.rows
    ]
    return PlainRows(_COLUMNS, told)


PROCEDURES: dict[str, Callable[..., Answer]] = {"check": check}
