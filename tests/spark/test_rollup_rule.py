"""Queries answered from rollups while Spark plans them: the same rows, from other files."""

from __future__ import annotations

import threading
from decimal import Decimal

import pytest
from pyspark.sql import functions as sf
from pyspark.sql.types import LongType

from shelduck.model.rollup import Measure, Rollup, RollupColumn
from shelduck.operations.pruning import Pruner
from shelduck.operations.rows import table_rows
from shelduck.planning.rollup_choice import Candidate, choose
from shelduck.planning.scan import plan_scan
from shelduck.spark.bridge import bridge_for
from shelduck.spark.query import run_query
from shelduck.spark.read import Origin, read_rows
from shelduck.spark.rollup_rule import RollupFrame, collecting_choices
from tests.support.lakes import rows

COLUMNS = (
    "day DATE, city STRING, site INT, pv INT, big BIGINT, price DECIMAL(10,2), small DECIMAL(6,2),"
    " wide DECIMAL(30,2), weight DOUBLE, light FLOAT, name STRING"
)
DATA = """
    SELECT CASE WHEN id % 11 = 0 THEN NULL ELSE DATE_ADD(DATE'2023-12-20', CAST(id % 40 AS INT)) END,
        CASE WHEN id % 7 = 0 THEN NULL ELSE concat('c', id % 5) END, CAST(id % 3 AS INT),
        CASE WHEN id % 13 = 0 THEN NULL ELSE CAST(id AS INT) END, id * 1000000007,
        CASE WHEN id % 5 = 4 THEN NULL ELSE CAST(id AS DECIMAL(10,2)) / 4 END,
        CAST(id % 100 / 8 AS DECIMAL(6,2)), CAST(id AS DECIMAL(30,2)), CAST(id AS DOUBLE) / 2,
        CAST(id AS FLOAT), concat('n', id % 17)
    FROM range(1000)
"""
KEYS = ("day", "city", "site")
MEASURES = {
    "pv_sum": ("SUM", "pv", "BIGINT"),
    "pv_min": ("MIN", "pv", "INT"),
    "pv_max": ("MAX", "pv", "INT"),
    "pv_count": ("COUNT", "pv", "BIGINT"),
    "big_sum": ("SUM", "big", "DECIMAL(38,0)"),
    "big_count": ("COUNT", "big", "BIGINT"),
    "price_sum": ("SUM", "price", "DECIMAL(38,2)"),
    "price_count": ("COUNT", "price", "BIGINT"),
    "price_min": ("MIN", "price", "DECIMAL(10,2)"),
    "small_sum": ("SUM", "small", "DECIMAL(38,2)"),
    "small_count": ("COUNT", "small", "BIGINT"),
    "wide_sum": ("SUM", "wide", "DECIMAL(38,2)"),
    "weight_sum": ("SUM", "weight", "DOUBLE"),
    "weight_count": ("COUNT", "weight", "BIGINT"),
    "light_sum": ("SUM", "light", "DOUBLE"),
    "light_max": ("MAX", "light", "FLOAT"),
    "name_max": ("MAX", "name", "STRING"),
    "many": ("COUNT", None, "BIGINT"),
}
MADE = ", ".join(
    f"CAST({how}({column or '*'}) AS {kind})" for how, column, kind in MEASURES.values()
)
GROUPED = ", ".join(f"{name} {kind}" for name, (_, _, kind) in MEASURES.items())
STATEMENTS = [
    f"CREATE TABLE t ({COLUMNS})",
    f"INSERT INTO t {DATA}",
    f"CREATE TABLE `t$by_day` (day DATE, city STRING, site INT, {GROUPED})",
    f"INSERT INTO `t$by_day` SELECT day, city, site, {MADE} FROM t GROUP BY ALL",
    "CREATE TABLE `t$by_name` (name STRING, day DATE, pv INT, city STRING)",
    "INSERT INTO `t$by_name` SELECT name, day, pv, city FROM t ORDER BY name",
    f"CREATE TABLE nothing ({COLUMNS})",
    f"INSERT INTO nothing {DATA}",
    "DELETE FROM nothing WHERE site < 2",
    f"CREATE TABLE `nothing$by_day` (day DATE, city STRING, site INT, {GROUPED})",
]
T, U = "__one__", "__two__"


def read(lake, name, chooser=None, **more):
    """The rows of a table as a DataFrame, answered from rollups by a chooser."""
    version, state = lake.table(name)._version(), lake._state
    found = table_rows(state.store, version, state.layouts)
    plan = plan_scan(version, found.files, found.mappings)
    pruner = Pruner(state.store, version)
    return read_rows(
        state.spark, plan, prune=pruner, inlined=found.inlined, choose=chooser, **more
    )


