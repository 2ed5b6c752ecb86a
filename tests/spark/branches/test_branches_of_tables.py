"""Branches of tables of each kind: Spark and DuckDB read both sides; merges bring what is new."""

from __future__ import annotations

import pytest

import shelduck
from tests.spark.alter.test_copied_tables import STATES
from tests.support.oracle import DuckDBOracle

# A row that each table takes.
MORE = {
    "plain": "(5, 'five')",
    "details": "(5, 'f', named_struct('n', 5))",
    "altered": "(5, 5, 5)",
    "uniquely": "(1, 9), (7, 7)",
    "summed": "(1, 9), (7, 7)",
}


@pytest.fixture
def lake(spark, tmp_path):
    with shelduck.connect(f"sqlite:///{tmp_path}/lake.db", f"{tmp_path}/data", spark) as found:
        yield found


def rows(lake, name):
    return sorted(map(tuple, lake.sql(f"SELECT * FROM {name}").collect()), key=str)


def files(lake, name):
    return sorted(row.file_path for row in lake.table(name).files().collect())


def told(lake, name):
    """What Spark reads of a table, and DuckDB."""
    with DuckDBOracle(lake._state.store.where) as duck:
        return rows(lake, name), sorted(duck.sql(f"FROM {name}"), key=str)


@pytest.mark.parametrize("inlined", [0, 100], ids=["files", "inlined"])
@pytest.mark.parametrize("state", STATES)
def test_a_branch_begins_as_its_source_and_goes_on(lake, state, inlined):
    lake.execute(f"CALL set_option('data_inlining_row_limit', {inlined})")
    for statement in STATES[state]:
        lake.sql(statement)
    before = told(lake, f"main.{state}")
    lake.create_branch("b")
    assert told(lake, f"b.{state}") == before

    if state in MORE:
        lake.sql(f"INSERT INTO b.{state} VALUES {MORE[state]}")
    lake.execute(f"ALTER TABLE b.{state} ADD COLUMN brand_new INT DEFAULT 3")
    after = told(lake, f"b.{state}")
    assert told(lake, f"main.{state}") == before
    lake.merge_branch("b")
    assert told(lake, f"main.{state}") == after == told(lake, f"b.{state}")
    assert not lake.check(rows=True).problems


def test_a_heavy_change_of_a_branch_merges_if_the_source_stood_still(lake):
    lake.execute("CALL set_option('data_inlining_row_limit', 0)")
    lake.sql("CREATE TABLE t (id INT, v STRING) PARTITIONED BY (id)")
    lake.sql("INSERT INTO t SELECT id % 3, string(id) FROM range(30)")
    lake.create_branch("b")
    branch = lake.branch("b")
    branch.sql("ALTER TABLE t ALTER COLUMN v TYPE INT")
    assert branch.sql("SELECT sum(v) FROM t").collect() == [(435,)]
    assert lake.sql("SELECT max(v) FROM t").collect() == [("9",)]

    lake.merge_branch("b")
    assert lake.sql("SELECT sum(v), max(v) FROM t").collect() == [(435, 29)]
    assert lake.sql("SELECT max(v) FROM t VERSION AS OF 2").collect() == [("9",)]
    lake.sql("INSERT INTO t VALUES (7, 7)")
    lake.sql("RESTORE TABLE t TO VERSION AS OF 2")
    assert lake.sql("SELECT max(v) FROM t").collect() == [("9",)]


def test_a_branch_is_written_through_a_session_to_which_the_lake_is_attached(spark, tmp_path):
    lake = shelduck.attach(spark, "lake", f"sqlite:///{tmp_path}/lake.db", f"{tmp_path}/data")
    try:
        spark.sql("CREATE TABLE lake.main.t (id INT)")
        spark.sql("INSERT INTO lake.main.t VALUES (1)")
        spark.sql("USE lake.main")
        spark.sql("CREATE BRANCH audit")
        spark.createDataFrame([(2,)], "id INT").writeTo("lake.audit.t").append()
        assert spark.sql("SHOW BRANCHES").collect() == [("audit", "main", 3, 1, None)]
        assert spark.table("lake.main.t").count() == 1
        [merged] = spark.sql("MERGE BRANCH audit INTO main").collect()
        assert merged.operation == "MERGE BRANCH"
        assert spark.table("lake.main.t").count() == 2
        spark.sql("DROP BRANCH audit")
        assert lake.schemas() == ["main"]
    finally:
        spark.sql("USE spark_catalog.default")
        shelduck.detach(spark, "lake")


