"""Materialized views that are refreshed on demand, beside all that changes their tables."""

from __future__ import annotations

import pytest

import shelduck
from shelduck.errors import AlreadyExists, Conflict, InvalidRequest, NotFound
from shelduck.lake.results import TableName
from shelduck.lake.unit import UnitOfWork
from shelduck.materialized.verb import refresh
from tests.support.lakes import rows
from tests.support.oracle import DuckDBOracle

QUERY = "SELECT k, sum(v) AS s, count(*) AS n, count(v) AS nv FROM t GROUP BY k"


@pytest.fixture
def lake(spark, lake_url, data_path):
    with shelduck.connect(lake_url, data_path, spark) as found:
        found.execute(
            "CREATE TABLE t (k INT, v INT);"
            "INSERT INTO t VALUES (1, 1), (1, 2), (2, NULL);"
            f"CREATE MATERIALIZED VIEW m REFRESH ON DEMAND AS {QUERY}"
        )
        yield found


def held(lake, name="m"):
    return sorted(rows(lake.sql(f"SELECT * FROM {name}")), key=str)


def way(lake, name="m"):
    return lake.execute(f"EXPLAIN REFRESH MATERIALIZED VIEW {name}").rows[0][0]


def changed(lake, *statements):
    """How the view is refreshed after statements; then it has what its query gives."""
    for statement in statements:
        lake.execute(statement)
    found = way(lake)
    lake.refresh("m")
    assert held(lake) == held(lake, "`m$now`")
    return found


def test_each_way(lake):
    assert held(lake) == [(1, 3, 2, 2), (2, None, 1, 0)]
    assert changed(lake) == "nothing"
    assert changed(lake, "INSERT INTO t VALUES (1, 5), (3, NULL)") == "sums"
    assert changed(lake, "UPDATE t SET v = v + 1", "DELETE FROM t WHERE k = 3") == "sums"
    assert changed(lake, "UPDATE t SET v = NULL WHERE k = 1") == "sums"
    assert held(lake) == [(1, None, 3, 0), (2, None, 1, 0)]


def test_groups_keep_their_row_ids(lake):
    before = dict(rows(lake.sql("SELECT k, rowid FROM m")))
    assert changed(lake, "INSERT INTO t VALUES (1, 9), (4, 1)") == "sums"
    after = dict(rows(lake.sql("SELECT k, rowid FROM m")))
    assert before.items() < after.items()


def test_a_refresh_without_changes_makes_no_snapshot(lake):
    before = lake.snapshots()[0].id
    lake.refresh("m")
    assert lake.snapshots()[0].id == before


def test_full(lake):
    lake.execute("REFRESH MATERIALIZED VIEW m FULL")
    assert lake.execute("EXPLAIN REFRESH MATERIALIZED VIEW m FULL").rows == [("all", "FULL", "")]
    assert held(lake) == held(lake, "`m$now`")


def test_nobody_writes_into_it(lake):
    for statement in (
        "INSERT INTO m VALUES (1, 1, 1, 1)",
        "INSERT INTO m SELECT 1, 1, 1, 1",
        "INSERT OVERWRITE m VALUES (1, 1, 1, 1)",
        "UPDATE m SET s = 1",
        "DELETE FROM m",
        "TRUNCATE TABLE m",
        "MERGE INTO m USING t ON m.k = t.k WHEN MATCHED THEN DELETE",
        "RESTORE TABLE m TO VERSION AS OF 3",
    ):
        with pytest.raises(InvalidRequest, match="it is a materialized view; change the tables"):
            lake.execute(statement)
    assert held(lake) == held(lake, "`m$now`")


def test_what_another_engine_wrote_goes(lake, lake_url):
    with DuckDBOracle(lake_url) as duck:
        duck.execute("DELETE FROM m WHERE k = 1")
        duck.execute("INSERT INTO t VALUES (5, 5)")
    assert changed(lake) == "all"


def test_it_follows_a_rename_and_refuses_a_drop(lake):
    assert changed(lake, "ALTER TABLE t RENAME COLUMN v TO w") == "nothing"
    assert changed(lake, "INSERT INTO t VALUES (1, 3)") == "sums"
    assert (
        changed(lake, "ALTER TABLE t ADD COLUMN x INT", "INSERT INTO t VALUES (1, 3, 4)") == "sums"
    )
    with pytest.raises(InvalidRequest, match=r"break views \(view main.`m\$now`"):
        lake.execute("ALTER TABLE t DROP COLUMN w")
    lake.execute("ALTER TABLE t RENAME TO u")
    assert changed(lake, "INSERT INTO u VALUES (7, 7, 7)") == "sums"


