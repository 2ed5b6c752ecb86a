"""Laws of REFRESH: after drawn changes, a materialized view has the rows that its query gives."""

from __future__ import annotations

import pytest

import shelduck
from tests.support.lengths import turns
from tests.support.materialized_program import tell

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
def test_a_materialized_view_has_the_rows_of_its_query(spark, lake_url, data_path, seed):
    with shelduck.connect(lake_url, data_path, spark) as lake:
        tell(lake, lake_url, seed)
