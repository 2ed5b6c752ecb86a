from __future__ import annotations

import pytest

from shelduck.model.tables.rollup import Measure, Rollup, RollupColumn
from shelduck.read.plan.rollup_choice import Candidate, Wanted, choose

DAY, CITY, SITE, PV, COST = range(1, 6)
SUM, MIN, MAX, COUNT = Measure.SUM, Measure.MIN, Measure.MAX, Measure.COUNT
REPLACE = Measure.REPLACE
BASE_ROWS = 1000


def candidate(name, *columns, keys=None, rows=100, keeps_rows=None):
    """A rollup whose columns are those of the base, or pairs of a measure and one.

    It keeps the rows of its base where it has no measures.
    """
    made = [
        RollupColumn(50 + n, c[1], c[0]) if isinstance(c, tuple) else RollupColumn(50 + n, c)
        for n, c in enumerate(columns)
    ]
    plain = tuple(c.source for c in made if c.measure is None)
    if keeps_rows is None:
        keeps_rows = len(plain) == len(made)
    order = plain if keys is None else keys
    return Candidate(name, Rollup("uuid", name, tuple(made)), order, rows, keeps_rows)


def groups(*columns, measures=(), equals=(), ranges=()):
    return Wanted(
        frozenset(columns), frozenset(measures), True, frozenset(equals), frozenset(ranges)
    )


def rows_of(*columns, equals=(), ranges=()):
    return Wanted(frozenset(columns), equals=frozenset(equals), ranges=frozenset(ranges))


def name_of(wanted, *candidates, base_keys=(), **more):
    found = choose(wanted, base_keys, BASE_ROWS, candidates, **more)
    return None if found is None else found.name


BY_DAY = candidate("by_day", DAY, CITY, (SUM, PV), (MIN, PV), (COUNT, PV), (COUNT, None))


def test_a_rollup_of_groups_tells_its_columns_and_measures():
    wanted = groups(CITY, measures=[(SUM, PV), (COUNT, None)])
    found = choose(wanted, (), BASE_ROWS, [BY_DAY])
    assert found is not None
    assert (found.name, found.groups) == ("by_day", True)
    assert found.columns == {CITY: 51}
    assert found.measures == {(SUM, PV): 52, (COUNT, None): 55}
    assert found.reason == "rollup by_day has groups of the table's rows: 100 rows instead of 1000"


@pytest.mark.parametrize(
    "wanted",
    [
        groups(CITY),
        groups(CITY, DAY, measures=[(MIN, PV), (COUNT, PV)]),
        groups(measures=[(MIN, DAY), (MAX, CITY)]),
        groups(measures=[(COUNT, CITY)]),
        groups(),
    ],
)
def test_what_a_rollup_of_groups_answers(wanted):
    assert name_of(wanted, BY_DAY) == "by_day"


@pytest.mark.parametrize(
    "wanted",
    [
        groups(SITE),
        groups(PV),
        groups(measures=[(MAX, PV)]),
        groups(measures=[(SUM, COST)]),
        groups(measures=[(SUM, DAY)]),
        groups(measures=[(COUNT, SITE)]),
        rows_of(CITY),
        rows_of(),
    ],
)
def test_what_a_rollup_of_groups_does_not_answer(wanted):
    assert name_of(wanted, BY_DAY) is None


def test_a_count_of_a_key_is_told_by_the_key_and_all_rows():
    found = choose(groups(DAY, measures=[(COUNT, CITY)]), (), BASE_ROWS, [BY_DAY])
    assert found is not None
    assert found.columns == {DAY: 50, CITY: 51}
    assert found.measures == {(COUNT, None): 55}
    without = candidate("r", DAY, CITY, (SUM, PV))
    assert name_of(groups(measures=[(COUNT, CITY)]), without) is None
    assert name_of(groups(measures=[(COUNT, None)]), without) is None


def test_the_best_of_a_key_is_the_best_of_its_groups():
    found = choose(groups(measures=[(MAX, DAY)]), (), BASE_ROWS, [BY_DAY])
    assert found is not None
    assert found.measures == {(MAX, DAY): 50}


def test_fewer_rows_win_then_fewer_columns_then_the_first_name():
    small = candidate("small", CITY, (SUM, PV), (MAX, PV), rows=10)
    narrow = candidate("narrow", CITY, (SUM, PV), rows=10)
    wanted = groups(CITY, measures=[(SUM, PV)])
    assert name_of(wanted, BY_DAY, small) == "small"
    assert name_of(wanted, BY_DAY, small, narrow) == "narrow"
    other = candidate("also", CITY, (SUM, PV), rows=10)
    assert name_of(wanted, narrow, other) == "also"


