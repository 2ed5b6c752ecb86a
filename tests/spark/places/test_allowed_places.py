"""Files are read only where the user lets them be read, whatever the catalog says."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shelduck
from shelduck import CorruptLake, InvalidRequest, Unsupported


class Lake:
    """A lake with a file of its own, and a file of somebody else that it adopted."""

    def __init__(self, spark, folder):
        self.spark = spark
        self.folder = folder
        self.data = f"{folder}/data/"
        self.other = f"{folder}/other/"
        (folder / "other").mkdir()
        pq.write_table(pa.table({"id": pa.array([7], pa.int32())}), f"{self.other}x.parquet")
        with self.connect(data_path=self.data) as lake:
            lake.set_option("data_inlining_row_limit", 0)
            lake.sql("CREATE TABLE own (id INT); CREATE TABLE adopted (id INT)")
            lake.sql("INSERT INTO own VALUES (1)")
            lake.table("adopted").add_files([f"{self.other}x.parquet"])

    def connect(self, **more):
        return shelduck.connect(f"sqlite:///{self.folder}/lake.db", spark=self.spark, **more)

    def say(self, statement, *values):
        with closing(sqlite3.connect(self.folder / "lake.db")) as connection, connection:
            assert connection.execute(statement, values).rowcount > 0

    def move(self, path, *, relative):
        self.say(
            "UPDATE ducklake_data_file SET path = ?, path_is_relative = ? WHERE mapping_id IS NULL",
            path,
            relative,
        )


@pytest.fixture
def lake(spark, tmp_path):
    return Lake(spark, tmp_path)


def ids(lake, table):
    return [row.id for row in lake.table(table).read().collect()]


def test_without_a_list_the_catalog_decides(lake):
    with lake.connect() as found:
        assert ids(found, "own") == [1]
        assert ids(found, "adopted") == [7]


def test_files_outside_of_the_list_are_refused_and_those_inside_are_read(lake):
    with lake.connect(data_path=lake.data, allow=[]) as found:
        assert ids(found, "own") == [1]
        with pytest.raises(InvalidRequest, match=r"x\.parquet.* is in none of the allowed places"):
            found.table("adopted").read()
        with pytest.raises(InvalidRequest, match="add its directory to allow"):
            found.sql("SELECT count(*) FROM adopted").collect()
    with lake.connect(allow=[lake.data, lake.other]) as found:
        assert ids(found, "adopted") == [7]


def test_a_list_must_have_the_place_of_the_lake_itself(lake):
    with pytest.raises(InvalidRequest, match=r"the data path .* is in none of the allowed places"):
        lake.connect(allow=[lake.other])
    lake.say("UPDATE ducklake_metadata SET value = ? WHERE key = 'data_path'", lake.other)
    with pytest.raises(InvalidRequest, match=r"the data path .*other/' of the lake is in none"):
        lake.connect(allow=[lake.data])


@pytest.mark.parametrize("table_path", ["{other}", "{data}../other/"])
def test_a_table_elsewhere_is_refused(lake, table_path):
    lake.say(
        "UPDATE ducklake_table SET path = ?, path_is_relative = 0 WHERE table_name = 'own'",
        table_path.format(other=lake.other, data=lake.data),
    )
    refused = pytest.raises(InvalidRequest, match=r"the directory .* of main\.own is in none")
    with lake.connect(data_path=lake.data, allow=[]) as found, refused:
        found.table("own").read()


def test_a_path_beside_an_allowed_one_is_not_below_it(lake):
    lake.move(f"{lake.folder}/database/x.parquet", relative=False)
    with lake.connect(data_path=lake.data, allow=[]) as found, pytest.raises(InvalidRequest):
        found.table("own").read()


@pytest.mark.parametrize("allow", [None, []])
@pytest.mark.parametrize(
    ("path", "kind", "told"),
    [
        ("../../../other/x.parquet", CorruptLake, "leads out of"),
        ("http://169.254.169.254/latest/x.parquet", Unsupported, "is on a web server"),
        ("HTTPS://host/x.parquet", Unsupported, "is on a web server"),
    ],
)
def test_a_file_that_no_lake_has_is_always_refused(lake, allow, path, kind, told):
    lake.move(path, relative=path.startswith("."))
    with lake.connect(data_path=lake.data, allow=allow) as found, pytest.raises(kind, match=told):
        found.table("own").read()
