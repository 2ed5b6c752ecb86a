"""Few rows of the catalog are grouped and sorted without a job, as Spark's jobs do it."""

from __future__ import annotations

import re

import pytest
from pyspark.errors import ArithmeticException
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

import shelduck
from shelduck.engine.bridge import engine_for
from shelduck.engine.session import local_columns
from tests.support.jobs import jobs_of
from tests.support.lakes import rows
from tests.support.oracle import DuckDBOracle

SETTING = "spark.shelduck.localAnswers"
MADE = (
    "(1, 'a', 1.5D, 2.25, DATE'2024-01-31'), (2, 'b', NULL, -1.00, DATE'2024-02-01'),"
    " (3, 'a', 2.5D, NULL, NULL), (NULL, NULL, -0.5D, 9.99, DATE'2023-12-31')"
)
NUMBERS = "sum(id), avg(id), min(s), max(d), count(m), sum(m), count(*)"
# All ways in which rows of a catalog are computed, and how many rows they find.
QUERIES = (
    f"SELECT {NUMBERS} FROM t",
    f"SELECT {NUMBERS} FROM t WHERE id > 100",
    "SELECT s, count(*), sum(x) FROM t GROUP BY s ORDER BY s NULLS FIRST",
    "SELECT s, sum(id) FROM t GROUP BY s HAVING sum(id) > 2 ORDER BY s",
    "SELECT s, sum(id) FROM t WHERE id > 100 GROUP BY s",
    "SELECT DISTINCT s FROM t ORDER BY 1 DESC NULLS LAST",
    "SELECT id, x FROM t ORDER BY x DESC NULLS LAST, id LIMIT 2",
    "SELECT id FROM t ORDER BY id NULLS FIRST",
    "SELECT year(d), max(m) + 1 FROM t GROUP BY year(d) ORDER BY 1 NULLS LAST",
    "SELECT count(*) FILTER (WHERE s = 'a'), sum(CASE WHEN s = 'a' THEN id ELSE 0 END) FROM t",
    "SELECT max(n) FROM (SELECT s, count(*) AS n FROM t GROUP BY s) AS q",
)
# Ways that stay with Spark's jobs: they need more than one pass, an order, or equal numbers.
OTHERS = (
    "SELECT count(DISTINCT s), sum(id) FROM t",
    "SELECT x, count(*) FROM t GROUP BY x ORDER BY x NULLS FIRST",
    "SELECT id, s FROM t WHERE id = (SELECT max(id) FROM t)",
    "SELECT a.id, b.id FROM t a JOIN t b ON a.s = b.s WHERE a.id < b.id",
)


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    return f"sqlite:///{tmp_path_factory.mktemp('local')}/catalog.db"


@pytest.fixture(scope="module")
def lake(spark, url, tmp_path_factory):
    with shelduck.connect(url, f"{tmp_path_factory.mktemp('data')}/", spark) as made:
        made.sql("CREATE TABLE t (id INT, s STRING, x DOUBLE, m DECIMAL(9, 2), d DATE)")
        made.sql(f"INSERT INTO t VALUES {MADE}")
        yield made


@pytest.fixture
def by_jobs(spark):
    """Runs a function with the rule turned off."""

    def run(act):
        spark.conf.set(SETTING, "false")
        try:
            return act()
        finally:
            spark.conf.unset(SETTING)

    return run


@pytest.mark.parametrize("query", QUERIES)
def test_rows_of_the_catalog_are_computed_without_a_job(lake, url, by_jobs, query):
    found = []
    jobs = jobs_of(lake.spark, lambda: found.extend(rows(lake.sql(query))))
    with DuckDBOracle(url) as oracle:
        assert found == oracle.sql(query)
    assert jobs == 0
    assert found == by_jobs(lambda: rows(lake.sql(query)))
    # Spark itself knows what no rows are together.
    assert "> 100" in query or by_jobs(lambda: jobs_of(lake.spark, lake.sql(query).collect))


