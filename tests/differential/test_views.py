"""Views that Shelduck makes, read by DuckDB, and the other way round."""

from __future__ import annotations

import duckdb
import pytest

import shelduck
from tests.support.ducklakepy_oracle import oracle_at
from tests.support.normal import duckdb_rows, spark_rows

pytestmark = pytest.mark.usefixtures("ducklake_version")

TABLES = (
    "CREATE TABLE t (a INT, b STRING, d DATE)",
    (
        "INSERT INTO t VALUES (1, 'x', DATE '2024-01-01'), (2, 'y', DATE '2024-02-01'),"
        " (NULL, 'née', NULL), (2, 'Z', DATE '2023-01-01')"
    ),
    "CREATE SCHEMA s",
    "CREATE TABLE s.t (a INT, k INT)",
    "INSERT INTO s.t VALUES (1, 10), (2, 20), (3, 30)",
)
# Texts that both engines take as they are, and that Shelduck translates in both directions.
QUERIES = (
    "SELECT * FROM t",
    "SELECT a, upper(b) AS u FROM t WHERE a > 1 AND b LIKE 'y%'",
    "SELECT a, count(*) AS n, min(b) AS m, sum(a) AS s FROM t GROUP BY a HAVING count(*) > 0",
    "SELECT a, a + 1 AS p, a * 2 - 1 AS q, -a AS r FROM t WHERE d >= DATE '2024-01-01'",
    "SELECT t.a, x.k FROM t LEFT JOIN s.t AS x ON t.a = x.a",
    "SELECT b FROM t WHERE a IN (1, 3) OR a IS NULL OR EXISTS (SELECT 1 FROM s.t y WHERE y.a = 9)",
    "WITH q AS (SELECT a, b FROM t) SELECT b FROM q UNION ALL SELECT 'z'",
    "SELECT CASE WHEN a = 1 THEN 'one' WHEN a IS NULL THEN b ELSE b || '!' END AS c FROM t",
    "SELECT b, row_number() OVER (ORDER BY b) AS n, max(a) OVER (PARTITION BY d) AS m FROM t",
    "SELECT DISTINCT coalesce(a, 0) AS c, length(b) AS l, year(d) AS y FROM t",
    "SELECT a FROM (SELECT a FROM t ORDER BY a DESC NULLS LAST LIMIT 2) AS top",
    "SELECT a % 2 AS m, nullif(a, 1) AS z, abs(a) AS p, lower(b) AS l FROM t",
)


@pytest.fixture
def lake(spark, sqlite_url, data_path):
    with shelduck.connect(sqlite_url, data_path, spark) as lake:
        for statement in TABLES:
            lake.sql(statement)
        yield lake


@pytest.mark.slow
def test_views_of_shelduck_show_the_same_rows_in_duckdb(lake, sqlite_url):
    for number, query in enumerate(QUERIES):
        lake.sql(f"CREATE VIEW v{number} AS {query}")
    ours = {n: lake.sql(f"SELECT * FROM v{n}") for n in range(len(QUERIES))}
    names = {n: frame.columns for n, frame in ours.items()}
    rows = {n: spark_rows(frame) for n, frame in ours.items()}
    lake.close()

    with oracle_at(sqlite_url) as oracle:
        for number in range(len(QUERIES)):
            assert duckdb_rows(oracle, f"v{number}") == rows[number], QUERIES[number]
            assert [name for name, _ in oracle.columns(f"v{number}")] == names[number]


def test_views_of_duckdb_show_the_same_rows_in_shelduck(lake, sqlite_url):
    lake.close()
    with oracle_at(sqlite_url) as oracle:
        for number, query in enumerate(QUERIES):
            oracle.execute(f"CREATE VIEW v{number} AS {query}")
        rows = {n: duckdb_rows(oracle, f"v{n}") for n in range(len(QUERIES))}
        names = {n: [name for name, _ in oracle.columns(f"v{n}")] for n in range(len(QUERIES))}

    for number in range(len(QUERIES)):
        found = lake.sql(f"SELECT * FROM v{number}")
        assert spark_rows(found) == rows[number], QUERIES[number]
        assert found.columns == names[number]


@pytest.mark.versions("1.0")
def test_columns_without_a_name_are_called_alike(lake, sqlite_url):
    lake.sql("CREATE VIEW ours AS SELECT a, a + 1, count(*) FROM t GROUP BY a")
    columns = lake.sql("SELECT * FROM ours").columns
    lake.close()
    with oracle_at(sqlite_url) as oracle:
        assert [name for name, _ in oracle.columns("ours")] == columns
        oracle.execute("CREATE VIEW its AS SELECT a, (a + 1), count(*), max(b) FROM t GROUP BY a")
        names = [name for name, _ in oracle.columns("its")]

    assert lake.sql("SELECT * FROM its").columns == names


