"""Statements of DuckDB's dialect: the same text in DuckDB and in Shelduck gives the same rows."""

from __future__ import annotations

import pytest

import shelduck
from shelduck.errors import InvalidRequest
from tests.support.oracle import DuckDBOracle

# In order, in one lake. What is indented shows rows, which both have to show; what is indented
# twice is shown in slow tests alone.
SCRIPT = """
CREATE TABLE t (id INT, s VARCHAR)
INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')
UPDATE t SET s = 'x' WHERE id = 1
DELETE FROM t WHERE id = 2
  SELECT snapshot_id, schema_version FROM lake.snapshots()
    SELECT snapshot_id, changes['tables_created'] FROM ducklake_snapshots('lake') WHERE \
snapshot_id < 2
    SELECT id FROM lake.current_snapshot()
  SELECT id FROM ducklake_last_committed_snapshot('lake')
  SELECT table_name, schema_id, table_id FROM lake.table_info()
    SELECT count(*) FROM ducklake_table_info('lake') WHERE table_uuid IS NOT NULL
  FROM lake.table_insertions('t', 0, 3)
  FROM lake.table_deletions('t', 0, 4)
    FROM ducklake_table_insertions('lake', 'main', 't', 0, 2)
  SELECT snapshot_id, rowid, change_type, id, s FROM ducklake_table_changes('lake', 'main', 't', \
0, 2)
  SELECT delete_file FROM ducklake_list_files('lake', 't', snapshot_version => 2)
SET VARIABLE before = 2
  SELECT * FROM t AT (VERSION => getvariable('before'))
    SELECT * FROM t AT (VERSION => 1 + 1)
  SELECT getvariable('before') + id FROM t AT (VERSION => getvariable('before') + 1)
  SELECT * FROM t AT (TIMESTAMP => now())
CREATE TABLE m (id INT, a INT, b INT)
INSERT INTO m VALUES (1, 1, 1)
MERGE INTO m USING (VALUES (1, 5, 6), (2, 7, 8)) s(id, b, a) USING (id) WHEN MATCHED THEN UPDATE \
WHEN NOT MATCHED THEN INSERT
  FROM m
MERGE INTO m USING (VALUES (1, 7, 8), (3, 7, 8)) s(id, b, a) ON m.id = s.id WHEN MATCHED THEN \
UPDATE BY NAME WHEN NOT MATCHED THEN INSERT BY NAME
  FROM m
MERGE INTO m USING (VALUES (3), (9)) s(id) USING (id) WHEN MATCHED AND m.a = 8 THEN DO NOTHING \
WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.id, 1, 2)
  FROM m
INSERT INTO m BY NAME SELECT 4 AS id
INSERT INTO m DEFAULT VALUES
UPDATE m SET a = s.x, b = b + 1 FROM (SELECT 1 AS id, 100 AS x) s WHERE m.id = s.id
UPDATE m SET b = t.id FROM t WHERE m.id = t.id
  FROM m
DELETE FROM m USING (VALUES (1), (2), (2)) s(k) WHERE m.id = s.k
DELETE FROM m USING t WHERE m.id = t.id
  FROM m
CREATE TABLE d (x DECIMAL(5, 2) DEFAULT 1.235, y DECIMAL(3, 0) DEFAULT -2.5, z INT)
INSERT INTO d (z) VALUES (1)
INSERT INTO d DEFAULT VALUES
INSERT INTO d VALUES (DEFAULT, 7, 2)
  FROM d
CREATE TABLE e (x DATE, y TIMESTAMP, z INT)
INSERT INTO e VALUES ('2024-01-01', '2024-01-01 10:00:00', 1), ('2024-12-31', NULL, 2)
INSERT INTO e (y, x) VALUES ('2024-01-01 10:00:00.123456', '2024-02-29')
INSERT INTO e VALUES ('2024-01-05', '2024-01-01 10:00', 1 + 1)
UPDATE e SET x = '2025-05-05', z = 3 WHERE z = 1
MERGE INTO e USING (VALUES (3), (4)) s(z) USING (z) WHEN MATCHED THEN UPDATE SET \
y = '2025-05-05 01:02:03' WHEN NOT MATCHED THEN INSERT (z, x) VALUES (s.z, '2026-06-06')
  FROM e
CREATE VIEW v AS SELECT id FROM m
COMMENT ON VIEW v IS 'the ids'
  FROM v
    SELECT rowid, * FROM t
  SELECT rowid, snapshot_id, x.s FROM t x WHERE rowid >= 0 AND snapshot_id > 0
CALL ducklake_set_option('lake', 'data_inlining_row_limit', 0)
CREATE TABLE f (snapshot_id INT, b INT)
INSERT INTO f VALUES (7, 1), (8, 2), (9, 3)
INSERT INTO f VALUES (10, 4)
DELETE FROM f WHERE b = 2
UPDATE f SET b = 30 WHERE b = 3
  SELECT *, rowid, snapshot_id FROM f
  SELECT filename LIKE '%.parquet' AS parquet, f.*, rowid FROM f
  SELECT count(DISTINCT filename) AS files, min(file_row_number) AS low FROM f
    SELECT f.rowid, f.*, t.id FROM f JOIN t ON f.rowid = t.rowid
    SELECT a.*, b.rowid FROM f a JOIN f b ON a.rowid = b.rowid UNION ALL SELECT *, rowid FROM f
    SELECT s.r FROM (SELECT rowid AS r, * FROM f) s WHERE EXISTS (SELECT * FROM t)
CREATE VIEW rows_of_f AS SELECT rowid AS r, b FROM f
  FROM rows_of_f
CREATE MACRO plus(x, y := 10) AS x + y, (x, y, z) AS x + y * z
CREATE MACRO twice(x) AS plus(x, x)
CREATE MACRO above(n) AS TABLE SELECT id, s FROM t WHERE id >= n
  SELECT plus(1), plus(1, 2), plus(1, 2, 3), plus(1, y := 5), twice(plus(1, 2)) + 1 AS z
    SELECT plus(id), twice(id) FROM t WHERE plus(id, 1) > 2 ORDER BY twice(id)
  SELECT a.s, b.id FROM above(1) a JOIN above(plus(1, 1)) AS b ON a.id <= b.id
    SELECT max(x.id) FROM t, above(2) AS x
CREATE OR REPLACE MACRO twice(x) AS 2 * x
UPDATE t SET id = twice(id) WHERE plus(id, 0) = 3
INSERT INTO t SELECT plus(id, 100), s FROM above(6)
DELETE FROM t WHERE twice(id) = 2
CREATE TABLE made_of AS SELECT twice(id) AS id FROM t
  FROM made_of
CREATE VIEW calls AS SELECT twice(id) AS n FROM t
DROP MACRO twice
DROP MACRO TABLE above
  FROM t
TRUNCATE e
  FROM e
BEGIN
CREATE SCHEMA made
CREATE TABLE made.t (i INT)
DROP SCHEMA made CASCADE
COMMIT
  SELECT max(snapshot_id) >= 20 FROM lake.snapshots()
"""


