"""Tables that only newer versions of DuckLake have, beside those that ducklakepy makes."""

from __future__ import annotations

import datetime as dt
import sqlite3
from contextlib import closing

import pyarrow as pa
import pytest
from ducklakepy.partitioning import PartitionKey as TheirKey
from ducklakepy.partitioning import Transform, as_key
from ducklakepy.schema import Schema
from ducklakepy.types import (
    Column,
    Int32Type,
    ListType,
    NullType,
    StructType,
    TimestampType,
    TimestampTzNsType,
)

import shelduck
from shelduck.catalog.read.overview.table_files import inlined_partitions, partition_rows
from shelduck.errors import InvalidRequest, Unsupported
from tests.support.ducklakepy_oracle import made_by_ducklakepy
from tests.support.lake import Lake

UNITS = ("year", "month", "day", "hour")
MOMENTS = [
    dt.datetime(2024, 2, 1, 10, 30, 0, 123456),  # noqa: DTZ001
    dt.datetime(1969, 12, 31, 23),  # noqa: DTZ001
    dt.datetime(1500, 3, 4, 5, 6, 7),  # noqa: DTZ001
    dt.datetime(9999, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001
    None,
]


@pytest.fixture
def theirs(tmp_path):
    """An empty lake of DuckLake 1.1, as ducklakepy has it open; it keeps no rows in the catalog."""
    with made_by_ducklakepy(tmp_path) as found:
        yield found


@pytest.fixture
def ours(tmp_path, theirs):
    """The same lake."""
    return shelduck.connect(f"sqlite:///{tmp_path}/lake.db")


def rows(path, query):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


@pytest.mark.parametrize("unit", UNITS)
def test_rows_are_in_the_partitions_into_which_ducklakepy_writes_them(tmp_path, theirs, unit):
    given = pa.table({"at": pa.array(MOMENTS, pa.timestamp("us"))})
    for name in ("kept", "stored"):
        theirs.create_table(f"main.{name}", schema=Schema(Column("at", TimestampType())))
        table = theirs.load_table(f"main.{name}")
        table.set_partitioning(as_key(TheirKey("at", Transform(f"epoch_{unit}"))))
        theirs.set_option("data_inlining_row_limit", 10 * (name == "kept"))
        theirs.load_table(f"main.{name}").append(given)
    lake = Lake(f"sqlite:///{tmp_path}/lake.db", f"{tmp_path}/data/")
    with lake.store.read() as connection:
        kept = inlined_partitions(connection, lake.table("kept"))
        stored = partition_rows(connection, lake.table("stored"))

    assert len(stored) == len(MOMENTS)
    assert [p.partition for p in kept] == [p.partition for p in stored]


def test_a_table_is_partitioned_by_counts_of_days_and_ducklakepy_follows(tmp_path, theirs, ours):
    ours.execute("CREATE TABLE t (at TIMESTAMP_NTZ, d DATE) PARTITIONED BY (epoch_day(at))")
    ours.execute("ALTER TABLE t SET PARTITIONED BY (epoch_hour(d), epoch_year(at))")

    found = theirs.load_table("main.t").partition_spec()
    assert [f.transform_text for f in found.fields] == ["epoch_hour", "epoch_year"]
    assert (
        ours.execute("SHOW CREATE TABLE t")
        .rows[0][0]
        .endswith("PARTITIONED BY (epoch_hour(d), epoch_year(at))")
    )


@pytest.mark.parametrize("unit", UNITS)
def test_a_lake_of_1_0_has_no_counts_as_partition_keys(tmp_path, unit):
    lake = shelduck.connect(f"sqlite:///{tmp_path}/lake.db", f"{tmp_path}/data/")
    lake.execute("CREATE TABLE t (at TIMESTAMP, n STRING)")
    told = rf"main\.t by epoch_{unit}: DuckLake 1\.0 does not have it; use {unit}s\(\)"

    key = f"PARTITIONED BY (epoch_{unit}(at))"
    for statement in (f"SET {key}", f"ALTER COLUMN n TYPE INT, SET {key}"):
        with pytest.raises(Unsupported, match=told):
            lake.execute(f"ALTER TABLE t {statement}")
    with pytest.raises(Unsupported, match=told.replace("t by", "u by")):
        lake.execute(f"CREATE TABLE u (at TIMESTAMP) {key}")
    assert rows(tmp_path / "lake.db", "SELECT count(*) FROM ducklake_partition_info") == [(0,)]


def test_a_column_without_a_type_gets_one_and_is_no_key(tmp_path, theirs, ours):
    kinds = StructType((Column("a", Int32Type()), Column("b", NullType())))
    theirs.create_table(
        "main.t",
        schema=Schema(
            *(Column("id", Int32Type()), Column("v", NullType()), Column("s", kinds)),
            Column("l", ListType(Column("element", NullType()))),
        ),
    )
    assert [row[:2] for row in ours.execute("DESCRIBE t").rows] == [
        *(("id", "int"), ("v", "void"), ("s", "struct<a:int,b:void>"), ("l", "array<void>"))
    ]

    with pytest.raises(InvalidRequest, match="a column of type null cannot be a partition key"):
        ours.execute("ALTER TABLE t SET PARTITIONED BY (v)")
    for kind in ("VARIANT", "STRUCT<a: INT>", "TIMESTAMP_NS"):
        with pytest.raises(Unsupported, match=r"cannot change v of main\.t from null"):
            ours.execute(f"ALTER TABLE t ALTER COLUMN v TYPE {kind}")
    ours.execute("ALTER TABLE t ALTER COLUMN v TYPE DATE, ALTER COLUMN s.b TYPE STRING")
    ours.execute("ALTER TABLE t ALTER COLUMN l.element TYPE DECIMAL(9, 2)")

    found = theirs.load_table("main.t").schema()
    kinds = [str(column.field_type.to_spec_string()) for column in found.fields]
    assert kinds[1] == "date"
    assert [row[1] for row in ours.execute("DESCRIBE t").rows][1:] == [
        *("date", "struct<a:int,b:string>", "array<decimal(9,2)>")
    ]


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("kind", ["VOID", "TIMESTAMPTZ_NS", "ARRAY<STRUCT<a: VOID>>"])
def test_no_column_is_made_of_a_type_that_is_only_read(tmp_path, version, kind):
    lake = shelduck.connect(
        f"sqlite:///{tmp_path}/lake.db", f"{tmp_path}/data/", ducklake_version=version
    )
    with pytest.raises(Unsupported, match="Shelduck only reads this type"):
        lake.execute(f"CREATE TABLE t (a {kind})")


def test_a_table_with_a_type_that_is_only_read_changes_its_other_columns(tmp_path, theirs, ours):
    theirs.create_table(
        "main.t",
        schema=Schema(
            *(Column("id", Int32Type()), Column("at", TimestampTzNsType()), Column("v", NullType()))
        ),
    )
    ours.execute(
        "ALTER TABLE t ALTER COLUMN id TYPE BIGINT, RENAME COLUMN at TO at_ns, ADD COLUMN n INT"
    )

    found = theirs.load_table("main.t").schema()
    assert [(c.name, c.field_type.to_spec_string()) for c in found.fields] == [
        *(("id", "int64"), ("at_ns", "timestamptz_ns"), ("v", "null"), ("n", "int32"))
    ]
    theirs.set_option("data_inlining_row_limit", 10)
    theirs.load_table("main.t").append(
        pa.table(
            {
                "id": pa.array([1], pa.int64()),
                "at_ns": pa.array([1], pa.timestamp("ns", "UTC")),
                "v": pa.nulls(1),
                "n": pa.array([2], pa.int32()),
            }
        )
    )
    assert theirs.load_table("main.t").scan().to_arrow().num_rows == 1