@pytest.mark.versions("1.0")
@pytest.mark.slow
def test_names_schemas_and_views_on_views_are_resolved_alike(lake, sqlite_url):
    lake.sql("USE s")
    lake.sql("CREATE VIEW main.v (`odd name`, k) COMMENT 'said' AS SELECT t.a, t.k FROM t")
    lake.sql("USE main")
    lake.sql("CREATE VIEW s.w AS SELECT `odd name` AS o FROM v WHERE k > 10")
    rows = spark_rows(lake.sql("SELECT * FROM s.w"))
    lake.close()

    assert rows == [(2,), (3,)]
    with oracle_at(sqlite_url) as oracle:
        assert duckdb_rows(oracle, "s.w") == rows
        oracle.execute("CREATE VIEW s.own AS SELECT k FROM t")
        oracle.execute("CREATE VIEW far AS SELECT w.o, own.k FROM s.w, lake.s.own")
        assert len(oracle.sql("FROM far")) == 6
        assert oracle.sql("SELECT comment FROM duckdb_views() WHERE view_name = 'v'") == [("said",)]

    assert spark_rows(lake.sql("SELECT * FROM s.own")) == [(10,), (20,), (30,)]
    assert lake.sql("SELECT * FROM far").count() == 6


@pytest.mark.slow
def test_a_table_at_a_time_stays_at_that_time_in_both(lake, sqlite_url):
    lake.sql("CREATE VIEW before AS SELECT x.k FROM s.t VERSION AS OF 4 AS x")
    lake.sql("CREATE VIEW later AS SELECT k FROM s.t VERSION AS OF 5")
    lake.sql("INSERT INTO s.t VALUES (4, 40)")
    assert [lake.sql(f"SELECT * FROM {v}").count() for v in ("before", "later")] == [0, 3]
    lake.close()

    with oracle_at(sqlite_url) as oracle:
        assert (oracle.sql("FROM before"), len(oracle.sql("FROM later"))) == ([], 3)
        oracle.execute("CREATE VIEW its AS SELECT k FROM s.t AT (VERSION => 5)")

    assert spark_rows(lake.sql("SELECT * FROM its")) == [(10,), (20,), (30,)]


def test_what_only_spark_can_read_duckdb_is_told_about(lake, sqlite_url):
    lake.sql("CREATE VIEW v AS SELECT explode(sequence(1, a)) AS n FROM t")
    assert lake.sql("SELECT count(*) FROM v").first()[0] == 5
    lake.close()

    with oracle_at(sqlite_url) as oracle:
        assert oracle.sql("SELECT count(*) FROM t") == [(4,)]
        for query in (
            "FROM v",
            "SELECT count(*) FROM v",
            "SELECT 1 FROM v WHERE n = 1",
            "SELECT a FROM t WHERE a NOT IN (SELECT n FROM v)",
            "SELECT a FROM t LEFT JOIN v ON a = n",
        ):
            with pytest.raises(duckdb.InvalidInputException, match=r"main\.v is written for Spark"):
                oracle.sql(query)
        assert [name for name, _ in oracle.columns("v")] == ["n"]


def test_what_only_duckdb_can_read_we_are_told_about(lake, sqlite_url):
    lake.close()
    with oracle_at(sqlite_url) as oracle:
        oracle.execute("CREATE VIEW v AS SELECT a // 2 AS h FROM t")
        oracle.execute("CREATE VIEW w AS SELECT h FROM v")

    with pytest.raises(
        shelduck.Unsupported, match=r"view main.v: 'a // 2' may have different meanings"
    ):
        lake.sql("SELECT * FROM v")
    with pytest.raises(
        shelduck.Unsupported, match=r"view main.w: 'a // 2' may have different meanings"
    ):
        lake.sql("SELECT * FROM w")
    assert [r.viewName for r in lake.sql("SHOW VIEWS").collect()] == ["v", "w"]


@pytest.mark.slow
def test_each_goes_on_with_the_views_of_the_other(lake, sqlite_url):
    lake.sql("CREATE VIEW ours AS SELECT explode(sequence(1, a)) AS n FROM t")
    lake.close()
    with oracle_at(sqlite_url) as oracle:
        oracle.execute("ALTER VIEW ours RENAME TO mine")
        oracle.execute("CREATE VIEW its AS SELECT a FROM t")
    assert lake.sql("SELECT * FROM mine").count() == 5
    lake.sql("ALTER VIEW its RENAME TO its2")
    lake.sql("CREATE OR REPLACE VIEW mine AS SELECT b FROM t")
    lake.close()
    with oracle_at(sqlite_url) as oracle:
        assert len(oracle.sql("FROM mine")) == len(oracle.sql("FROM its2")) == 4
        oracle.execute("CREATE OR REPLACE VIEW mine AS SELECT 1 AS one")
        oracle.execute("DROP VIEW its2")

    assert spark_rows(lake.sql("SELECT * FROM mine")) == [(1,)]
    lake.sql("DROP VIEW mine")
    assert lake.sql("SHOW VIEWS").collect() == []
    lake.close()
    with oracle_at(sqlite_url) as oracle:
        assert oracle.sql("SELECT view_name FROM duckdb_views() WHERE database_name = 'lake'") == []
