"""What the cost-based optimizer learns of tables, beside Spark's own ANALYZE of Parquet files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import shelduck
from shelduck.read.pruning import Pruner
from tests.support.oracle import DuckDBOracle

CBO = "spark.sql.cbo.enabled"
COLUMNS = (
    "id, CASE WHEN id % 7 > 0 THEN id % 10 END AS k, concat('é', id % 300) AS s, id % 3 = 0 AS b,"
    " date_add(DATE'2020-01-01', CAST(id % 90 AS INT)) AS d, CAST(id AS DECIMAL(12, 2)) AS m,"
    " timestamp_seconds(id) AS t, id / 4 AS x, CAST(concat('b', id) AS BINARY) AS y,"
    " CAST(id % 100 AS TINYINT) AS small"
)
TABLE = f"SELECT {COLUMNS} FROM range(2000)"


@pytest.fixture
def cbo(spark):
    spark.conf.set(CBO, "true")
    yield
    spark.conf.unset(CBO)


@pytest.fixture
def lake(spark, sqlite_url, data_path):
    with shelduck.connect(sqlite_url, data_path, spark) as lake:
        yield lake


@pytest.fixture
def parquet(spark, tmp_path):
    """A table of Spark's own catalog."""
    name = "spark_catalog.default.beside_a_lake"

    def make(query):
        spark.sql(f"CREATE TABLE {name} USING parquet LOCATION '{tmp_path}/p' AS {query}")
        return name

    yield make
    spark.sql(f"DROP TABLE IF EXISTS {name}")


def known(frame):
    """The number of rows, and by column what is known of it, as Spark prints it."""
    plan = frame._jdf.queryExecution().optimizedPlan()
    stats = plan.stats()
    columns = {}
    for n in range(plan.output().size()):
        column = plan.output().apply(n)
        found = stats.attributeStats().get(column)
        if found.isDefined():
            columns[column.name()] = str(found.get().toString())
    rows = stats.rowCount()
    return int(str(rows.get())) if rows.isDefined() else None, columns


def distinct(frame, column):
    return int(re.search(r"ColumnStat\(Some\((\d+)\)", known(frame)[1][column])[1])


def test_columns_have_the_statistics_that_spark_computes_of_parquet_files(
    lake, cbo, spark, parquet
):
    name = parquet(TABLE)
    lake.sql(f"CREATE TABLE t AS {TABLE}")
    lake.sql("ANALYZE TABLE t COMPUTE STATISTICS FOR ALL COLUMNS")
    spark.sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS FOR ALL COLUMNS")

    ours, theirs = known(lake.table("t").read()), known(spark.table(name))
    assert ours[0] == theirs[0]
    assert ours[1].keys() == theirs[1].keys()
    for column, stat in ours[1].items():
        assert f"{column}: {stat}" == f"{column}: {theirs[1][column]}"
    for where in ("id < 100", "k = 3", "d BETWEEN '2020-01-02' AND '2020-01-11'", "s IS NULL"):
        filtered = [f.where(where) for f in (lake.table("t").read(), spark.table(name))]
        assert known(filtered[0]) == known(filtered[1])


def test_rows_are_known_of_a_table_that_nobody_analyzed_without_a_statement(lake, cbo):
    lake.sql(f"CREATE TABLE t AS {TABLE}")
    frame = lake.table("t").read()
    frame.collect()

    before = lake._state.store.statements
    assert known(frame.where("abs(id) >= 0")) == (2000, {})
    assert lake._state.store.statements == before
    lake.sql("DELETE FROM t WHERE id < 500")
    lake.sql("INSERT INTO t (id) VALUES (1)")
    assert known(lake.table("t").read())[0] == 1501


def test_nobody_is_asked_without_the_cost_based_optimizer(lake, monkeypatch):
    lake.sql(f"CREATE TABLE t AS {TABLE}")
    lake.sql("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS id")
    monkeypatch.setattr(Pruner, "statistics", lambda *_: pytest.fail("it was asked"))

    assert known(lake.table("t").read().where("id > 7"))[0] is None


