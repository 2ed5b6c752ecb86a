"""The change feed: Table.changes and table_changes(...)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import shelduck
from shelduck import InvalidRequest, NotFound
from tests.support.lakes import newest, rows
from tests.support.oracle import DuckDBOracle

STATEMENTS = [
    "CREATE TABLE t (id INT, name STRING, gone INT)",
    "INSERT INTO t SELECT id, concat('n', id), 1 FROM range(6)",
    "DELETE FROM t WHERE id = 0",
    "ALTER TABLE t DROP COLUMN gone, RENAME COLUMN name TO label, ADD COLUMN c BIGINT DEFAULT 7",
    "DELETE FROM t WHERE id = 1",
    "INSERT INTO t VALUES (10, 'ten', 10)",
    "DELETE FROM t WHERE id >= 4",
    "ALTER TABLE t ALTER COLUMN id TYPE BIGINT",
    "TRUNCATE TABLE t",
]

INSERTS = [(2, n, "insert", n, f"n{n}", 7) for n in range(6)]
LATER = [
    (3, 0, "delete", 0, "n0", 7),
    (5, 1, "delete", 1, "n1", 7),
    (6, 6, "insert", 10, "ten", 10),
    (7, 4, "delete", 4, "n4", 7),
    (7, 5, "delete", 5, "n5", 7),
    (7, 6, "delete", 10, "ten", 10),
    (9, 2, "delete", 2, "n2", 7),
    (9, 3, "delete", 3, "n3", 7),
]


def told(frame):
    """Version, row id and kind of each change, then the table's columns."""
    mine = frame.columns[:-4]
    return sorted(rows(frame.select("_commit_version", "_row_id", "_change_type", *mine)))


def tell(catalog, statement):
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        duckdb.execute(statement)


def expire(catalog, *versions):
    tell(catalog, f"CALL ducklake_expire_snapshots('lake', versions => {list(versions)})")


@pytest.mark.slow
def test_every_change_comes_in_the_columns_at_the_end(lake):
    frame = lake.table("t").changes(0)

    assert told(frame) == INSERTS + LATER
    assert frame.schema.simpleString() == (
        "struct<id:bigint,label:string,c:bigint,_change_type:string,_commit_version:bigint,"
        "_commit_timestamp:timestamp,_row_id:bigint>"
    )
    assert told(lake.table("t").changes(3, 5)) == [
        (3, 0, "delete", 0, "n0", 7),
        (5, 1, "delete", 1, "n1", 7),
    ]
    assert frame.schema["id"].dataType != lake.table("t").changes(3, 5).schema["id"].dataType


def test_the_columns_are_those_of_the_last_snapshot(lake):
    table = lake.table("t")

    assert told(table.changes(2, 3)) == sorted(
        [(2, n, "insert", n, f"n{n}", 1) for n in range(6)] + [(3, 0, "delete", 0, "n0", 1)]
    )