class Rollups:
    """Chooses between the rollups of a table that a test made by hand; remembers what was asked."""

    def __init__(self, lake, base="t", names=("by_day", "by_name")):
        self.lake, self.base, self.asked = lake, base, []
        self.columns = lake.table(base).columns
        self.candidates = [self.candidate(name) for name in names]

    def candidate(self, name):
        table = self.lake.table(f"{self.base}${name}")
        made = [self.column(f) for f in table.columns]
        plain = tuple(c.source for c in made if c.measure is None)
        many = table.read().count()
        return Candidate(name, Rollup("uuid", name, tuple(made)), plain[:3], many)

    def column(self, field):
        how, source, _ = MEASURES.get(field.name, (None, field.name, ""))
        of = None if source is None else self.columns.get((source,)).id
        return RollupColumn(field.id, of, None if how is None else Measure(how))

    def __call__(self, wanted):
        self.asked.append(wanted)
        choice = choose(wanted, (), 1000, self.candidates)
        if choice is None:
            return None
        table = f"{self.base}${choice.name}"
        names = {f.id: f.name for f in self.lake.table(table).columns}
        return RollupFrame.of(choice, read(self.lake, table), names)


class Both:
    """Runs queries over a table twice: over its own files, and answered from rollups."""

    def __init__(self, lake, base="t", **more):
        self.spark, self.rollups = lake._state.spark, Rollups(lake, base, **more)
        self.plain = read(lake, base)
        self.rolled = read(lake, base, self.rollups)

    def frame(self, query, rolled):
        table = self.rolled if rolled else self.plain
        used = {word: table for word in (T, U) if word in query}
        return run_query(self.spark, query, used)

    def check(self, query, *expected):
        """The same rows, in the same order where there is one, and from the expected rollups."""
        plain, rolled = self.frame(query, rolled=False), self.frame(query, rolled=True)
        with collecting_choices(self.spark) as reasons:
            found = rows(rolled)
        assert rolled.schema == plain.schema
        wanted = rows(plain)
        if "ORDER BY" not in query:
            found, wanted = sorted(found, key=str), sorted(wanted, key=str)
        assert found == wanted
        assert [reason.split()[1] for reason in reasons] == list(expected)
        files = " ".join(rolled.inputFiles())
        for name in ("by_day", "by_name"):
            assert (f"{name}/" in files) == (name in expected)
        return found


@pytest.fixture(scope="module")
def both(base):
    return Both(base.copy()[1])


@pytest.mark.parametrize(
    "query",
    [
        "SELECT day, city, site, sum(pv) FROM __one__ GROUP BY 1, 2, 3",
        "SELECT city, sum(pv), min(pv), max(pv), count(pv), count(*) FROM __one__ GROUP BY city",
        "SELECT count(*), count(1), sum(pv), min(price), max(name) FROM __one__",
        "SELECT site, sum(big), sum(price), sum(small) FROM __one__ GROUP BY site",
        "SELECT site, sum(weight), sum(light), max(light) FROM __one__ GROUP BY site",
        "SELECT city, avg(pv), avg(big), avg(small), avg(weight) FROM __one__ GROUP BY city",
        "SELECT day, sum(pv) FROM __one__ WHERE city = 'c1' GROUP BY day",
        "SELECT city, count(*) FROM __one__ WHERE day >= DATE'2024-01-10' AND site < 2 GROUP BY 1",
        "SELECT sum(pv) FROM __one__ WHERE city IN ('c1', 'c2') OR day IS NULL",
        "SELECT sum(pv) s, count(*) FROM __one__ WHERE city = 'no such city'",
        "SELECT city, count(*) FROM __one__ WHERE city = 'no such city' GROUP BY city",
        "SELECT city, sum(pv) s FROM __one__ GROUP BY city HAVING sum(pv) > 60000 AND count(*) > 9",
        "SELECT city, sum(pv) s FROM __one__ GROUP BY city ORDER BY s DESC, city LIMIT 3",
        "SELECT year(day), month(day) m, sum(pv) FROM __one__ GROUP BY year(day), m",
        "SELECT sum(pv) FROM __one__ WHERE year(day) = 2024 AND upper(city) LIKE 'C%'",
        "SELECT concat(city, '-', site) k, max(pv) FROM __one__ GROUP BY ALL",
        "SELECT city, sum(pv) / count(*), sum(price) * 2 + max(pv) FROM __one__ GROUP BY city",
        "SELECT city, sum(pv) + site FROM __one__ GROUP BY city, site",
        "SELECT DISTINCT city FROM __one__",
        "SELECT DISTINCT site + 1, day FROM __one__ WHERE site > 0",
        "SELECT count(DISTINCT city) FROM __one__",
        "SELECT site, count(DISTINCT city), sum(pv), min(day) FROM __one__ GROUP BY site",
        "SELECT min(day), max(day), max(city), max(year(day)), max(site + 1) FROM __one__",
        "SELECT sum(DISTINCT site), approx_count_distinct(city) FROM __one__",
        "SELECT count(DISTINCT city) FILTER (WHERE site = 1) FROM __one__",
        "SELECT max(city) FILTER (WHERE day > DATE'2024-01-01') FROM __one__",
        "SELECT city, count(*) FROM (SELECT * FROM __one__ WHERE site = 1) WHERE day > '2024-01-02'"
        " GROUP BY city",
        "SELECT c, sum(v) FROM (SELECT city c, pv v, site s FROM __one__) WHERE s = 1 GROUP BY c",
        "SELECT sum(s) FROM (SELECT day, sum(pv) s FROM __one__ GROUP BY day)",
        "SELECT city, s, rank() OVER (ORDER BY s, city) FROM (SELECT city, sum(pv) s FROM __one__"
        " GROUP BY city)",
        "WITH x AS (SELECT city, sum(pv) s FROM __one__ GROUP BY city) SELECT max(s) FROM x",
        "SELECT 1, 'x', count(*) FROM __one__ GROUP BY city",
        "SELECT count(city) FROM __one__ WHERE city = 'c1'",
        "SELECT any(site = 1), every(site < 2), bool_or(city IS NULL) FROM __one__",
        "SELECT try_sum(pv), try_avg(pv), mean(pv) FROM __one__",
        "SELECT site = 1, sum(pv) FROM __one__ GROUP BY site = 1",
        "SELECT CASE WHEN site = 1 THEN 'a' ELSE 'b' END x, count(pv) FROM __one__ GROUP BY x",
    ],
)  # fmt: skip
def test_an_aggregate_of_what_a_rollup_groups_by_is_answered_from_it(both, query):
    both.check(query, "by_day")


