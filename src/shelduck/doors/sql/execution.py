"""SQL statements carried out through the same verbs as the Python API."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from shelduck.doors.sql.calls.functions import IN_FROM
from shelduck.doors.sql.parse import OPERATIONS, parse, pieces
from shelduck.engine.bridge import engine_for
from shelduck.engine.failures import SparkFailure, told_of_spark
from shelduck.engine.named_errors import SparkError, told_as_lakes
from shelduck.engine.session import DataFrame, SparkSession, answer
from shelduck.errors import InvalidRequest
from shelduck.lake.operation import Runner, Sources, SqlSession
from shelduck.lake.results import PlainRows, Staged, Unchanged
from shelduck.objects.statement.macros import without_macros
from shelduck.objects.targets import query_frame, relation_frame
from shelduck.text.tokens.parts import OfAltered, Statement


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


def _statements(session: SqlSession, text: str) -> Sequence[Statement]:
    statements = parse(text, ntz=session.state.ntz)
    if not statements:
        raise InvalidRequest("the text contains no statement")
    return statements


def _run_all(
    session: SqlSession, statements: Sequence[Statement], text: str
) -> DataFrame | PlainRows | Outcome:
    for number, statement in enumerate(statements):
        if session.unit is not None:
            session.unit.require_open()
        runner = runner_of(session)
        try:
            found = run_with_macros(runner, statement, partial(_piece, text, number))
        except SparkError as error:
            told = told_as_lakes(error)
            if told is None:
                raise
            raise told from error
    return found


def runner_of(session: SqlSession) -> Runner:
    """Return what runs the statements of a session."""
    return Runner(session, Sources(relation_frame, query_frame, IN_FROM))


def _piece(text: str, number: int) -> str:
    return pieces(text)[number]


def run_with_macros(
    runner: Runner,
    statement: Statement,
    text: Callable[[], str],
    read: Callable[[str], Statement] | None = None,
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
        again = without_macros(runner, text(), error, catalog)
        if again is None:
            raise
    if read is None:
        [statement] = parse(again, ntz=runner.state.ntz)
    else:
        statement = read(again)
    return run_statement(runner, statement)


def run_statement(runner: Runner, statement: Statement) -> DataFrame | PlainRows | Outcome:
    """Return the rows of a query, or one row that tells what a command did."""
    operation = OPERATIONS[type(statement)]
    try:
        found = _if_missing(runner, statement) or operation.run(runner, statement)
    except SparkFailure as error:
        told = told_of_spark(error, lambda: _named(operation.title, statement))
        if told is None:
            raise
        raise told from error
    if isinstance(found, DataFrame | PlainRows):
        return found
    snapshot = None if isinstance(found, Staged) else found.snapshot
    counts: dict[str, int | str | None] = {"snapshot": snapshot, "operation": operation.title}
    counts.update(rows=found.rows, files=found.files)
    if operation.counts:
        each = {"inserted": found.inserted, "updated": found.updated, "deleted": found.deleted}
        counts.update(each)
    return Outcome(counts)


def _if_missing(runner: Runner, statement: Statement) -> Unchanged | None:
    """Return the outcome of an ALTER TABLE IF EXISTS of a table that does not exist."""
    if not (isinstance(statement, OfAltered) and statement.if_exists):
        return None
    view = runner.view().workspace
    return None if view.has_table(runner.name(statement.name)) else Unchanged(view.base.id)


def _named(title: str, statement: Statement) -> str:
    name = getattr(statement, "name", None)
    return title if name is None else f"{title} of {name}"
