"""BEGIN, COMMIT and ROLLBACK through Lake.sql."""

from __future__ import annotations

import pytest

from shelduck import Conflict, InvalidRequest, NotFound
from tests.support.lakes import everything, newest, rows
from tests.support.oracle import DuckDBOracle

STATEMENTS = [
    "CREATE TABLE t (id INT, name STRING)",
    "INSERT INTO t VALUES (1, 'one')",
    "CREATE TABLE u (id INT)",
]


def told(frame):
    [(snapshot, operation)] = rows(frame.select("snapshot", "operation"))
    return snapshot, operation


def test_statements_between_begin_and_commit_are_one_snapshot(copied):
    catalog, lake = copied
    assert told(lake.sql("BEGIN")) == (None, "BEGIN TRANSACTION")
    lake.sql("INSERT INTO t SELECT id + 10, 'ten' FROM range(2)")
    lake.sql("ALTER TABLE u ADD COLUMN c INT DEFAULT 5")
    lake.sql("INSERT INTO u (id) VALUES (7)")
    lake.sql("DELETE FROM t WHERE id = 10")
    assert rows(lake.sql("SELECT id FROM t ORDER BY id")) == [(1,), (11,)]
    assert rows(lake.sql("SELECT * FROM u")) == [(7, 5)]
    assert newest(lake) == 3

    assert told(lake.sql("COMMIT")) == (4, "COMMIT TRANSACTION")

    assert newest(lake) == 4
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.rows("t") == [(1, "one"), (11, "ten")]
        assert duckdb.rows("u") == [(7, 5)]
        assert duckdb.rows("t", version=3) == [(1, "one")]


def test_one_text_may_hold_a_whole_transaction(lake):
    lake.sql("START TRANSACTION; INSERT INTO u VALUES (1); INSERT INTO u VALUES (2); COMMIT")

    assert newest(lake) == 4
    assert rows(lake.sql("SELECT id FROM u ORDER BY id")) == [(1,), (2,)]


def test_a_rollback_leaves_nothing_behind(copied, base):
    catalog, lake = copied
    before = everything(catalog, base.folder / "data")

    lake.sql("BEGIN; INSERT INTO t SELECT 2, 'x'; CREATE SCHEMA s; USE s; CREATE TABLE v (a INT)")
    lake.sql("INSERT INTO v SELECT id FROM range(100)")
    assert rows(lake.sql("SELECT count(*) FROM v")) == [(100,)]
    assert told(lake.sql("ROLLBACK")) == (None, "ROLLBACK TRANSACTION")

    assert everything(catalog, base.folder / "data") == before
    assert rows(lake.sql("SELECT * FROM t")) == [(1, "one")]
    with pytest.raises(NotFound):
        lake.sql("SELECT * FROM v")


def test_closing_the_lake_rolls_back(copied, base):
    catalog, lake = copied
    before = everything(catalog, base.folder / "data")

    lake.sql("BEGIN; INSERT INTO t SELECT id, 'x' FROM range(50)")
    lake.close()

    assert everything(catalog, base.folder / "data") == before
    with pytest.raises(InvalidRequest, match="cannot COMMIT: no transaction is open"):
        lake.sql("COMMIT")


def test_calls_beside_sql_stay_outside(lake, spark):
    lake.sql("BEGIN; INSERT INTO u VALUES (1)")

    assert lake.table("u").append(spark.sql("SELECT 2 AS id")).snapshot == 4
    assert rows(lake.table("u").read()) == [(2,)]
    assert rows(lake.sql("SELECT * FROM u")) == [(1,)]
    lake.sql("COMMIT")
    assert sorted(rows(lake.table("u").read())) == [(1,), (2,)]


def test_a_transaction_reads_as_of_its_begin(lake, spark):
    lake.sql("BEGIN")
    lake.table("u").append(spark.sql("SELECT 2 AS id"))

    assert rows(lake.sql("SELECT * FROM u")) == []
    assert told(lake.sql("COMMIT")) == (3, "COMMIT TRANSACTION")
    assert newest(lake) == 4


def test_a_conflict_ends_the_transaction(lake):
    lake.sql("BEGIN; DELETE FROM t WHERE id = 1; USE main")
    lake.table("t").truncate()

    with pytest.raises(Conflict):
        lake.sql("COMMIT")
    with pytest.raises(InvalidRequest, match="cannot COMMIT: no transaction is open"):
        lake.sql("COMMIT")
    assert newest(lake) == 4


def test_a_failed_statement_leaves_the_transaction_open(lake):
    lake.sql("BEGIN; INSERT INTO u VALUES (1)")
    with pytest.raises(NotFound):
        lake.sql("INSERT INTO nowhere VALUES (1)")
    lake.sql("INSERT INTO u VALUES (2); COMMIT")

    assert sorted(rows(lake.sql("SELECT * FROM u"))) == [(1,), (2,)]


@pytest.mark.slow
def test_a_table_that_could_not_be_replaced_is_still_there(lake):
    before = newest(lake)
    lake.sql("BEGIN; INSERT INTO t VALUES (2, 'two')")
    with pytest.raises(Exception, match="not today"):
        lake.sql(
            "CREATE OR REPLACE TABLE t AS SELECT id, CAST(raise_error('not today') AS INT) AS x"
            " FROM t"
        )
    assert rows(lake.sql("SELECT id FROM t ORDER BY id")) == [(1,), (2,)]
    lake.sql("COMMIT")

    assert newest(lake) == before + 1
    assert rows(lake.sql("SELECT id FROM t ORDER BY id")) == [(1,), (2,)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("COMMIT", "cannot COMMIT: no transaction is open"),
        ("ROLLBACK", "cannot ROLLBACK: no transaction is open"),
        ("BEGIN; BEGIN", "already open"),
        ("CALL set_commit_message('a', 'b')", "needs an open transaction"),
    ],
)
def test_what_has_no_place_is_refused(lake, text, message):
    with pytest.raises(InvalidRequest, match=message):
        lake.sql(text)


@pytest.mark.parametrize("word", ["BEGIN", "COMMIT", "ROLLBACK"])
def test_a_transaction_of_python_is_not_ended_by_statements(lake, word):
    with lake.transaction() as tx:
        with pytest.raises(InvalidRequest, match=f"cannot {word} inside lake.transaction"):
            tx.sql(word)
        tx.sql("INSERT INTO u VALUES (1)")

    assert tx.result.snapshot == 4


def test_the_commit_says_what_it_was_told(lake):
    lake.sql("BEGIN; INSERT INTO u VALUES (1)")
    lake.sql("CALL set_commit_message('ann', 'daily load', extra_info => 'run 7'); COMMIT")

    last = lake.snapshots()[-1]
    assert (last.id, last.author, last.commit_message, last.commit_extra_info) == (
        4,
        "ann",
        "daily load",
        "run 7",
    )
    with lake.transaction(message="first") as tx:
        tx.sql("CALL set_commit_message(NULL, 'second'); INSERT INTO u VALUES (2)")
    assert lake.snapshots()[-1].commit_message == "second"
