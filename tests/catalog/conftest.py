"""Lakes to commit to."""

from __future__ import annotations

import pytest

from tests.support.lake import Lake


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
