"""The names of statements in results."""

from __future__ import annotations

from shelduck.doors.sql.execution import OPERATIONS
from shelduck.text.statements import statement_values as st
from shelduck.text.statements.row_statements import DeleteUsing, UpdateFrom


def test_every_statement_has_a_name_of_its_own():
    # The first two are a MERGE inside, and to users what they wrote.
    more = {UpdateFrom: "UPDATE", DeleteUsing: "DELETE", st.PinView: "CREATE VIEW"}
    assert {kind.__name__ for kind in OPERATIONS} == names_below(st.Statement)
    assert {kind: OPERATIONS[kind] for kind in more} == more
    assert len(set(OPERATIONS.values())) == len(OPERATIONS) - len(more)


def names_below(base):
    """The names of all classes that inherit from one; slots make each of them twice."""
    return {name for each in base.__subclasses__() for name in (each.__name__, *names_below(each))}
