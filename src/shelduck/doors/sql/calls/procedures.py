"""The procedures that CALL knows, by name.

A procedure is a function of the `Runner` and its arguments; the parameters of the function are
those of the procedure, with their types, and those after ``*`` must be named. Each module next to
this one has a dictionary of its procedures; they are merged here.
"""

from __future__ import annotations

from shelduck.doors.sql import transactions
from shelduck.doors.sql.call_arguments import values
from shelduck.doors.sql.calls import exchange, functions, iceberg_calls, upkeep_calls
from shelduck.errors import NotFound, Unsupported
from shelduck.lake.operation import Answer, Operation, Procedure, Runner
from shelduck.text.foreign_words import foreign_procedure
from shelduck.text.tokens.arguments import read_call
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.parts import Call

PROCEDURES: dict[str, Procedure] = {
    **exchange.PROCEDURES,
    **transactions.PROCEDURES,
    **functions.PROCEDURES,
    **upkeep_calls.PROCEDURES,
    **iceberg_calls.PROCEDURES,
}


def call(runner: Runner, statement: Call) -> Answer:
    """CALL: run a procedure.

    Raises NotFound, with similar names, for one that does not exist, and Unsupported for one that
    only another system has.
    """
    name = statement.procedure
    procedure = PROCEDURES.get(name)
    if procedure is None:
        instead = foreign_procedure(name)
        if instead is not None:
            raise Unsupported(f"procedure {name!r} of Iceberg is not supported; {instead}")
        raise NotFound.named("procedure", name, sorted(PROCEDURES))
    return procedure(runner, **values(runner, procedure, statement))


def read_call_statement(cursor: Cursor) -> Call:
    """Read the statement behind ``CALL``."""
    call = read_call(cursor, cursor.path("a procedure"), "procedure")
    cursor.end()
    return call


OPERATIONS = (Operation("CALL", Call, call, read_call_statement),)