@pytest.mark.slow
def test_times_are_those_of_the_snapshots(lake):
    made = {s.id: s.time for s in lake.snapshots()}
    table = lake.table("t")

    stamps = table.changes(3, 6).selectExpr(
        "_commit_version", "unix_micros(_commit_timestamp) AS at"
    )

    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    assert sorted(rows(stamps)) == [
        (n, (made[n] - epoch) // timedelta(microseconds=1)) for n in (3, 5, 6)
    ]
    assert told(table.changes(made[3], made[5])) == told(table.changes(3, 5))
    assert told(table.changes(made[5] - timedelta(microseconds=1), str(made[6]))) == told(
        table.changes(5, 6)
    )


def test_sql_reads_the_feed_like_a_table(lake):
    found = lake.sql(
        "SELECT _change_type, count(*) FROM table_changes('t', 2, 7) AS c WHERE id > 0 GROUP BY 1"
    )

    assert sorted(rows(found)) == [("delete", 4), ("insert", 6)]


def test_a_filter_reads_only_what_can_match(lake):
    found = lake.table("t").changes(2, 7).where("_change_type = 'insert' AND id = 10")

    assert told(found) == [(6, 6, "insert", 10, "ten", 10)]


@pytest.mark.slow
def test_updated_rows_have_two_images(copied):
    catalog, lake = copied
    lake.create_table("u", {"id": "int", "v": "string"})
    lake.sql("INSERT INTO u SELECT id, 'a' FROM range(4)")
    tell(catalog, "UPDATE u SET v = 'b' WHERE id < 2")
    at = newest(lake)

    assert told(lake.table("u").changes(at)) == [
        (at, 0, "update_postimage", 0, "b"),
        (at, 0, "update_preimage", 0, "a"),
        (at, 1, "update_postimage", 1, "b"),
        (at, 1, "update_preimage", 1, "a"),
    ]


@pytest.mark.slow
def test_compaction_is_no_change(lake):
    lake.create_table("u", {"id": "int"})
    first = newest(lake)
    for start in (0, 10, 20):
        lake.sql(f"INSERT INTO u SELECT id FROM range({start}, {start + 10})")
    lake.sql("DELETE FROM u WHERE id % 10 < 8")
    table = lake.table("u")
    before = told(table.changes(first))
    table.rewrite_deletes()
    table.compact()
    lake.sql("DELETE FROM u WHERE id = 8")

    at = newest(lake)
    assert len(before) == 30 + 24
    assert told(table.changes(first, at - 1)) == before
    assert told(table.changes(first)) == sorted([*before, (at, 8, "delete", 8)])


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        ((99,), "snapshot 99 does not exist"),
        ((2, 99), "snapshot 99 does not exist"),
        ((4, 3), "cannot begin at snapshot 4 and end at 3"),
        (("2999-01-01",), "no snapshot at or after"),
        ((0, "1999-01-01"), "no snapshot as old as"),
        ((True,), "True is neither a snapshot id nor a time"),
        ((1.5,), "1.5 is not a timestamp"),
    ],
)
def test_a_range_that_is_none_is_refused(lake, ends, message):
    with pytest.raises(shelduck.ShelduckError, match=message):
        lake.table("t").changes(*ends)


def test_a_table_that_has_the_feeds_names_is_refused(lake):
    lake.create_table("odd", {"_Row_ID": "int"})

    with pytest.raises(InvalidRequest, match="_Row_ID"):
        lake.table("odd").changes(0)


def test_what_expired_is_named(copied):
    catalog, lake = copied
    expire(catalog, 0, 1, 2, 3)
    table = lake.table("t")

    with pytest.raises(NotFound, match="existing snapshots: 4 to 9"):
        table.changes(2)
    assert [r[0] for r in told(table.changes(4))] == [5, 6, 7, 7, 7, 9, 9]
    expire(catalog, 4)
    with pytest.raises(NotFound, match=r"snapshot 5 deleted rows.* can begin with is 6"):
        table.changes(5)
    expire(catalog, 7)
    with pytest.raises(NotFound, match=r"needs snapshot 7, which has expired.* begin with is 8"):
        table.changes(6)


@pytest.mark.slow
def test_an_open_transaction_is_not_in_the_feed(lake):
    with lake.transaction() as tx:
        tx.sql("INSERT INTO t VALUES (77, 'x', 1)")
        assert told(tx.table("t").changes(6, 7)) == told(lake.table("t").changes(6, 7))
        assert told(tx.table("t").changes(8)) == LATER[-2:]
        tx.rollback()


@pytest.mark.slow
def test_the_feed_needs_no_way_into_the_jvm(lake, path_of_reading):
    assert told(lake.table("t").changes(0)) == INSERTS + LATER
    assert told(lake.table("t").changes(7).where("id > 3")) == LATER[3:6]


@pytest.mark.slow
def test_delete_files_are_told_apart_whatever_their_tables_are_called(lake):
    lake.sql("CREATE TABLE `50% + a b/ü` (id INT)")
    table = lake.table("`50% + a b/ü`")
    for start in (0, 100):
        lake.sql(f"INSERT INTO `50% + a b/ü` SELECT id FROM range({start}, {start + 50})")
    first = newest(lake) + 1
    # More than the catalog keeps, from several files at once, so that files share their names.
    table.delete("id % 100 < 20")
    table.delete("id % 100 < 40")

    found = sorted(rows(table.changes(first).select("_commit_version", "id")))

    assert found == sorted(
        (first + step, base + n)
        for step, span in enumerate((range(20), range(20, 40)))
        for base in (0, 100)
        for n in span
    )
