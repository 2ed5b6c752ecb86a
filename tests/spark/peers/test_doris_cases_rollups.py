"""Doris' published acceptance cases of schema change, on tables with rollups.

A test's name begins with the case's id. Where Shelduck differs deliberately from Doris, a test says
so in its docstring. Rollups are read by their names, ``t$r``, and hold what their query over the
base gives.
"""

from __future__ import annotations

import datetime as dt
import threading

import pytest

from shelduck import AlreadyExists, Conflict, InvalidRequest, JobState, NotFound
from tests.support.lakes import newest, refusal, rows
from tests.support.oracle import DuckDBOracle
from tests.support.rollups import Followed

KEYS = {
    "b": ("BOOLEAN", "id % 2 = 0"),
    "t": ("TINYINT", "CAST(id AS TINYINT)"),
    "s": ("SMALLINT", "CAST(id * 100 AS SMALLINT)"),
    "i": ("INT", "CAST(id * 10000 AS INT)"),
    "l": ("BIGINT", "id * 10000000000"),
    "n": ("DECIMAL(38,0)", "CAST(id AS DECIMAL(38,0)) - 3"),
    "d": ("DECIMAL(9,3)", "CAST(id AS DECIMAL(9,3)) / 8"),
    "day": ("DATE", "DATE'2024-02-28' + CAST(id AS INT)"),
    "at": ("DATETIME", "TIMESTAMP_NTZ'2024-02-28 23:59:59' + make_dt_interval(0, 0, 0, id)"),
    "c": ("CHAR(5)", "concat('c', id)"),
    "v": ("VARCHAR(20)", "CASE WHEN id <> 2 THEN concat('v', id) END"),
    "w": ("VARCHAR(20)", "'same'"),
    "x": ("INT", "CASE WHEN id > 3 THEN 1 END"),
    "y": ("BIGINT", "id"),
}
STATEMENTS = [
    (
        "CREATE TABLE a (k1 INT, k2 INT, k3 INT, v INT SUM) AGGREGATE KEY (k1, k2, k3)"
        " ROLLUP (rollup1 (k1, k2, v), rollup2 (k2, v))"
    ),
    "INSERT INTO a VALUES (1, 1, 1, 1), (1, 1, 2, 2), (2, 1, 1, 3), (2, NULL, NULL, 4)",
    (
        "CREATE TABLE sites (siteid INT, citycode INT, username VARCHAR(32),"
        " pv BIGINT SUM DEFAULT '0') AGGREGATE KEY (siteid, citycode, username)"
        " ROLLUP (r (citycode, siteid, pv))"
    ),
    "INSERT INTO sites VALUES (1, 1, 'jim', 2), (2, 1, 'grace', 2), (3, 2, 'tom', 2)",
    "CREATE TABLE d (k INT, g INT, v INT) DUPLICATE KEY (k) ROLLUP (r (v, g))",
    "CREATE TABLE u (k INT, g INT, v INT) UNIQUE KEY (k, g) ROLLUP (r (g, k, v))",
    "INSERT INTO d VALUES (1, 1, 1), (2, 1, 2), (NULL, NULL, NULL)",
    "INSERT INTO u VALUES (1, 1, 1), (2, 1, 2), (NULL, NULL, NULL)",
    (
        "CREATE TABLE days (day DATE, k INT, v INT SUM, m INT MAX) AGGREGATE KEY (day, k)"
        " ROLLUP (r1 (day, v), r2 (k, day, m))"
    ),
    (
        "INSERT INTO days VALUES (DATE'2024-02-29', 1, 1, 1), (DATE'2024-02-29', 2, 2, 2),"
        " (NULL, 1, 3, 3)"
    ),
    "CREATE TABLE plain (k1 INT, k2 INT, r INT REPLACE) AGGREGATE KEY (k1, k2)",
    "CREATE TABLE spent (user STRING, day DATE, cost BIGINT SUM) AGGREGATE KEY (user, day)",
    (
        "INSERT INTO spent SELECT concat('u', id % 3), DATE'2024-01-01' + CAST(id % 7 AS INT), id"
        " FROM range(100)"
    ),
]


@pytest.fixture
def case(copied):
    catalog, lake = copied

    def of(table, **queries):
        return Followed(lake, f"sqlite:///{catalog}", table, queries)

    return of


@pytest.fixture
def refused(copied, base):
    """The message of a refusal, which changed nothing."""
    catalog, lake = copied
    return lambda kind, text: refusal(kind, lambda: lake.sql(text), catalog, base.folder / "data")


def columns(found, table):
    return found.lake.table(table).columns.names


def told(found, what="COLUMN"):
    shown = found.lake.sql(f"SHOW ALTER TABLE {what}").collect()
    return [(r.IndexName if what == "COLUMN" else r.RollupIndexName, r.State) for r in shown]


