"""The procedures that CALL knows, by name.

A procedure is a function of the `Runner` and the arguments as written; the parameters of the
function are those of the procedure, and those after ``*`` must be named. Each module next to this
one has a dictionary of its procedures; they are merged here.
"""

from __future__ import annotations

from collections.abc import Callable

from shelduck.errors import NotFound
from shelduck.sql.tokens.parts import Call
from shelduck.statements import transactions
from shelduck.statements.arguments import bind
from shelduck.statements.calls import (
    adoption,
    check,
    delta,
    export,
    flush,
    functions,
    options,
    upkeep,
)
from shelduck.statements.runner import Answer, Runner

Procedure = Callable[..., Answer]

PROCEDURES: dict[str, Procedure] = {
    **adoption.PROCEDURES,
    **options.PROCEDURES,
    **flush.PROCEDURES,
    **delta.PROCEDURES,
    **export.PROCEDURES,
    **transactions.PROCEDURES,
    **functions.PROCEDURES,
    **upkeep.PROCEDURES,
    **check.PROCEDURES,
}


def call(runner: Runner, statement: Call) -> Answer:
    """CALL: run a procedure. Raises NotFound, with similar names, for one that does not exist."""
    procedure = PROCEDURES.get(statement.procedure)
    if procedure is None:
        raise NotFound.named("procedure", statement.procedure, sorted(PROCEDURES))
    return procedure(runner, **bind(procedure, statement))
