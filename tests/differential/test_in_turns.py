"""DuckDB and Shelduck work on one lake in turns: both see the same rows at every snapshot."""

from __future__ import annotations

import pytest

import shelduck
from tests.support.ducklakepy_oracle import oracle_at
from tests.support.lakes import rows
from tests.support.normal import duckdb_rows, spark_rows_by_key
from tests.support.oracle import at

pytestmark = pytest.mark.usefixtures("ducklake_version")

# Whose turn it is, and what is said.
TURNS = (
    ("duckdb", "CREATE TABLE t (id INTEGER, name VARCHAR, s STRUCT(a INTEGER, b VARCHAR))"),
    ("shelduck", "INSERT INTO t VALUES (1, 'ours', named_struct('a', 1, 'b', 'x'))"),
    ("duckdb", "INSERT INTO t VALUES (2, 'inlined', {'a': 2, 'b': NULL}), (3, NULL, NULL)"),
    ("shelduck", "ALTER TABLE t ADD COLUMN c INT DEFAULT 5, RENAME COLUMN name TO label"),
    ("duckdb", "INSERT INTO t SELECT i, 'file', {'a': i, 'b': 'f'}, NULL FROM range(10, 30) r(i)"),
    ("shelduck", "INSERT INTO t (id, label) VALUES (4, 'default')"),
    ("duckdb", "ALTER TABLE t ADD COLUMN s.z BIGINT"),
    ("shelduck", "INSERT INTO t (id, s) VALUES (5, named_struct('a', 5, 'b', 'y', 'z', 5L))"),
    ("duckdb", "UPDATE t SET label = 'updated' WHERE id IN (1, 2, 11)"),
    ("shelduck", "ALTER TABLE t ALTER COLUMN id TYPE BIGINT, ALTER COLUMN s.a TYPE BIGINT"),
    ("duckdb", "INSERT INTO t (id, s) VALUES (3000000000, {'a': 3000000000, 'b': 'w', 'z': 1})"),
    ("shelduck", "INSERT INTO t (id, c) VALUES (3000000001, NULL)"),
    ("duckdb", "DELETE FROM t WHERE id < 20 AND id % 2 = 0"),
    ("shelduck", "ALTER TABLE t DROP COLUMN label, ADD COLUMN label STRING DEFAULT 'new'"),
    ("duckdb", "INSERT INTO t (id) VALUES (40)"),
    ("shelduck", "INSERT INTO t (id) VALUES (41)"),
    ("duckdb", "ALTER TABLE t RENAME COLUMN label TO name"),
    ("shelduck", "ALTER TABLE t RENAME COLUMN s TO strukt, RENAME COLUMN strukt.b TO bb"),
    ("duckdb", "CALL ducklake_flush_inlined_data('lake')"),
    (
        "shelduck",
        (
            "INSERT INTO t (id, strukt)"
            " SELECT id + 60, named_struct('a', 1L, 'bb', 'q') FROM range(0, 11, 1, 2)"
        ),
    ),
    ("duckdb", "CALL ducklake_merge_adjacent_files('lake')"),
    ("shelduck", "CREATE TABLE copy AS SELECT id, name FROM t WHERE id < 10"),
    ("duckdb", "DELETE FROM t WHERE id > 10"),
    ("shelduck", "ALTER TABLE t ALTER COLUMN id SET NOT NULL"),
    ("duckdb", "CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0)"),
    ("shelduck", "INSERT INTO t (id) SELECT id + 100 FROM copy"),
    ("duckdb", "ALTER TABLE t DROP COLUMN strukt"),
    ("shelduck", "INSERT INTO t (id, name) VALUES (50, 'last')"),
    ("duckdb", "DROP TABLE copy"),
)