def _steps():
    return [line for line in SCRIPT.splitlines() if line.strip()]


def _sorted(rows):
    return sorted(([*row] for row in rows), key=str)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """What DuckDB shows for each statement that shows rows, by its place in the script."""
    folder = tmp_path_factory.mktemp("duckdb")
    found = {}
    with DuckDBOracle(f"sqlite:///{folder}/lake.db", f"{folder}/data/") as oracle:
        for number, step in enumerate(_steps()):
            if step.startswith(" "):
                found[number] = _sorted(oracle.sql(step))
            else:
                oracle.execute(step)
    return found


@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def test_a_script_shows_what_it_shows_in_duckdb(database, request, expected, spark, data_path):
    url = request.getfixturevalue(f"{database}_url")
    with shelduck.connect(url, data_path, spark, timestamp="ntz") as lake:
        is_fast = database == "sqlite"
        _run(lake.sql, expected, [s for s in _steps() if is_fast and s.startswith("    ")])
    with DuckDBOracle(url) as oracle:
        last = {step.split()[-1]: rows for step, rows in _shown(expected).items() if "FROM" in step}
        for table in ("m", "d", "e", "v"):
            assert _sorted(oracle.sql(f"FROM {table}")) == last[table], table
        comments = oracle.sql("SELECT comment FROM duckdb_views() WHERE view_name = 'v'")
        assert comments == [("the ids",)]


@pytest.mark.slow
def test_a_script_runs_in_a_session_too(expected, spark, tmp_path):
    shelduck.attach(spark, "lake", f"sqlite:///{tmp_path}/lake.db", f"{tmp_path}/data/")
    spark.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    try:
        spark.sql("USE lake.main")
        _run(spark.sql, expected, skipped=("BEGIN", "COMMIT"))
    finally:
        spark.conf.unset("spark.sql.timestampType")
        spark.catalog.setCurrentCatalog("spark_catalog")
        shelduck.detach(spark, "lake")


def _shown(expected):
    return {step: expected[n] for n, step in enumerate(_steps()) if n in expected}


def _run(sql, expected, skipped=()):
    for number, step in enumerate(_steps()):
        if step in skipped:
            continue
        frame = sql(step)
        if number in expected:
            assert _sorted(frame.collect()) == expected[number], step


