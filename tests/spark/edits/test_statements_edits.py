"""DELETE, TRUNCATE, UPDATE and MERGE as SQL."""

from __future__ import annotations

import pytest

from tests.support.lakes import rows
from tests.support.spark import views

STATEMENTS = [
    "CALL set_option('data_inlining_row_limit', '0')",
    "CREATE TABLE t (id INT, name STRING)",
    "INSERT INTO t SELECT /*+ COALESCE(1) */ id, concat('n', id) FROM range(0, 20)",
    "CREATE TABLE gone (id INT)",
    "INSERT INTO gone VALUES (3), (4), (NULL)",
]


def ids(lake):
    return sorted(r[0] for r in lake.table("t").read().select("id").collect())


def test_delete_says_what_it_did(lake):
    [done] = lake.sql("DELETE FROM t WHERE id < 5").collect()
    assert done.asDict() == {
        "operation": "DELETE",
        "snapshot": 5,
        "rows": 5,
        "files": 0,
        "inserted": 0,
        "updated": 0,
        "deleted": 5,
    }
    assert ids(lake) == list(range(5, 20))


@pytest.mark.slow
def test_delete_with_subqueries(lake):
    lake.sql("DELETE FROM t WHERE id IN (SELECT id FROM gone)")
    lake.sql("DELETE FROM main.t AS x WHERE EXISTS (SELECT 1 FROM gone g WHERE g.id + 2 = x.id)")
    lake.sql("DELETE FROM t WHERE t.id = (SELECT max(id) FROM t)")
    lake.sql("DELETE FROM t WHERE t.id > 17 AND id NOT IN (SELECT id FROM gone WHERE id > 0)")
    assert ids(lake) == [0, 1, 2, *range(7, 18)]


def test_delete_without_where_and_truncate_empty_a_table(lake):
    assert lake.sql("DELETE FROM t").first().deleted == 20
    assert lake.sql("TRUNCATE TABLE gone").first().deleted == 3
    assert (
        rows(lake.sql("SELECT count(*) FROM t UNION ALL SELECT count(*) FROM gone")) == [(0,)] * 2
    )


def test_no_view_stays_behind_in_the_session(lake, spark):
    before = views(spark)
    lake.sql("DELETE FROM t WHERE id IN (SELECT id FROM gone)")
    assert views(spark) == before
