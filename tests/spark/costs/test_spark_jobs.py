"""How many Spark jobs a statement runs: each costs some tens of milliseconds, whatever it does."""

from __future__ import annotations

import pytest

from tests.support.budgets import within
from tests.support.jobs import jobs_of

pytestmark = pytest.mark.guard

STATEMENTS = [
    "CALL set_option('data_inlining_row_limit', '0')",
    "CREATE TABLE t (id INT, a INT, b STRING)",
    "INSERT INTO t SELECT CAST(id AS INT), 0, 'b' FROM range(100)",
    "INSERT INTO t SELECT CAST(id AS INT), 0, 'b' FROM range(100, 200)",
    "DELETE FROM t WHERE id % 50 = 0",
    "CREATE TABLE k (id INT, v STRING, d DATE, at TIMESTAMP) UNIQUE KEY (id)",
    "INSERT INTO k SELECT CAST(id AS INT), 'old', NULL, NULL FROM range(100)",
    "INSERT INTO k SELECT CAST(id AS INT), 'old', NULL, NULL FROM range(100, 200)",
    "CALL set_option('data_inlining_row_limit', '10', table_name => 'k')",
    "CREATE TABLE r (id BIGINT GENERATED ALWAYS AS IDENTITY, a INT, CONSTRAINT c CHECK (a > 0))",
    "CALL set_option('data_inlining_row_limit', '10', table_name => 'r')",
]
MERGE = (
    "MERGE INTO t USING (SELECT CAST(id AS INT) AS id, 5 AS a, 'c' AS b FROM range(90, 210)) AS s"
    " ON t.id = s.id WHEN MATCHED THEN UPDATE SET a = s.a"
)
# Each by the name of its budget.
JOBS = {
    "merge_literals": (
        "MERGE INTO t USING (VALUES (7, 5), (900, 6)) AS s (id, a) ON t.id = s.id WHEN MATCHED"
        " THEN UPDATE SET a = s.a WHEN NOT MATCHED THEN INSERT (id, a) VALUES (s.id, s.a)"
    ),
    "count_and_min": "SELECT count(*), min(b) IS NULL FROM t",
    "count": "SELECT count(*) FROM t",
    "insert": "INSERT INTO t VALUES (1, 1, 'x')",
    "insert_with_rules": "INSERT INTO r (a) VALUES (1), (2)",
    "delete": "DELETE FROM t WHERE id = 7",
    "update": "UPDATE t SET a = a + 1 WHERE id = 9",
    "merge": f"{MERGE} WHEN NOT MATCHED THEN INSERT *",
    "merge_update_only": MERGE,
}


@pytest.mark.parametrize("statement", JOBS)
def test_a_statement_runs_few_jobs(statement, lake, spark):
    jobs = jobs_of(spark, lambda: lake.sql(JOBS[statement]).collect())

    within(f"spark_jobs.{statement}", jobs)


@pytest.mark.parametrize("loads", [3, pytest.param(6, marks=pytest.mark.slow)])
def test_a_small_load_by_key_runs_few_jobs_whatever_was_loaded_before(lake, spark, loads):
    found, expected = [], {}
    for n in range(loads):
        # Each load also has a key that the load before it had.
        keys = [5 + n, 6 + n, 105 + n, 1000 + n]
        expected |= dict.fromkeys(keys, str(n))
        values = ", ".join(f"({key}, '{n}', DATE'2026-01-02', NULL)" for key in keys)
        load = f"INSERT INTO k VALUES {values}"
        found.append(jobs_of(spark, lambda load=load: lake.sql(load)))
    # The rows that are loaded are folded, handed to the tasks, and looked up.
    assert max(found) <= 3
    loaded = lake.sql("SELECT id, v FROM k WHERE v != 'old' ORDER BY id").collect()
    assert list(map(tuple, loaded)) == sorted(expected.items())


def test_a_load_of_rows_that_go_into_files_runs_few_jobs(lake, spark):
    values = ", ".join(f"({key}, 'new', NULL, NULL)" for key in range(90, 120))
    # As above, and one job for each of the files: updated rows and new ones.
    assert jobs_of(spark, lambda: lake.sql(f"INSERT INTO k VALUES {values}")) <= 5
    assert lake.sql("SELECT * FROM k WHERE v = 'new'").count() == 30


def test_a_change_feed_reads_its_deletes_in_the_driver(lake, spark):
    first = lake.snapshots()[-1].id + 1
    lake.sql("UPDATE t SET a = a + 1 WHERE id < 90")
    lake.sql("DELETE FROM t WHERE id > 190")
    feed = lake.table("t").changes(first)
    found = []
    jobs = jobs_of(spark, lambda: found.extend(feed.groupBy("_change_type").count().collect()))
    assert dict(map(tuple, found)) == {"update_preimage": 88, "update_postimage": 88, "delete": 9}
    # One each for the positions of two kinds of files, and two for the sum.
    assert jobs <= 4


def test_files_with_deletes_and_without_are_read_together(lake, path_of_reading):
    lake.sql("DELETE FROM t WHERE id = 7")
    lake.sql("INSERT INTO t SELECT CAST(id AS INT), 1, 'c' FROM range(300, 310)")

    found = lake.table("t").read().groupBy("b").count().collect()
    assert sorted(map(tuple, found)) == [("b", 195), ("c", 10)]
    lake.sql("UPDATE t SET a = 9 WHERE id IN (8, 305)")
    assert lake.table("t").read().where("a = 9").count() == 2
