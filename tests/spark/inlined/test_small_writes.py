"""Few rows go into the catalog: from literals without Spark, from local plans without a job."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import shelduck
from shelduck.errors import InvalidRequest, NotFound
from tests.support.lakes import rows
from tests.support.oracle import DuckDBOracle

LITERALS = [
    ("int", "2147483647"),
    ("tinyint", "-128"),
    ("utinyint", "255"),
    ("hugeint", "99999999999999999999999999999999999999"),
    ("double", "9007199254740992"),
    ("double", "0.1"),
    ("double", "-0.0"),
    ("double", "-0"),
    ("float", "0.25"),
    ("float", "16777216"),
    ("decimal(5,2)", "-1.5"),
    ("decimal(5,2)", "-0.00"),
    ("decimal(38,0)", "-99999999999999999999999999999999999999"),
    ("string", "'it''s é'"),
    ("boolean", "true"),
    ("date", "DATE '0001-01-01'"),
    ("date", "DATE '9999-12-31'"),
    ("timestamp_ntz", "TIMESTAMP_NTZ '1582-10-04 23:59:59.000001'"),
    ("int", "NULL"),
    ("bigint", "-9223372036854775808L"),
    ("tinyint", "-128Y"),
    ("smallint", "5L"),
    ("decimal(20,1)", "7L"),
    ("double", "0.25D"),
    ("double", "-0D"),
    ("double", "1e-3"),
    ("double", "-1.5E+300D"),
    ("double", "1e-400"),
    ("double", "0.1D"),
    ("double", "0.5F"),
    ("float", "-0.25F"),
    ("decimal(5,2)", "1.5BD"),
    ("timestamp", "TIMESTAMP'2024-01-02 03:04:05.123456Z'"),
    ("timestamp", "TIMESTAMP_LTZ '1582-10-04 23:59:59-12:30'"),
    ("timestamp", "TIMESTAMP '0100-01-01 18:00:00+00:00'"),
]
PLANNED = [
    ("timestamp_ntz", "TIMESTAMP_NTZ '2024-01-02 03:04:05'"),
    ("date", "current_date()"),
    ("date", "current_date"),
    ("boolean", "current_timestamp() = now()"),
    ("string", "current_user()"),
    ("int", "CAST('5' AS INT)"),
    ("timestamp", "TIMESTAMP'2024-01-02 03:04:05'"),
    ("timestamp", "'2024-01-02 03:04:05'"),
    ("timestamp_ntz", "CAST('2024-01-02' AS TIMESTAMP_NTZ)"),
    ("double", "1.1F"),
    ("binary", "X'0AFF'"),
    ("string", "'a\\tb'"),
    ("int", "-(5 + 1)"),
    ("array<int>", "array(1, NULL)"),
    ("map<string, double>", "map('a', 1.5D)"),
    ("struct<a: int, b: string>", "named_struct('a', 1, 'b', upper('x'))"),
]


@pytest.fixture
def lake(tmp_path, spark):
    with shelduck.connect(f"sqlite:///{tmp_path}/catalog.db", f"{tmp_path}/data", spark) as made:
        yield made


def jobs(lake, act):
    """How many Spark jobs it takes."""
    tracker = lake.spark.sparkContext.statusTracker()
    before = len(tracker.getJobIdsForGroup())
    act()
    return len(tracker.getJobIdsForGroup()) - before


def files(tmp_path):
    return list(Path(f"{tmp_path}/data").rglob("*.parquet"))


def test_a_literal_is_stored_as_spark_stores_it(lake, monkeypatch):
    fast, slow = (", ".join(f"c{n} {kind}" for n, (kind, _) in enumerate(LITERALS)),) * 2
    lake.sql(f"CREATE TABLE fast ({fast})")
    lake.sql(f"CREATE TABLE slow ({slow})")
    values = ", ".join(literal for _, literal in LITERALS)
    with monkeypatch.context() as without_spark:
        without_spark.setattr("shelduck.write.statement.insert_into.append", None)
        lake.sql(f"INSERT INTO fast VALUES ({values})")
    lake.set_option("data_inlining_row_limit", 0, table="slow")
    lake.sql(f"INSERT INTO slow SELECT * FROM VALUES ({values})")

    def told(name):
        return [str(r) for r in rows(lake.table(name).read())]

    # Seconds and the rest of a column's type are checked by both; only the way differs.
    assert told("fast") == told("slow")


def test_what_spark_folds_is_stored_without_a_job_as_spark_computes_it(lake):
    declared = ", ".join(f"c{n} {kind}" for n, (kind, _) in enumerate(PLANNED))
    lake.sql(f"CREATE TABLE t ({declared})")
    values = ", ".join(literal for _, literal in PLANNED)
    assert jobs(lake, lambda: lake.sql(f"INSERT INTO t VALUES ({values})")) == 0
    assert lake.snapshots()[-1].changes_made == "inlined_insert:1"
    casts = ", ".join(f"CAST({literal} AS {kind})" for kind, literal in PLANNED)
    wanted = str(lake.spark.sql(f"SELECT {casts}").first()[:])
    assert str(lake.sql("SELECT * FROM t").first()[:]) == wanted


def test_what_literals_cannot_tell_comes_from_sparks_plan_without_a_job(lake, tmp_path):
    lake.sql("CREATE TABLE t (id BIGINT, at TIMESTAMP, tags ARRAY<STRING>, s STRUCT<d: DATE>)")
    statement = (
        "INSERT INTO t VALUES (1 + 1, TIMESTAMP '2024-01-01 00:00:00Z', array('x', NULL),"
        " named_struct('d', DATE '2024-02-03')), (3, NULL, NULL, NULL)"
    )
    assert jobs(lake, lambda: lake.sql(statement)) == 0
    assert files(tmp_path) == []
    assert rows(
        lake.sql("SELECT id, at = '2024-01-01 00:00:00Z', tags, s.d FROM t ORDER BY id")
    ) == [(2, True, ["x", None], dt.date(2024, 2, 3)), (3, None, None, None)]


def test_small_data_frames_are_kept_exactly(lake, tmp_path):
    columns = {
        "d": pa.array([0, -719_162, 2_932_896], pa.date32()),
        "ts": pa.array([None, -62_135_596_800_000_000, 1], pa.timestamp("us", "UTC")),
        "f": pa.array([1.1, float("nan"), float("-inf")], pa.float32()),
        "x": pa.array([Decimal("1.50"), None, Decimal("-0.01")], pa.decimal128(38, 2)),
        "b": pa.array([b"\0\xff", b"", None]),
        "m": pa.array([[("k]", 1)], [], None], pa.map_(pa.string(), pa.int32())),
        "l": pa.array([[{"n": 1}], [None], None], pa.list_(pa.struct([("n", pa.int64())]))),
    }
    frame = lake.spark.createDataFrame(pa.table(columns))
    for name in ("kept", "written"):
        lake.create_table(name, frame.schema)
    lake.set_option("data_inlining_row_limit", 0, table="written")
    assert jobs(lake, lambda: lake.table("kept").append(frame)) == 0
    assert files(tmp_path) == []
    lake.table("written").append(frame)

    # As a number: Python's own instants begin later.
    query = "SELECT d, unix_micros(ts), f, x, b, m, l FROM"
    kept, written = (sorted(map(str, rows(lake.sql(f"{query} {n}")))) for n in ("kept", "written"))
    assert kept == written


def test_few_rows_of_a_query_leave_no_file(lake, tmp_path):
    lake.sql("CREATE TABLE t (id BIGINT, at TIMESTAMP_NTZ, l ARRAY<STRUCT<a: INT>>)")
    done = lake.sql(
        "INSERT INTO t SELECT id, TIMESTAMP_NTZ '2024-01-02 03:04:05' + make_interval(0, 0, 0, id),"
        " array(named_struct('a', id), NULL) FROM range(3)"
    )
    assert done.first()["rows"] == 3
    assert files(tmp_path) == []
    assert lake.snapshots()[-1].changes_made == "inlined_insert:1"
    assert rows(lake.sql("SELECT id, day(at), l FROM t ORDER BY id")) == [
        (n, 2 + n, [(n,), None]) for n in range(3)
    ]


def test_more_rows_than_the_limit_are_files(lake, tmp_path):
    lake.sql("CREATE TABLE t (id BIGINT)")
    lake.set_option("data_inlining_row_limit", 2, table="main.t")
    lake.sql("INSERT INTO t VALUES (1), (2)")
    assert files(tmp_path) == []
    lake.sql("INSERT INTO t VALUES (3), (4), (5)")
    assert len(files(tmp_path)) == 1
    assert sorted(rows(lake.table("t").read())) == [(n,) for n in range(1, 6)]


def test_a_small_create_table_as_select_is_one_snapshot_without_a_file(lake, tmp_path):
    lake.sql("CREATE TABLE t AS SELECT * FROM VALUES (1, 'x'), (2, 'y') AS v(a, b)")
    assert files(tmp_path) == []
    assert lake.snapshots()[-1].changes_made == 'created_table:"main"."t",inlined_insert:1'
    assert sorted(rows(lake.table("t").read())) == [(1, "x"), (2, "y")]


def test_a_value_that_does_not_fit_is_refused_whatever_way_it_would_take(lake):
    lake.sql("CREATE TABLE t (id TINYINT NOT NULL)")
    for source in (
        "VALUES (300)",
        "VALUES (NULL)",
        "VALUES (150 + 150)",
        "SELECT id + 300 FROM range(1)",
    ):
        with pytest.raises(InvalidRequest, match=r"tinyint|int8|NOT NULL"):
            lake.sql(f"INSERT INTO t {source}")
    assert rows(lake.table("t").read()) == []


def test_options_are_told_with_what_they_are_set_for(lake):
    lake.sql("CREATE SCHEMA s")
    lake.sql("CREATE TABLE s.t (id BIGINT)")
    before = lake.snapshots()[-1].id
    lake.set_option("target_file_size", "10MB")
    lake.set_option("target_file_size", "20MB")
    lake.sql("CALL set_option('data_inlining_row_limit', 5, schema => 's', table_name => 't')")
    lake.sql("CALL set_option('rewrite_delete_threshold', 0.5, schema => 's')")
    assert lake.snapshots()[-1].id == before
    found = [(o.name, o.value, o.scope, o.owner) for o in lake.options()]
    assert found == [
        ("data_inlining_row_limit", "5", "table", "s.t"),
        ("rewrite_delete_threshold", "0.500000", "schema", "s"),
        ("target_file_size", "20000000", "lake", None),
    ]
    assert rows(lake.sql("CALL options()")) == found
    with pytest.raises(NotFound, match="did you mean"):
        lake.sql("CALL set_option('target_filesize', 1)")


def test_one_row_of_literals_takes_few_statements(lake):
    lake.sql("CREATE TABLE t (id BIGINT)")
    lake.sql("INSERT INTO t VALUES (1)")
    before = lake._state.store.statements
    lake.sql("INSERT INTO t VALUES (1)")
    assert lake._state.store.statements - before == 6


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("alters", "wanted"),
    [
        (["RENAME a TO x", "RENAME b TO a", "RENAME x TO b"], [(0, "b0", "a0"), (1, "A", "B")]),
        (["DROP b", "ADD COLUMN b VARCHAR"], [(0, "a0", None), (1, "A", "B")]),
        (["RENAME b TO c", "ADD COLUMN b VARCHAR"], [(0, "a0", None), (1, "A", "B")]),
    ],
)
def test_rows_go_under_names_for_which_duckdb_made_no_table(tmp_path, spark, alters, wanted):
    """A DuckDB that inlines nothing makes no table for inlined rows when it alters one."""
    url = f"sqlite:///{tmp_path}/lake.db"
    with shelduck.connect(url, f"{tmp_path}/data/", spark) as lake:
        lake.sql("CREATE TABLE t (id INT, a STRING, b STRING)")
        lake.sql("INSERT INTO t VALUES (0, 'a0', 'b0')")
        with DuckDBOracle(url, None, {"DATA_INLINING_ROW_LIMIT": 0}) as duckdb:
            for text in ["BEGIN", *(f"ALTER TABLE t {alter}" for alter in alters), "COMMIT"]:
                duckdb.execute(text)
        lake.set_option("data_inlining_row_limit", 50)
        lake.sql("INSERT INTO t (id, a, b) VALUES (1, 'A', 'B')")
        lake.sql("INSERT INTO t (id, a, b) VALUES (2, NULL, NULL)")
        lake.sql("DELETE FROM t WHERE id = 2")

        assert rows(lake.sql("SELECT id, a, b FROM t ORDER BY id")) == wanted
        with DuckDBOracle(url) as duckdb:
            assert duckdb.sql("SELECT id, a, b FROM t ORDER BY id") == wanted
            duckdb.execute("INSERT INTO t (id, a, b) VALUES (3, 'C', 'D')")
            assert duckdb.sql("SELECT a, b FROM t WHERE id = 3") == [("C", "D")]


def test_few_changed_rows_stay_in_the_catalog(lake, tmp_path):
    lake.sql("CREATE TABLE t (id INT, s STRING, m MAP<STRING, TIMESTAMP>)")
    lake.table("t").append(lake.spark.range(50).selectExpr("CAST(id AS INT) id", "'a' s"))
    before = files(tmp_path)
    lake.sql("UPDATE t SET s = 'b', m = map('k', TIMESTAMP '2024-01-01 00:00:00Z') WHERE id < 2")
    lake.sql("UPDATE t SET s = 'c' WHERE id = 1")
    lake.sql(
        "MERGE INTO t USING (VALUES (1), (2), (77)) u(id) ON t.id = u.id"
        " WHEN MATCHED AND t.id = 2 THEN DELETE WHEN MATCHED THEN UPDATE SET s = 'd'"
        " WHEN NOT MATCHED THEN INSERT (id, s) VALUES (u.id, 'new')"
    )
    lake.table("t").update({"s": "'e'"}, where="id = 0")
    changed = "SELECT rowid, id, s FROM t WHERE s <> 'a'"
    wanted = [(0, 0, "e"), (1, 1, "d"), (50, 77, "new")]
    assert files(tmp_path) == before
    assert sorted(map(tuple, lake.sql(changed).collect())) == wanted
    assert rows(lake.sql("SELECT id, s FROM t VERSION AS OF 4 WHERE s = 'c'")) == [(1, "c")]
    feed = lake.sql("SELECT _change_type, _row_id, s FROM table_changes('t', 4, 4)")
    assert sorted(map(tuple, feed.collect())) == [
        ("update_postimage", 1, "c"),
        ("update_preimage", 1, "b"),
    ]
    lake.close()
    with DuckDBOracle(f"sqlite:///{tmp_path}/catalog.db") as oracle:
        assert sorted(oracle.sql(changed)) == wanted
        assert oracle.sql("SELECT count(*), count(DISTINCT rowid) FROM t") == [(50, 50)]
        oracle.execute("CALL ducklake_flush_inlined_data('lake')")
        assert sorted(oracle.sql(changed)) == wanted
        assert oracle.sql("SELECT id, s FROM t AT (VERSION => 4) WHERE s = 'c'") == [(1, "c")]


@pytest.mark.parametrize(
    ("made", "why"),
    [
        ("(id INT, s STRING, n INT) DUPLICATE KEY (id) ROLLUP (r (s, id))", "a rollup answers"),
        ("(id INT, s STRING) TBLPROPERTIES ('x' = 'y')", "the limit is 0"),
    ],
)
def test_other_tables_write_changed_rows_to_files(lake, tmp_path, made, why):
    lake.sql(f"CREATE TABLE t {made}")
    if "limit" in why:
        lake.set_option("data_inlining_row_limit", 0, table="t")
    lake.table("t").append(lake.spark.sql("SELECT 1 AS id, 'a' AS s"))
    before = len(files(tmp_path))
    lake.sql("UPDATE t SET s = 'b'")
    assert len(files(tmp_path)) > before, why
    assert rows(lake.sql("SELECT id, s FROM t")) == [(1, "b")]


def test_small_loads_of_tables_with_keys_stay_in_the_catalog(lake, tmp_path):
    lake.sql("CREATE TABLE u (id INT, v STRING) UNIQUE KEY (id)")
    lake.sql("CREATE TABLE g (id INT, n INT SUM, v STRING REPLACE) AGGREGATE KEY (id)")
    for n in range(4):
        values = ", ".join(f"({i}, {n + i}, 'v{n}')" for i in range(n, n + 3))
        lake.sql(f"INSERT INTO g VALUES {values}")
        lake.sql(f"INSERT INTO u SELECT id, v FROM VALUES {values} AS t(id, n, v)")
    lake.sql("INSERT INTO u (id, v, __DORIS_DELETE_SIGN__) VALUES (5, 'x', 1), (9, 'y', 0)")
    assert files(tmp_path) == []
    wanted = {
        "u": [(0, "v0"), (1, "v1"), (2, "v2"), (3, "v3"), (4, "v3"), (9, "y")],
        "g": [
            *((0, 0, "v0"), (1, 3, "v1"), (2, 9, "v2"), (3, 15, "v3")),
            *((4, 13, "v3"), (5, 8, "v3")),
        ],
    }
    for name, expected in wanted.items():
        assert sorted(rows(lake.sql(f"SELECT * FROM {name}"))) == expected
    with lake.transaction() as work:
        work.sql("INSERT INTO u VALUES (9, 'z')")
        assert rows(work.sql("SELECT v FROM u WHERE id = 9")) == [("z",)]
    wanted["u"][-1] = (9, "z")
    lake.close()
    with DuckDBOracle(f"sqlite:///{tmp_path}/catalog.db") as oracle:
        for name, expected in wanted.items():
            assert sorted(oracle.sql(f"FROM {name}")) == expected
            assert oracle.sql(f"SELECT count(*) = count(DISTINCT rowid) FROM {name}") == [(True,)]
        oracle.execute("INSERT INTO u VALUES (9, 'duck')")
        oracle.execute("CALL ducklake_flush_inlined_data('lake')")
    with shelduck.connect(f"sqlite:///{tmp_path}/catalog.db", spark=lake.spark) as again:
        again.sql("INSERT INTO u VALUES (0, 'last')")
        found = sorted(rows(again.sql("SELECT * FROM u")))
        assert [row for row in found if row[0] in (0, 9)] == [(0, "last"), (9, "duck")]


def test_versions_of_a_row_that_a_flush_puts_into_one_file_are_no_fault(
    spark, sqlite_url, data_path
):
    with shelduck.connect(sqlite_url, data_path, spark) as lake:
        lake.sql("CREATE TABLE t (id INT, v STRING)")
        lake.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        lake.sql("UPDATE t SET v = 'x' WHERE id = 1")
        lake.sql("UPDATE t SET v = 'y' WHERE id = 1")
        lake.sql("CALL flush_inlined_data('t')")

        assert lake.check().is_sound
