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


NAMES = ["*", "_action", "a.b", "x`.*", "value", "times", "key"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("limit", [0, 10])
def test_a_column_may_have_any_name(lake, spark, name, limit):
    c = "`" + name.replace("`", "``") + "`"
    other = f"n INT GENERATED ALWAYS AS ({c} + 1)"
    lake.sql(f"CALL set_option('data_inlining_row_limit', '{limit}')")
    lake.sql(f"CREATE TABLE o (id INT, {c} INT, s STRUCT<{c}: INT>, {other})")
    struct = f"named_struct('{name}', 0) AS s"
    lake.sql(f"INSERT INTO o (id, {c}, s) SELECT 1, 10, {struct} UNION ALL SELECT 2, 20, {struct}")
    lake.table("o").append(spark.sql(f"SELECT 3 AS id, 30 AS {c}, {struct}"))
    lake.sql(f"UPDATE o SET {c} = {c} + 1, s.{c} = {c} WHERE id < 3")
    source = f"SELECT *, {struct} FROM VALUES (3, 32), (4, 40) v (id, {c})"
    lake.sql(
        f"MERGE INTO o USING ({source}) u ON o.id = u.id WHEN MATCHED THEN UPDATE SET *"
        " WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE AND o.id = 1 THEN DELETE"
    )
    lake.sql(f"ALTER TABLE o ALTER COLUMN s.{c} TYPE STRING")
    expected = [(2, 21, ("20",), 22), (3, 32, ("0",), 33), (4, 40, ("0",), 41)]
    assert rows(lake.sql("SELECT * FROM o ORDER BY id")) == expected
    assert rows(lake.sql(f"SELECT s.{c} FROM o WHERE {c} = 21")) == [("20",)]
