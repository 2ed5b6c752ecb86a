"""For which queries changed rows of their tables tell what changes in their own rows."""

from __future__ import annotations

import pytest

from shelduck.text.query.query_shape import (
    Fold,
    JoinedOn,
    NeedsAllError,
    query_shape,
    require_stable,
)

# Whether each column may be NULL.
COLUMNS = {
    "__o__": {"id": False, "k": True, "v": True, "ts": True},
    "__c__": {"k": True, "name": True},
}
O, C = "__o__ AS o", "__c__ AS c"  # noqa: E741 - what the tables are called in queries


def shape(query):
    return query_shape(query, COLUMNS)


def refused(query):
    with pytest.raises(NeedsAllError) as error:
        shape(query)
    return str(error.value)


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT id, v + 1 AS w FROM {O} WHERE v > 3",
        f"SELECT * FROM {O}, {C} WHERE o.k = c.k",
        f"SELECT o.id FROM {O} CROSS JOIN {C}",
        f"SELECT upper(name) FROM {O} JOIN {C} USING (k)",
    ],
)
def test_rows_that_are_rows_of_the_tables(query):
    found = shape(query)
    assert found.keys is None
    assert set(found.tables.values()) == {None}


@pytest.mark.parametrize(
    ("join", "columns"),
    [
        ("ON o.k = c.k", (("k", "k"),)),
        ("ON c.k = o.k AND c.name > 'a'", (("k", "k"),)),
        ("ON (o.k = c.k) AND (o.v = c.name)", (("k", "k"), ("v", "name"))),
        ("USING (k)", (("k", "k"),)),
        ("ON v = name", (("v", "name"),)),
    ],
)
def test_what_a_left_join_is_on(join, columns):
    found = shape(f"SELECT o.id FROM {O} LEFT OUTER JOIN {C} {join}")
    assert found.tables == {"__o__": None, "__c__": JoinedOn("__o__", columns)}


@pytest.mark.parametrize(
    ("query", "keys", "sources"),
    [
        (f"SELECT k, count(*) FROM {O} GROUP BY k", (0,), {0: ("__o__", "k")}),
        (f"SELECT count(*), o.K FROM {O} GROUP BY k", (1,), {1: ("__o__", "k")}),
        (f"SELECT k AS x, count(*) FROM {O} GROUP BY 1", (0,), {0: ("__o__", "k")}),
        (f"SELECT v + 1 AS w, count(*) FROM {O} GROUP BY w", (0,), {}),
        (f"SELECT v + 1, count(*) FROM {O} GROUP BY v + 1", (0,), {}),
        (f"SELECT DISTINCT k, v FROM {O}", (0, 1), {0: ("__o__", "k"), 1: ("__o__", "v")}),
        # A row of o without a match has NULL there, which no row of c has.
        (f"SELECT c.name, count(*) FROM {O} LEFT JOIN {C} ON o.k = c.k GROUP BY c.name", (0,), {}),
    ],
)
def test_columns_that_identify_groups(query, keys, sources):
    found = shape(query)
    assert (found.keys, found.sources) == (keys, sources)


