"""What Shelduck writes, DuckDB reads after every statement, and then goes on writing."""

from __future__ import annotations

import pytest

import shelduck
from tests.support.ducklakepy_oracle import oracle_at
from tests.support.normal import duckdb_rows, spark_rows, spark_rows_by_key
from tests.support.oracle import DuckDBOracle, at

pytestmark = pytest.mark.usefixtures("ducklake_version")

STATEMENTS = (
    (
        "CREATE TABLE t (id BIGINT NOT NULL, n INT, r DECIMAL(9,2), d DOUBLE, at TIMESTAMP_NTZ,"
        " name STRING, s STRUCT<x: INT, y: STRING>, l ARRAY<STRUCT<p: INT>>, m MAP<STRING, INT>)"
    ),
    (
        "INSERT INTO t VALUES (1, 10, 1.50, 0.1D, TIMESTAMP_NTZ '2024-01-01 00:00:00.5', 'née',"
        " named_struct('x', 1, 'y', 'a'), array(named_struct('p', 1), NULL),"
        " map('k', 1, 'l', NULL)), (2, NULL, NULL, double('NaN'), NULL, NULL, NULL, NULL, NULL)"
    ),
    (
        "ALTER TABLE t ADD COLUMN country STRING DEFAULT '??', ADD COLUMN s.z BIGINT DEFAULT 5,"
        " ADD COLUMN l.element.q STRING"
    ),
    (
        "INSERT INTO t (id, n, country, s) VALUES"
        " (3, 30, 'NO', named_struct('x', 3, 'y', 'c', 'z', 33L))"
    ),
    # Swapped names, a name used again, wider types.
    "ALTER TABLE t RENAME COLUMN n TO swap, RENAME COLUMN id TO n, RENAME COLUMN swap TO id",
    "ALTER TABLE t DROP COLUMN name, ADD COLUMN name INT DEFAULT 7",
    (
        "ALTER TABLE t SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true'), ALTER COLUMN id"
        " TYPE BIGINT, ALTER COLUMN s.x TYPE BIGINT, ALTER COLUMN r TYPE DECIMAL(12,2)"
    ),
    (
        "INSERT INTO t (n, id, r, d, s) VALUES (4, 3000000000, 1234567890.12, -0.5D,"
        " named_struct('x', 4000000000L, 'y', NULL, 'z', NULL))"
    ),
    "ALTER TABLE t RENAME COLUMN s.y TO yy, DROP COLUMN s.x, RENAME COLUMN m TO mm",
    "ALTER TABLE t ADD COLUMN first INT DEFAULT 1 FIRST, ALTER COLUMN at AFTER n",
    "ALTER TABLE t ALTER COLUMN country SET DEFAULT 'SE', ALTER COLUMN country SET NOT NULL",
    "INSERT INTO t (n, name) VALUES (5, NULL)",
    "COMMENT ON TABLE t IS 'things'",
    "INSERT INTO t SELECT * FROM t WHERE n < 3",
    "ALTER TABLE t RENAME TO u",
    "ALTER TABLE u RENAME TO t",
)
SHAPE = [
    ("first", "INTEGER"),
    ("n", "BIGINT"),
    ("at", "TIMESTAMP"),
    ("id", "BIGINT"),
    ("r", "DECIMAL(12,2)"),
    ("d", "DOUBLE"),
    ("s", "STRUCT(yy VARCHAR, z BIGINT)"),
    ("l", "STRUCT(p INTEGER, q VARCHAR)[]"),
    ("mm", "MAP(VARCHAR, INTEGER)"),
    ("country", "VARCHAR"),
    ("name", "INTEGER"),
]
DUCKDB_GOES_ON = (
    "ALTER TABLE t ADD COLUMN late VARCHAR DEFAULT 'late'",
    "INSERT INTO t (n, id, s) VALUES (6, 60, {'yy': 'inlined', 'z': 6})",
    "INSERT INTO t (n, id, country) SELECT 100 + i, i, 'c' || i FROM range(40) r(i)",
    "UPDATE t SET id = id + 1 WHERE n IN (1, 6, 110)",
    "DELETE FROM t WHERE n = 2",
    "DELETE FROM t WHERE n BETWEEN 101 AND 125",
    "ALTER TABLE t RENAME COLUMN country TO land",
    "DELETE FROM t WHERE id = 61",
    "UPDATE t SET late = 'now', s = {'yy': 'updated', 'z': NULL} WHERE n > 130",
    "CALL ducklake_flush_inlined_data('lake')",
    "INSERT INTO t (n) SELECT 200 + i FROM range(20) r(i)",
    "INSERT INTO t (n) SELECT 300 + i FROM range(20) r(i)",
    "CALL ducklake_merge_adjacent_files('lake')",
    "DELETE FROM t WHERE n % 2 = 1",
    # Flushed after the rewrite, these deletes double rows in DuckDB's own time travel.
    "CALL ducklake_flush_inlined_data('lake')",
    "CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0)",
    "INSERT INTO t (n) VALUES (400)",
    "CHECKPOINT",
    "ALTER TABLE t DROP COLUMN id",
)


