"""``check`` of rollups: what the catalog says of them, and all rows against their bases."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

import shelduck
from tests.support.oracle import DuckDBOracle

STATEMENTS = [
    "CALL set_option('data_inlining_row_limit', '0')",
    "CREATE TABLE t (k INT, d DATE, w INT, x DOUBLE)",
    "INSERT INTO t SELECT id % 3, NULL, id, id / 3 FROM range(0, 20, 1, 1)",
    "INSERT INTO t VALUES (NULL, DATE'2024-01-01', NULL, NULL)",
    "ALTER TABLE t ADD ROLLUP s (d, w, k)",
    "CREATE TABLE a (k INT, j INT, s BIGINT SUM, m INT MAX, r STRING REPLACE) AGGREGATE KEY (k, j)",
    "INSERT INTO a SELECT id % 2, id % 3, id, id, 'r' FROM range(0, 20, 1, 1)",
    "ALTER TABLE a ADD ROLLUP p (j, s, m)",
    "ALTER TABLE a ADD ROLLUP q (j, k, r)",
    "ALTER TABLE a ADD ROLLUP o (j)",
    "CREATE TABLE u (k INT, j INT, v STRING) UNIQUE KEY (k, j)",
    "INSERT INTO u SELECT id % 2, id % 3, 'v' FROM range(0, 20, 1, 1)",
    "ALTER TABLE u ADD ROLLUP p (j, k, v)",
]


@pytest.fixture
def measured(lake):
    """The lake with a rollup that has measures of all kinds."""
    lake.table("t").add_rollup(
        "m",
        ["k"],
        {
            "n": "count",
            "c": ("count", "w"),
            "s": ("sum", "w"),
            "low": ("min", "d"),
            "high": ("max", "w"),
            "f": ("sum", "x"),
        },
    ).wait()
    return lake


def change(catalog, *statements):
    with closing(sqlite3.connect(catalog)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def found(lake, **how):
    done = lake.check(**how)
    return (
        [(p.table, p.wrong) for p in done.problems],
        [(p.table, p.kind, p.wrong) for p in done.notes],
    )


def test_rollups_agree_with_their_bases(measured):
    measured.sql("INSERT INTO t VALUES (1, DATE'2024-02-01', 7, 0.1)")
    measured.sql("DELETE FROM t WHERE w = 3")
    measured.sql("INSERT INTO a VALUES (1, 1, 5, 99, 'new')")

    assert found(measured, rows=True) == ([], [])


def test_rows_that_a_rollup_lacks_are_found(spark, measured, copied):
    catalog, _ = copied
    change(
        catalog,
        "DELETE FROM ducklake_data_file WHERE record_count = 1 AND table_id ="
        " (SELECT table_id FROM ducklake_table WHERE table_name = 't')",
        *(
            "DELETE FROM ducklake_data_file WHERE table_id = (SELECT table_id FROM ducklake_table"
            f" WHERE table_name = '{name}')"
            for name in ("a$p", "a$q", "u")
        ),
    )
    problems, _ = found(shelduck.connect(f"sqlite:///{catalog}", spark=spark), rows=True)

    assert [(t, w[: w.index(",")]) for t, w in problems if "$" in t] == [
        ("main.`a$p`", "0 of its rows do not follow from main.a"),
        ("main.`a$q`", "0 of its rows do not follow from main.a"),
        ("main.`t$s`", "1 of its rows do not follow from main.t"),
        ("main.`t$m`", "1 of its rows do not follow from main.t"),
        ("main.`u$p`", "6 of its rows do not follow from main.u"),
    ]
    assert dict(problems)["main.`a$p`"].endswith(
        ", and 3 rows are missing, such as j = 2, s = 57, m = 17"
    )


def test_stale_rollups_are_notes(measured, copied):
    catalog, _ = copied
    measured.close()
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        duckdb.execute("INSERT INTO t (k) VALUES (1)")
        duckdb.execute('DROP TABLE "a$q"')
        duckdb.execute("DROP TABLE u")

    with shelduck.connect(f"sqlite:///{catalog}") as opened:
        stale = found(opened)

    assert stale == (
        [],
        [
            ("main.a", "rollup", "main.a lists it, but its table does not exist"),
            ("main.`t$s`", "rollup", "it is stale: others changed its base or itself"),
            ("main.`t$m`", "rollup", "it is stale: others changed its base or itself"),
            ("main.`u$p`", "rollup", "its base does not exist, so nobody updates it"),
        ],
    )
