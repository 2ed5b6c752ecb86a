"""Laws of REFRESH: after drawn changes, a materialized view has the rows that its query gives."""

from __future__ import annotations

import pytest

import shelduck
from tests.support.lengths import one_by_one, with_slow
from tests.support.materialized_program import tell

pytestmark = pytest.mark.databases("sqlite", "postgres")
PROGRAMS, FAST = range(2_000), range(1)


@pytest.mark.parametrize("seed", with_slow(FAST, one_by_one(PROGRAMS[1:], 10)))
def test_a_materialized_view_has_the_rows_of_its_query(spark, lake_url, data_path, seed):
    with shelduck.connect(lake_url, data_path, spark) as lake:
        tell(lake, lake_url, seed)