@pytest.mark.parametrize(
    "query",
    [
        # Columns, functions and measures that the rollup does not have.
        "SELECT name, sum(pv) FROM __one__ GROUP BY name, site",
        "SELECT site, sum(pv) FROM __one__ WHERE weight > 3 GROUP BY site",
        "SELECT site, sum(pv) FROM __one__ WHERE pv > 500 GROUP BY site",
        "SELECT site, min(big) FROM __one__ GROUP BY site",
        "SELECT site, sum(pv), stddev(pv) FROM __one__ GROUP BY site",
        "SELECT site, sum(pv + 1) FROM __one__ GROUP BY site",
        "SELECT site, sum(CASE WHEN city = 'c1' THEN pv END) FROM __one__ GROUP BY site",
        "SELECT site, sum(DISTINCT pv) FROM __one__ GROUP BY site",
        "SELECT site, count(DISTINCT big) FROM __one__ GROUP BY site",
        "SELECT sum(site), count(*) FROM __one__",
        "SELECT count(city), site FROM __one__ GROUP BY site",
        "SELECT count(city, day), site FROM __one__ GROUP BY site",
        "SELECT site, sum(pv) FILTER (WHERE city = 'c1') FROM __one__ GROUP BY site",
        "SELECT site, count(*) FILTER (WHERE city = 'c1') FROM __one__ GROUP BY site",
        "SELECT sum(2), site FROM __one__ GROUP BY site",
        "SELECT count(DISTINCT city), count(DISTINCT day), site FROM __one__ GROUP BY site",
        "SELECT site, city, sum(pv) FROM __one__ GROUP BY CUBE (site, city)",
        # Sums that may overflow, and averages that round in their own way.
        "SELECT site, sum(wide) FROM __one__ GROUP BY site",
        "SELECT site, avg(price) FROM __one__ GROUP BY site",
        # Rows that are not aggregated.
        "SELECT site, day FROM __one__ WHERE site = 1",
        "SELECT * FROM __one__",
        "SELECT site FROM __one__ UNION ALL SELECT site FROM __two__",
        "SELECT a.site, sum(b.pv) FROM __one__ a JOIN __two__ b ON a.day = b.day AND a.pv = b.pv"
        " GROUP BY a.site",
    ],
)  # fmt: skip
def test_what_a_rollup_does_not_tell_is_read_from_the_base(both, query):
    both.check(query)