@pytest.mark.parametrize("query", OTHERS)
def test_what_needs_a_job_runs_one(lake, url, query):
    found = []
    jobs = jobs_of(lake.spark, lambda: found.extend(rows(lake.sql(query))))
    with DuckDBOracle(url) as oracle:
        assert found == oracle.sql(query)
    assert jobs > 0


def test_an_error_in_a_value_is_the_one_of_the_job(lake, by_jobs):
    query = "SELECT sum(CAST(id AS TINYINT) * 100Y) FROM t"
    with pytest.raises(ArithmeticException) as seen:
        lake.sql(query).collect()
    with pytest.raises(ArithmeticException) as expected:
        by_jobs(lake.sql(query).collect)
    assert seen.value.getCondition() == expected.value.getCondition()


def test_tables_of_an_attached_lake_and_frames_need_no_job_either(lake, url, spark):
    shelduck.attach(spark, "few", url)
    found = []

    def ask():
        found.extend(rows(spark.sql("SELECT s, count(*) FROM few.main.t GROUP BY s ORDER BY s")))
        found.extend(rows(lake.table("t").read().orderBy("id").select("id")))

    try:
        assert jobs_of(spark, ask) == 0
    finally:
        shelduck.detach(spark, "few")
    assert found == [(None, 1), ("a", 2), ("b", 1), (None,), (1,), (2,), (3,)]


def test_many_rows_of_a_plan_are_left_to_jobs(lake, spark):
    assert rows(lake.sql("SELECT count(*) FROM t")) == [(4,)]

    shape = T.StructType([T.StructField("n", T.LongType())])

    def jobs(count):
        made = engine_for(spark).own(local_columns(spark, [range(count)], shape))
        return jobs_of(spark, lambda: rows(made.agg(F.sum("n"))))

    assert (jobs(10_000), jobs(10_001) > 0) == (0, True)


SESSIONS = (
    "SELECT k, count(*) FROM VALUES (1), (2), (1) AS v (k) GROUP BY k ORDER BY k",
    "SELECT k + 1 AS k FROM VALUES (3), (2), (1) AS v (k) WHERE k > 1 ORDER BY k",
    "SELECT sum(k) FROM VALUES (3), (2), (1) AS v (k)",
)


@pytest.mark.parametrize("query", SESSIONS)
def test_rows_of_the_session_are_left_to_spark(lake, spark, by_jobs, query):
    # The rule is there.
    assert jobs_of(spark, lake.sql("SELECT s, sum(id) FROM t GROUP BY s").collect) == 0

    def plan():
        found = spark.sql(query)._jdf.queryExecution().optimizedPlan()
        return re.sub(r"#\d+L?", "", found.toString())

    assert plan() == by_jobs(plan)
    assert jobs_of(spark, spark.sql(query).collect) > 0


def test_a_plan_with_both_computes_only_rows_of_the_lake(lake, spark):
    lake.table("t").read().createOrReplaceTempView("of_the_lake")
    query = (
        "SELECT count(*) AS n FROM of_the_lake GROUP BY s UNION ALL"
        " SELECT count(*) FROM VALUES (1), (2), (1) AS v (k) GROUP BY k"
    )
    plan = spark.sql(query)._jdf.queryExecution().optimizedPlan().toString()

    assert plan.count("Aggregate") == 1
    assert sorted(rows(spark.sql(query))) == [(1,), (1,), (1,), (2,), (2,)]


@pytest.mark.parametrize(
    "excluded",
    ["shelduck.bridge.LocalRule", "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation"],
)
def test_excluded_rules_are_left_out(lake, spark, excluded):
    query = "SELECT s, sum(id) FROM t GROUP BY s ORDER BY s NULLS FIRST"
    expected = rows(lake.sql(query))
    spark.conf.set("spark.sql.optimizer.excludedRules", f"no.such.Rule, {excluded}")
    try:
        assert jobs_of(spark, lake.sql(query).collect) > 0
        assert rows(lake.sql(query)) == expected
    finally:
        spark.conf.unset("spark.sql.optimizer.excludedRules")