def test_its_columns_follow_the_types_of_its_tables(lake):
    ids = {c.name: c.id for c in lake.table("m").columns}
    assert changed(lake, "ALTER TABLE t ALTER COLUMN k TYPE BIGINT") == "all"
    assert {c.name: c.id for c in lake.table("m").columns} == ids
    assert changed(lake, "ALTER TABLE t ALTER COLUMN k TYPE STRING") == "all"
    assert [c.name for c in lake.table("m").columns] == ["k", "s", "n", "nv"]
    assert held(lake)[0] == ("1", 3, 2, 2)


@pytest.mark.slow
def test_a_column_that_comes_back_is_another_one(lake):
    lake.execute("CREATE MATERIALIZED VIEW every AS SELECT * FROM t WHERE k > 0")
    lake.execute("ALTER TABLE t DROP COLUMN v CASCADE; ALTER TABLE t ADD COLUMN v INT DEFAULT 8")
    with pytest.raises(InvalidRequest, match=r"the query of materialized view main\.m is gone"):
        lake.refresh("m")
    lake.execute(f"CREATE OR REPLACE MATERIALIZED VIEW m REFRESH ON DEMAND AS {QUERY}")
    assert held(lake) == [(1, 16, 2, 2), (2, 8, 1, 1)]


@pytest.mark.slow
def test_another_session_computes_all(lake, spark):
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        assert changed(lake, "INSERT INTO t VALUES (1, 1)") == "all"
        assert changed(lake, "INSERT INTO t VALUES (1, 1)") == "sums"
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


@pytest.mark.slow
def test_what_has_other_values_each_day_is_computed_each_time(lake):
    lake.execute(
        "CREATE MATERIALIZED VIEW d AS SELECT k FROM t WHERE current_date > DATE'2020-01-01'"
    )
    assert way(lake, "d") == "all"


@pytest.mark.slow
def test_snapshots_that_are_gone(lake):
    lake.execute("INSERT INTO t VALUES (1, 1)")
    lake.expire_snapshots(older_than="0 seconds")
    assert changed(lake) == "all"


@pytest.mark.slow
def test_a_table_that_was_made_anew(lake):
    made = "CREATE TABLE t (k INT, v INT)", "INSERT INTO t VALUES (9, 9)"
    assert changed(lake, "DROP TABLE t", *made) == "all"


@pytest.mark.slow
def test_compaction_changes_nothing(lake):
    lake.execute("INSERT INTO t VALUES (1, 1)")
    lake.refresh("m")
    lake.execute("CALL flush_inlined_data('t')")
    lake.table("t").compact(min_files=1)
    lake.table("m").compact(min_files=1)
    assert changed(lake) == "nothing"


@pytest.mark.slow
def test_an_undone_change(lake):
    lake.execute("INSERT INTO t VALUES (1, 1)")
    lake.refresh("m")
    before = lake.table("t").history()[1].id
    assert changed(lake, f"RESTORE TABLE t TO VERSION AS OF {before}") == "sums"


def test_two_refreshes_at_once(lake):
    lake.execute("INSERT INTO t VALUES (1, 1)")
    with UnitOfWork(lake._state) as slow:
        refresh(slow, TableName("main", "m"), full=False)
        lake.refresh("m")
        with pytest.raises(Conflict):
            slow.commit()
    assert held(lake) == held(lake, "`m$now`")


def test_a_write_beside_a_refresh_comes_with_the_next_one(lake):
    lake.execute("INSERT INTO t VALUES (1, 1)")
    with UnitOfWork(lake._state) as slow:
        refresh(slow, TableName("main", "m"), full=False)
        lake.execute("INSERT INTO t VALUES (1, 100)")
        slow.commit()
    assert {k: s for k, s, *_ in held(lake)} == {1: 4, 2: None}
    assert changed(lake) == "sums"


