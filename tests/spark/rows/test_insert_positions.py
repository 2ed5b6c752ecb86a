"""To which columns of a table the columns of a query go, and what PARTITION (…) adds to them.

Spark itself resolves a statement that begins with WITH, so it is the oracle of INSERT here.
"""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from shelduck import InvalidRequest, ShelduckError
from tests.support.attaching import attached_lake
from tests.support.lakes import rows

pytestmark = pytest.mark.every_spark

OLD = [(8, 3, 8), (9, 2, 9)]
INTO = {
    "INTO u PARTITION (p) SELECT 1, 2, 3": [(1, 2, 3), *OLD],
    "INTO u PARTITION (p = 7) SELECT 1, 3": [(1, 7, 3), *OLD],
    "INTO u PARTITION (p = 7) BY NAME SELECT 1 AS v, 3 AS k": [(3, 7, 1), *OLD],
    "INTO u PARTITION (p = NULL) SELECT 1, 3": [(1, None, 3), *OLD],
    "INTO u PARTITION (p = '07') SELECT 1, 3": [(1, 7, 3), *OLD],
    "OVERWRITE u PARTITION (p) SELECT 1, 2, 3": [(1, 2, 3)],
    "OVERWRITE u PARTITION (p = 2) SELECT 1, 3": [(1, 2, 3), (8, 3, 8)],
    "OVERWRITE u PARTITION (p = 2) SELECT 1, 3 WHERE false": [(8, 3, 8)],
}


@pytest.fixture
def lake(spark, tmp_path):
    with attached_lake(
        spark,
        tmp_path,
        "CREATE TABLE u (k INT, p INT DEFAULT 5, v INT DEFAULT 6) PARTITIONED BY (p)",
        "INSERT INTO u VALUES (9, 2, 9), (8, 3, 8)",
    ) as found:
        spark.sql("USE lake.main")
        yield found
        spark.sql("USE spark_catalog.default")


def _all(spark):
    return sorted(rows(spark.table("lake.main.u")))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("statement", INTO)
def test_a_partition_clause_moves_no_column(spark, lake, statement):
    spark.sql(f"INSERT {statement}")
    assert _all(spark) == sorted(INTO[statement], key=str)
    for before in ("WITH q AS (SELECT 1)", "FROM (SELECT 1)"):
        spark.sql("DELETE FROM u")
        spark.sql("INSERT INTO u VALUES (9, 2, 9), (8, 3, 8)")
        spark.sql(f"{before} INSERT {statement}")
        assert _all(spark) == sorted(INTO[statement], key=str)


LISTED = {
    "INSERT INTO u PARTITION (p) VALUES (1, 2, 3)": (1, 2, 3),
    "INSERT INTO u PARTITION (p) VALUES (1, DEFAULT, 3)": (1, 5, 3),
    "INSERT INTO u PARTITION (p = 7) VALUES (1, DEFAULT)": (1, 7, 6),
    "INSERT INTO u PARTITION (p) (v, p, k) SELECT 1, 2, 3": (3, 2, 1),
    "INSERT INTO u PARTITION (p = 7) (v, k) VALUES (1, 3)": (3, 7, 1),
    "INSERT INTO u PARTITION (p) BY NAME SELECT 1 AS v, 2 AS p, 3 AS k": (3, 2, 1),
    "FROM (SELECT 1, 2, 3) INSERT INTO u PARTITION (p) SELECT *": (1, 2, 3),
    "EXECUTE IMMEDIATE 'INSERT INTO u PARTITION (p) VALUES (1, 2, 3)'": (1, 2, 3),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("statement", LISTED)
def test_values_and_lists_go_to_the_columns_that_they_name(spark, lake, statement):
    spark.sql(statement)
    assert _all(spark) == sorted([LISTED[statement], *OLD])


def test_texts_behind_a_fixed_partition_become_the_times_of_their_columns(lake):
    lake.sql("CREATE TABLE d (p STRING, day DATE, w STRING) PARTITIONED BY (p)")
    lake.sql("INSERT INTO d PARTITION (p = 'a') VALUES ('2026-01-02', '2026-01-03')")
    [row] = rows(lake.sql("SELECT p, CAST(day AS STRING), w FROM d"))
    assert row == ("a", "2026-01-02", "2026-01-03")


LOST = [
    ("INT", "7.5", "decimal(2,1) cannot be stored as int32"),
    ("INT", "'7.5'", "column p of main.l: '7.5' is not a value of type int32"),
    ("INT", "3000000000", "int32, which must hold every value exactly, got 3000000000"),
    ("DECIMAL(5,2)", "'1.239'", "it has more than 2 digits after the point"),
    ("DECIMAL(5,2)", "1.239", "decimal(5,2), which must hold every value exactly, got 1.239"),
    ("FLOAT", "'1e300'", "it is out of range"),
    ("DATE", "TIMESTAMP'2026-01-02 03:04:05'", "timestamp cannot be stored as date"),
    ("DATE", "'2026-01-02 03:04:05'", "column p of main.l: '2026-01-02 03:04:05' is not a value"),
    ("VARCHAR(2)", "'abc'", "column p of main.l is VARCHAR(2), got a text of 3 characters"),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", LOST, ids=[f"{kind} {value}" for kind, value, _ in LOST])
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_the_value_of_a_partition_loses_nothing(spark, lake, case, ansi):
    kind, value, why = case
    lake.sql(f"CREATE TABLE l (k INT, p {kind}) PARTITIONED BY (p)")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        with pytest.raises(InvalidRequest) as caught:
            spark.sql(f"INSERT INTO l PARTITION (p = {value}) SELECT 1")
        assert why in str(caught.value)
        with pytest.raises((ShelduckError, PySparkException)):
            spark.sql(f"WITH q AS (SELECT 1) INSERT INTO l PARTITION (p = {value}) SELECT 1")
        with pytest.raises((ShelduckError, PySparkException)):
            spark.sql(f"FROM (SELECT 1 AS k) INSERT INTO l PARTITION (p = {value}) SELECT k")
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    assert rows(spark.table("lake.main.l")) == []


def test_what_spark_casts_for_a_partition_is_looked_at(spark, lake):
    lake.sql("CREATE TABLE l (k INT, p DECIMAL(5,2)) PARTITIONED BY (p)")
    with pytest.raises(PySparkException, match=r"'1.239' is not a value of type decimal\(5,2\)"):
        spark.sql("FROM (SELECT 1 AS k) INSERT INTO l PARTITION (p = '1.239') SELECT k")
    spark.sql("FROM (SELECT 1 AS k) INSERT INTO l PARTITION (p = '1.5') SELECT k")
    assert rows(lake.sql("SELECT k, CAST(p AS STRING) FROM l")) == [(1, "1.50")]


@pytest.mark.slow
def test_rows_are_saved_into_a_table_by_its_own_partition_keys(spark, lake):
    frame = spark.sql("SELECT 1 AS v, 2 AS p, 3 AS k")
    frame.write.mode("append").partitionBy("p").saveAsTable("lake.main.u")
    assert _all(spark) == [(3, 2, 1), *OLD]
