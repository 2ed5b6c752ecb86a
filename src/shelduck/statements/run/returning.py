"""RETURNING: the rows that a statement changed, read from the change feed of its snapshot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shelduck.errors import Unsupported
from shelduck.model.tables.table import TableVersion
from shelduck.spark.scan.images import CAME, nothing, rows_of, with_action
from shelduck.spark.session import DataFrame
from shelduck.sql.rows.rows import ACTION
from shelduck.sql.statements import row_statements as st
from shelduck.statements.run import edits, rows
from shelduck.statements.runner import Answer, Runner
from shelduck.work.results import Committed
from shelduck.work.table_changes import changes_of

_ACTIONS = {"insert": "INSERT", "update_postimage": "UPDATE", "delete": "DELETE"}
_EDITS = rows.RUN | edits.RUN

Changing = st.Insert | st.Update | st.Delete | st.Merge


def returning(runner: Runner, statement: st.Returning) -> DataFrame:
    """Run a statement and return what RETURNING asks of the rows that it changed.

    INSERT and UPDATE return rows as they are now, DELETE as they were; MERGE returns both, with
    ``merge_action``. They are read after the commit, at its snapshot.
    """
    inner = statement.statement
    if runner.unit is not None:
        raise Unsupported(
            "RETURNING is not supported in a transaction; SELECT the rows after the statement"
        )
    # Refuse what RETURNING cannot be before anything is changed.
    table = runner.version(inner.name)
    runner.query(statement.rows, given={statement.changed: _shown(runner, table, None, inner)})
    done = _EDITS[type(inner)](runner, inner)
    landed = done.snapshot if isinstance(done, Committed) else None
    rows = _shown(runner, table, landed, inner)
    return runner.query(statement.rows, given={statement.changed: rows})


def _shown(
    runner: Runner, table: TableVersion, snapshot: int | None, statement: Changing
) -> DataFrame:
    """Return the rows that a statement changed in a snapshot, none without one."""
    is_merge = type(statement) is st.Merge
    if snapshot is None:
        return nothing(runner.table(statement.name).read(), ACTION if is_merge else None)
    feed = changes_of(runner.state, table, snapshot, snapshot)
    if is_merge:
        return rows_of(with_action(feed, ACTION, _ACTIONS), _ACTIONS)
    is_delete = isinstance(statement, st.Delete | st.DeleteUsing)
    return rows_of(feed, ("delete",) if is_delete else CAME)


RUN: dict[type, Callable[[Runner, Any], Answer]] = {st.Returning: returning}
