"""The search for orphans in a lake of many files: what it holds meanwhile, and what it finds."""

from __future__ import annotations

import tracemalloc
from datetime import UTC, datetime

import pytest
from sqlalchemy import text

import shelduck
from shelduck.catalog.upkeep.known_files import KnownFiles
from shelduck.engine.files.storage import StoredFile
from shelduck.model.text.names import write_directory
from shelduck.upkeep import orphans

OLD = datetime(2020, 1, 1, tzinfo=UTC)
MEGABYTE = 1 << 20


@pytest.mark.parametrize(
    ("files", "lot", "most"),
    [
        pytest.param(10_000, 200, MEGABYTE, id="ten thousand"),
        # All of them together take 700 MB.
        pytest.param(*(1_000_000, 20_000, 40 * MEGABYTE), id="a million", marks=pytest.mark.slow),
    ],
)
def test_memory_is_for_one_lot_and_for_what_is_found(tmp_path, monkeypatch, files, lot, most):
    looked_up = []

    def listing(directory):
        for n in range(files):
            write = write_directory(unique, n // 100, 0)
            yield StoredFile(f"{write}/{n}.parquet", 1, OLD, is_directory=False)

    def among(_, wanted):
        looked_up.append(len(wanted))
        return {path for path in wanted if not path.endswith("7777.parquet")}

    with shelduck.connect(f"sqlite:///{tmp_path}/lake.db", f"{tmp_path}/data/") as lake:
        lake.execute("CREATE TABLE t (id INT)")
        with lake._state.store.read() as connection:
            unique = connection.execute(text("SELECT table_uuid FROM ducklake_table")).scalar()
        lake.remove_orphans()
        monkeypatch.setattr(orphans, "list_everything", listing)
        monkeypatch.setattr(orphans, "_LOT", lot)
        monkeypatch.setattr(KnownFiles, "among", among)
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


def of_one_write(unique, count):
    return [f"{write_directory(unique, 1000, 0)}/{n}.parquet" for n in range(count)]


def add_files(lake, paths, first):
    """Let the catalog name files of its only table."""
    row = (
        "INSERT INTO ducklake_data_file (data_file_id, table_id, begin_snapshot, path,"
        " path_is_relative) SELECT :id, table_id, 1, :path, true FROM ducklake_table"
    )
    with lake._state.store.write() as connection:
        given = [{"id": first + n, "path": path} for n, path in enumerate(paths)]
        connection.execute(text(row), given)
        number_files(connection, first + len(paths))


def number_files(connection, following):
    connection.execute(text("UPDATE ducklake_snapshot SET next_file_id = :n"), {"n": following})


@pytest.fixture
def searched(tmp_path, monkeypatch, paths_read):
    """A lake whose files are looked up in lots of ten, and what its catalog was asked for."""
    monkeypatch.setattr(orphans, "_LOT", 10)
    with shelduck.connect(f"sqlite:///{tmp_path}/lake.db", f"{tmp_path}/data/") as lake:
        lake.execute("CREATE TABLE t (id INT)")
        with lake._state.store.read() as connection:
            unique = connection.execute(text("SELECT table_uuid FROM ducklake_table")).scalar()
        yield lake, unique, paths_read


@pytest.mark.parametrize("dry_run", [True, False])
def test_each_row_of_the_catalog_is_read_once_however_many_lots_there_are(
    searched, monkeypatch, dry_run
):
    lake, unique, read = searched
    paths = of_one_write(unique, 500)
    add_files(lake, paths[:499], 1)
    listed = [StoredFile(path, 1, OLD, is_directory=False) for path in paths]
    monkeypatch.setattr(orphans, "list_everything", lambda _: iter(listed))
    found = lake.remove_orphans(dry_run=dry_run)
    assert [path.rpartition("/")[2] for path in found.files] == ["499.parquet"]
    assert sorted(read) == sorted(paths[:499])


def test_files_that_are_committed_during_a_search_are_known(searched, monkeypatch):
    lake, unique, read = searched
    paths = of_one_write(unique, 45)
    add_files(lake, paths[:20], 1)

    def listing(_):
        for n, path in enumerate(paths):
            if n == 25:
                add_files(lake, paths[20:40], 21)
            yield StoredFile(path, 1, OLD, is_directory=False)

    monkeypatch.setattr(orphans, "list_everything", listing)
    found = lake.remove_orphans(dry_run=True).files
    names = [path.rpartition("/")[2] for path in found]
    assert names == [f"{n}.parquet" for n in range(40, 45)]
    assert sorted(read) == sorted(paths[:40])


def test_files_that_wait_for_deletion_are_known(searched, monkeypatch):
    lake, unique, _ = searched
    paths = of_one_write(unique, 30)
    row = (
        "INSERT INTO ducklake_files_scheduled_for_deletion (data_file_id, path, path_is_relative,"
        " schedule_start) VALUES (:id, :path, true, '2020-01-01 00:00:00+00')"
    )

    def wait(connection, first, some):
        given = [{"id": first + n, "path": f"main/t/{p}"} for n, p in enumerate(some)]
        connection.execute(text(row), given)
        number_files(connection, first + len(some))

    def listing(_):
        for n, path in enumerate(paths):
            if n == 15:
                # They were added, merged and scheduled since the search began.
                with lake._state.store.write() as connection:
                    wait(connection, 11, paths[10:29])
            yield StoredFile(path, 1, OLD, is_directory=False)

    with lake._state.store.write() as connection:
        wait(connection, 1, paths[:10])
    monkeypatch.setattr(orphans, "list_everything", listing)
    found = lake.remove_orphans(dry_run=True).files
    assert [path.rpartition("/")[2] for path in found] == ["29.parquet"]
