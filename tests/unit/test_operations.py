"""The names of statements in results."""

from __future__ import annotations

from typing import get_args

from shelduck.sql.statements import statements as st
from shelduck.statements.operations import OPERATIONS


def test_every_statement_has_a_name_of_its_own():
    assert set(OPERATIONS) == set(get_args(st.Statement))
    assert len(set(OPERATIONS.values())) == len(OPERATIONS)
