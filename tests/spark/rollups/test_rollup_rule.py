"""Queries answered from rollups while Spark plans them: the same rows, from other files."""

from __future__ import annotations

import gc
import threading
import time
import warnings
import weakref

import pytest
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import functions as sf

from shelduck.engine.bridge import classes, engine_for
from shelduck.engine.bridge.classic import ClassicEngine
from shelduck.model.tables.rollup import Measure, Rollup, RollupColumn
from shelduck.read.plan.rollup_choice import Candidate, choose
from shelduck.read.plan.scan import plan_scan
from shelduck.read.pruning import Pruner
from shelduck.read.scan.rollup_rule import RollupFrame, collecting_choices
from shelduck.read.scan.scan_frames import Origin, read_rows
from shelduck.read.table_rows import table_rows
from tests.support.lakes import rows

COLUMNS = (
    "day DATE, city STRING, site INT, pv INT, big BIGINT, price DECIMAL(10,2), small DECIMAL(6,2),"
    " wide DECIMAL(30,2), weight DOUBLE, light FLOAT, name STRING"
)
DATA = """
    SELECT CASE WHEN id % 11 = 0 THEN NULL ELSE DATE_ADD(DATE'2023-12-20', INT(id % 40)) END,
        CASE WHEN id % 7 = 0 THEN NULL ELSE concat('c', id % 5) END, INT(id % 3),
        CASE WHEN id % 13 = 0 THEN NULL ELSE INT(id) END, id * 1000000007,
        CASE WHEN id % 5 = 4 THEN NULL ELSE CAST(id AS DECIMAL(10,2)) / 4 END,
        CAST(id % 100 / 8 AS DECIMAL(6,2)), CAST(id AS DECIMAL(30,2)), DOUBLE(id) / 2, FLOAT(id),
        concat('n', id % 17)
    FROM range(0, 1000, 1, 1)
"""
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
    "wide_count": ("COUNT", "wide", "BIGINT"),
    "weight_sum": ("SUM", "weight", "DOUBLE"),
    "weight_count": ("COUNT", "weight", "BIGINT"),
    "light_sum": ("SUM", "light", "DOUBLE"),
    "light_max": ("MAX", "light", "FLOAT"),
    "name_max": ("MAX", "name", "STRING"),
    "many": ("COUNT", None, "BIGINT"),
    "last": ("REPLACE", "label", "STRING"),
}
MADE = ", ".join(
    f"CAST({how}({column or '*'}) AS {kind})"
    for how, column, kind in MEASURES.values()
    if how != "REPLACE"
)
BY_DAY = "day DATE, city STRING, site INT, " + ", ".join(
    f"{name} {kind}" for name, (how, _, kind) in MEASURES.items() if how != "REPLACE"
)
STATEMENTS = [
    f"CREATE TABLE t ({COLUMNS})",
    f"INSERT INTO t {DATA}",
    f"CREATE TABLE `t$by_day` ({BY_DAY})",
    f"INSERT INTO `t$by_day` SELECT day, city, site, {MADE} FROM t GROUP BY ALL",
    "CREATE TABLE `t$by_name` (name STRING, day DATE, pv INT, city STRING)",
    "INSERT INTO `t$by_name` SELECT name, day, pv, city FROM t ORDER BY name",
    "CREATE TABLE k (a INT, b INT, label STRING, pv INT)",
    "INSERT INTO k SELECT INT(id), INT(id % 9), concat('x', id), INT(-id) FROM range(99)",
    "CREATE TABLE `k$other` (b INT, a INT, last STRING, pv_sum BIGINT)",
    "INSERT INTO `k$other` SELECT b, a, label, pv FROM k ORDER BY b",
]


def read(lake, name, chooser=None, **more):
    """The rows of a table as a DataFrame, answered from rollups by a chooser."""
    version, state = lake.table(name)._version(), lake._state
    found = table_rows(state.store, version, state.layouts)
    plan = plan_scan(version, found.files, found.mappings)
    source = Pruner(state.store, version, knows_values=False)
    more |= {"inlined": found.inlined, "choose": chooser}
    return read_rows(state.spark, plan, source, **more)