def test_returning_shows_the_rows_that_a_statement_changed(spark, sqlite_url, data_path):
    with shelduck.connect(sqlite_url, data_path, spark) as lake:
        lake.sql("CREATE TABLE t (id INT, a INT)")
        steps = [
            ("INSERT INTO t VALUES (1, 1), (2, 2) RETURNING *", [(1, 1), (2, 2)]),
            ("INSERT INTO t BY NAME SELECT 3 AS id RETURNING t.id + 1 AS x, a", [(4, None)]),
            ("UPDATE t SET a = a + 10 WHERE id < 3 RETURNING id, a", [(1, 11), (2, 12)]),
            (
                (
                    "UPDATE t SET a = u.x FROM (SELECT 3 AS id, 7 AS x) u WHERE t.id = u.id"
                    " RETURNING a"
                ),
                [(7,)],
            ),
            ("DELETE FROM t WHERE id = 99 RETURNING *", []),
            ("DELETE FROM t AS d WHERE id = 1 RETURNING d.a", [(11,)]),
            (
                (
                    "MERGE INTO t USING (VALUES (2), (3), (9)) s(id) USING (id)"
                    " WHEN MATCHED AND t.id = 2 THEN UPDATE SET a = 0 WHEN MATCHED THEN DELETE"
                    " WHEN NOT MATCHED THEN INSERT VALUES (s.id, 90) RETURNING merge_action, *"
                ),
                [("DELETE", 3, 7), ("INSERT", 9, 90), ("UPDATE", 2, 0)],
            ),
        ]
        for text, rows in steps:
            assert sorted(map(tuple, lake.sql(text).collect())) == rows, text
        before = len(lake.snapshots())
        with pytest.raises(InvalidRequest, match="nosuch"):
            lake.sql("INSERT INTO t VALUES (5, 5) RETURNING nosuch")
        with pytest.raises(InvalidRequest, match="stop here"):
            lake.sql(
                "MERGE INTO t USING (SELECT 9 AS id) s USING (id)"
                " WHEN MATCHED THEN ERROR 'stop here'"
            )
        assert len(lake.snapshots()) == before
        lake.sql("BEGIN")
        with pytest.raises(shelduck.Unsupported, match="in a transaction"):
            lake.sql("DELETE FROM t RETURNING *")
        lake.sql("ROLLBACK")


def test_a_view_of_duckdb_names_its_catalog(spark, sqlite_url, data_path):
    with DuckDBOracle(sqlite_url, data_path) as oracle:
        oracle.execute("CREATE TABLE t (i INT)")
        oracle.execute("INSERT INTO t VALUES (1), (2)")
        oracle.execute("CREATE SCHEMA s")
        oracle.execute("CREATE VIEW s.v AS SELECT t.i FROM lake.t WHERE t.i > 1")
        oracle.execute("CREATE VIEW s.w AS SELECT i FROM lake.main.t")
    with shelduck.connect(sqlite_url, data_path, spark) as lake:
        assert lake.sql("SELECT * FROM s.v").collect() == [(2,)]
        assert len(lake.sql("SELECT * FROM s.w").collect()) == 2


def test_explain_analyze_counts_the_rows(spark, sqlite_url, data_path):
    with shelduck.connect(sqlite_url, data_path, spark) as lake:
        lake.sql("CREATE TABLE t (id INT)")
        lake.table("t").append(spark.range(50).selectExpr("CAST(id AS INT) AS id"))
        [(plan,)] = lake.sql("EXPLAIN ANALYZE SELECT id FROM t WHERE id >= 20").collect()
    assert "number of output rows: 30" in plan
    assert "number of output rows: 50" in plan


def test_errors_of_queries_are_the_lakes(spark, sqlite_url, data_path):
    with shelduck.connect(sqlite_url, data_path, spark) as lake:
        lake.sql("CREATE TABLE t (id INT)")
        lake.sql("CREATE TABLE d (a DATE, b INT)")
        lake.sql("INSERT INTO d VALUES ('2024-01-01', 1)")
        for text, said in (
            ("SELECT nosuch FROM t", "`nosuch` cannot be resolved"),
            ("SELECT 1 +", "Syntax error at or near end of input"),
            ("SELECT id, count(*) FROM t", "MISSING_GROUP_BY"),
            ("INSERT INTO d VALUES ('soon', 1)", "INSERT INTO d: a text is not the date or time"),
            ("UPDATE d SET a = 'soon'", "'soon' of the type \"STRING\" cannot be cast"),
            ("INSERT INTO t SELECT CAST('x' AS INT)", "'x' of the type \"STRING\" cannot be cast"),
        ):
            with pytest.raises(InvalidRequest, match=said):
                lake.sql(text)


def test_a_bare_timestamp_means_what_the_connection_says(spark, sqlite_url, data_path):
    text = "CREATE TABLE {} (a TIMESTAMP, b TIMESTAMP[], c TIMESTAMP_NTZ, d TIMESTAMPTZ)"
    with shelduck.connect(sqlite_url, data_path, spark, timestamp="ntz") as lake:
        lake.sql(text.format("ntz"))
        lake.create_table("py", {"a": "timestamp"})
    with shelduck.connect(sqlite_url, data_path, spark) as lake:
        lake.sql(text.format("ltz"))
    with DuckDBOracle(sqlite_url) as oracle:
        kinds = {t: [kind for _, kind in oracle.columns(t)] for t in ("ntz", "ltz", "py")}
    zoned = "TIMESTAMP WITH TIME ZONE"
    assert kinds == {
        "ntz": ["TIMESTAMP", "TIMESTAMP[]", "TIMESTAMP", zoned],
        "ltz": [zoned, f"{zoned}[]", "TIMESTAMP", zoned],
        "py": ["TIMESTAMP"],
    }
    with pytest.raises(InvalidRequest, match="must be 'ltz' or 'ntz'"):
        shelduck.connect(sqlite_url, data_path, spark, timestamp="utc")
