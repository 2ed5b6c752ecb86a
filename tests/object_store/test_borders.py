"""What comes into a lake on S3 from elsewhere, and what goes out; DuckDB reads all of it."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from shelduck import AlreadyExists, InvalidRequest
from tests.support.deltalake_reader import read_on_s3
from tests.support.lakes import rows
from tests.support.odd_names import FEW
from tests.support.oracle import duckdb_with
from tests.support.s3 import BUCKET

pytestmark = pytest.mark.s3


@pytest.fixture
def place():
    """A directory in the bucket that is not the lake's; its name needs care."""
    return f"s3://{BUCKET}/of others+{uuid4().hex[:8]}"


@pytest.fixture
def upload(s3, place):
    """Copies a local folder into that directory."""

    def upload(folder):
        for file in filter(Path.is_file, folder.rglob("*")):
            name = file.relative_to(folder).as_posix()
            s3.put(f"{key_of(place)}/{name}", file.read_bytes())

    return upload


def key_of(path):
    return path.removeprefix(f"s3://{BUCKET}/")


def test_files_are_adopted_where_they_are(lake, duckdb, upload, place, tmp_path):
    for n, city in enumerate(("A+B", "a%b", "#")):
        folder = tmp_path / "files" / f"city={city}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": [n, n + 10]}), folder / "0.parquet")
    upload(tmp_path / "files")
    lake.execute("CREATE TABLE t (id BIGINT, city STRING)")

    lake.table("t").add_files(f"{place}/")

    found = rows(lake.sql("SELECT id, city FROM t ORDER BY id"))
    cities = ["A+B", "a%b", "#"]
    assert found == [(n, cities[n % 10]) for n in (0, 1, 2, 10, 11, 12)]
    with duckdb(f"sqlite:///{tmp_path}/catalog.db") as oracle:
        assert oracle.rows("t") == found


@pytest.mark.slow
def test_a_delta_table_comes_in(lake, duckdb, upload, place, tmp_path):
    table = tmp_path / "delta"
    for n in range(2):
        made = pa.table({"id": [n], "city": ["New York"]})
        write_deltalake(table, made, mode="append", partition_by=["city"])
    upload(table)

    done = lake.import_delta(place, "t")

    assert (done.versions, done.files) == ((0, 1), 2)
    assert rows(lake.sql("SELECT * FROM t ORDER BY id")) == [(0, "New York"), (1, "New York")]
    with duckdb(f"sqlite:///{tmp_path}/catalog.db") as oracle:
        assert oracle.rows("t") == [(0, "New York"), (1, "New York")]


CHANGES = (
    "CREATE TABLE t (id BIGINT, v STRING)",
    "INSERT INTO t SELECT id, 'v' FROM range(20)",
    "DELETE FROM t WHERE id % 2 = 0",
    "INSERT INTO t VALUES (100, 'last')",
)
LEFT = [*((n, "v") for n in range(1, 20, 2)), (100, "last")]


@pytest.mark.slow
def test_a_table_goes_out_to_delta(lake, s3, place):
    lake.sql("CREATE TABLE t (id BIGINT, gone STRING, s STRUCT<x: INT>)")
    lake.sql("INSERT INTO t SELECT id, 'old', named_struct('x', CAST(id AS INT)) FROM range(9)")
    table = lake.table("t")
    table.export_delta(place)
    lake.sql("ALTER TABLE t DROP COLUMN gone")
    lake.sql("ALTER TABLE t RENAME COLUMN s.x TO y")
    lake.sql("ALTER TABLE t ADD COLUMN gone STRING")
    lake.sql("DELETE FROM t WHERE id > 0 AND id < 8")
    lake.sql("INSERT INTO t VALUES (100, named_struct('y', 5), 'new')")
    table.export_delta(place)

    assert read_on_s3(s3, place, "SELECT * FROM t ORDER BY id") == [
        (0, {"y": 0}, None),
        (8, {"y": 8}, None),
        (100, {"y": 5}, "new"),
    ]
    before = read_on_s3(s3, place, "SELECT * FROM t ORDER BY id", version=0)
    assert before == [(n, "old", {"x": n}) for n in range(9)]


@pytest.mark.slow
def test_partitions_of_any_name_go_out_to_delta(lake, s3, place):
    lake.sql("CREATE TABLE t (id BIGINT, city STRING) PARTITIONED BY (city)")
    made = lake.spark.createDataFrame(list(enumerate(FEW)), "id BIGINT, city STRING")
    lake.table("t").append(made.coalesce(1))

    lake.table("t").export_delta(place)

    assert read_on_s3(s3, place, "SELECT * FROM t ORDER BY id") == list(enumerate(FEW))


@pytest.mark.slow
def test_a_table_goes_out_to_iceberg(lake, s3, place):
    for statement in CHANGES:
        lake.sql(statement)

    done = lake.table("t").export_iceberg(place)

    with duckdb_with(("avro", "iceberg", "httpfs")) as reader:
        reader.execute(s3.duckdb_secret)
        for shown in (place, done.path):
            query = f"SELECT * FROM iceberg_scan('{shown}') ORDER BY id"
            assert reader.execute(query).fetchall() == LEFT


@pytest.mark.slow
def test_other_names_of_the_storage_lead_to_no_file_twice(lake, objects, upload, place, tmp_path):
    lake.execute("CREATE TABLE t (id BIGINT)")
    lake.sql("INSERT INTO t VALUES (1)")
    (tmp_path / "files").mkdir()
    pq.write_table(pa.table({"id": [2]}), tmp_path / "files" / "0.parquet")
    upload(tmp_path / "files")
    table, own = lake.table("t"), lake.data_path.replace("s3:", "s3a:")
    table.add_files(f"{place}/0.parquet")
    objects.put("strange.parquet")

    with pytest.raises(AlreadyExists, match="is already part of"):
        table.add_files(f"{place}/0.parquet".replace("s3:", "s3n:"))
    for act in (
        lambda: table.add_files(f"{own}strange.parquet"),
        lambda: table.export_delta(f"{own}out"),
        lambda: table.export_iceberg(f"{own}out"),
    ):
        with pytest.raises(InvalidRequest, match="below the lake's data path"):
            act()
    assert rows(lake.sql("SELECT * FROM t ORDER BY id")) == [(1,), (2,)]
