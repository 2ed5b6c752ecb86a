"""Laws of `Stream.to`: after drawn changes, each table of a chain is as the first one."""

from __future__ import annotations

import pytest

import shelduck
from tests.support.carry_program import tell
from tests.support.lengths import turns

pytestmark = pytest.mark.databases("sqlite", "postgres")
PROGRAMS, FAST = range(2_000), range(1)


@pytest.mark.parametrize(
    "seed",
    [
        *FAST,
        *(
            pytest.param(seed, marks=pytest.mark.slow)
            for some in turns(PROGRAMS[1:], 10)
            for seed in some
        ),
    ],
)
def test_tables_that_follow_are_as_their_source(spark, lake_url, data_path, seed):
    with shelduck.connect(lake_url, data_path, spark) as lake:
        tell(lake, lake_url, seed)
