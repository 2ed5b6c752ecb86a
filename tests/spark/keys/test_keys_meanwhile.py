"""Rows that began to be loaded before a change of keys, rollups or types, and land behind it."""

from __future__ import annotations

import pytest

import shelduck
from shelduck import Conflict, JobState
from shelduck.lake import unit
from shelduck.write import appending
from tests.support.lakes import rows
from tests.support.meanwhile import once_after, once_before
from tests.support.oracle import DuckDBOracle

STATEMENTS = [
    "CREATE TABLE u (k INT, g INT, v INT) UNIQUE KEY (k, g) ROLLUP (r (g, k, v))",
    "CREATE TABLE a (k INT, g INT, v BIGINT SUM) AGGREGATE KEY (k, g) ROLLUP (r (g, v))",
    "CREATE TABLE d (k INT, g INT, v INT) DUPLICATE KEY (k) ROLLUP (r (g, k))",
    "CREATE TABLE p (k INT, g INT, v INT) DUPLICATE KEY (k)",
    *(f"INSERT INTO {t} SELECT id + 1, 0, 10 * id + 10 FROM range(2)" for t in "uadp"),
]
NEW = "SELECT CAST(id AS INT) AS k, 0 AS g, 7 AS v FROM range(2, 4)"
LOADED = {
    "u": [(1, 0, 10), (2, 0, 7), (3, 0, 7)],
    "a": [(1, 0, 10), (2, 0, 27), (3, 0, 7)],
    "d": [(1, 0, 10), (2, 0, 20), (2, 0, 7), (3, 0, 7)],
    "p": [(1, 0, 10), (2, 0, 20), (2, 0, 7), (3, 0, 7)],
}
# The changes, the names of k, g and v behind them, and what the new columns hold.
CHANGES = {
    "key": (["ADD COLUMN j INT KEY DEFAULT 5"], ["k", "g", "v"], {"j": 5}),
    "rollup and column": (
        ["ADD ROLLUP s (g, k)", "ADD COLUMN x INT DEFAULT 1"],
        ["k", "g", "v"],
        {"x": 1},
    ),
    "key and rename": (
        ["ADD COLUMN j INT KEY DEFAULT 5", "RENAME COLUMN g TO h, RENAME COLUMN v TO g"],
        ["k", "h", "g"],
        {"j": 5},
    ),
    "no rollup": (["DROP ROLLUP r", "ADD COLUMN x INT"], ["k", "g", "v"], {"x": None}),
}
IN_COMMIT = (unit, "commit")


@pytest.fixture
def other(copied, spark):
    """Another connection to the lake, as another process would have it."""
    with shelduck.connect(f"sqlite:///{copied[0]}", spark=spark, progress=False) as lake:
        yield lake


def agreed(lake, catalog, table, names):
    """The rows that both engines find, after a check of what the rollups add up to."""
    whole = ", ".join(f"CAST({name} AS BIGINT)" for name in names)
    found = sorted(rows(lake.sql(f"SELECT {whole} FROM {table}")), key=str)
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert sorted(duckdb.sql(f"SELECT {whole} FROM {table}"), key=str) == found
        for (rollup,) in duckdb.sql(
            f"SELECT table_name FROM duckdb_tables() WHERE table_name LIKE '{table}$%'"
        ):
            held = [name for name, _ in duckdb.columns(rollup)]
            told = f"sum({names[-1]})" if names[-1] in held else "count(*)"
            assert duckdb.sql(f'SELECT {told} FROM "{rollup}"') == duckdb.sql(
                f"SELECT {told} FROM {table}"
            )
    return found


@pytest.mark.sampled(3)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    "where",
    [
        ("u", (appending, "load")),
        ("p", (appending, "append_rows")),
        ("a", IN_COMMIT),
        ("d", (appending, "load")),
        ("u", IN_COMMIT),
        ("p", IN_COMMIT),
    ],
)
def test_a_load_follows_keys_and_rollups(copied, other, monkeypatch, where, change):
    catalog, lake = copied
    table, at = where
    changes, names, more = CHANGES[change]
    if table == "p" and change == "no rollup":
        changes = ["ADD ROLLUP s (g, k)", *changes[1:]]

    def act():
        for one in changes:
            other.sql(f"ALTER TABLE {table} {one}")

    happened = once_before(monkeypatch, *at, act)
    lake.table(table).append(lake.spark.sql(NEW))

    assert happened
    wanted = [(*more.values(), *row) for row in LOADED[table]]
    assert agreed(lake, catalog, table, [*more, *names]) == sorted(wanted, key=str)


@pytest.fixture
def between(monkeypatch, other):
    """Acts between the first attempt of a load, which another commit makes fail, and the next."""

    def arrange(lost, *statements, works=False):
        def act():
            for statement in statements:
                other.sql(statement)
            if works:
                other.run_jobs()

        once_before(monkeypatch, unit, "commit", lambda: other.sql(lost))
        return once_after(monkeypatch, unit.UnitOfWork, "rollback", act)

    return arrange


WIDER = "DECIMAL(20, 0)"
LATER = " PROPERTIES ('wait' = 'false')"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("table", ["u", "a"])
def test_a_load_that_is_repeated_finds_its_table_under_a_new_name(copied, between, spark, table):
    catalog, lake = copied
    happened = between(f"DELETE FROM {table} WHERE k = 1", f"ALTER TABLE {table} RENAME TO z")
    lake.table(table).append(spark.sql(NEW))

    assert happened
    assert agreed(lake, catalog, "z", ["k", "g", "v"]) == LOADED[table][1:]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("table", "changes"),
    [
        ("u", [f"MODIFY COLUMN k {WIDER} KEY{LATER}"]),
        ("a", [f"MODIFY COLUMN v {WIDER} SUM{LATER}"]),
        ("d", [f"MODIFY COLUMN k {WIDER} KEY{LATER}"]),
    ],
)
def test_a_load_that_is_repeated_finds_converted_columns(copied, between, spark, table, changes):
    catalog, lake = copied
    happened = between(
        f"DELETE FROM {table} WHERE k = 1",
        *(f"ALTER TABLE {table} {change}" for change in changes),
        works=True,
    )
    lake.table(table).append(spark.sql(NEW))

    assert happened
    assert [job.state for job in lake.jobs()] == [JobState.FINISHED]
    assert agreed(lake, catalog, table, ["k", "g", "v"]) == LOADED[table][1:]


def test_a_job_between_the_plan_and_the_files_of_an_append_is_followed(
    copied, other, monkeypatch, spark
):
    catalog, lake = copied

    def act():
        other.sql(f"ALTER TABLE p MODIFY COLUMN k {WIDER} KEY{LATER}")
        other.run_jobs()

    once_before(monkeypatch, appending, "append_rows", act)
    lake.table("p").append(spark.sql(NEW))

    assert [job.state for job in lake.jobs()] == [JobState.FINISHED]
    assert agreed(lake, catalog, "p", ["k", "g", "v"]) == LOADED["p"]


def test_rows_that_missed_an_expression_are_refused(copied, between, spark):
    """What the expression makes of the new rows is unknown: they were given for the old column."""
    catalog, lake = copied
    between(
        "DELETE FROM u WHERE k = 1",
        f"ALTER TABLE u ALTER COLUMN v TYPE BIGINT USING v * 100{LATER}",
        works=True,
    )
    with pytest.raises(Conflict, match="column v was dropped"):
        lake.table("u").append(spark.sql(NEW))
    assert agreed(lake, catalog, "u", ["k", "g", "v"]) == [(2, 0, 2000)]