@pytest.mark.slow
def test_d12_columns_are_added_to_rollups_and_so_to_the_base(case):
    """Heavy in Doris; light here: old rows read the defaults, in rollups too."""
    found = case(
        "a",
        rollup1="SELECT k1, k2, k4, SUM(v) FROM {t} GROUP BY k1, k2, k4",
        rollup2="SELECT k2, k4, k5, SUM(v) FROM {t} GROUP BY k2, k4, k5",
    )
    found.write(
        "ALTER TABLE a ADD COLUMN k4 INT DEFAULT '4' TO rollup1,"
        " ADD COLUMN k4 INT DEFAULT '4' TO rollup2, ADD COLUMN k5 INT DEFAULT '5' TO rollup2"
    )

    assert columns(found, "a") == ["k1", "k2", "k3", "k4", "k5", "v"]
    assert columns(found, "a$rollup1") == ["k1", "k2", "k4", "v"]
    assert columns(found, "a$rollup2") == ["k2", "k4", "k5", "v"]
    assert sorted(told(found)[:3]) == [
        *[("a", "FINISHED"), ("rollup1", "FINISHED"), ("rollup2", "FINISHED")]
    ]
    found.write("INSERT INTO a VALUES (1, 1, 1, 4, 5, 10), (1, 1, 1, 40, 5, 10)")


@pytest.mark.parametrize("table", ["d", "u"])
def test_d15_a_column_is_added_to_no_rollup_that_is_not_there(refused, table):
    clause = f"ALTER TABLE {table} ADD COLUMN col INT DEFAULT '1' TO"
    assert f"{table} is the table itself" in refused(InvalidRequest, f"{clause} {table}")
    assert f"Index[nope] does not exist in table[{table}]" in refused(NotFound, f"{clause} nope")


@pytest.mark.slow
def test_d18_a_value_is_dropped_from_a_rollup_alone(case, refused):
    found = case("sites", r="SELECT DISTINCT citycode, siteid FROM {t}")
    found.write("ALTER TABLE sites DROP COLUMN pv FROM r")

    assert columns(found, "sites") == ["siteid", "citycode", "username", "pv"]
    assert columns(found, "sites$r") == ["citycode", "siteid"]
    again = refused(NotFound, "ALTER TABLE sites DROP COLUMN pv FROM r")
    assert "column 'pv' does not exist in r" in again
    found.write("INSERT INTO sites VALUES (1, 1, 'jim', 5), (4, 4, 'kim', 1)")


@pytest.mark.slow
@pytest.mark.parametrize("key", ["t", *(pytest.param(k, marks=pytest.mark.slow) for k in "bi")])
def test_d19_a_key_goes_while_rows_are_loaded(case, spark, key):
    left = [name for name in KEYS if name != key]
    found = case("t")
    source = f"SELECT {', '.join(value for _, value in KEYS.values())} FROM range"
    shorter = f"SELECT {', '.join(KEYS[name][1] for name in left)} FROM range"
    found.lake.sql(
        f"CREATE TABLE t ({', '.join(f'{n} {kind}' for n, (kind, _) in KEYS.items())})"
        f" AGGREGATE KEY ({', '.join(KEYS)}); INSERT INTO t {source}(5)"
    )
    found.lake.sql(f"ALTER TABLE t DROP COLUMN {key} PROPERTIES ('wait' = 'false')")

    def load():
        try:
            found.lake.sql(f"INSERT INTO t {source}(3, 8)")
        except (Conflict, InvalidRequest):
            # The key went first, and the rows have a column too many.
            found.lake.sql(f"INSERT INTO t {shorter}(3, 8)")

    thread = threading.Thread(target=load)
    thread.start()
    [job] = found.lake.run_jobs()
    thread.join(120)

    assert job.state is JobState.FINISHED
    assert columns(found, "t") == left
    twin = ", ".join(f"{value} AS {n}" for n, (_, value) in KEYS.items() if n != key)
    wanted = rows(spark.sql(f"SELECT DISTINCT {twin} FROM range(8) ORDER BY y"))
    assert sorted(found.rows(), key=lambda row: row[-1]) == wanted


def test_d36_what_names_nothing_in_a_rollup(refused):
    modify = "ALTER TABLE d MODIFY COLUMN"
    assert "column 'q' does not exist in main.d" in refused(NotFound, f"{modify} q INT")
    assert "cannot place a column after 'q', which does not exist" in refused(
        InvalidRequest, f"{modify} v INT AFTER q"
    )
    assert "Index[nope] does not exist in table[d]" in refused(
        NotFound, f"{modify} v INT AFTER g FROM nope"
    )
    assert "is only for moving a column within a rollup" in refused(
        InvalidRequest, f"{modify} v BIGINT FROM r"
    )


