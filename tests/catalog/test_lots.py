"""Expiry and cleanup of many files: the longest transaction does not grow, and none scans."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import inf

import pytest
from sqlalchemy import Engine, event, text

from shelduck import clock
from shelduck.catalog.databases.store import Store
from shelduck.catalog.upkeep import expire as choosing
from shelduck.catalog.upkeep import few_rows, sweep
from shelduck.catalog.upkeep.expire import ExpiryRequest
from shelduck.model.changes.change import DropTable
from shelduck.upkeep import lake_upkeep, orphans
from tests.support.catalog_scans import scans_of
from tests.support.lake import Lake

_NUMBERS = (
    "(WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < :copies)"
    " SELECT i FROM r)"
)
# Snapshots, each of which replaces a file by the next one.
_HISTORY = f"""
INSERT INTO ducklake_snapshot SELECT s.snapshot_id + i, s.snapshot_time, s.schema_version,
  s.next_catalog_id, s.next_file_id + i FROM ducklake_snapshot s CROSS JOIN {_NUMBERS}
  WHERE s.snapshot_id = 2;
INSERT INTO ducklake_snapshot_changes
  SELECT 2 + i, 'inserted_into_table:1,deleted_from_table:1', NULL, NULL, NULL FROM {_NUMBERS};
INSERT INTO ducklake_data_file SELECT f.data_file_id + i, f.table_id, f.begin_snapshot + i, NULL,
  NULL, 'copy-' || i || '.parquet', 1, f.file_format, f.record_count, f.file_size_bytes,
  f.footer_size, i, NULL, NULL, NULL, NULL FROM ducklake_data_file f CROSS JOIN {_NUMBERS};
UPDATE ducklake_data_file SET end_snapshot = begin_snapshot + 1 WHERE data_file_id < :copies;
INSERT INTO ducklake_file_column_stats SELECT s.data_file_id + i, s.table_id, s.column_id, 1, 1, 0,
  i, i, NULL, NULL FROM ducklake_file_column_stats s CROSS JOIN {_NUMBERS}
