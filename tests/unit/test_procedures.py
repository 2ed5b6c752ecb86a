"""CALL: a procedure gets its arguments in the types that its parameters have."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from shelduck.doors.sql.call_arguments import (
    Moment,
    Numbers,
    Share,
    SnapshotOrTime,
    Texts,
    _converted,
    _types,
    values,
)
from shelduck.doors.sql.calls.functions import FUNCTIONS
from shelduck.doors.sql.calls.procedures import PROCEDURES
from shelduck.doors.sql.parse import parse
from shelduck.errors import InvalidRequest
from shelduck.lake.operation import Runner
from shelduck.text.query.relations import _OF_LAKE, _OF_TABLE
from shelduck.text.tokens.parts import Argument, IntervalText

RUNNER = SimpleNamespace(state=SimpleNamespace(time_zone=lambda: UTC))


def procedure(
    runner: Runner,
    name: str,
    *,
    count: int | None = None,
    is_so: bool = False,
    share: Share | None = None,
    at: Moment | None = None,
    since: SnapshotOrTime = 0,
    ids: Numbers = (),
    places: Texts = (),
    raw: Argument = None,
) -> None:
    """Take an argument of each type."""


def given(text):
    """What the procedure gets from the arguments of a call."""
    [statement] = parse(f"CALL lake.procedure('a', {text})")
    return values(RUNNER, procedure, statement)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("count => 3", 3),
        ("count => NULL", None),
        ("is_so => true", True),
        ("share => 0.5", 0.5),
        ("share => 1", 1.0),
        ("at => TIMESTAMP '2026-01-02 03:04:05'", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("at => '2026-01-02'", datetime(2026, 1, 2, tzinfo=UTC)),
        ("since => 7", 7),
        ("since => '2026-01-02'", datetime(2026, 1, 2, tzinfo=UTC)),
        ("ids => 7", (7,)),
        ("ids => array(7, 8)", (7, 8)),
        ("places => array('x', 'y')", ("x", "y")),
        ("raw => INTERVAL '1 day'", IntervalText("1 day")),
    ],
)
def test_an_argument_has_the_type_of_its_parameter(text, value):
    name = text.partition(" ")[0]

    found = given(text)

    assert (found.pop("name"), found) == ("a", {name: value})
    assert type(found[name]) is type(value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("count => 'x'", "argument count must be a whole number of at least 0, not 'x'"),
        ("count => -1", "argument count must be a whole number of at least 0, not -1"),
        ("count => true", "argument count must be a whole number of at least 0, not True"),
        ("is_so => 1", "argument is_so must be true or false, not 1"),
        ("is_so => NULL", "argument is_so must be true or false, not NULL"),
        ("share => 1.5", "argument share must be a number from 0 to 1, not"),
        ("at => INTERVAL 'x'", "argument at must be an interval such as INTERVAL '7 days'"),
        ("at => 3", "argument at must be text, not 3"),
        ("ids => array(7, 'x')", "argument ids must be a whole number of at least 0, not 'x'"),
        ("places => NULL", "argument places must be text, not NULL"),
    ],
)
def test_an_argument_of_another_type_is_refused(text, said):
    with pytest.raises(InvalidRequest) as error:
        given(text)

    assert str(error.value).startswith(said)


def test_every_parameter_of_every_procedure_has_a_type_that_can_be_read():
    for run in PROCEDURES.values():
        for name, kind in _types(run).items():
            if name not in ("runner", "return"):
                with suppress(InvalidRequest):
                    _converted(RUNNER, kind, None, name)


def test_a_table_function_can_be_called_and_stand_in_from():
    short = {name for name in FUNCTIONS if not name.startswith("ducklake_")}

    assert short == _OF_LAKE | _OF_TABLE