def test_no_rollup_is_read_that_has_as_many_rows_as_the_base():
    assert name_of(groups(CITY), candidate("r", CITY, (SUM, PV), rows=BASE_ROWS)) is None


def test_a_longer_match_of_the_sort_order_wins_over_fewer_rows():
    by_city = candidate("by_city", CITY, DAY, (SUM, PV), rows=900)
    by_day = candidate("by_day", DAY, CITY, (SUM, PV), rows=10)
    wanted = groups(DAY, CITY, measures=[(SUM, PV)], equals=[CITY])
    assert name_of(wanted, by_day, by_city) == "by_city"
    assert name_of(wanted, by_day, by_city, base_keys=(CITY, DAY)) == "by_city"
    assert name_of(wanted, by_day, base_keys=(CITY, DAY)) is None


@pytest.mark.parametrize(
    ("equals", "ranges", "expected"),
    [
        ([], [], None),
        ([SITE], [], "by_site_city"),
        ([SITE, DAY], [], "by_site_day"),
        ([SITE, CITY], [], "by_site_city"),
        ([SITE], [DAY], "by_site_day"),
        ([SITE, DAY], [CITY], "by_site_day"),
        # Behind a range the order helps no more.
        ([DAY], [SITE], "by_site_city"),
        ([DAY], [], None),
    ],
)
def test_equal_columns_and_then_one_range_are_matched(equals, ranges, expected):
    by_day = candidate("by_site_day", SITE, DAY, CITY, rows=BASE_ROWS)
    by_city = candidate("by_site_city", SITE, CITY, DAY, rows=BASE_ROWS)
    wanted = rows_of(SITE, DAY, CITY, equals=equals, ranges=ranges)
    assert name_of(wanted, by_day, by_city) == expected


def test_rows_in_another_order_answer_everything_that_they_hold():
    other = candidate("other", CITY, PV, rows=BASE_ROWS)
    found = choose(
        groups(CITY, measures=[(SUM, PV), (COUNT, None)], equals=[CITY]), (DAY,), BASE_ROWS, [other]
    )
    assert found is not None
    assert (found.groups, found.columns, found.measures) == (False, {CITY: 50, PV: 51}, {})
    assert found.reason == (
        "rollup other has the table's rows: its sort order begins with 1 filtered column(s), the"
        " table's with 0; 1000 rows instead of 1000"
    )
    assert name_of(groups(CITY, measures=[(SUM, COST)], equals=[CITY]), other) is None
    assert name_of(rows_of(CITY, DAY, equals=[CITY]), other) is None
    assert name_of(rows_of(CITY, PV), other) is None


def test_groups_by_the_whole_key_of_a_table_are_its_rows():
    parts = ("whole", CITY, DAY, (SUM, PV), (REPLACE, COST))
    whole = candidate(*parts, rows=BASE_ROWS, keeps_rows=True)
    wanted = rows_of(CITY, PV, COST, equals=[CITY])
    found = choose(wanted, (DAY, CITY), BASE_ROWS, [whole])
    assert found is not None
    assert (found.groups, found.columns) == (False, {CITY: 50, PV: 52, COST: 53})
    assert name_of(wanted, candidate(*parts, rows=BASE_ROWS)) is None
    assert name_of(wanted, candidate(*parts, rows=9, keeps_rows=False)) is None


def test_replaced_values_are_not_combined():
    whole = candidate("whole", CITY, DAY, (REPLACE, COST), keeps_rows=True)
    for wanted in (groups(CITY, COST), groups(CITY, measures=[(MAX, COST)])):
        assert name_of(wanted, whole) is None
    assert name_of(groups(measures=[(REPLACE, COST)]), whole) is None


def test_a_rollup_of_keys_alone_tells_which_there_are_and_not_how_often():
    keys = candidate("keys", CITY, DAY, rows=9, keeps_rows=False)
    found = choose(groups(CITY), (), BASE_ROWS, [keys])
    assert found is not None
    assert (found.groups, found.columns) == (True, {CITY: 50})
    assert found.reason == "rollup keys has groups of the table's rows: 9 rows instead of 1000"
    assert name_of(groups(measures=[(MAX, DAY)]), keys) == "keys"
    for wanted in (rows_of(CITY), groups(measures=[(COUNT, None)]), groups(measures=[(SUM, DAY)])):
        assert name_of(wanted, keys) is None
