"""RESTORE: what it says, what it refuses, and what others do meanwhile."""

from __future__ import annotations

import pytest

from shelduck import Conflict, InvalidRequest, NotFound
from tests.support.lakes import newest, rows

STATEMENTS = [
    "CREATE TABLE t (id INT, name STRING)",
    "INSERT INTO t SELECT id, 'old' FROM range(20)",
    "CREATE TABLE other (id INT)",
    "DELETE FROM t WHERE id < 5",
    "INSERT INTO t SELECT id + 100, 'new' FROM range(3)",
    "ALTER TABLE t RENAME TO t2",
    "ALTER TABLE t2 RENAME COLUMN name TO label",
]


def ids(lake, version=None):
    return sorted(r[0] for r in rows(lake.table("t2").read(version=version)))


@pytest.mark.slow
def test_sql_tells_what_came_back_and_what_went(lake):
    told = lake.sql("RESTORE TABLE t2 TO VERSION AS OF 2").select(
        "snapshot", "operation", "inserted", "deleted"
    )

    assert rows(told) == [(8, "RESTORE", 5, 3)]
    assert lake.table("t2").columns.names == ["id", "name"]
    assert ids(lake) == list(range(20))
    assert ids(lake, version=7) == [*range(5, 20), 100, 101, 102]


def test_row_ids_come_back_with_their_rows(lake):
    lake.table("t2").restore(version=2)

    frame = lake.table("t2").changes(8).select("_change_type", "_row_id", "id")
    assert sorted(rows(frame)) == [
        *[("delete", 20 + n, 100 + n) for n in range(3)],
        *[("insert", n, n) for n in range(5)],
    ]


def test_a_time_names_the_snapshot_before_it(lake):
    at = {s.id: s.time for s in lake.snapshots()}

    lake.table("t2").restore(timestamp=at[4])

    assert ids(lake) == list(range(5, 20))


def test_the_plan_reads_nothing_and_changes_nothing(lake):
    plan = lake.table("t2").plan_restore(version=2)

    assert (plan.version, plan.files, plan.ended, plan.sources, plan.inlined) == (2, 2, 0, 1, 3)
    assert plan.columns_change
    assert "to snapshot 2: its columns change back" in str(plan)
    assert newest(lake) == 7


def test_nothing_since_is_no_snapshot(lake):
    assert lake.table("other").restore(version=3).snapshot == 7
    assert newest(lake) == 7


def test_a_restore_can_be_part_of_a_transaction(lake):
    with lake.transaction() as tx:
        tx.table("t2").restore(version=2)
        assert sorted(r[0] for r in rows(tx.table("t2").read())) == list(range(20))
        tx.sql("INSERT INTO t2 VALUES (77, 'more')")
    assert tx.result.snapshot == 8
    assert ids(lake) == [*range(20), 77]

    with lake.transaction() as tx:
        tx.sql("INSERT INTO t2 VALUES (78, 'more')")
        with pytest.raises(InvalidRequest, match="has changed"):
            tx.table("t2").restore(version=2)


def test_another_writer_is_a_conflict(lake):
    with lake.transaction() as tx:
        tx.table("t2").restore(version=2)
        lake.sql("INSERT INTO t2 VALUES (77, 'more')")
        with pytest.raises(Conflict):
            tx.commit()
    assert ids(lake) == [*range(5, 20), 77, 100, 101, 102]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, InvalidRequest, "a version or a timestamp"),
        ({"version": 1, "timestamp": "2020-01-01"}, InvalidRequest, "a version or a timestamp"),
        ({"version": 99}, NotFound, "snapshot 99 does not exist"),
        ({"timestamp": "1999-01-01"}, NotFound, "no snapshot as old as"),
        ({"version": 0}, InvalidRequest, "did not exist at snapshot 0"),
    ],
)
def test_what_is_no_older_state_is_refused(lake, arguments, error, message):
    with pytest.raises(error, match=message):
        lake.table("t2").restore(**arguments)


def test_columns_may_be_called_like_those_of_the_change_feed(lake):
    lake.sql("CREATE TABLE f (id INT, _change_type STRING, _commit_version INT, _row_id INT)")
    lake.sql("INSERT INTO f SELECT CAST(id AS INT), 'mine', 7, 8 FROM range(20)")
    before = newest(lake)
    lake.sql("DELETE FROM f WHERE id < 18")
    lake.table("f").restore(version=before)
    found = rows(lake.table("f").read().orderBy("id"))
    assert found == [(n, "mine", 7, 8) for n in range(20)]
