"""The names of statements in results."""

from __future__ import annotations

from typing import get_args

from shelduck.sql.statements import statement_values as st
from shelduck.sql.statements.row_statements import DeleteUsing, UpdateFrom
from shelduck.statements.statements import OPERATIONS


def test_every_statement_has_a_name_of_its_own():
    # The first two are a MERGE inside, and to users what they wrote.
    more = {UpdateFrom: "UPDATE", DeleteUsing: "DELETE", st.PinView: "CREATE VIEW"}
    assert set(OPERATIONS) == {*get_args(st.Statement), *more}
    assert {kind: OPERATIONS[kind] for kind in more} == more
    assert len(set(OPERATIONS.values())) == len(OPERATIONS) - len(more)
