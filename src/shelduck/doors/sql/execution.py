"""SQL statements carried out through the same verbs as the Python API."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from shelduck.doors.sql import transactions
from shelduck.doors.sql.parse import parse, pieces
from shelduck.doors.sql.run import (
    ddl,
    edits,
    inserts,
    job_statements,
    macros,
    show,
    views,
    whole_partitions,
)
from shelduck.doors.sql.runner import Runner
from shelduck.doors.sql.sql_session import SqlSession
from shelduck.engine.bridge import engine_for
from shelduck.engine.failures import SparkFailure, told_of_spark
from shelduck.engine.named_errors import SparkError, told_as_lakes
from shelduck.engine.query import answer
from shelduck.engine.session import DataFrame, SparkSession
from shelduck.errors import InvalidRequest
from shelduck.lake.results import PlainRows, Staged
from shelduck.text.statements import row_statements as rs
from shelduck.text.statements import statement_values as st

_RUN = ddl.RUN | inserts.RUN | edits.RUN | edits.RETURNING | show.RUN
_RUN |= job_statements.RUN | views.RUN | transactions.RUN | macros.RUN | whole_partitions.RUN


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a command: one row, its values by name."""

    row: Mapping[str, int | str | None]

    def as_rows(self) -> PlainRows:
        """Return the row with its columns."""
        kinds = {name: "string" if name == "operation" else "bigint" for name in self.row}
        columns = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
        return PlainRows(columns, [tuple(self.row.values())])


def run_sql(session: SqlSession, text: str) -> DataFrame:
    """Run the statements of ``text`` in order; return the DataFrame of the last one."""
    statements = _statements(session, text)
    # Fail early without a session: after a commit, a missing DataFrame would be too late.
    spark = session.state.spark
    engine_for(spark).prepare()
    return as_frame(spark, _run_all(session, statements, text))


def run_plain(session: SqlSession, text: str) -> DataFrame | PlainRows:
    """Run the statements of ``text``; return the answer of the last one without Spark if it can."""
    found = _run_all(session, _statements(session, text), text)
    return found.as_rows() if isinstance(found, Outcome) else found


def as_frame(spark: SparkSession, found: DataFrame | PlainRows | Outcome) -> DataFrame:
    """Return the answer of a statement as a DataFrame."""
    match found:
        case Outcome(row):
            return engine_for(spark).outcome(row)
        case PlainRows(columns, rows):
            return answer(spark, columns, rows)
        case _:
            return found


def _statements(session: SqlSession, text: str) -> Sequence[st.Statement]:
    statements = parse(text, ntz=session.state.ntz)
    if not statements:
        raise InvalidRequest("the text contains no statement")
    return statements


def _run_all(
    session: SqlSession, statements: Sequence[st.Statement], text: str
) -> DataFrame | PlainRows | Outcome:
    for number, statement in enumerate(statements):
        if session.unit is not None:
            session.unit.require_open()
        runner = Runner(session.state, session.unit, session)
        try:
            found = run_with_macros(runner, statement, partial(_piece, text, number))
        except SparkError as error:
            told = told_as_lakes(error)
            if told is None:
                raise
            raise told from error
    return found


def _piece(text: str, number: int) -> str:
    return pieces(text)[number]


def run_with_macros(
    runner: Runner,
    statement: st.Statement,
    text: Callable[[], str],
    read: Callable[[str], st.Statement] | None = None,
    catalog: str | None = None,
) -> DataFrame | PlainRows | Outcome:
    """Run a statement; if Spark does not know a function in its text, with the lake's macros.

    A statement that Spark cannot analyze has done nothing yet. Spark's own functions come first, so
    statements without macros never ask the catalog for them. ``read`` parses a text; ``catalog`` is
    the name of the lake in the session, if it has one.
    """
    try:
        return run_statement(runner, statement)
    except Exception as error:
        again = macros.without_macros(runner, text(), error, catalog)
        if again is None:
            raise
    if read is None:
        [statement] = parse(again, ntz=runner.state.ntz)
    else:
        statement = read(again)
    return run_statement(runner, statement)


def run_statement(runner: Runner, statement: st.Statement) -> DataFrame | PlainRows | Outcome:
    """Return the rows of a query, or one row that tells what a command did."""
    operation = OPERATIONS[type(statement)]
    try:
        found = _RUN[type(statement)](runner, statement)
    except SparkFailure as error:
        told = told_of_spark(error, lambda: _named(operation, statement))
        if told is None:
            raise
        raise told from error
    if isinstance(found, DataFrame | PlainRows):
        return found
    snapshot = None if isinstance(found, Staged) else found.snapshot
    counts: dict[str, int | str | None] = {"snapshot": snapshot, "operation": operation}
    counts.update(rows=found.rows, files=found.files)
    if isinstance(statement, st.Insert) or type(statement) in edits.RUN:
        each = {"inserted": found.inserted, "updated": found.updated, "deleted": found.deleted}
        counts.update(each)
    return Outcome(counts)


def _named(operation: str, statement: st.Statement) -> str:
    name = getattr(statement, "name", None)
    return operation if name is None else f"{operation} of {name}"


# The others are called what their class is.
_OTHER_WORDS = {
    st.Analyze: "ANALYZE TABLE",
    st.CommentView: "COMMENT ON VIEW",
    st.PinView: "CREATE VIEW",
    rs.DeleteUsing: "DELETE",
    rs.UpdateFrom: "UPDATE",
}


def _words(kind: type) -> str:
    name = kind.__name__.removesuffix("Statement")
    return _OTHER_WORDS.get(kind) or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).upper()


OPERATIONS = {kind: _words(kind) for kind in _RUN}