class Rollups:
    """Chooses between the rollups of a table that a test made by hand; remembers what was asked."""

    def __init__(self, lake, base="t", names=("by_day", "by_name"), keeps_rows=("by_name",)):
        self.lake, self.base, self.asked, self.shared = lake, base, [], None
        self.columns = lake.table(base).columns
        self.keeps_rows = keeps_rows
        self.candidates = [self.candidate(name) for name in names]

    def candidate(self, name):
        table = self.lake.table(f"{self.base}${name}")
        made = [self.column(f) for f in table.columns]
        plain = tuple(c.source for c in made if c.measure is None)
        rollup, count = Rollup("uuid", name, tuple(made)), table.read().count()
        return Candidate(name, rollup, plain[:3], count, name in self.keeps_rows)

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
        frame = read(self.lake, table) if self.shared is None else self.shared
        return RollupFrame.of(choice, frame, names)


class Both:
    """Runs queries over a table twice: over its own files, and answered from rollups."""

    def __init__(self, lake, base="t", **more):
        self.lake, self.base, self.spark = lake, base, lake._state.spark
        self.rollups = Rollups(lake, base, **more)
        self.plain = read(lake, base)
        self.rolled = read(lake, base, self.rollups)

    def frame(self, query, rolled):
        """The query, which calls the table {t} and {u}."""
        table = self.rolled if rolled else self.plain
        words = {"t": "__one__", "u": "__two__"}
        used = {word: table for key, word in words.items() if f"{{{key}}}" in query}
        return engine_for(self.spark).query(query.format(**words), used)

    def check(self, query, *expected, reads=True):
        """The same rows, in the same order where there is one, and from the expected rollups.

        ``reads`` tells that they are all that is read, beside what subqueries read.
        """
        plain, rolled = self.frame(query, rolled=False), self.frame(query, rolled=True)
        with collecting_choices(self.spark) as reasons:
            found = rows(rolled)
        assert rolled.schema == plain.schema
        wanted = rows(plain)
        if "ORDER BY" not in query:
            found, wanted = sorted(found, key=str), sorted(wanted, key=str)
        assert found == wanted
        assert [reason.split()[1] for reason in reasons] == list(expected)
        assert not reads or set(rolled.inputFiles()) == self.files(expected)
        return found

    def files(self, names):
        read = [f"{self.base}${name}" for name in names] or [self.base]
        return {file for name in read for file in self.lake.table(name).read().inputFiles()}


@pytest.fixture(scope="module")
def both(base):
    return Both(base.copy()[1])


@pytest.mark.slow
@pytest.mark.parametrize(
    "query",
    [
        "SELECT day, city, site, sum(pv) FROM {t} GROUP BY 1, 2, 3",
        "SELECT city, sum(pv), min(pv), max(pv), count(pv), count(*) FROM {t} GROUP BY city",
        "SELECT count(*), count(1), sum(pv), min(price), max(name) FROM {t}",
        "SELECT site, sum(big), sum(price), sum(small) FROM {t} GROUP BY site",
        "SELECT site, sum(weight), sum(light), max(light) FROM {t} GROUP BY site",
        "SELECT city, avg(pv), avg(big), avg(price), avg(small), avg(weight) FROM {t} GROUP BY 1",
        "SELECT day, sum(pv) FROM {t} WHERE city = 'c1' GROUP BY day",
        "SELECT city, count(*) FROM {t} WHERE day >= DATE'2024-01-10' AND site < 2 GROUP BY 1",
        "SELECT sum(pv) FROM {t} WHERE city IN ('c1', 'c2') OR day IS NULL",
        "SELECT sum(pv) s, count(*), avg(pv), avg(price) FROM {t} WHERE city = 'no such city'",
        "SELECT city, count(*) FROM {t} WHERE city = 'no such city' GROUP BY city",
        "SELECT city, sum(pv) s FROM {t} GROUP BY city HAVING sum(pv) > 60000 AND count(*) > 9",
        "SELECT city, sum(pv) s FROM {t} GROUP BY city ORDER BY s DESC, city LIMIT 3",
        "SELECT year(day), month(day) m, sum(pv) FROM {t} GROUP BY year(day), m",
        "SELECT sum(pv) FROM {t} WHERE year(day) = 2024 AND upper(city) LIKE 'C%'",
        "SELECT concat(city, '-', site) k, max(pv) FROM {t} GROUP BY ALL",
        "SELECT city, sum(pv) / count(*), sum(price) * 2 + max(pv) FROM {t} GROUP BY city",
        "SELECT city, sum(pv) + site FROM {t} GROUP BY city, site",
        "SELECT DISTINCT site + 1, day FROM {t} WHERE site > 0",
        "SELECT site, count(DISTINCT city), sum(pv), min(day) FROM {t} GROUP BY site",
        "SELECT min(day), max(day), max(city), max(year(day)), max(site + 1) FROM {t}",
        "SELECT sum(DISTINCT site), approx_count_distinct(city) FROM {t}",
        "SELECT sort_array(collect_set(city)), any(site = 1), every(site < 2) FROM {t}",
        "SELECT max(city) FILTER (WHERE day > DATE'2024-01-01') FROM {t}",
        "SELECT c, sum(v) FROM (SELECT city c, pv v, site s FROM {t}) WHERE s = 1 GROUP BY c",
        "SELECT sum(s) FROM (SELECT day, sum(pv) s FROM {t} GROUP BY day)",
        "SELECT s, rank() OVER (ORDER BY s) FROM (SELECT sum(pv) s FROM {t} GROUP BY city)",
        "WITH x AS (SELECT city, sum(pv) s FROM {t} GROUP BY city) SELECT max(s) FROM x",
        "SELECT 1, 'x', count(*) FROM {t} GROUP BY city",
        "SELECT count(city) FROM {t} WHERE city = 'c1'",
        "SELECT site, count(city), count(day), count(*) FROM {t} GROUP BY site",
        "SELECT try_sum(pv), try_avg(pv), mean(pv) FROM {t}",
        "SELECT CASE WHEN site = 1 THEN 'a' ELSE 'b' END x, count(pv) FROM {t} GROUP BY x",
    ],
)
def test_an_aggregate_of_what_a_rollup_groups_by_is_answered_from_it(both, query):
    both.check(query, "by_day")