@pytest.mark.sampled(1)
@pytest.mark.parametrize("widens", [True, False])
def test_d43_a_date_becomes_a_datetime_in_every_rollup(case, widens):
    """Heavy in Doris; light here where type widening is enabled: days are read as midnights."""
    found = case(
        "days", r1="SELECT day, SUM(v) FROM {t} GROUP BY day", r2="SELECT k, day, m FROM {t}"
    )
    if widens:
        found.lake.sql("ALTER TABLE days SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    found.lake.sql("ALTER TABLE days MODIFY COLUMN day DATETIME KEY")
    held = found.check()
    midnight = dt.datetime(2024, 2, 29)  # noqa: DTZ001 - a local time
    assert held["days$r1"] == {(midnight, 3): 1, (None, 3): 1}
    found.write(
        "INSERT INTO days VALUES (TIMESTAMP_NTZ'2024-02-29 00:00:00', 1, 1, 9),"
        " (TIMESTAMP_NTZ'2024-02-29 00:00:01', 1, 1, 1)"
    )

    for table in found.tables:
        assert str(found.lake.table(table).columns.get(("day",)).type) == "timestamp"


@pytest.mark.slow
def test_d47_rollups_hold_old_and_new_rows_under_the_new_names(case):
    """Doris renames in a statement of its own; here several columns may be renamed at once."""
    found = case("sites", r="SELECT city, siteid, SUM(views) FROM {t} GROUP BY city, siteid")
    found.lake.sql(
        "CREATE TABLE o (k INT, g INT, v INT) DUPLICATE KEY (k); INSERT INTO o VALUES (1, 1, 2);"
        " CREATE MATERIALIZED VIEW mv AS SELECT g, SUM(v) AS s FROM o GROUP BY g"
    )
    found.write("ALTER TABLE sites RENAME COLUMN citycode TO city, RENAME COLUMN pv TO views")
    found.write("INSERT INTO sites VALUES (4, 2, 'kim', 5), (3, 2, 'tom', 1)")
    query = "SELECT city, SUM(views) FROM sites GROUP BY city ORDER BY city"
    assert rows(found.lake.sql(query)) == [(1, 4), (2, 8)]

    other = case("o", mv="SELECT h, SUM(v) FROM {t} GROUP BY h")
    other.write("ALTER TABLE o RENAME COLUMN g TO h")
    other.write("INSERT INTO o VALUES (2, 1, 3), (3, NULL, 4)")
    assert rows(other.lake.sql("SELECT h, sum(v) FROM o GROUP BY h ORDER BY h")) == [
        *[(None, 4), (1, 5)]
    ]


def test_d63_a_table_that_gets_a_rollup_goes_on_to_change(case):
    """Doris refuses every ALTER meanwhile; here one of metadata only goes on, and stays."""
    found = case("d", r="SELECT v, g FROM {t}", z="SELECT g, k FROM {t}")
    found.lake.sql("ALTER TABLE d ADD ROLLUP z (g, k) PROPERTIES ('wait' = 'false')")
    found.lake.sql("ALTER TABLE d ADD COLUMN w INT DEFAULT 7")
    found.lake.sql("ALTER TABLE d RENAME COLUMN v TO x")
    found.lake.run_jobs()
    found.queries["r"] = "SELECT x, g FROM {t}"
    found.check()

    assert columns(found, "d") == ["k", "g", "x", "w"]
    assert told(found, "ROLLUP") == [("z", "FINISHED")]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "statement", ["ALTER TABLE d ADD ROLLUP y (g)", "ALTER TABLE d ALTER COLUMN v TYPE STRING"]
)
def test_d64_a_second_job_is_refused_while_a_rollup_is_made(case, refused, statement):
    found = case("d", r="SELECT v, g FROM {t}")
    found.lake.sql("ALTER TABLE d ADD ROLLUP z (g, k) PROPERTIES ('wait' = 'false')")
    told = refused(AlreadyExists, statement)
    assert "by job 1 (PENDING): its state is not NORMAL" in told
    found.lake.sql("CANCEL ALTER TABLE ROLLUP FROM d")
    found.check()


@pytest.mark.parametrize(
    ("table", "rollup", "told"),
    [
        ("u", "z (g, v)", "should contain all unique keys of its base table main.u: k, g"),
        ("plain", "z (k2, r)", "should contain all keys if there is a REPLACE value, as r is"),
        ("u", "z (k, g, v)", "contains all keys in base table main.u with same order"),
        ("sites", "z (siteid, citycode, username)", "base table main.sites with same order"),
    ],
)
def test_d72_a_rollup_that_would_be_wrong_or_useless(refused, table, rollup, told):
    assert told in refused(InvalidRequest, f"ALTER TABLE {table} ADD ROLLUP {rollup}")


@pytest.mark.slow
def test_d73_what_users_spent_is_the_same_from_rollup_and_base(case):
    found = case("spent", r='SELECT "user", SUM(cost) FROM {t} GROUP BY 1')
    found.lake.sql("ALTER TABLE spent ADD ROLLUP r (user, cost)")
    found.check()
    found.write("INSERT INTO spent VALUES ('u0', DATE'2024-01-01', 5), (NULL, NULL, 7)")
    query = "SELECT {} user, sum(cost) FROM spent GROUP BY user ORDER BY user"
    with DuckDBOracle(found.url) as duckdb:
        wanted = duckdb.sql('SELECT "user", sum(cost) FROM spent GROUP BY 1 ORDER BY 1 NULLS FIRST')

    assert rows(found.lake.sql(query.format(""))) == wanted
    assert rows(found.lake.sql(query.format("/*+ NO_ROLLUP */"))) == wanted
    assert rows(found.lake.sql("SELECT count(*) FROM spent")) == [(22,)]
    assert newest(found.lake) == max(found.seen)