def test_values_are_kept_while_rows_change(lake, cbo):
    lake.sql("CREATE TABLE t AS SELECT id, id % 10 AS k, 'a' AS s FROM range(1000)")
    lake.sql("ANALYZE TABLE t COMPUTE STATISTICS FOR ALL COLUMNS")
    before = distinct(lake.table("t").read(), "id")
    lake.sql("INSERT INTO t SELECT id + 1000, id % 10, 'a' FROM range(3000)")
    frame = lake.table("t").read()
    assert (distinct(frame, "id"), distinct(frame, "k")) == (4 * before, 10)

    # Rows in the catalog are another part of the table.
    lake.sql("INSERT INTO t VALUES (-5, 3, NULL)")
    frame = lake.table("t").read()
    assert (known(frame)[0], distinct(frame, "id"), distinct(frame, "k")) == (4001, 4 * before, 10)
    assert "Some(-5),Some(3999),Some(0)" in known(frame)[1]["id"]
    assert "Some(1),Some(1),Some(1)" in known(frame)[1]["s"]

    lake.sql("DELETE FROM t WHERE id >= 3")
    frame = lake.table("t").read()
    assert (known(frame)[0], distinct(frame, "k")) == (4, 3)
    lake.sql("UPDATE t SET k = NULL")
    assert "None,None,Some(4)" in known(lake.table("t").read())[1]["k"]


def test_a_rename_keeps_what_is_known_and_a_drop_and_another_type_do_not(lake, cbo):
    lake.sql("CREATE TABLE t AS SELECT id, id % 10 AS k, CAST(id AS INT) AS n FROM range(100)")
    lake.sql("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS k, N")
    old = lake.snapshots()[-1].id
    lake.sql("ALTER TABLE t RENAME COLUMN k TO key, ALTER COLUMN n TYPE BIGINT")
    assert known(lake.table("t").read())[1].keys() == {"key"}
    lake.sql("ALTER TABLE t DROP COLUMN key, ADD COLUMN key BIGINT")
    assert "Some(0),None,None,Some(100)" in known(lake.table("t").read())[1]["key"]

    assert known(lake.table("t").read(version=old))[1].keys() == {"k", "n"}
    assert lake.sql("SHOW TBLPROPERTIES t").collect() == []


def test_columns_are_analyzed_one_by_one_and_once(lake, cbo):
    lake.sql("CREATE TABLE t AS SELECT id, id % 10 AS k, array(id) AS a FROM range(100)")
    lake.sql("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS k")
    lake.sql("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS id")
    assert known(lake.table("t").read())[1].keys() == {"id", "k"}

    at = lake.snapshots()[-1].id
    assert [tuple(row) for row in lake.sql("DESCRIBE t k").collect()[-5:]] == [
        ("distinct_count", "10"),
        ("num_nulls", "0"),
        ("avg_col_len", None),
        ("max_col_len", None),
        ("analyzed_at_snapshot", str(at - 2)),
    ]
    count = len(lake.snapshots())
    lake.sql("ANALYZE TABLE t COMPUTE STATISTICS FOR ALL COLUMNS")
    lake.sql("ANALYZE TABLE t COMPUTE STATISTICS")
    lake.sql("ANALYZE TABLE t COMPUTE STATISTICS NOSCAN")
    assert len(lake.snapshots()) == count
    with pytest.raises(shelduck.Unsupported, match="column 'a' of main"):
        lake.sql("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS a")
    with pytest.raises(shelduck.NotFound, match="'nothing'"):
        lake.sql("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS nothing")


def test_duckdb_changes_an_analyzed_table_which_stays_so(lake, cbo, sqlite_url):
    lake.sql("CREATE TABLE t AS SELECT id, id % 10 AS k FROM range(100)")
    lake.sql("ANALYZE TABLE t COMPUTE STATISTICS FOR ALL COLUMNS")
    with DuckDBOracle(sqlite_url) as oracle:
        assert oracle.sql("SELECT count(*), sum(k) FROM lake.t") == [(100, 450)]
        oracle.execute("ALTER TABLE lake.t RENAME COLUMN k TO key")
        oracle.execute("INSERT INTO lake.t SELECT range, range % 10 FROM range(100, 300)")
        oracle.execute("COMMENT ON TABLE lake.t IS 'still'")

    rows, columns = known(lake.table("t").read())
    assert (rows, columns.keys()) == (300, {"id", "key"})
    assert distinct(lake.table("t").read(), "key") == 10
    assert lake.check().problems == ()


