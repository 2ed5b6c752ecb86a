"""BEGIN, COMMIT and ROLLBACK, the message of a commit, and variables of the session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from shelduck.errors import InvalidRequest
from shelduck.lake.operation import Answer, Operation, Runner
from shelduck.lake.results import Result, Staged, Unchanged
from shelduck.model.changes.change import CommitInfo
from shelduck.model.text.names import backticked
from shelduck.text.query.expressions import skip_expression
from shelduck.text.query.rewriting import Rewriting
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.parts import Expression, Statement


class BeginTransaction(Statement):
    """BEGIN or START TRANSACTION."""


class CommitTransaction(Statement):
    """COMMIT."""


class RollbackTransaction(Statement):
    """ROLLBACK."""


@dataclass(frozen=True, slots=True)
class SetVariable(Statement):
    """SET VARIABLE; without a value RESET VARIABLE."""

    name: str
    value: Expression | None


def read_begin(cursor: Cursor) -> BeginTransaction:
    """Read the statement behind ``BEGIN`` or ``START TRANSACTION``."""
    if cursor.at == 1:
        cursor.accept_any("TRANSACTION", "WORK")
    return BeginTransaction()


def read_commit(cursor: Cursor) -> CommitTransaction:
    """Read the statement behind ``COMMIT``."""
    cursor.accept_any("TRANSACTION", "WORK")
    if cursor.sees("MESSAGE"):
        raise cursor.refusal("COMMIT MESSAGE", "use CALL set_commit_message('author', 'message')")
    return CommitTransaction()


def read_rollback(cursor: Cursor) -> RollbackTransaction:
    """Read the statement behind ``ROLLBACK``."""
    cursor.accept_any("TRANSACTION", "WORK")
    if cursor.sees("TO"):
        raise cursor.refusal("ROLLBACK TO", "there are no savepoints; use ROLLBACK")
    return RollbackTransaction()


def read_set_variable(cursor: Cursor) -> SetVariable:
    """Read the statement behind ``SET VARIABLE``."""
    name = cursor.name("a variable")
    cursor.expect("=")
    value = skip_expression(cursor, what="a value")
    return SetVariable(name, Rewriting(cursor, [value]).expression(value))


def read_reset_variable(cursor: Cursor) -> SetVariable:
    """Read the statement behind ``RESET VARIABLE``."""
    return SetVariable(cursor.name("a variable"), None)


def begin(runner: Runner, _: BeginTransaction) -> Result:
    """BEGIN or START TRANSACTION."""
    return runner.session.begin()


def commit(runner: Runner, _: CommitTransaction) -> Result:
    """COMMIT: everything since BEGIN becomes one snapshot."""
    return runner.session.commit()


def rollback(runner: Runner, _: RollbackTransaction) -> Result:
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


def set_variable(runner: Runner, statement: SetVariable) -> Unchanged:
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


OPERATIONS = (
    Operation(
        "BEGIN TRANSACTION",
        BeginTransaction,
        begin,
        read_begin,
        "BEGIN",
        {"START TRANSACTION": read_begin},
    ),
    Operation("COMMIT TRANSACTION", CommitTransaction, commit, read_commit, "COMMIT"),
    Operation("ROLLBACK TRANSACTION", RollbackTransaction, rollback, read_rollback, "ROLLBACK"),
    Operation(
        *("SET VARIABLE", SetVariable, set_variable, read_set_variable),
        also={"RESET VARIABLE": read_reset_variable},
        of_current=True,
    ),
)
PROCEDURES: dict[str, Callable[..., Answer]] = {"set_commit_message": set_commit_message}