@pytest.mark.slow
@pytest.mark.parametrize(
    "query",
    [
        # Columns, functions and measures that the rollup does not have.
        "SELECT name, sum(pv) FROM {t} GROUP BY name, site",
        "SELECT site, sum(pv) FROM {t} WHERE pv > 500 GROUP BY site",
        "SELECT site, min(big) FROM {t} GROUP BY site",
        "SELECT site, sum(pv), stddev(pv) FROM {t} GROUP BY site",
        "SELECT site, sum(pv + 1) FROM {t} GROUP BY site",
        "SELECT site, sum(CASE WHEN city = 'c1' THEN pv END) FROM {t} GROUP BY site",
        "SELECT site, sum(DISTINCT pv) FROM {t} GROUP BY site",
        "SELECT sum(site), count(*) FROM {t}",
        "SELECT count(city, day), site FROM {t} GROUP BY site",
        "SELECT site, sum(pv) FILTER (WHERE city = 'c1') FROM {t} GROUP BY site",
        "SELECT site, count(*) FILTER (WHERE city = 'c1') FROM {t} GROUP BY site",
        "SELECT count(DISTINCT city) FILTER (WHERE site = 1) FROM {t}",
        "SELECT sum(2), site FROM {t} GROUP BY site",
        "SELECT count(DISTINCT city), count(DISTINCT day), site FROM {t} GROUP BY site",
        "SELECT site, city, sum(pv) FROM {t} GROUP BY CUBE (site, city)",
        # Sums that may overflow, and averages that round in their own way.
        "SELECT site, sum(wide) FROM {t} GROUP BY site",
        "SELECT site, avg(wide) FROM {t} GROUP BY site",
        # Rows that are not aggregated.
        "SELECT site, day FROM {t} WHERE site = 1",
        "SELECT * FROM {t}",
        "SELECT a.site, sum(b.pv) FROM {t} a JOIN {u} b ON a.day = b.day WHERE a.pv < 9 GROUP BY 1",
    ],
)  # fmt: skip
def test_what_a_rollup_does_not_tell_is_read_from_the_base(both, query):
    both.check(query)


@pytest.mark.slow
@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(DISTINCT f) FROM (SELECT input_file_name() f FROM {t} WHERE name = 'n3')",
        "SELECT count(*) FROM {t} WHERE name = 'n3' AND length(input_file_name()) > 0",
        "SELECT count(*) > 0 FROM {t} WHERE rand() < 0.999",
        "SELECT city, count(*) FROM {t} GROUP BY city, rand() < 0",
        "SELECT pv FROM {t} WHERE name = 'n3' AND pv + rand() >= 0",
    ],
)
def test_what_depends_on_files_or_chance_is_read_from_the_base(both, query):
    both.check(query)


def test_metadata_of_files_is_that_of_the_base(both):
    with collecting_choices(both.spark) as reasons:
        names = both.rolled.where("name = 'n3'").select("_metadata.file_name").distinct()
        assert {row.file_name for row in names.collect()} <= {
            path.split("/")[-1] for path in both.files(())
        }
        assert both.rolled.where("_metadata.row_index < 100").count() == 100
    assert reasons == []


