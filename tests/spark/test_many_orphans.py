"""The search for orphans in a lake of many files: what it holds meanwhile, and what it finds."""

from __future__ import annotations

import tracemalloc
from datetime import UTC, datetime

import pytest
from sqlalchemy import text

import shelduck
from shelduck.catalog.commit import schedule
from shelduck.model.text.names import write_directory
from shelduck.operations.upkeep import orphans
from shelduck.spark.files.storage import Stored

OLD = datetime(2020, 1, 1, tzinfo=UTC)
MEGABYTE = 1 << 20


@pytest.mark.parametrize(
    ("files", "lot", "most"),
    [
        pytest.param(10_000, 200, MEGABYTE, id="ten thousand"),
        # All of them together take 700 MB.
        pytest.param(
            *(1_000_000, 20_000, 40 * MEGABYTE),
            id="a million",
            marks=[pytest.mark.slow, pytest.mark.timeout(1200)],
        ),
    ],
)
def test_memory_is_for_one_lot_and_for_what_is_found(tmp_path, monkeypatch, files, lot, most):
    looked_up = []

    def listing(directory):
        for n in range(files):
            write = write_directory(unique, n // 100, 0)
            yield Stored(f"{write}/{n}.parquet", 1, OLD, is_directory=False)

    def known_among(connection, lake, wanted):
        looked_up.append(len(wanted))
        return {path for path in wanted if not path.endswith("7777.parquet")}

    with shelduck.connect(f"sqlite:///{tmp_path}/lake.db", f"{tmp_path}/data/") as lake:
        lake.execute("CREATE TABLE t (id INT)")
        with lake._state.store.read() as connection:
            unique = connection.execute(text("SELECT table_uuid FROM ducklake_table")).scalar()
        lake.remove_orphans()
        monkeypatch.setattr(orphans, "list_everything", listing)
        monkeypatch.setattr(orphans, "_LOT", lot)
        monkeypatch.setattr(schedule, "known_among", known_among)
        tracemalloc.start()
        try:
            found = lake.remove_orphans(dry_run=True)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert len(found.files) == files // 10_000
    assert {path.rpartition("/")[2] for path in found.files} == {
        f"{n}7777.parquet".lstrip("0") for n in range(files // 10_000)
    }
    assert looked_up[:-1] == [lot] * (files // lot)
    assert peak < most
