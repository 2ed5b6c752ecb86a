"""Laws of `Stream.to`: after drawn changes, each table of a chain is as the first one."""

from __future__ import annotations

import pytest

import shelduck
from tests.support.carry_program import tell
from tests.support.lengths import one_by_one, with_slow

pytestmark = pytest.mark.databases("sqlite", "postgres")
PROGRAMS, FAST = range(2_000), range(1)


@pytest.mark.parametrize("seed", with_slow(FAST, one_by_one(PROGRAMS[1:], 10)))
def test_tables_that_follow_are_as_their_source(spark, lake_url, data_path, seed):
    with shelduck.connect(lake_url, data_path, spark) as lake:
        tell(lake, lake_url, seed)