@pytest.mark.slow
def test_a_function_in_python_stands_between_the_aggregate_and_the_table(both):
    shorter = sf.udf(lambda city: city and city[:1])
    with collecting_choices(both.spark) as reasons:
        found = both.rolled.groupBy(shorter("city").alias("c")).count().orderBy("c")
        assert rows(found) == [(None, 143), ("c", 857)]
    assert reasons == []


@pytest.mark.slow
def test_joins_and_unions_are_answered_one_by_one(both):
    both.check(
        "SELECT a.city, a.s, b.n FROM (SELECT city, sum(pv) s FROM {t} GROUP BY city) a JOIN"
        " (SELECT city, count(*) n FROM {u} WHERE site = 1 GROUP BY city) b ON a.city = b.city",
        *["by_day"] * 2,
    )
    both.check(
        "SELECT city, count(*) FROM {t} GROUP BY city UNION ALL"
        " SELECT name, count(*) FROM {t} GROUP BY name, site",
        "by_day",
        reads=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("times", "query"),
    [
        (2, "SELECT city, sum(pv) FROM {t} WHERE day = (SELECT max(day) FROM {u}) GROUP BY 1"),
        (1, "SELECT name FROM {t} WHERE site = 1 AND pv > (SELECT avg(pv) FROM {u})"),
        (3, "SELECT count(*), (SELECT sum(pv) FROM {t}), (SELECT max(pv) FROM {t}) FROM {u}"),
        (1, "SELECT count(*) FROM {t} WHERE day IN (SELECT max(day) FROM {u} GROUP BY city)"),
        (1, "SELECT a.name, (SELECT sum(pv) FROM {u} b WHERE b.city = a.city) FROM {t} a"),
        (1, "SELECT name FROM {t} a WHERE pv = (SELECT max(pv) FROM {u} b WHERE b.day = a.day)"),
        # Each of these asks for the different days of both.
        (
            2,
            "SELECT name, n FROM {t} a, LATERAL (SELECT count(*) n FROM {u} b WHERE b.day = a.day)",
        ),
        (2, "SELECT name FROM {t} a WHERE EXISTS (SELECT max(pv) FROM {u} b WHERE b.day = a.day)"),
        (
            2,
            """WITH x AS (SELECT city, sum(pv) s FROM {t} GROUP BY city)
            SELECT * FROM x WHERE s > (SELECT avg(s) FROM x) AND s + rand() > 0""",
        ),
    ],
)
def test_subqueries_are_answered(both, times, query):
    both.check(query, *["by_day"] * times, reads=False)


@pytest.mark.slow
def test_a_projection_is_read_where_its_order_serves_the_filter(both):
    both.check("SELECT name, day, pv FROM {t} WHERE name = 'n3'", "by_name")
    both.check("SELECT pv + 1 FROM {t} WHERE name IN ('n3', 'n4') AND pv > 7", "by_name")
    both.check("SELECT count(*), stddev(pv) FROM {t} WHERE name LIKE 'n3%'", "by_name")
    both.check("SELECT name, sum(pv), avg(pv) FROM {t} WHERE 'n3' < name GROUP BY name", "by_name")
    both.check(
        "SELECT a.pv FROM {t} a JOIN {u} b ON a.pv = b.pv WHERE a.name = 'n3'"
        " AND b.name = 'n3' AND b.day > DATE'2024-01-05'",
        *["by_name"] * 2,
    )
    both.check("SELECT name, weight FROM {t} WHERE name = 'n3'")
    both.check("SELECT name, day, pv FROM {t} WHERE upper(name) = 'N3'")


@pytest.mark.slow
def test_groups_by_the_whole_key_are_rows_of_the_base(base):
    both = Both(base.copy()[1], "k", names=("other",), keeps_rows=("other",))
    both.check("SELECT label, pv, a FROM {t} WHERE b = 3", "other")
    both.check("SELECT b, sum(pv) FROM {t} WHERE b > 3 GROUP BY b", "other")
    both.check("SELECT max(label) FROM {t} WHERE b = 3")


