"""The hint that keeps rollups out of a query: a comment between words, and nothing else."""

from __future__ import annotations

import pytest

from shelduck.lake.operation import without_hint


@pytest.mark.parametrize(
    ("text", "without", "may_answer"),
    [
        ("SELECT 1", "SELECT 1", True),
        ("SELECT /*+ NO_ROLLUP */ a FROM t", "SELECT  a FROM t", False),
        ("SELECT a /*+ no_rollup( ) */ FROM t -- x", "SELECT a  FROM t -- x", False),
        ("SELECT '/*+ no_rollup */' FROM t", "SELECT '/*+ no_rollup */' FROM t", True),
        (
            "SELECT /*+ NO_ROLLUP */ 'a /*+ NO_ROLLUP */', `/*+ NO_ROLLUP */` FROM t",
            "SELECT  'a /*+ NO_ROLLUP */', `/*+ NO_ROLLUP */` FROM t",
            False,
        ),
    ],
)
def test_the_hint_is_taken_out_of_a_query_and_not_out_of_its_texts(text, without, may_answer):
    assert without_hint(text) == (without, may_answer)
