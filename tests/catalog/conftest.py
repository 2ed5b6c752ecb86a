"""Lakes to commit to."""

from __future__ import annotations

import pytest

from tests.support.lake import Lake
from tests.support.postgres import close_left_open


@pytest.fixture
def postgres_url(postgres_url):
    """The address of an empty PostgreSQL database; tests here close their connections to it."""
    yield postgres_url
    assert close_left_open(postgres_url) == 0, "this test leaves connections open; close the store"


@pytest.fixture
def lake(ducklake_version, lake_url, data_path):
    made = Lake(lake_url, data_path)
    yield made
    made.store.close()


@pytest.fixture
def sqlite_lake(sqlite_url, data_path):
    made = Lake(sqlite_url, data_path)
    yield made
    made.store.close()