"""
_LARGE = {
    *("ducklake_snapshot", "ducklake_snapshot_changes", "ducklake_data_file"),
    *(
        "ducklake_file_column_stats",
        "shelduck_file_layout",
        "ducklake_files_scheduled_for_deletion",
    ),
}


@dataclass
class Work:
    """What transactions that write did."""

    statements: int = 0
    changed: list[int] = field(default_factory=list)
    scans: set[str] = field(default_factory=set)


@contextmanager
def watched(monkeypatch):
    """Counts what transactions that write change, and asks SQLite how it finds the rows."""
    found, now = Work(), {"writes": False}
    real = Store._transaction

    def transaction(store, begin):
        now["writes"] = begin == store.database.begin_write
        if now["writes"]:
            found.changed.append(0)
        return real(store, begin)

    def executed(connection, cursor, statement, values, _context, many):
        found.statements += 1
        if not now["writes"]:
            return
        if not statement.startswith("SELECT"):
            found.changed[-1] += max(0, cursor.rowcount)
        found.scans.update(scans_of(connection, statement, values, _LARGE))

    with monkeypatch.context() as patched:
        patched.setattr(Store, "_transaction", transaction)
        event.listen(Engine, "after_cursor_execute", executed)
        yield found
        event.remove(Engine, "after_cursor_execute", executed)


class SlowClock:
    """Each look at the clock takes a second while ``slow``, else nothing."""

    def __init__(self):
        self.slow, self.time = False, 0.0

    def now(self):
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self):
        self.time += self.slow
        return self.time

    def sleep(self, seconds):
        pass


@pytest.fixture
def small_lots(monkeypatch):
    """A hundred files, or about 500 rows in a transaction."""
    for module, name, size in (
        *((choosing, "_PAGE", 100), (sweep, "PAGE", 100), (few_rows, "ROWS", 500)),
        # Whatever the machine does meanwhile.
        *((few_rows, "_LONG", inf), (orphans, "WAITING_LOT", 100)),
    ):
        monkeypatch.setattr(module, name, size)


def lake_with_history(url, data_path, copies):
    made = Lake(url, data_path)
    made.create(a="int", b="int")
    made.append("t", [{"a": 1, "b": 1}], {1: ("1", "1", 0), 2: ("1", "1", 0)})
    with made.store.write() as connection:
        for statement in _HISTORY.split(";"):
            connection.execute(text(statement), {"copies": copies})
    return made


@pytest.mark.parametrize("copies", [400, 1600])
def test_the_longest_transaction_of_an_expiry_does_not_grow(
    sqlite_url, data_path, small_lots, monkeypatch, copies
):
    lake = lake_with_history(sqlite_url, data_path, copies)
    with watched(monkeypatch) as work:
        done = lake_upkeep.expire_snapshots(lake.store, lake.info, ExpiryRequest(retain_last=1))

    assert (len(done.snapshots), done.files) == (copies + 2, copies)
    assert max(work.changed) <= 600
    assert work.statements <= 0.35 * copies + 60
    assert work.scans == set()
    assert [f.id for f in lake.files("t")] == [copies]
    lake.store.close()


def test_transactions_that_hold_the_lock_for_long_become_smaller(
    sqlite_url, data_path, monkeypatch
):
    lake = lake_with_history(sqlite_url, data_path, 3_000)
    slow = SlowClock()
    with clock.using(slow):
        with watched(monkeypatch) as quick:
            lake_upkeep.expire_snapshots(lake.store, lake.info, ExpiryRequest(retain_last=1_501))
        slow.slow = True
        with watched(monkeypatch) as work:
            done = lake_upkeep.expire_snapshots(lake.store, lake.info, ExpiryRequest(retain_last=1))
    assert quick.changed[:3] == [1_000, 1_000, 1_000]
    assert len(done.snapshots) == 1_500
    # Two rows for each snapshot, then about as many for files.
    assert work.changed[:6] == [1_000, 500, 250, 124, 124, 124]
    assert max(work.changed[6:]) <= 130
    assert [f.id for f in lake.files("t")] == [3_000]
    lake.store.close()


def test_a_look_at_what_would_expire_takes_no_lock(sqlite_url, data_path, small_lots, monkeypatch):
    lake = lake_with_history(sqlite_url, data_path, 400)
    asked = ExpiryRequest(versions=tuple(range(1, 301)))
    with watched(monkeypatch) as work:
        seen = lake_upkeep.expire_snapshots(lake.store, lake.info, asked, dry_run=True)
    assert work.changed == []
    assert (len(seen.snapshots), seen.files) == (300, 299)
    assert lake_upkeep.expire_snapshots(lake.store, lake.info, asked).files == 299
    lake.store.close()


def test_a_dropped_table_with_many_rows_goes_in_several_transactions(
    sqlite_url, data_path, small_lots, monkeypatch
):
    lake = Lake(sqlite_url, data_path)
    lake.create("wide", **{f"c{n}": "int" for n in range(1200)})
    lake.commit(DropTable(lake.table("wide")))
    with watched(monkeypatch) as work:
        lake_upkeep.expire_snapshots(lake.store, lake.info, ExpiryRequest(retain_last=1))
    assert max(work.changed) == 500
    assert sum(work.changed) > 1200
    assert lake.metadata("ducklake_column") == lake.metadata("ducklake_table") == []
    lake.store.close()


def test_the_longest_transaction_of_a_cleanup_does_not_grow(
    sqlite_url, data_path, small_lots, monkeypatch
):
    lake = lake_with_history(sqlite_url, data_path, 250)
    lake_upkeep.expire_snapshots(lake.store, lake.info, ExpiryRequest(retain_last=1))
    everything = orphans.Chosen(before=None)
    with watched(monkeypatch) as looking:
        seen = orphans.clean_up(lake.store, lake.info, everything, dry_run=True)
    with watched(monkeypatch) as work:
        done = orphans.clean_up(lake.store, lake.info, everything)

    assert looking.changed == []
    assert len(seen.files) == len(set(done.files)) == 250
    assert work.changed == [100, 100, 50]
    assert work.scans == set()
    assert lake.metadata("ducklake_files_scheduled_for_deletion") == []
    lake.store.close()


def test_a_cleanup_that_is_interrupted_is_continued(sqlite_url, data_path, small_lots, monkeypatch):
    lake = lake_with_history(sqlite_url, data_path, 250)
    lake_upkeep.expire_snapshots(lake.store, lake.info, ExpiryRequest(retain_last=1))
    everything = orphans.Chosen(before=None)
    real, lots = orphans.delete_files, []

    def deleted(places):
        lots.append(len(places))
        if len(lots) == 2:
            raise KeyboardInterrupt
        return real(places)

    monkeypatch.setattr(orphans, "delete_files", deleted)
    with pytest.raises(KeyboardInterrupt):
        orphans.clean_up(lake.store, lake.info, everything)
    assert len(lake.metadata("ducklake_files_scheduled_for_deletion")) == 150
    assert len(orphans.clean_up(lake.store, lake.info, everything).files) == 150
    lake.store.close()
