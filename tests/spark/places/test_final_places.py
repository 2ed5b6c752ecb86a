"""Files of partitions are written where they stay; a write that fails leaves none of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text

from shelduck.catalog.read import read
from shelduck.engine.bridge.codec import Report
from shelduck.engine.files.storage import (
    delete_directory,
    list_everything,
    list_of_write,
    write_text,
)
from shelduck.engine.files.task_results import placed_results
from shelduck.errors import StorageUnavailable
from shelduck.model.files.place import place_below
from shelduck.write.parquet import clustering
from shelduck.write.parquet.write import Writing, write_files
from tests.support.lakes import rows
from tests.support.s3 import BUCKET, counted, running_s3

STATEMENTS = ["CALL set_option('data_inlining_row_limit', 0)"]
_PATHS = (
    "SELECT path FROM ducklake_data_file WHERE end_snapshot IS NULL"
    " UNION ALL SELECT path FROM ducklake_delete_file WHERE end_snapshot IS NULL"
)


def made(lake, name):
    """A table with three partitions, and the folder of its files."""
    lake.sql(f"CREATE TABLE {name} (id BIGINT, k STRING, d BIGINT) PARTITIONED BY (k)")
    lake.sql(f"INSERT INTO {name} VALUES (1, 'a', 5), (2, 'a/b', 5), (3, NULL, 5)")
    return lake.table(name), Path(lake._state.info.data_path, "main", name)


def version_of(lake, name):
    state = lake._state
    with state.store.read() as connection:
        return read.table(connection, read.snapshot(connection), "main", name, state.info)


def files_in(folder):
    """What is there of Parquet files, checksums included."""
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if "parquet" in p.name)


def test_tasks_write_where_files_stay(lake, monkeypatch):
    def carried(*paths):
        raise AssertionError(paths)

    monkeypatch.setattr(clustering, "carry_file", carried)
    _, folder = made(lake, "stays")
    lake.sql("INSERT INTO stays SELECT id, CAST(id % 2 AS STRING), 5 FROM range(10, 20)")
    lake.sql("UPDATE stays SET d = 7 WHERE id IN (11, 13)")

    with lake._state.store.read() as connection:
        named = [path for (path,) in connection.execute(text(_PATHS))]
    assert sorted(path.rpartition("/")[0] for path in named if "k=" in path) == [
        *("k=0", "k=1", "k=1", "k=__HIVE_DEFAULT_PARTITION__", "k=a", "k=a%2Fb")
    ]
    assert [path for path in files_in(folder) if path.endswith(".parquet")] == sorted(named)
    assert rows(lake.sql("SELECT count(*), sum(id) FROM stays WHERE d = 7")) == [(2, 24)]


def test_a_write_that_fails_leaves_no_file_in_any_partition(lake, spark):
    table, folder = made(lake, "fails")
    before = files_in(folder)
    # No directory can be made where a file is.
    (folder / "k=9").write_text("")
    new = spark.range(10).selectExpr("id", "CAST(id AS STRING) k", "5L d")

    with pytest.raises(StorageUnavailable, match=r"write to main\.fails: something else is in the"):
        table.append(new)

    assert files_in(folder) == before
    assert rows(table.read().selectExpr("count(*)")) == [(3,)]
    (folder / "k=9").unlink()
    table.append(new)
    assert rows(table.read().selectExpr("count(*)")) == [(13,)]


def test_files_of_tasks_that_ended_before_another_one_failed_are_deleted(lake, spark):
    _, folder = made(lake, "ended")
    before = files_in(folder)
    (folder / "k=9").write_text("")
    version = version_of(lake, "ended")
    # Three tasks, of which the last one fails behind many rows: the others have ended by then.
    few, many = spark.range(0, 8, 1, 2), spark.range(8, 30_000, 1, 1)
    key = "CAST(IF(id = 29999, 9, least(id div 4 * 4, 8)) AS STRING) k"
    new = few.union(many).selectExpr("id", key)

    with pytest.raises(StorageUnavailable):
        write_files(spark, new.selectExpr("*", "5L d"), version, Writing(spreads=False))

    assert files_in(folder) == before


WRITE, OTHER = "01900000-0000-7000-8000-00000000000a", "01900000-0000-7000-8000-00000000000b"


@pytest.fixture(params=["local", "s3", "s3 without boto3"])
def root(request, tmp_path, monkeypatch):
    if request.param == "local":
        yield f"{tmp_path}/t/"
        return
    if request.param == "s3 without boto3":
        monkeypatch.setattr("shelduck.engine.files.storage.object_pages", lambda _: None)
    with running_s3():
        yield f"s3://{BUCKET}/t/"
        delete_directory(place_below(f"s3://{BUCKET}/", "t"))


def test_files_of_an_attempt_that_was_lost_are_deleted(root):
    first, lost, others = (f"k=1/{w}-{n}.parquet" for w, n in ((WRITE, 0), (WRITE, 1), (OTHER, 0)))
    elsewhere = f"k=2/{WRITE}-1.parquet"
    for name in (first, lost, others, elsewhere):
        write_text(root + name, name)

    def there():
        return {f.name for f in list_everything(root) if not f.is_directory}

    for is_repeated in (False, True):
        found = placed_results(root, WRITE, {first: Report("key=1", is_repeated, 5, None)})
        assert [(f.name, f.size) for f in found.files] == [(first, 5)]
        assert (lost in there()) is not is_repeated
    # What no report leads to is left to the search for orphans.
    assert there() == {first, others, elsewhere}


def test_files_of_a_write_are_found_by_one_request(tmp_path):
    with running_s3() as s3:
        for n in range(5):
            s3.client.put_object(Bucket=BUCKET, Key=f"t/k=1/{OTHER}-{n}.parquet", Body=b"")
        write_text(f"s3://{BUCKET}/t/k=1/{WRITE}-0.parquet", "")
        counted(s3.endpoint)
        assert list_of_write(f"s3://{BUCKET}/t/k=1/", WRITE) == [f"{WRITE}-0.parquet"]
        assert counted(s3.endpoint) == {"LIST": 1}
        delete_directory(place_below(f"s3://{BUCKET}/", "t"))