@pytest.mark.slow
def test_both_see_the_same_rows_at_every_snapshot(lake_url, data_path, spark):
    states = {}
    oracle_at(lake_url, data_path).close()
    for who, statement in TURNS:
        if who == "shelduck":
            with shelduck.connect(lake_url, spark=spark) as lake:
                lake.sql(statement)
        with oracle_at(lake_url) as oracle:
            if who == "duckdb":
                oracle.execute(statement)
            states[oracle.snapshot()] = duckdb_rows(oracle, "t")

    with oracle_at(lake_url) as oracle:
        theirs = {version: duckdb_rows(oracle, at("t", version)) for version in states}
        counts = {v: oracle.sql(f"SELECT count(*) FROM {at('t', v)}") for v in states}
    with shelduck.connect(lake_url, spark=spark) as lake:
        table = lake.table("t")
        ours = spark_rows_by_key({version: table.read(version=version) for version in states})
    assert ours == theirs == states
    assert counts == {version: [(len(rows),)] for version, rows in states.items()}
    assert len(states) == len(TURNS)
    assert theirs[max(states)] == [
        (1, 5, "new"),
        (101, 5, "new"),
        (103, 5, "new"),
        (105, 5, "new"),
        (3, 5, "new"),
        (5, 5, "new"),
        (50, 5, "last"),
    ]


@pytest.mark.every_version
def test_rows_that_duckdb_inlined_stay_readable_when_columns_change(lake_url, data_path):
    # DuckDB makes a place for them on demand, without the row by which it finds their columns.
    with shelduck.connect(lake_url, data_path) as lake:
        table = lake.create_table("t", {"id": "int", "m": "string", "n": "int"})
        table.alter(shelduck.rename_column("m", "mm"))
    with oracle_at(lake_url) as oracle:
        oracle.execute("INSERT INTO t VALUES (1, 'x', 2)")
    with shelduck.connect(lake_url) as lake:
        lake.table("t").alter(shelduck.rename_column("mm", "mmm"), shelduck.drop_column("n"))
    with oracle_at(lake_url) as oracle:
        assert oracle.rows("t") == [(1, "x")]
        assert oracle.rows("t", version=3) == [(1, "x", 2)]
        oracle.execute("INSERT INTO t VALUES (2, 'y')")
        oracle.execute("ALTER TABLE t RENAME COLUMN id TO key")
    with oracle_at(lake_url) as oracle:
        assert oracle.rows("t") == [(1, "x"), (2, "y")]


@pytest.mark.versions("1.0")
def test_every_date_that_duckdb_inlined_is_a_timestamp_once_the_column_is(
    sqlite_url, data_path, spark
):
    dates = ("infinity", "-infinity", "0044-03-15 (BC)", "2024-01-02")
    later = "SELECT id FROM t WHERE d > {} '2024-01-01 00:00:00' ORDER BY id"
    with oracle_at(sqlite_url, data_path) as oracle:
        oracle.execute("CREATE TABLE t (id INTEGER, d DATE)")
        values = ", ".join(f"({n}, '{date}')" for n, date in enumerate(dates))
        oracle.execute(f"INSERT INTO t VALUES {values}")
    with shelduck.connect(sqlite_url, spark=spark) as lake:
        table = lake.table("t")
        table.alter(shelduck.set_properties({"delta.enableTypeWidening": "true"}))
        table.alter(shelduck.change_type("d", "timestamp_ntz"))
        ours = rows(lake.sql(later.format("TIMESTAMP_NTZ")))
        assert rows(lake.sql("SELECT count(*) FROM t WHERE d IS NOT NULL")) == [(4,)]
    with oracle_at(sqlite_url) as oracle:
        assert oracle.sql(later.format("TIMESTAMP")) == ours == [(0,), (3,)]
        assert oracle.sql("SELECT d::VARCHAR FROM t ORDER BY id")[:2] == [
            ("infinity",),
            ("-infinity",),
        ]


@pytest.mark.every_version
def test_columns_may_have_names_that_a_database_reserves(lake_url, data_path, spark):
    with oracle_at(lake_url, data_path) as oracle:
        oracle.execute('CREATE TABLE t ("at" INTEGER, "select" VARCHAR, "Qualify" INTEGER)')
        oracle.execute("INSERT INTO t VALUES (1, 'x', 2)")
    with shelduck.connect(lake_url, spark=spark) as lake:
        table = lake.table("t")
        table.alter(shelduck.add_column("lateral", "int", default="5"))
        ours = spark_rows_by_key({"t": table.read()})
    with oracle_at(lake_url) as oracle:
        oracle.execute("INSERT INTO t VALUES (3, 'y', 4, 6)")
        rows = oracle.rows("t")
    assert ours == {"t": [(1, "x", 2, 5)]}
    assert rows == [(1, "x", 2, 5), (3, "y", 4, 6)]