def test_create_drop_and_rename(lake):
    again = f"MATERIALIZED VIEW m REFRESH ON DEMAND AS {QUERY}"
    with pytest.raises(AlreadyExists, match=r"table main\.m already exists"):
        lake.execute(f"CREATE {again}")
    lake.execute(f"CREATE {again.replace('VIEW m', 'VIEW IF NOT EXISTS m')}")
    with pytest.raises(InvalidRequest, match="cannot read itself"):
        lake.execute("CREATE OR REPLACE MATERIALIZED VIEW m AS SELECT k + 1 FROM m")
    lake.execute(
        "CREATE OR REPLACE MATERIALIZED VIEW m (a, b) AS SELECT k, avg(v) FROM t GROUP BY k"
    )
    assert held(lake) == [(1, 1.5), (2, None)]
    lake.execute("ALTER TABLE m RENAME TO mm; INSERT INTO t VALUES (2, 4)")
    lake.refresh("mm")
    assert held(lake, "mm") == [(1, 1.5), (2, 4.0)]
    lake.execute("DROP MATERIALIZED VIEW mm")
    assert [t.name for t in lake.tables()] == ["t"]
    assert lake.execute("SHOW VIEWS").rows == []
    lake.execute("DROP MATERIALIZED VIEW IF EXISTS mm")
    with pytest.raises(NotFound):
        lake.execute("DROP MATERIALIZED VIEW mm")
    for verb in ("DROP", "REFRESH"):
        with pytest.raises(InvalidRequest, match=r"main\.t is not a materialized view"):
            lake.execute(f"{verb} MATERIALIZED VIEW t")


@pytest.mark.slow
def test_a_copy_is_an_ordinary_table(lake):
    lake.execute("CREATE TABLE c SHALLOW CLONE m")
    lake.execute("INSERT INTO c VALUES (9, 9, 9, 9)")
    with pytest.raises(InvalidRequest, match="is not a materialized view"):
        lake.refresh("c")


@pytest.mark.slow
@pytest.mark.databases("sqlite")
def test_on_a_branch(lake):
    lake.execute("CREATE BRANCH b WITH TABLES (t, m)")
    branch = lake.branch("b")
    with pytest.raises(InvalidRequest, match="is not a materialized view"):
        branch.refresh("m")
    branch.execute("INSERT INTO t VALUES (6, 6)")
    lake.execute("MERGE BRANCH b INTO main")
    assert changed(lake) in ("sums", "all")
    assert (6, 6, 1, 1) in held(lake)


def test_in_a_transaction_it_is_refused(lake):
    for statement in (
        "REFRESH MATERIALIZED VIEW m",
        "CREATE MATERIALIZED VIEW x AS SELECT k + 1 FROM t",
    ):
        with pytest.raises(InvalidRequest, match="commits by itself"), lake.transaction() as tx:
            tx.sql(statement)


@pytest.mark.slow
def test_a_kind_of_column_that_cannot_be_compared(lake):
    lake.execute("CREATE MATERIALIZED VIEW x AS SELECT map(k, v) AS kv FROM t WHERE k > 0")
    lake.execute("INSERT INTO t VALUES (4, 4)")
    assert way(lake, "x") == "all"
    lake.refresh("x")
    assert len(held(lake, "x")) == 4


@pytest.mark.slow
def test_equal_rows_go_one_by_one(lake):
    lake.execute("CREATE MATERIALIZED VIEW x AS SELECT k + 1 AS kk, 'a' AS a FROM t")
    lake.execute("DELETE FROM t WHERE v = 1; INSERT INTO t VALUES (2, 1), (2, 1)")
    assert way(lake, "x") == "rows"
    lake.refresh("x")
    assert held(lake, "x") == [(2, "a"), (3, "a"), (3, "a"), (3, "a")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "expected"), [("DECIMAL(27, 10)", "sums"), ("DECIMAL(28, 10)", "groups")]
)
def test_long_numbers_keep_their_digits(lake, kind, expected):
    lake.execute(
        f"CREATE TABLE d (k INT, v {kind} NOT NULL);"
        "INSERT INTO d VALUES (1, 12345678901234567.0123456789), (1, 1.0000000001);"
        "CREATE MATERIALIZED VIEW x REFRESH ON DEMAND AS"
        " SELECT k, sum(v) AS s, count(*) AS n FROM d GROUP BY k;"
        "INSERT INTO d VALUES (1, 0.0000000003); DELETE FROM d WHERE v = 1.0000000001"
    )
    assert way(lake, "x") == expected
    lake.refresh("x")
    assert str(held(lake, "x")[0][1]) == "12345678901234567.0123456792"