@pytest.mark.parametrize("inlined", [0, 100], ids=["files", "inlined"])
def test_the_feed_of_the_source_shows_what_a_merge_brought(lake, inlined):
    lake.execute(f"CALL set_option('data_inlining_row_limit', {inlined})")
    lake.sql("CREATE TABLE t (id INT, v INT)")
    lake.sql("INSERT INTO t SELECT id, id FROM range(4)")
    lake.create_branch("b")
    lake.sql("INSERT INTO b.t VALUES (9, 9)")
    lake.sql("DELETE FROM b.t WHERE id = 0")
    lake.sql("UPDATE b.t SET v = 7 WHERE id = 1")
    at = lake.merge_branch("b").snapshot
    found = lake.sql(f"SELECT _change_type, id, v FROM table_changes('t', {at}, {at})").collect()
    assert sorted(map(tuple, found)) == [
        ("delete", 0, 0),
        ("insert", 9, 9),
        ("update_postimage", 1, 7),
        ("update_preimage", 1, 1),
    ]
    lake.sql("INSERT INTO t VALUES (11, 11)")
    lake.sql("INSERT INTO t VALUES (12, 12)")
    lake.execute("CALL flush_inlined_data('t')")
    lake.table("t").compact(min_files=2)
    with DuckDBOracle(lake._state.store.where) as duck:
        before = duck.sql(f"SELECT count(*) FROM t AT (VERSION => {at - 1})")
    assert before == [(4,)] == lake.sql(f"SELECT count(*) FROM t VERSION AS OF {at - 1}").collect()


def test_a_shallow_clone_and_a_table_that_comes_back_share_files(lake):
    lake.execute("CALL set_option('data_inlining_row_limit', 0)")
    lake.sql("CREATE TABLE t (id INT, v STRING)")
    lake.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    before = files(lake, "t")
    lake.sql("CREATE TABLE c SHALLOW CLONE t")
    assert files(lake, "c") == before
    lake.sql("DELETE FROM c WHERE id = 1")
    lake.sql("DROP TABLE t")
    lake.sql("UNDROP TABLE t")
    assert files(lake, "t") == before
    lake.expire_snapshots(retain_last=1)
    lake.cleanup_old_files(older_than="0 seconds")
    assert rows(lake, "t") == [(1, "a"), (2, "b")]
    assert rows(lake, "c") == [(2, "b")]
    assert not lake.check(rows=True).problems


def test_both_sides_take_numbers_of_one_identity(lake):
    lake.sql("CREATE TABLE t (id BIGINT GENERATED ALWAYS AS IDENTITY, v STRING)")
    lake.sql("INSERT INTO t (v) VALUES ('a')")
    lake.create_branch("b")
    lake.sql("CREATE TABLE b.more (id BIGINT GENERATED ALWAYS AS IDENTITY, v STRING)")
    for name, value in (("t", "b"), ("b.t", "c"), ("b.more", "x"), ("t", "d"), ("b.t", "e")):
        lake.sql(f"INSERT INTO {name} (v) VALUES ('{value}')")
    lake.merge_branch("b")
    assert rows(lake, "t") == [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "e")]
    lake.sql("INSERT INTO more (v) VALUES ('y')")
    lake.sql("INSERT INTO b.more (v) VALUES ('z')")
    lake.merge_branch("b")
    assert rows(lake, "more") == [(1, "x"), (2, "y"), (3, "z")]


def test_a_branch_of_a_lake_of_the_newest_version(spark, tmp_path):
    where = f"sqlite:///{tmp_path}/lake.db", f"{tmp_path}/data"
    with shelduck.connect(*where, spark, ducklake_version="1.1", encrypted=True) as lake:
        lake.sql("CREATE TABLE t (id INT) PARTITIONED BY (id)")
        lake.sql("INSERT INTO t VALUES (1), (2)")
        lake.create_branch("b")
        lake.sql("INSERT INTO b.t VALUES (3)")
        lake.sql("DELETE FROM b.t WHERE id = 1")
        lake.merge_branch("b")
        assert rows(lake, "t") == [(2,), (3,)]
        assert not lake.check(rows=True).problems


