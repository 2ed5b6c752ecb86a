"""BEGIN, COMMIT and ROLLBACK, the message of a commit, and variables of the session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shelduck.doors.sql.runner import Answer, Runner
from shelduck.errors import InvalidRequest
from shelduck.lake.results import Result, Staged, Unchanged
from shelduck.model.changes.change import CommitInfo
from shelduck.model.text.quoting import backticked
from shelduck.text.statements import upkeep_statements as up


def begin(runner: Runner, _: up.BeginTransaction) -> Result:
    """BEGIN or START TRANSACTION."""
    return runner.session.begin()


def commit(runner: Runner, _: up.CommitTransaction) -> Result:
    """COMMIT: everything since BEGIN becomes one snapshot."""
    return runner.session.commit()


def rollback(runner: Runner, _: up.RollbackTransaction) -> Result:
    """ROLLBACK: discard everything since BEGIN."""
    return runner.session.rollback()


def set_commit_message(
    runner: Runner, author: str | None, commit_message: str | None, *, extra_info: str | None = None
) -> Result:
    """Set author, message and extra info of the open transaction's commit."""
    if runner.unit is None:
        raise InvalidRequest("set_commit_message needs an open transaction; use BEGIN first")
    runner.unit.annotate(CommitInfo(author, commit_message, extra_info))
    return Staged()


def set_variable(runner: Runner, statement: up.SetVariable) -> Unchanged:
    """SET VARIABLE and RESET VARIABLE: a variable of the Spark session."""
    spark, name = runner.state.spark, f"system.session.{backticked(statement.name)}"
    if statement.value is None:
        spark.sql(f"DROP TEMPORARY VARIABLE IF EXISTS {name}")
    else:
        with runner.views(statement.value) as named:
            text = named(statement.value.text)
            kind = spark.sql(f"SELECT {text}").schema.fields[0].dataType.simpleString()
            spark.sql(f"DECLARE OR REPLACE VARIABLE {name} {kind}")
            spark.sql(f"SET VARIABLE {name} = ({text})")
    return Unchanged(runner.view().workspace.base.id)


RUN: dict[type, Callable[[Runner, Any], Answer]] = {
    up.BeginTransaction: begin,
    up.CommitTransaction: commit,
    up.RollbackTransaction: rollback,
    up.SetVariable: set_variable,
}

PROCEDURES: dict[str, Callable[..., Answer]] = {"set_commit_message": set_commit_message}