def test_an_open_transaction_analyzes_and_takes_back(lake, cbo):
    lake.sql("CREATE TABLE t AS SELECT id FROM range(100)")
    lake.sql("BEGIN; ANALYZE TABLE t COMPUTE STATISTICS FOR ALL COLUMNS")
    assert known(lake.sql("SELECT * FROM t"))[1].keys() == {"id"}
    lake.sql("ROLLBACK")
    assert known(lake.table("t").read())[1] == {}


def test_parts_of_two_tables_do_not_share_their_values(lake, cbo):
    lake.sql("CREATE TABLE t AS SELECT id FROM range(100)")
    lake.sql("CREATE TABLE u AS SELECT id FROM range(100, 200)")
    for table in "tu":
        lake.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS")

    def kind(query):
        plan = lake.sql(query)._jdf.queryExecution().optimizedPlan()
        return plan.getClass().getSimpleName()

    assert kind("SELECT * FROM t UNION ALL SELECT * FROM u") == "Union"
    lake.sql("INSERT INTO t VALUES (7)")
    assert kind("SELECT * FROM t") == "KnownParts"


def test_a_size_is_shared_out_among_the_columns_of_the_table(lake, spark, data_path):
    lake.sql("CREATE TABLE t AS SELECT id FROM range(100000)")
    [place] = {f.parent for f in Path(data_path).rglob("*.parquet")}

    def size(frame):
        return int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))

    assert abs(size(lake.table("t").read()) - size(spark.read.parquet(str(place)))) < 10


def test_a_join_broadcasts_what_a_filter_leaves_of_a_large_table(lake, spark, monkeypatch):
    lake.sql("CREATE TABLE t (id BIGINT, k INT, s STRING) PARTITIONED BY (k)")
    lake.sql(
        "INSERT INTO t SELECT id, id % 10, CAST(hash(id) AS STRING) FROM range(20000)"
        " DISTRIBUTE BY id % 10"
    )
    lake.sql("CREATE TABLE u AS SELECT id AS u, sha1(string(id)) AS x FROM range(20000)")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "50KB")
    listed, real = [], Pruner.parts
    monkeypatch.setattr(
        Pruner, "parts", lambda self, group, filters: listed.append(1) or real(self, group, filters)
    )

    def joined(condition):
        frame = lake.sql(f"SELECT count(x) FROM t JOIN u ON id = u WHERE {condition}")
        plan = str(frame._jdf.queryExecution().sparkPlan().toString())
        listed.clear()
        [(count,)] = lake.sql(
            f"SELECT count(x) FROM t JOIN u ON id = u WHERE {condition}"
        ).collect()
        return "BroadcastHashJoin" in plan, count, len(listed)

    try:
        assert joined("k >= 0") == (False, 20000, 2)
        assert joined("k = 3") == (True, 2000, 2)
        assert joined("k + 1 = 4 AND length(s) > 0") == (True, 2000, 2)
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")


@pytest.mark.parametrize("asked", [0, 100])
def test_a_table_of_very_many_files_has_statistics(lake, cbo, monkeypatch, asked):
    monkeypatch.setattr("shelduck.read.file_lists.ASKED_UP_TO", asked)
    lake.set_option("data_inlining_row_limit", "0")
    lake.sql("CREATE TABLE t AS SELECT id, nullif(id % 4, 3) AS k FROM range(10)")
    lake.sql("ANALYZE TABLE t COMPUTE STATISTICS FOR ALL COLUMNS")
    for n in range(1, 5):
        lake.sql(f"INSERT INTO t SELECT id + {n} * 10, nullif(id % 4, 3) FROM range(10)")
    lake._state.lists.listed_from = 3
    table = lake.table("t").read()

    assert (known(table)[0], distinct(table, "id"), distinct(table, "k")) == (50, 50, 3)
    assert "Some(0),Some(2),Some(10)" in known(table)[1]["k"]
