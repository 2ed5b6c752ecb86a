"""Files that are not as the catalog says: read right or refused, and never made to stay wrong."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shelduck
from shelduck import CorruptLake
from tests.support.lakes import refusal, rows

STATEMENTS = [
    "CREATE TABLE t (id BIGINT, v STRING)",
    "CALL lake.set_option('data_inlining_row_limit', 0)",
    *(
        f"INSERT INTO t SELECT id, concat('v', id) FROM range({n}, {n + 20}, 1, 1)"
        for n in (0, 20, 40)
    ),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory, spark):
    """A lake of three files of twenty rows, to be copied as a folder."""
    folder = tmp_path_factory.mktemp("made") / "lake"
    folder.mkdir()
    with shelduck.connect(f"sqlite:///{folder}/lake.db", f"{folder}/data/", spark) as lake:
        for statement in STATEMENTS:
            lake.sql(statement)
    return folder


class Damaged:
    """A lake of its own, whose catalog and files can be falsified."""

    def __init__(self, folder: Path, spark) -> None:
        self.folder = folder
        self.catalog = folder / "lake.db"
        self.data = folder / "data"
        self.change(
            "UPDATE ducklake_metadata SET value = ? WHERE key = 'data_path'", f"{self.data}/"
        )
        self.lake = shelduck.connect(f"sqlite:///{self.catalog}", f"{self.data}/", spark)

    def change(self, statement: str, *values: object) -> None:
        with closing(sqlite3.connect(self.catalog)) as connection:
            assert connection.execute(statement, values).rowcount > 0
            connection.commit()

    def ask(self, query: str) -> list[tuple]:
        with closing(sqlite3.connect(self.catalog)) as connection:
            return connection.execute(query).fetchall()

    def files(self) -> list[Path]:
        """The data files of the table, in the order of their ids."""
        found = self.ask("SELECT path FROM ducklake_data_file ORDER BY data_file_id")
        return [self.data / "main" / "t" / path for (path,) in found]

    def ids(self) -> list[int]:
        return sorted(n for (n,) in rows(self.lake.table("t").read().select("id")))


@pytest.fixture
def damaged(made, tmp_path, spark):
    shutil.copytree(made, tmp_path / "lake")
    found = Damaged(tmp_path / "lake", spark)
    yield found
    found.lake.close()


def put(table: pa.Table, path: Path, **how) -> None:
    """Put another file in the place of one; Spark's checksum would tell of it."""
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    pq.write_table(table, path, **how)


def content(path: Path) -> pa.Table:
    return pq.ParquetFile(path).read()


def in_groups(path: Path, size: int) -> None:
    """Write a file again in row groups of so many rows."""
    put(content(path), path, row_group_size=size)


@pytest.mark.parametrize("size", [0, 4, 500, 10**9])
def test_a_wrong_size_in_the_catalog_loses_no_row(damaged, size):
    for path in damaged.files():
        in_groups(path, 3)
    damaged.change("UPDATE ducklake_data_file SET file_size_bytes = ?", size)
    assert damaged.ids() == list(range(60))
    assert [n for (n,) in rows(damaged.lake.sql("SELECT id FROM t WHERE id > 17 AND id < 23"))]

    damaged.lake.table("t").compact()
    assert damaged.ids() == list(range(60))


def test_each_row_group_is_read_once_however_a_file_is_cut(damaged, spark):
    path = damaged.files()[0]
    in_groups(path, 2)
    cut = "spark.sql.files.maxPartitionBytes"
    before = spark.conf.get(cut)
    try:
        for size, bytes_per_task in ((path.stat().st_size, 97), (300, 97), (9000, 1000)):
            damaged.change(
                "UPDATE ducklake_data_file SET file_size_bytes = ? WHERE data_file_id = 0", size
            )
            spark.conf.set(cut, bytes_per_task)
            assert damaged.ids() == list(range(60))
    finally:
        spark.conf.set(cut, before)


def test_a_file_with_other_rows_than_the_catalog_says_fails_the_query(damaged):
    path = damaged.files()[1]
    put(content(path).slice(0, 13), path)
    with pytest.raises(Exception, match="shelduck found a damaged lake") as caught:
        damaged.lake.sql("SELECT sum(id) FROM t").collect()
    assert f"{path} of main.t has 13 rows, the catalog says 20: restore the file" in str(
        caught.value
    )


def test_a_delete_file_with_other_positions_than_the_catalog_says_fails_the_query(damaged):
    damaged.lake.sql("DELETE FROM t WHERE id % 2 = 0 AND id < 20")
    [(path,)] = damaged.ask("SELECT path FROM ducklake_delete_file")
    place = damaged.data / "main" / "t" / path
    put(content(place).slice(0, 4), place)
    with pytest.raises(Exception, match="shelduck found a damaged lake") as caught:
        damaged.lake.sql("SELECT sum(id) FROM t").collect()
    assert f"{place} has 4 positions, the catalog says 10" in str(caught.value)


def test_two_rows_of_one_path_are_refused_when_they_are_listed(damaged):
    damaged.change(
        "UPDATE ducklake_data_file SET path = (SELECT path FROM ducklake_data_file"
        " WHERE data_file_id = 0) WHERE data_file_id = 2"
    )
    for act in (
        lambda: damaged.lake.table("t").read(),
        lambda: damaged.lake.table("t").compact(),
        lambda: damaged.lake.sql("DELETE FROM t WHERE id = 3"),
    ):
        said = refusal(CorruptLake, act, damaged.catalog, damaged.data)
        assert "data files 0 and 2 of main.t have the same data file" in said
        assert "set the path of the wrong one right" in said
