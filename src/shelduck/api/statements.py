"""SQL statements carried out through the same verbs as the Python API."""

from __future__ import annotations

import re

from shelduck.api import (
    run_ddl,
    run_edits,
    run_history,
    run_jobs,
    run_restore,
    run_rows,
    run_show,
    run_transactions,
    run_upkeep,
    run_views,
)
from shelduck.api.results import Staged
from shelduck.api.runner import Runner
from shelduck.api.session import SqlSession
from shelduck.errors import InvalidRequest, Unsupported
from shelduck.spark.query import outcome
from shelduck.spark.session import DataFrame
from shelduck.sql import statements as st
from shelduck.sql.parse import parse

_RUN = run_ddl.RUN | run_rows.RUN | run_edits.RUN | run_show.RUN | run_upkeep.RUN
_RUN |= run_jobs.RUN | run_views.RUN | run_history.RUN | run_restore.RUN | run_transactions.RUN


def run_sql(session: SqlSession, text: str) -> DataFrame:
    """Run the statements of ``text`` in order; return the DataFrame of the last one."""
    found: DataFrame | None = None
    for statement in parse(text):
        if session.unit is not None:
            session.unit.require_open()
        found = run_statement(Runner(session.state, session.unit, session), statement)
    if found is None:
        raise InvalidRequest("there is no statement in the text")
    return found


def run_statement(runner: Runner, statement: st.Statement) -> DataFrame:
    """Return the rows of a query, or one row that tells what a command did."""
    operation = re.sub(r"(?<!^)(?=[A-Z])", " ", type(statement).__name__).upper()
    run = _RUN.get(type(statement))
    if run is None:
        raise Unsupported(f"{operation} is known, but cannot be run yet")
    found = run(runner, statement)
    if isinstance(found, DataFrame):
        return found
    snapshot = None if isinstance(found, Staged) else found.snapshot
    counts = {"snapshot": snapshot, "rows": found.rows, "files": found.files}
    if isinstance(statement, st.Insert) or type(statement) in run_edits.RUN | run_restore.RUN:
        each = {"inserted": found.inserted, "updated": found.updated, "deleted": found.deleted}
        counts.update(each)
    return outcome(runner.state.spark, operation, counts)
