"""RESTORE: the newest snapshot is an older one again, for DuckDB too, and history stays."""

from __future__ import annotations

import pytest

import shelduck
from tests.support.ducklakepy_oracle import oracle_at
from tests.support.normal import duckdb_rows, spark_rows
from tests.support.oracle import at

pytestmark = pytest.mark.usefixtures("ducklake_version")

# Who speaks, and what; "+" inlines small writes.
STORIES = {
    "deletes, updates and inserts": (
        ("duckdb", "CREATE TABLE t (a INTEGER, b VARCHAR)"),
        ("duckdb", "INSERT INTO t SELECT i, 'v' || i FROM range(40) r(i)"),
        ("shelduck", "DELETE FROM t WHERE a < 5"),
        ("duckdb", "UPDATE t SET b = 'u' WHERE a BETWEEN 10 AND 14"),
        ("shelduck", "INSERT INTO t SELECT id, 'new' FROM range(100, 120)"),
        ("duckdb", "DELETE FROM t WHERE a % 2 = 0"),
        ("shelduck", "DELETE FROM t WHERE a < 30"),
        ("shelduck", "TRUNCATE TABLE t"),
    ),
    "rows of the catalog": (
        ("duckdb", "CREATE TABLE t (a INTEGER, b VARCHAR)"),
        ("+", "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')"),
        ("duckdb", "INSERT INTO t SELECT i, 'file' FROM range(10, 30) r(i)"),
        ("+", "UPDATE t SET b = 'z' WHERE a = 2"),
        ("+", "DELETE FROM t WHERE a = 1 OR a = 12"),
        ("+", "INSERT INTO t VALUES (4, 'd')"),
        ("+", "CALL ducklake_flush_inlined_data('lake')"),
        ("+", "DELETE FROM t WHERE a = 3 OR a = 13"),
    ),
    "compaction": (
        ("duckdb", "CREATE TABLE t (a INTEGER, b VARCHAR)"),
        ("duckdb", "INSERT INTO t SELECT i, 'v' FROM range(20) r(i)"),
        ("duckdb", "INSERT INTO t SELECT i, 'w' FROM range(20, 40) r(i)"),
        ("duckdb", "CALL ducklake_merge_adjacent_files('lake')"),
        ("duckdb", "DELETE FROM t WHERE a < 18"),
        ("duckdb", "CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0)"),
        ("duckdb", "DELETE FROM t WHERE a > 30"),
    ),
    "columns": (
        ("duckdb", "CREATE TABLE t (a INTEGER, b VARCHAR DEFAULT 'd', s STRUCT(x INTEGER))"),
        ("duckdb", "INSERT INTO t SELECT i, 'v' || i, {'x': i} FROM range(20) r(i)"),
        ("shelduck", "COMMENT ON TABLE t IS 'first'"),
        ("shelduck", "ALTER TABLE t ALTER COLUMN a TYPE BIGINT, ADD COLUMN c INT DEFAULT 7"),
        ("shelduck", "INSERT INTO t SELECT 3000000000 + id, 'big', NULL, 1 FROM range(3)"),
        ("duckdb", "ALTER TABLE t DROP COLUMN b"),
        ("duckdb", "ALTER TABLE t ADD COLUMN b DOUBLE"),
        ("shelduck", "ALTER TABLE t RENAME COLUMN s.x TO xx, RENAME COLUMN a TO id"),
        ("duckdb", "INSERT INTO t VALUES (50, {'xx': 1}, 2, 0.5)"),
        ("duckdb", "DELETE FROM t WHERE id = 7"),
        ("shelduck", "COMMENT ON TABLE t IS 'second'"),
        ("shelduck", "ALTER TABLE t ALTER COLUMN id SET NOT NULL"),
    ),
    "partitions": (
        ("duckdb", "CREATE TABLE t (a INTEGER, p VARCHAR)"),
        ("shelduck", "ALTER TABLE t SET PARTITIONED BY (p)"),
        ("shelduck", "INSERT INTO t SELECT id, concat('p', id % 3) FROM range(30)"),
        ("shelduck", "ALTER TABLE t RESET PARTITIONED BY"),
        ("shelduck", "DELETE FROM t WHERE p = 'p1' OR a > 20"),
    ),
}


def state(oracle, source="t"):
    columns = [(name, kind) for name, kind, *_ in oracle.sql(f"DESCRIBE SELECT * FROM {source}")]
    return columns, duckdb_rows(oracle, source, "rowid, *")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("story", STORIES)
def test_every_snapshot_can_be_the_newest_again(story, sqlite_url, data_path, spark):
    states = {}
    oracle_at(sqlite_url, data_path).close()
    for who, statement in STORIES[story]:
        if who == "shelduck":
            with shelduck.connect(sqlite_url, spark=spark) as lake:
                lake.sql(statement)
        inline = {"DATA_INLINING_ROW_LIMIT": 10 if who == "+" else 0}
        with oracle_at(sqlite_url, options=inline) as oracle:
            if who != "shelduck":
                oracle.execute(statement)
            states[oracle.snapshot()] = state(oracle)

    made = {}
    with shelduck.connect(sqlite_url, spark=spark) as lake:
        table = lake.table("t")
        last, first = max(states), min(states)
        middle = sorted(states)[len(states) // 2]
        for version in [middle, last, first, last]:
            result = table.restore(version=version)
            made[result.snapshot] = version
            assert spark_rows(table.read()) == spark_rows(table.read(version=version))
            assert type(table.restore(version=result.snapshot)) is shelduck.Unchanged

    with oracle_at(sqlite_url) as oracle:
        assert {n: state(oracle, at("t", n)) for n in states} == states
        for snapshot, version in made.items():
            assert state(oracle, at("t", snapshot)) == states[version]
        assert state(oracle) == states[max(states)]
        assert oracle.sql("SELECT count(*) FROM t") == [(len(states[max(states)][1]),)]
        # DuckDB goes on with it.
        oracle.execute(f"CREATE TABLE copy AS FROM {at('t', min(made))}")
        oracle.execute("INSERT INTO t SELECT * FROM t")
        first = oracle.columns("t")[0][0]
        oracle.execute(f"UPDATE t SET {first} = {first} WHERE {first} IS NOT NULL")
        oracle.execute("DELETE FROM t")
        assert oracle.rows("t") == []
