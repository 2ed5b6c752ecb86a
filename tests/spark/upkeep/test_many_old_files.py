"""The cleanup of many old files: what it deletes and keeps, lot by lot."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text

import shelduck
from shelduck.errors import CorruptLake
from shelduck.upkeep import orphans

_WAITS = (
    "INSERT INTO ducklake_files_scheduled_for_deletion (data_file_id, path, path_is_relative,"
    " schedule_start) VALUES (:id, :path, :relative, '2020-01-01 00:00:00+00')"
)
_LIVES = (
    "INSERT INTO ducklake_data_file (data_file_id, table_id, begin_snapshot, path,"
    " path_is_relative) SELECT :id, table_id, 1, :path, true FROM ducklake_table"
)


@pytest.fixture
def lake(tmp_path, monkeypatch):
    monkeypatch.setattr(orphans, "WAITING_LOT", 10)
    with shelduck.connect(f"sqlite:///{tmp_path}/lake.db", f"{tmp_path}/data/") as made:
        made.execute("CREATE TABLE t (id INT)")
        made.remove_orphans()
        (tmp_path / "data/main/t").mkdir(parents=True)
        yield made


def put(lake, statement, names, first, **more):
    """Make files, and rows that name them."""
    folder = Path(lake.data_path, "main/t")
    for name in names:
        (folder / name).write_bytes(b"old")
    prefix = "main/t/" if statement is _WAITS else ""
    with lake._state.store.write() as connection:
        rows = [{"id": first + n, "path": f"{prefix}{x}", **more} for n, x in enumerate(names)]
        connection.execute(text(statement), rows)


def there(lake):
    return {path.name for path in Path(lake.data_path, "main/t").iterdir()}


def names(paths):
    return [path.rpartition("/")[2] for path in paths]


def test_old_files_go_lot_by_lot(lake):
    old = [f"{n:02}.parquet" for n in range(25)]
    put(lake, _WAITS, old, 1, relative=True)
    # One of the first lot is named by a snapshot, too.
    put(lake, _LIVES, [old[3], "lives.parquet"], 100)
    planned = lake.cleanup_old_files(cleanup_all=True, dry_run=True)
    assert there(lake) == {*old, "lives.parquet"}

    done = lake.cleanup_old_files(cleanup_all=True)

    assert names(done.files) == names(planned.files) == [n for n in old if n != old[3]]
    assert names(done.kept) == [old[3]]
    assert there(lake) == {old[3], "lives.parquet"}
    assert lake.cleanup_old_files(cleanup_all=True).files == ()


def test_each_row_of_the_catalog_is_read_once_however_many_lots_there_are(lake, paths_read):
    put(lake, _WAITS, [f"{n:02}.parquet" for n in range(45)], 1, relative=True)
    put(lake, _LIVES, [f"lives-{n}.parquet" for n in range(30)], 100)
    with lake._state.store.write() as connection:
        connection.execute(text("UPDATE ducklake_snapshot SET next_file_id = 200"))

    assert len(lake.cleanup_old_files(cleanup_all=True).files) == 45
    assert sorted(paths_read) == sorted(f"lives-{n}.parquet" for n in range(30))
    paths_read.clear()
    assert lake.cleanup_old_files(cleanup_all=True).files == ()
    assert paths_read == []


def test_a_file_that_a_table_gets_during_a_cleanup_is_kept(lake, monkeypatch):
    old = [f"{n:02}.parquet" for n in range(25)]
    put(lake, _WAITS, old, 1, relative=True)
    real = orphans.delete_files

    def deleted(places):
        if Path(lake.data_path, "main/t", old[0]).exists():
            put(lake, _LIVES, [f"./x/../{old[15]}"], 100)
        return real(places)

    (Path(lake.data_path) / "main/t/x").mkdir()
    monkeypatch.setattr(orphans, "delete_files", deleted)
    done = lake.cleanup_old_files(cleanup_all=True)
    assert names(done.kept) == [old[15]]
    assert there(lake) == {"x", old[15]}


def test_no_lot_is_deleted_if_a_row_of_a_later_one_leads_out_of_the_lake(lake):
    old = [f"{n:02}.parquet" for n in range(25)]
    put(lake, _WAITS, old, 1, relative=True)
    with lake._state.store.write() as connection:
        connection.execute(text(_WAITS), {"id": 99, "path": "../../x", "relative": True})
    with pytest.raises(CorruptLake, match=r"names '\.\./\.\./x' as file 99"):
        lake.cleanup_old_files(cleanup_all=True)
    assert there(lake) == set(old)
