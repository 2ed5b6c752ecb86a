"""Parameters of a statement become literals, and nothing else does."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from shelduck import InvalidRequest
from shelduck.text.query.travel import in_sparks_words
from shelduck.text.tokens.parameters import literal_text, with_parameters


@pytest.mark.parametrize(
    ("text", "values", "wanted"),
    [
        ("WHERE id = :id", {"id": 3}, "WHERE id = 3"),
        ("SET w=:w, n = n -:n", {"w": "a'b", "n": -1}, "SET w='a\\'b', n = n - -1"),
        ("VALUES (?, ?)", [1, None], "VALUES (1, NULL)"),
        ("x = ':a' AND y = :a -- :a", {"a": True}, "x = ':a' AND y = TRUE -- :a"),
        ("/* ? */ '?' = ?", ["?"], "/* ? */ '?' = '?'"),
        ("a::INT = :a", {"a": 1, "unused": 2}, "a::INT = 1"),
        ("v:a = :a", {"a": 1}, "v:a = 1"),
        ("id IN (:a,:a)", {"a": 1}, "id IN (1,1)"),
    ],
)
def test_parameters_become_literals(text, values, wanted):
    assert with_parameters(text, values) == wanted


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (1 << 40, "1099511627776"),
        (1.5, "1.5D"),
        (-1e300, " -1e+300D"),
        (float("nan"), "CAST('nan' AS DOUBLE)"),
        (Decimal("1E+3"), "1000BD"),
        (b"\x01\xff", "X'01ff'"),
        (date(2026, 1, 2), "DATE '2026-01-02'"),
        (datetime(2026, 1, 2, 3, tzinfo=UTC), "TIMESTAMP '2026-01-02 03:00:00+00:00'"),
        (
            datetime(2026, 1, 2, 3, 0, 0, 6, timezone(timedelta(hours=2))),
            "TIMESTAMP '2026-01-02 01:00:00.000006+00:00'",
        ),
        (timedelta(days=-1, seconds=-2), "INTERVAL '-1 00:00:02.000000' DAY TO SECOND"),
        ([1, "a"], "array(1, 'a')"),
        ({"a": 1}, "map('a', 1)"),
        ("back\\slash", "'back\\\\slash'"),
    ],
)
def test_values_are_written_as_literals(value, wanted):
    assert literal_text(value) == wanted


@pytest.mark.parametrize(
    ("text", "values", "told"),
    [
        ("id = :id", {"ID": 3}, "parameter :id, but args has ID"),
        ("? AND ?", [1], r"has 2 \?, but args has 1 value"),
        ("id = ?", [1, 2], r"has 1 \?, but args has 2 value"),
        ("id = :id", {"id": object()}, "parameter id of type object has no SQL literal"),
        ("id = ?", [Decimal("NaN")], "a decimal cannot be NaN"),
    ],
)
def test_what_has_no_value_or_no_literal_is_told(text, values, told):
    with pytest.raises(InvalidRequest, match=told):
        with_parameters(text, values)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("FROM t AT (VERSION => 3) AS x", "FROM t VERSION AS OF 3  AS x"),
        ("FROM t at (version => '3')x", "FROM t version AS OF '3' x"),
        ("FROM t AT (TIMESTAMP => DATE '2026-01-01')", "FROM t TIMESTAMP AS OF DATE '2026-01-01' "),
        ("FROM a.t@v3, b@V4 x", "FROM a.t VERSION AS OF 3, b VERSION AS OF 4 x"),
        ("SELECT 'AT (VERSION => 3)', `a@v3`", "SELECT 'AT (VERSION => 3)', `a@v3`"),
        ("SELECT at(3) FROM t@x", "SELECT at(3) FROM t@x"),
        ("FROM t AT (VERSION => n)", "FROM t AT (VERSION => n)"),
        ("FROM 'open", "FROM 'open"),
    ],
)
def test_times_are_told_in_sparks_words(text, wanted):
    assert in_sparks_words(text) == wanted