@pytest.mark.parametrize(
    ("columns", "folds", "subtracts"),
    [
        ("count(*)", {1: Fold.COUNT}, True),
        ("sum(id), count(1)", {1: Fold.SUM, 2: Fold.COUNT}, True),
        ("sum(v), count(*)", {1: Fold.SUM, 2: Fold.COUNT}, False),
        ("sum(v), count(*), count(v)", {1: Fold.SUM, 2: Fold.COUNT, 3: Fold.COUNT}, True),
        ("sum(id)", {1: Fold.SUM}, False),
        ("min(v), max(v), count(*)", {1: Fold.MIN, 2: Fold.MAX, 3: Fold.COUNT}, False),
        ("avg(v)", None, False),
        ("count(DISTINCT v), count(*)", None, False),
        ("sum(v) + 1, count(*)", None, False),
        ("sum(v) FILTER (WHERE v > 1), count(*)", None, False),
    ],
)
def test_what_can_be_added_to_groups(columns, folds, subtracts):
    found = shape(f"SELECT k, {columns} FROM {O} GROUP BY k")
    assert (found.folds, found.subtracts) == (folds, subtracts)


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("VALUES (1)", "not one SELECT"),
        (f"SELECT id FROM {O} UNION ALL SELECT 1", "not one SELECT"),
        ("SELECT 1", "reads no table"),
        (f"WITH q AS (SELECT 1) SELECT id FROM {O}", "it has WITH"),
        (f"SELECT id FROM {O} ORDER BY id", "it has ORDER BY"),
        (f"SELECT id FROM {O} LIMIT 3", "it has LIMIT"),
        (f"SELECT k FROM {O} GROUP BY k HAVING count(*) > 1", "it has HAVING"),
        (f"SELECT id FROM {O} LATERAL VIEW explode(array(1)) q AS x", "LATERAL VIEW"),
        (f"SELECT id FROM {O} WHERE k IN (SELECT k FROM {C})", "a query inside"),
        (f"SELECT id FROM (SELECT * FROM {O})", "more than tables"),
        (f"SELECT row_number() OVER (ORDER BY id) FROM {O}", "a window"),
        ("SELECT a.id FROM __o__ AS a JOIN __o__ AS b ON a.id = b.v", "a table twice"),
        (f"SELECT o.id FROM {O} RIGHT JOIN {C} ON o.k = c.k", "RIGHT JOIN"),
        (f"SELECT o.id FROM {O} FULL OUTER JOIN {C} ON o.k = c.k", "FULL OUTER JOIN"),
        (f"SELECT o.id FROM {O} LEFT ANTI JOIN {C} ON o.k = c.k", "LEFT ANTI JOIN"),
        (f"SELECT o.id FROM {O} NATURAL JOIN {C}", "NATURAL JOIN"),
        (f"SELECT o.id FROM {O} LEFT JOIN {C} ON o.k > c.k", "not on columns"),
        (f"SELECT o.id FROM {O} LEFT JOIN {C} ON o.k + 1 = c.k", "not on columns"),
        (f"SELECT count(*) FROM {O}", "one row for all rows"),
        (f"SELECT hll_sketch_agg(v) FROM {O}", "one row for all rows"),
        (f"SELECT abs(k) AS k, count(*) FROM {O} GROUP BY k", "it does not show k"),
        (f"SELECT count(*) FROM {O} GROUP BY k", "it does not show k"),
        (f"SELECT k, v, count(*) FROM {O} GROUP BY CUBE (k, v)", "it does not show CUBE"),
        (f"SELECT k, count(*) FROM {O} GROUP BY k WITH ROLLUP", "not a list of columns"),
        (f"SELECT k, count(*) FROM {O} GROUP BY ALL", "not a list of columns"),
        (f"SELECT DISTINCT * FROM {O}", "DISTINCT"),
    ],
)
def test_queries_of_which_only_all_rows_tell(query, why):
    assert why in refused(query)


@pytest.mark.parametrize(
    ("query", "name"),
    [
        (f"SELECT rand() FROM {O}", "rand"),
        (f"SELECT id FROM {O} WHERE ts > current_date", "current_date"),
        (f"SELECT id FROM {O} WHERE ts > now() - INTERVAL 1 DAY", "now"),
        (f"SELECT UUID() FROM {O}", "uuid"),
    ],
)
def test_what_has_another_value_next_time(query, name):
    with pytest.raises(NeedsAllError, match=name):
        require_stable(query, ["id", "ts"])


@pytest.mark.parametrize("query", ["SELECT user FROM t", "SELECT `now` FROM t", "SELECT 'now()'"])
def test_a_column_or_a_text_may_be_called_so(query):
    require_stable(query, ["user", "now"])
