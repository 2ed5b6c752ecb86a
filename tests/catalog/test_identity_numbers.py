"""Numbers of an identity in each kind of catalog: nobody gets one that somebody else got."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from shelduck.catalog.running.identity_numbers import reserve_numbers
from tests.support.lake import Lake

pytestmark = [pytest.mark.plain, pytest.mark.every_database]


@pytest.fixture
def store(lake_url, data_path):
    made = Lake(lake_url, data_path)
    yield made.store
    made.store.close()


def test_each_call_gets_numbers_of_its_own(store):
    assert [reserve_numbers(store, "one", n) for n in (3, 1, 5)] == [0, 3, 4]
    assert reserve_numbers(store, "other", 7) == 0
    assert reserve_numbers(store, "one", 1) == 9


def test_threads_get_numbers_of_their_own(store):
    with ThreadPoolExecutor(4) as pool:
        taken = [*pool.map(lambda _: reserve_numbers(store, "one", 10), range(40))]
    assert sorted(taken) == [*range(0, 400, 10)]