def test_joins_subqueries_and_unions_are_answered_one_by_one(both):
    joined = (
        "SELECT a.city, a.s, b.n FROM (SELECT city, sum(pv) s FROM __one__ GROUP BY city) a JOIN"
        " (SELECT city, count(*) n FROM __two__ WHERE site = 1 GROUP BY city) b ON a.city = b.city"
    )
    both.check(joined, "by_day", "by_day")
    outer = (
        "SELECT city, sum(pv) FROM __one__ WHERE day = (SELECT max(day) FROM __one__) GROUP BY city"
    )
    both.check(outer, "by_day", "by_day")
    both.check(
        "SELECT city, count(*) FROM __one__ GROUP BY city UNION ALL"
        " SELECT name, count(*) FROM __one__ GROUP BY name, site",
        "by_day",
    )
    both.check(
        "SELECT name, pv FROM __one__ WHERE site = 1 AND pv > (SELECT avg(pv) FROM __two__)",
        "by_day",
    )
    both.check(
        "SELECT count(*), (SELECT sum(pv) FROM __one__), (SELECT max(pv) FROM __one__)"
        " FROM __one__ WHERE day IN (SELECT max(day) FROM __two__ GROUP BY city)",
        *["by_day"] * 3,
    )


def test_a_projection_is_read_where_its_order_serves_the_filter(both):
    both.check("SELECT name, day, pv FROM __one__ WHERE name = 'n3'", "by_name")
    both.check("SELECT pv + 1 FROM __one__ WHERE name IN ('n3', 'n4') AND pv > 7", "by_name")
    both.check("SELECT count(*), stddev(pv) FROM __one__ WHERE name LIKE 'n3%'", "by_name")
    both.check("SELECT name, sum(pv) FROM __one__ WHERE 'n3' < name GROUP BY name", "by_name")
    both.check(
        "SELECT a.pv FROM __one__ a JOIN __two__ b ON a.pv = b.pv WHERE a.name = 'n3'"
        " AND b.name = 'n3' AND b.day > DATE'2024-01-05'",
        *["by_name"] * 2,
    )
    both.check("SELECT name, weight FROM __one__ WHERE name = 'n3'")
    both.check("SELECT name, day, pv FROM __one__ WHERE upper(name) = 'N3'")


def test_the_rule_tells_what_a_query_wants(both):
    ids = {f.name: f.id for f in both.rollups.columns}
    both.rollups.asked.clear()
    both.check(
        "SELECT city, avg(pv), max(day) FROM __one__ WHERE day = DATE'2024-01-05' AND site > 1"
        " AND 3 >= site AND length(city) = 2 GROUP BY city",
        "by_day",
    )
    wanted = both.rollups.asked[0]
    assert wanted.columns == {ids["city"], ids["day"], ids["site"]}
    assert wanted.measures == {
        (Measure.SUM, ids["pv"]),
        (Measure.COUNT, ids["pv"]),
        (Measure.MAX, ids["day"]),
    }
    assert (wanted.aggregates, wanted.equals, wanted.ranges) == (True, {ids["day"]}, {ids["site"]})


def test_dataframes_are_answered_too_and_views_over_them(both, spark):
    by_city = both.rolled.groupBy("city").agg(sf.sum("pv").alias("s"), sf.count(sf.lit(1)))
    with collecting_choices(spark) as reasons:
        found = sorted(map(str, by_city.collect()))
    assert len(reasons) == 1
    assert found == sorted(
        map(str, both.plain.groupBy("city").agg(sf.sum("pv").alias("s"), sf.count(sf.lit(1))).collect())
    )
    both.rolled.where("site = 1").createOrReplaceTempView("rolled_view")
    with collecting_choices(spark) as reasons:
        spark.sql("SELECT count(*) FROM rolled_view").collect()
        assert both.rolled.count() == 1000
    assert len(reasons) == 2


def test_a_table_without_rows_gives_zero_and_null(base):
    lake = base.copy()[1]
    lake.sql("DELETE FROM nothing")
    lake.sql("INSERT INTO nothing SELECT * FROM t LIMIT 20")
    lake.sql("DELETE FROM nothing")
    both = Both(lake, "nothing", names=("by_day",))
    # Files with deleted rows are there still, so Spark has a relation to plan over.
    assert both.plain.count() == 0
    query = "SELECT count(*), count(pv), sum(pv), min(pv), avg(pv), max(day) FROM __one__"
    found = rows(both.frame(query, rolled=True))
    assert found == [(0, 0, None, None, None, None)]
    assert rows(both.frame("SELECT city, count(*) FROM __one__ GROUP BY 1", rolled=True)) == []


def test_rules_of_the_user_stay_and_ours_is_there_once(spark):
    session = spark.newSession()
    made = bridge_for(session)
    methods = session._jsparkSession.experimental()
    theirs = made._new("RollupRule").getClass().getSuperclass()  # any other rule will do
    assert theirs is not None
    threads = [threading.Thread(target=made.add_rule) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert methods.extraOptimizations().size() == 1
