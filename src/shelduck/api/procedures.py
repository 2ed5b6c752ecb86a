"""The procedures that CALL knows, by name.

A procedure is a function of the `Runner` and its arguments as they are written; the parameters of
the function are those of the procedure, and what stands behind ``*`` must be named. Modules
``call_*`` have a dictionary of theirs, which are put together here.
"""

from __future__ import annotations

from collections.abc import Callable

from shelduck.api import (
    call_adoption,
    call_delta,
    call_export,
    call_flush,
    call_options,
    call_upkeep,
    run_transactions,
)
from shelduck.api.arguments import bind
from shelduck.api.runner import Answer, Runner
from shelduck.errors import NotFound
from shelduck.sql.upkeep_statements import Call

Procedure = Callable[..., Answer]

PROCEDURES: dict[str, Procedure] = (
    call_adoption.PROCEDURES | call_options.PROCEDURES | call_flush.PROCEDURES
)
PROCEDURES |= call_delta.PROCEDURES | call_export.PROCEDURES
PROCEDURES |= run_transactions.PROCEDURES | call_upkeep.PROCEDURES


def call(runner: Runner, statement: Call) -> Answer:
    """CALL: run a procedure. NotFound, naming the nearest, for one that is not there."""
    procedure = PROCEDURES.get(statement.procedure)
    if procedure is None:
        raise NotFound.named("procedure", statement.procedure, sorted(PROCEDURES))
    return procedure(runner, **bind(procedure, statement))