def test_the_rule_tells_what_a_query_wants(both):
    ids = {f.name: f.id for f in both.rollups.columns}
    both.rollups.asked.clear()
    both.check(
        "SELECT city, avg(pv), max(day) FROM {t} WHERE day = DATE'2024-01-05' AND site > 1"
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


@pytest.mark.slow
def test_dataframes_are_answered_and_views_and_what_is_kept(both):
    def by_city(table):
        return table.groupBy("city").agg(sf.sum("pv"), sf.count(sf.lit(1))).orderBy("city")

    with collecting_choices(both.spark) as reasons:
        kept = by_city(both.rolled).cache()
        assert rows(kept) == rows(by_city(both.plain))
        both.rolled.where("site = 1").createOrReplaceTempView("rolled_view")
        both.spark.sql("SELECT count(*) FROM rolled_view").collect()
        assert both.rolled.count() == 1000
    both.spark.catalog.dropTempView("rolled_view")
    kept.unpersist()
    assert len(reasons) == 3


@pytest.mark.slow
def test_one_dataframe_of_a_rollup_may_stand_on_both_sides(base):
    lake = base.copy()[1]
    both = Both(lake, names=("by_day",))
    both.rollups.shared = read(lake, "t$by_day")
    both.check(
        "SELECT * FROM (SELECT city, sum(pv) s FROM {t} GROUP BY city) a FULL JOIN"
        " (SELECT city, min(pv) m, count(*) FROM {u} GROUP BY city) b ON a.city = b.city"
        " AND a.s > (SELECT max(pv) FROM {t})",
        *["by_day"] * 3,
    )


@pytest.mark.slow
def test_no_rows_give_zero_and_null(base):
    lake = base.copy()[1]
    both = Both(lake, names=("by_day",))
    query = "SELECT count(*), count(pv), sum(pv), min(pv), avg(pv), max(day) FROM {t}"
    assert both.check(f"{query} WHERE site > 9", "by_day") == [(0, 0, None, None, None, None)]
    lake.sql("DELETE FROM t WHERE site < 9")
    lake.sql("DELETE FROM `t$by_day` WHERE site < 9")
    empty = Both(lake, names=("by_day",))
    assert empty.check(query, reads=False) == [(0, 0, None, None, None, None)]


@pytest.mark.slow
def test_a_rollup_may_have_deletes_and_rows_in_the_catalog(base):
    lake = base.copy()[1]
    few = "WHERE city = 'c1' AND day < DATE'2023-12-23'"
    lake.sql(f"DELETE FROM `t$by_day` {few}")
    lake.sql(f"INSERT INTO `t$by_day` SELECT day, city, site, {MADE} FROM t {few} GROUP BY ALL")
    both = Both(lake, names=("by_day",))
    for where in ("", few, "WHERE day = DATE'2023-12-21'"):
        query = f"SELECT city, sum(pv), count(*) FROM {{t}} {where} GROUP BY city"
        both.check(query, "by_day", reads=False)


@pytest.mark.slow
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_answers_do_not_depend_on_ansi(both, ansi):
    both.spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        both.check(
            "SELECT city, sum(big), sum(small), sum(price), avg(small), count(*), avg(pv), max(pv)"
            " FROM {t} WHERE site = 2 GROUP BY city",
            "by_day",
        )
        both.check("SELECT avg(pv), sum(big), avg(small) FROM {t} WHERE site > 5", "by_day")
    finally:
        both.spark.conf.unset("spark.sql.ansi.enabled")


@pytest.mark.slow
def test_many_threads_are_answered_and_collect_their_own(both):
    counts = {}

    def work(n):
        with collecting_choices(both.spark) as reasons:
            table = both.rolled.where(f"site < {n}")
            found = table.groupBy("city").count() if n % 2 else table.select("pv")
            counts[n] = (found.count(), len(reasons))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    # A count of rows is an aggregate itself.
    expected = [(0, 1), (6, 1), (667, 1), (6, 1), (1000, 1), (6, 1), (1000, 1), (6, 1)]
    assert [counts[n] for n in range(8)] == expected


def test_a_chooser_that_fails_leaves_the_base_and_a_warning(both):
    def broken(wanted):
        message = "catalog went\naway"
        raise LookupError(message)

    table = read(both.lake, "t", broken)
    with pytest.warns(
        RuntimeWarning, match="cannot answer a query from a rollup: LookupError: catalog went"
    ):
        assert table.count() == 1000
    # Whoever turns warnings into errors gets the rows too.
    assert table.groupBy("city").count().count() == 6


@pytest.mark.slow
def test_a_column_of_another_type_is_not_read(both):
    ids = {f.name: f.id for f in both.rollups.columns}
    asked = []

    def odd(wanted):
        asked.append(wanted)
        measures = {(Measure.SUM, ids["pv"]): "name_max", (Measure.MAX, ids["day"]): "city"}
        names = {ids["city"]: "city", ids["site"]: "pv_count", ids["day"]: "no such column"}
        frame = read(both.lake, "t$by_day")
        return RollupFrame(frame, names, "rollup odd", measures, groups=wanted.aggregates)

    table = read(both.lake, "t", odd)
    with collecting_choices(both.spark) as reasons, warnings.catch_warnings(record=True) as told:
        assert len(table.groupBy("city").agg(sf.sum("pv")).collect()) == 6
        assert table.agg(sf.max("day")).first() == both.plain.agg(sf.max("day")).first()
        assert table.agg(sf.min("pv")).first() == (1,)
        assert len(table.where("day IS NOT NULL").select("day").distinct().collect()) == 40
        assert table.select("city", "pv").where("pv = 1").count() == 1
    assert asked
    assert reasons == []
    assert not [w for w in told if issubclass(w.category, RuntimeWarning)]


@pytest.mark.slow
def test_rows_of_more_than_one_source_are_not_asked_about(base):
    lake = base.copy()[1]
    rollups = Rollups(lake, names=("by_day",))
    assert read(lake, "t", rollups, origins=[Origin.FILE_ID]).count() == 1000
    lake.sql("INSERT INTO t (city, pv) VALUES ('c1', 5)")
    assert lake.table("t").read().count() == 1001
    assert read(lake, "t", rollups).count() == 1001
    lake.sql("ALTER TABLE t ADD COLUMN more STRING DEFAULT 'm'")
    assert read(lake, "t", rollups).count() == 1001
    assert rollups.asked == []


def test_rules_of_the_user_stay_and_ours_is_there_once(spark):
    session = spark.newSession()
    made = engine_for(session)
    methods = session._jsparkSession.experimental()
    rules = spark._jvm.java.util.ArrayList()
    other = spark._jvm.java.lang.Class.forName(
        "org.apache.spark.sql.catalyst.optimizer.CombineFilters$"
    )
    rules.add(other.getField("MODULE$").get(None))
    methods_set = getattr(methods, "extraOptimizations_$eq")
    methods_set(spark._jvm.scala.jdk.javaapi.CollectionConverters.asScala(rules).toSeq())
    threads = [threading.Thread(target=made.add_rule) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    found = methods.extraOptimizations()
    assert [found.apply(n).ruleName().split(".")[-1] for n in range(found.size())] == [
        "CombineFilters",
        "RollupRule",
    ]


def test_a_session_that_cannot_run_the_rule_reads_the_base(both, monkeypatch):
    real = ClassicEngine._new

    def without(self, name, *arguments):
        if name == "RollupRule":
            raise PySparkRuntimeError("No such class")
        return real(self, name, *arguments)

    monkeypatch.setattr(ClassicEngine, "_new", without)
    monkeypatch.setattr(classes, "_told", set())
    with pytest.warns(RuntimeWarning, match="; no query is answered from a rollup"):
        table = read(both.lake, "t", both.rollups)
    both.rollups.asked.clear()
    assert table.count() == 1000
    assert both.rollups.asked == []


@pytest.mark.slow
def test_a_rule_that_does_not_compile_is_left_out_of_the_jar(spark, monkeypatch):
    sources = dict(classes._sources())
    sources["RollupChain"] = sources["RollupChain"].replace("class RollupChain", "clas RollupChain")
    monkeypatch.setattr(classes, "_sources", lambda: sources)
    names = set(classes._compiled(spark))
    assert "shelduck.bridge.scan.LakeParquet" in names
    assert "shelduck.bridge.RollupRule" not in names


def test_a_class_that_every_read_needs_has_to_compile(spark, monkeypatch):
    monkeypatch.setattr(classes, "_sources", lambda: {"LakeParquet": "clas"})
    with pytest.raises(Exception, match="CompileException"):
        classes._compiled(spark)


@pytest.mark.slow
def test_a_chooser_is_let_go_when_nothing_reads_by_it(base):
    lake = base.copy()[1]
    rollups = Rollups(lake, names=("by_day",))
    alive = weakref.ref(rollups)
    table = read(lake, "t", rollups)
    table.count()
    del rollups, table
    for _ in range(50):
        gc.collect()
        lake._state.spark._jvm.java.lang.System.gc()
        if alive() is None:
            break
        time.sleep(0.1)
    assert alive() is None
