"""Identity partitions are Spark's partition columns: filters and joins choose files by them."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

import shelduck
from tests.support.attaching import attached_lake, duck, url_of
from tests.support.lakes import rows
from tests.support.scans import files_read

pytestmark = pytest.mark.every_spark

DAYS = 20


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory):
    """Sales by day and region, a file for each pair, and a small table of days."""
    folder = tmp_path_factory.mktemp("lake")
    with attached_lake(
        spark,
        folder,
        "CREATE TABLE sales (id BIGINT, day DATE, region STRING, n INT)",
        "ALTER TABLE sales SET PARTITIONED BY (day, region)",
        f"""INSERT INTO sales SELECT id, date_add(DATE'2026-01-01', int(id % {DAYS})),
            CASE id % 3 WHEN 0 THEN NULL WHEN 1 THEN '' ELSE 'a b/%' END, int(id)
            FROM range(3000)""",
        "CREATE TABLE days (day DATE, season STRING)",
        """INSERT INTO days SELECT date_add(DATE'2026-01-01', int(id)), if(id < 3, 'x', 'y')
           FROM range(2000)""",
    ) as found:
        found.folder = folder
        yield found


def test_a_star_join_reads_the_files_of_the_days_it_needs(spark, lake):
    frame = spark.sql(
        "SELECT count(*), sum(n) FROM lake.main.sales s JOIN lake.main.days d ON s.day = d.day"
        " WHERE d.season = 'x'"
    )
    expected = [(450, sum(n for n in range(3000) if n % DAYS < 3))]
    assert rows(frame) == expected
    text = frame._jdf.queryExecution().executedPlan().toString()
    assert "dynamicpruningexpression(day" in text
    # Three days of twenty, in three regions each; the small table is one file.
    assert sorted(count for _, count in files_read(frame)) == [1, 9]
    with_duck = duck(
        url_of(lake.folder),
        "SELECT count(*), sum(n) FROM sales JOIN days USING (day) WHERE season = 'x'",
    )
    assert with_duck == expected


FILTERS = {
    "day = DATE'2026-01-05'": 3,
    "day > DATE'2026-01-18' AND region = ''": 2,
    "region IS NULL": DAYS,
    "region IN ('', 'a b/%') AND day = DATE'2026-01-01'": 2,
    "region LIKE 'a %'": DAYS,
    "upper(region) = 'A B/%' AND dayofmonth(day) = 3": 1,
    "day = DATE'2026-01-05' AND n < 0": 0,
    "day = DATE'2030-01-01'": 0,
    "NOT (region <=> NULL) AND day = DATE'2026-01-05'": 2,
}


@pytest.mark.parametrize("condition", FILTERS)
def test_filters_choose_files(spark, lake, condition):
    frame = spark.sql(f"SELECT id, day, region, n FROM lake.main.sales WHERE {condition}")
    found = rows(frame)
    [(_, count)] = files_read(frame) or [("", 0)]
    assert count == FILTERS[condition]
    plain = spark.sql("SELECT id, day, region, n FROM lake.main.sales").cache()
    try:
        assert plain.count() == 3000
        assert found == rows(plain.where(condition))
    finally:
        plain.unpersist()


def test_explain_names_partition_filters_and_the_snapshot(spark, lake, capsys):
    spark.sql("SELECT n FROM lake.main.sales WHERE day = DATE'2026-01-05' AND n > 3").explain()
    told = capsys.readouterr().out
    assert "PartitionFilters: [isnotnull(day" in told
    assert "LakeFileIndex(1 paths)[/main.sales, snapshot 5, 60 files]" in told
    assert "PushedFilters: [IsNotNull(n), GreaterThan(n,3)]" in told


def test_partitions_evolve(spark, tmp_path):
    """Files of an older spec, renamed and widened keys, rows in the catalog: all are found."""
    with shelduck.connect(url_of(tmp_path), f"{tmp_path}/data/", spark) as lake:
        lake.sql("CREATE TABLE t (k INT, v STRING)")
        lake.sql("CALL set_option('data_inlining_row_limit', 0)")
        lake.sql("INSERT INTO t VALUES (1, 'before'), (2, 'before')")
        lake.sql("ALTER TABLE t SET PARTITIONED BY (k)")
        lake.sql("INSERT INTO t VALUES (1, 'after'), (2, 'after'), (NULL, 'after')")
        by_key = "SELECT v FROM t WHERE {} = 1 ORDER BY v"
        assert rows(lake.sql(by_key.format("k"))) == [("after",), ("before",)]
        lake.sql("DELETE FROM t WHERE v = 'before'")
        lake.sql("ALTER TABLE t RENAME COLUMN k TO key")
        lake.sql("ALTER TABLE t ALTER COLUMN key TYPE BIGINT")
        lake.sql("INSERT INTO t VALUES (1, 'wide'), (5000000000, 'wide')")
        lake.sql("CALL set_option('data_inlining_row_limit', 10)")
        lake.sql("INSERT INTO t VALUES (1, 'inlined')")
        assert rows(lake.sql(by_key.format("key"))) == [("after",), ("inlined",), ("wide",)]
        frame = lake.sql("SELECT v FROM t WHERE key = 5000000000")
        assert rows(frame) == [("wide",)]
        assert sum(count for _, count in files_read(frame)) == 1
        kept = "SELECT v, key FROM t WHERE key IS NULL"
        assert rows(lake.sql(kept)) == [("after", None)]
        lake.sql("UPDATE t SET key = 2 WHERE v = 'inlined'")
        assert rows(lake.sql("SELECT v FROM t WHERE key = 2 ORDER BY v")) == [
            ("after",),
            ("inlined",),
        ]
        lake.sql("DELETE FROM t WHERE key = 1")
        assert duck(url_of(tmp_path), "SELECT v FROM t WHERE key IS NOT NULL") == [
            ("after",),
            ("inlined",),
            ("wide",),
        ]


def test_a_wrong_partition_value_is_named(spark, tmp_path):
    with shelduck.connect(url_of(tmp_path), f"{tmp_path}/data/", spark) as lake:
        lake.sql("CREATE TABLE t (k INT, v INT)")
        lake.sql("ALTER TABLE t SET PARTITIONED BY (k)")
        lake.sql("INSERT INTO t SELECT 1, int(id) FROM range(100)")
        with closing(sqlite3.connect(tmp_path / "lake.db")) as catalog, catalog:
            catalog.execute("UPDATE ducklake_file_partition_value SET partition_value = 'one'")
        with pytest.raises(Exception, match="partition value of column 'k' is 'one'"):
            rows(lake.sql("SELECT * FROM t"))