@pytest.mark.slow
def test_duckdb_reads_and_goes_on_with_what_we_wrote(lake_url, data_path, one_file):
    states = {}
    for statement in STATEMENTS:
        with shelduck.connect(lake_url, data_path, one_file) as lake:
            lake.sql(statement)
            [name] = [table.name for table in lake.tables()]
        with oracle_at(lake_url) as oracle:
            states[oracle.snapshot()] = duckdb_rows(oracle, name)
            _statistics_agree_with_rows(oracle, name)
    assert list(states) == list(range(1, len(STATEMENTS) + 1))
    _both_read(lake_url, one_file, states)
    with oracle_at(lake_url) as oracle:
        assert oracle.columns("t") == SHAPE
        [(comment,)] = oracle.sql("SELECT comment FROM duckdb_tables() WHERE table_name = 't'")
        assert comment == "things"
        assert oracle.sql("SELECT n FROM t WHERE id IS NULL AND name IS NULL") == [(5,)]

    for statement in DUCKDB_GOES_ON:
        with oracle_at(lake_url) as oracle:
            oracle.execute(statement)
            rows = states[oracle.snapshot()] = duckdb_rows(oracle, "t")
        with shelduck.connect(lake_url, spark=one_file) as lake:
            assert spark_rows(lake.table("t").read()) == rows, statement
    _both_read(lake_url, one_file, states)
    with oracle_at(lake_url) as oracle:
        _statistics_agree_with_rows(oracle, "t")


def _both_read(url, spark, states):
    with oracle_at(url) as oracle:
        theirs = {v: duckdb_rows(oracle, at(_name(v), v)) for v in states}
    with shelduck.connect(url, spark=spark) as lake:
        frames = {v: lake.sql(f"SELECT * FROM {_name(v)} VERSION AS OF {v}") for v in states}
        ours = spark_rows_by_key(frames)
    assert theirs == states
    assert ours == states


def test_duckdb_may_alter_a_table_after_its_own_small_insert(sqlite_url, data_path):
    with shelduck.connect(sqlite_url, data_path) as lake:
        lake.create_table("t", {"id": "int", "m": "int"}).alter(shelduck.rename_column("m", "n"))
    with oracle_at(sqlite_url) as oracle:
        oracle.execute("INSERT INTO t VALUES (1, 2)")
    with oracle_at(sqlite_url) as oracle:
        oracle.execute("ALTER TABLE t RENAME COLUMN id TO key")
    with oracle_at(sqlite_url) as oracle:
        assert oracle.rows("t") == [(1, 2)]


def _name(version: int) -> str:
    """The table's name: one statement renamed it, the next renamed it back."""
    return "u" if version == STATEMENTS.index("ALTER TABLE t RENAME TO u") + 1 else "t"


def _statistics_agree_with_rows(oracle: DuckDBOracle, table: str) -> None:
    """DuckDB's answers from statistics (counts, bounds, skipped files) are those from the rows."""
    leaves = [
        f'"{name}"' for name, kind in oracle.columns(table) if "(" not in kind or "DECIMAL" in kind
    ]
    asked = ", ".join(["count(*)", *(f"{e}({c})" for c in leaves for e in ("min", "max", "count"))])
    rows = f"WITH r AS MATERIALIZED (SELECT * FROM {table})"
    # By their text: a NaN is not equal to itself.
    known, counted = (
        oracle.sql(f"SELECT {asked} FROM {table}"),
        oracle.sql(f"{rows} SELECT {asked} FROM r"),
    )
    assert repr(known) == repr(counted)
    for column in leaves:
        counted = oracle.sql(
            f"{rows} SELECT {column}::VARCHAR, typeof({column}), count(*) FROM r GROUP BY ALL"
        )
        for value, kind, count in counted:
            if value is not None:
                where = f"{column} = '{value}'::{kind}"
                found = f"SELECT count(*) FROM {table} WHERE {where}"
                assert oracle.sql(found) == [(count,)], where