def test_rows_of_one_file_merge_by_their_ids(lake):
    lake.execute("CALL set_option('data_inlining_row_limit', 0)")
    lake.sql("CREATE TABLE t (id INT, v INT)")
    lake.sql("INSERT INTO t SELECT id, id FROM range(8)")
    lake.create_branch("b")
    lake.sql("DELETE FROM t WHERE id IN (0, 1)")
    lake.sql("UPDATE t SET v = 20 WHERE id = 2")
    lake.execute("ALTER TABLE b.t RENAME COLUMN v TO w")
    lake.sql("DELETE FROM b.t WHERE id IN (1, 3)")
    lake.sql("UPDATE b.t SET w = 40 WHERE id = 4")
    lake.sql("INSERT INTO b.t VALUES (9, 9)")
    lake.merge_branch("b")
    merged = [(2, 20), (4, 40), (5, 5), (6, 6), (7, 7), (9, 9)]
    assert rows(lake, "t") == merged
    lake.table("t").compact(min_files=2)
    lake.sql("DELETE FROM b.t WHERE id = 5")
    lake.sql("UPDATE t SET w = 60 WHERE id = 6")
    lake.merge_branch("b")
    assert rows(lake, "t") == [(2, 20), (4, 40), (6, 60), (7, 7), (9, 9)]
    assert not lake.check(rows=True).problems


def test_a_table_that_was_made_anew_on_a_branch_replaces_that_of_the_source(lake):
    lake.sql("CREATE TABLE t AS SELECT 1 AS k")
    lake.create_branch("b")
    for number in (2, 3):
        lake.sql(f"CREATE OR REPLACE TABLE b.t AS SELECT 'new' AS s, {number} AS n")
        lake.merge_branch("b")
        assert told(lake, "main.t") == told(lake, "b.t") == 2 * ([("new", number)],)
    lake.sql("INSERT INTO t VALUES ('ours', 9)")
    lake.sql("CREATE OR REPLACE TABLE b.t AS SELECT 4 AS n")
    assert [(c.kind, c.ours, c.theirs) for c in lake.merge_conflicts("b")] == [
        ("table", "changed", "dropped")
    ]
    lake.sql("MERGE BRANCH b RESOLVE t USING THEIRS")
    assert rows(lake, "t") == [(4,)]
    lake.sql("CREATE OR REPLACE TABLE t AS SELECT 5 AS n")
    lake.sql("INSERT INTO b.t VALUES (6)")
    [found] = lake.merge_conflicts("b", [shelduck.Resolution("theirs")])
    assert (found.ours, found.theirs) == ("another table", "a new table")
    lake.sql("MERGE BRANCH b RESOLVE t USING OURS")
    assert rows(lake, "t") == [(5,)]
    assert not lake.check(rows=True).problems


def test_a_table_is_renamed_by_a_merge(lake):
    lake.sql("CREATE TABLE t (k INT)")
    lake.sql("CREATE TABLE taken (k INT)")
    lake.sql("INSERT INTO t VALUES (1)")
    lake.create_branch("b")
    lake.sql("ALTER TABLE b.t RENAME TO taken_not")
    lake.sql("ALTER TABLE b.taken_not ADD COLUMN v INT DEFAULT 3")
    lake.sql("INSERT INTO b.taken_not VALUES (2, 2)")
    lake.sql("INSERT INTO t VALUES (3)")
    lake.sql("DELETE FROM b.taken_not WHERE k = 1")
    lake.merge_branch("b")
    assert told(lake, "main.taken_not") == 2 * ([(2, 2), (3, 3)],)
    lake.sql("ALTER TABLE taken_not RENAME TO ours")
    lake.sql("ALTER TABLE b.taken_not RENAME TO theirs")
    [found] = lake.merge_conflicts("b")
    assert (found.item, found.base, found.ours, found.theirs) == (
        *("name", "taken_not", "ours", "theirs"),
    )
    lake.sql("MERGE BRANCH b RESOLVE ours USING THEIRS")
    assert [name.name for name in lake.tables("main")] == ["taken", "theirs"]
    lake.sql("CREATE TABLE free (k INT)")
    lake.sql("ALTER TABLE b.theirs RENAME TO free")
    with pytest.raises(shelduck.AlreadyExists, match=r"main\.free"):
        lake.merge_branch("b")
    assert not lake.check(rows=True).problems
