"""The newest snapshots are read alone: a page costs the same in a long history."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from shelduck.catalog.read import metadata_rows, read
from tests.support.lake import Lake

_NUMBERS = (
    "(WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 12000)"
    " SELECT i FROM r)"
)
# Every other snapshot inserts into table 1.
_HISTORY = f"""
INSERT INTO ducklake_snapshot SELECT 1 + i, s.snapshot_time, s.schema_version,
  s.next_catalog_id, s.next_file_id FROM ducklake_snapshot s CROSS JOIN {_NUMBERS}
  WHERE s.snapshot_id = 1;
INSERT INTO ducklake_snapshot_changes
  SELECT 1 + i, 'inserted_into_table:' || (1 + i % 2), NULL, NULL, NULL FROM {_NUMBERS}
"""


@pytest.fixture
def lake(sqlite_url, data_path):
    made = Lake(sqlite_url, data_path)
    made.create(a="int")
    with made.store.write() as connection:
        for statement in _HISTORY.split(";"):
            connection.execute(text(statement))
    yield made
    made.store.close()


def test_pages_of_the_log_follow_each_other(lake):
    with lake.store.read() as connection:
        newest = read.snapshots(connection, limit=3)
        older = read.snapshots(connection, limit=2, before=newest[0].id)
        first = read.snapshots(connection, limit=5, before=2)
        everything = read.snapshots(connection)
    assert [s.id for s in newest] == [11999, 12000, 12001]
    assert [s.id for s in older] == [11997, 11998]
    assert [s.id for s in first] == [0, 1]
    assert [s.id for s in everything] == list(range(12002))


def test_pages_of_the_history_of_a_table_follow_each_other(lake):
    table = lake.table("t")
    with lake.store.read() as connection:
        newest = read.table_history(connection, table, limit=3)
        older = read.table_history(connection, table, limit=2, before=newest[-1].id)
        everything = read.table_history(connection, table)
    assert [s.id for s in newest] == [12001, 11999, 11997]
    assert [s.id for s in older] == [11995, 11993]
    assert len(everything) == 6001
    assert [s.id for s in everything[-3:]] == [5, 3, 1]


def test_a_page_reads_a_page(lake, monkeypatch):
    """What is fetched becomes a snapshot; nothing else of the log does."""
    made = []
    real = read.as_snapshot
    monkeypatch.setattr(read, "as_snapshot", lambda row: made.append(row) or real(row))
    table = lake.table("t")
    made.clear()
    with lake.store.read() as connection:
        read.snapshots(connection, limit=20)
        assert len(made) == 20
        made.clear()
        read.table_history(connection, table, limit=20)
        assert len(made) <= 50
        made.clear()
        changed = metadata_rows.changed_snapshots(connection, table, 20)
        assert len(made) <= 50
    assert [(c.snapshot.id, c.parent) for c in changed[-2:]] == [(11965, 11963), (11963, 11961)]
