"""Numbers of an identity in each kind of catalog: nobody gets one that somebody else got."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from shelduck import InvalidRequest
from shelduck.catalog.running.identity_numbers import copy_numbers, reserve_numbers
from shelduck.model.tables.computed import ComputedColumn, ComputedColumns, Identity, with_computed
from tests.support.lake import Lake, created, provisional

pytestmark = [pytest.mark.plain, pytest.mark.every_database]
MOST = 2**63 - 1


@pytest.fixture
def lake(lake_url, data_path):
    made = Lake(lake_url, data_path)
    yield made
    made.store.close()


def table_of(lake, start=1, step=1):
    """A table with an identity of its own."""
    made = provisional(created(lake.schema(), id="bigint"), lake)
    column = ComputedColumn(made.columns.fields[0].id, identity=Identity(start, step))
    return replace(made, properties=with_computed({}, ComputedColumns((column,))))


def test_each_call_gets_numbers_of_its_own(lake):
    one, other, down = table_of(lake), table_of(lake, 0, 10), table_of(lake, 3, -2)
    assert [reserve_numbers(lake.store, one, n) for n in (3, 1, 5)] == [1, 4, 5]
    assert [reserve_numbers(lake.store, other, 7) for _ in range(2)] == [0, 70]
    assert [reserve_numbers(lake.store, down, 2) for _ in range(2)] == [3, -1]
    assert reserve_numbers(lake.store, one, 1) == 10


def test_threads_get_numbers_of_their_own(lake):
    one = table_of(lake)
    with ThreadPoolExecutor(4) as pool:
        taken = [*pool.map(lambda _: reserve_numbers(lake.store, one, 10), range(40))]
    assert sorted(taken) == [*range(1, 401, 10)]


def test_numbers_go_on_behind_those_that_were_given_and_in_a_copy(lake):
    up, down = table_of(lake, 1, 10), table_of(lake, 10, -5)
    assert reserve_numbers(lake.store, up, 0, [32, -7]) == 41
    assert reserve_numbers(lake.store, up, 2, [12]) == 41
    assert [reserve_numbers(lake.store, down, 1, [n]) for n in (99, 7, -10)] == [10, 5, -15]
    copy = replace(up, uuid="copy")
    copy_numbers(lake.store, up, copy)
    assert reserve_numbers(lake.store, copy, 1) == reserve_numbers(lake.store, up, 1) == 61


@pytest.mark.parametrize(
    ("start", "step", "given", "left"),
    [
        (MOST - 1, 1, [], 2),
        (-MOST, -1, [], 2),
        (MOST, 1, [], 1),
        (1, 1, [MOST], 0),
        (0, 1, [MOST], 0),
        (-(2**63), 1, [MOST], 0),
        (-5, MOST, [], 2),
        (1, 1, [MOST - 1], 1),
        (7, -(2**63), [], 2),
    ],
)
def test_numbers_end_where_bigint_ends(lake, start, step, given, left):
    one = table_of(lake, start, step)
    reserve_numbers(lake.store, one, 0, given)
    with pytest.raises(InvalidRequest, match=rf"cannot number {left + 1} row\(s\) of main.t"):
        reserve_numbers(lake.store, one, left + 1)
    found = [reserve_numbers(lake.store, one, 1) for _ in range(left)]
    assert found == [start + step * n for n in range(len(found))] or given
    assert all(-(2**63) <= number <= MOST for number in found)
    with pytest.raises(InvalidRequest, match="BIGINT has no such numbers"):
        reserve_numbers(lake.store, one, 1)
