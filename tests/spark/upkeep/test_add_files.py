"""Adopting files by the API and by CALL."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shelduck import AlreadyExists, Conflict, InvalidRequest, Unsupported
from shelduck.engine.files import footers
from tests.support.lakes import everything, newest, refusal, rows

STATEMENTS = [
    "CREATE TABLE t (a INT, b STRING)",
    "CREATE TABLE p (a INT, k INT)",
    "CREATE TABLE n (a INT NOT NULL)",
]


@pytest.fixture
def place(tmp_path):
    """A directory with files of one row, a = 1 and 2."""
    for number in (1, 2):
        write(tmp_path / "in" / f"{number}.parquet", a=[number], b=[f"b{number}"])
    return tmp_path / "in"


def write(path: Path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({n: pa.array(v, pa.int32()) if n != "b" else v for n, v in columns.items()})
    pq.write_table(table, path)
    return path


def test_a_directory_becomes_part_of_the_table_in_one_snapshot(lake, place):
    before = newest(lake)
    done = lake.table("t").add_files(place)

    assert (done.snapshot, done.rows, done.files) == (before + 1, 2, 2)
    assert done.bytes == sum(p.stat().st_size for p in place.iterdir())
    assert sorted(rows(lake.table("t").read())) == [(1, "b1"), (2, "b2")]
    assert lake.table("t").history()[0].changes_made == "inserted_into_table:1"


def test_call_takes_one_place_or_several_and_the_same_options(lake, place):
    write(place / "short.parquet", a=[3])
    found = lake.sql(f"CALL add_files('t', '{place}/1.parquet')")
    lake.sql(f"CALL add_files('t', ARRAY('{place}/2.parquet'))")
    lake.sql(f"CALL add_files('main.t', '{place}/s*.parquet', allow_missing => true)")

    assert found.columns[:4] == ["snapshot", "operation", "rows", "files"]
    assert tuple(found.first())[2:4] == (1, 1)
    assert sorted(rows(lake.sql("SELECT * FROM t"))) == [(1, "b1"), (2, "b2"), (3, None)]


def test_a_file_is_adopted_once(copied, base, place):
    catalog, lake = copied
    lake.table("t").add_files(place / "1.parquet")
    told = refusal(
        AlreadyExists, lambda: lake.table("t").add_files(place), catalog, base.folder / "data"
    )

    assert told == f"file {place}/1.parquet is already part of main.t; nothing was added"


def test_all_that_does_not_fit_is_told_at_once_and_nothing_is_added(copied, base, place):
    catalog, lake = copied
    write(place / "3.parquet", a=[3], b=["x"], c=[1])
    pq.write_table(pa.table({"a": ["x"], "b": ["x"]}), place / "4.parquet")
    told = refusal(
        InvalidRequest, lambda: lake.table("t").add_files(place), catalog, base.folder / "data"
    )

    assert told.splitlines() == [
        "cannot add 4 file(s) to main.t, nothing was added:",
        (
            f"  - {place}/3.parquet: column 'c' is in the file but not in the table"
            " (ignore_extra_columns=True leaves it out)"
        ),
        f"  - {place}/4.parquet: column 'a' is int32 in the table but varchar in the file",
    ]


def test_what_is_no_parquet_file_is_refused(lake, place):
    (place / "3.parquet").write_bytes(b"no Parquet at all")
    (place / "4.parquet").write_bytes(b"PAR1")
    for name in ("3", "4"):
        with pytest.raises(InvalidRequest, match=rf"/{name}\.parquet is not a Parquet file"):
            lake.table("t").add_files(place / f"{name}.parquet")


def test_files_below_the_lakes_own_path_are_refused(base, lake):
    write(base.folder / "data" / "main" / "x.parquet", a=[1], b=["x"])
    with pytest.raises(InvalidRequest, match="is below the lake's data path"):
        lake.table("t").add_files(base.folder / "data")


def test_a_column_that_must_not_be_null_is_checked_in_the_footer(lake, tmp_path):
    lake.table("n").add_files(write(tmp_path / "1.parquet", a=[1]))
    with pytest.raises(InvalidRequest, match="column 'a' is NOT NULL, but the file contains NULL"):
        lake.table("n").add_files(write(tmp_path / "2.parquet", a=[1, None]))
    blind = pa.table({"a": pa.array([1], pa.int32())})
    pq.write_table(blind, tmp_path / "3.parquet", write_statistics=False)
    with pytest.raises(InvalidRequest, match="NOT NULL, but the file may contain NULL"):
        lake.table("n").add_files(tmp_path / "3.parquet")


def test_columns_of_the_path_fill_partitions(lake, tmp_path):
    lake.sql("ALTER TABLE p SET PARTITIONED BY (k)")
    write(tmp_path / "in" / "k=07" / "1.parquet", a=[1])
    write(tmp_path / "in" / "k=__HIVE_DEFAULT_PARTITION__" / "1.parquet", a=[2])
    write(tmp_path / "flat.parquet", a=[3], k=[9])
    table = lake.table("p")
    table.add_files([tmp_path / "in", tmp_path / "flat.parquet"])

    assert sorted(rows(table.read()), key=str) == [(1, 7), (2, None), (3, 9)]
    assert rows(table.read().where("k = 7")) == [(1, 7)]
    found = table.files().select("partition", "spec_id").orderBy("data_file_id")
    assert [(p, s is None) for p, s in rows(found)] == [
        ({}, True),
        ({"k": "7"}, False),
        ({"k": None}, False),
    ]


def test_a_value_in_a_path_has_to_be_of_its_columns_type(lake, tmp_path):
    write(tmp_path / "k=x" / "1.parquet", a=[1])
    table = lake.table("p")

    with pytest.raises(InvalidRequest, match="column 'k' is int32, but 'x' in the path"):
        table.add_files(tmp_path)
    with pytest.raises(InvalidRequest, match="column 'k' is in the table but not in the file"):
        table.add_files(tmp_path, hive_partitioning=False)
    with pytest.raises(InvalidRequest, match="no parent directory has a name such as column=value"):
        table.add_files(write(tmp_path / "1.parquet", a=[1], k=[1]), hive_partitioning=True)


def test_files_without_rows_and_without_anything_new_make_no_snapshot(lake, tmp_path):
    before = newest(lake)
    done = lake.table("t").add_files(write(tmp_path / "0.parquet", a=[], b=pa.array([], "string")))

    assert (done.snapshot, done.rows, newest(lake)) == (before, 0, before)


def test_a_transaction_reads_what_it_adopted_and_forgets_it_on_rollback(copied, base, place):
    catalog, lake = copied
    before = everything(catalog, base.folder / "data")
    with lake.transaction() as tx:
        tx.table("t").add_files(place)
        assert sorted(rows(tx.table("t").read())) == [(1, "b1"), (2, "b2")]
        with pytest.raises(AlreadyExists, match=r"is already part of main\.t"):
            tx.table("t").add_files(place)
        tx.rollback()

    assert everything(catalog, base.folder / "data") == before
    assert sorted(p.name for p in place.iterdir()) == ["1.parquet", "2.parquet"]


def test_a_table_made_in_the_same_transaction_adopts_files(lake, place):
    with lake.transaction() as tx:
        tx.create_table("fresh", {"a": "int", "b": "string"}).add_files(place)
        assert tx.table("fresh").read().count() == 2

    assert lake.table("fresh").read().count() == 2


def test_columns_that_changed_meanwhile_are_a_conflict(base, copied, place):
    catalog, lake = copied
    tx = lake.transaction()
    tx.table("t").add_files(place)
    with base.connect(catalog) as other:
        other.sql("ALTER TABLE t DROP COLUMN b")

    with pytest.raises(Conflict):
        tx.commit()
    assert sorted(p.name for p in place.iterdir()) == ["1.parquet", "2.parquet"]


@pytest.mark.slow
def test_footers_are_read_in_the_executors_where_there_are_many(lake, tmp_path, monkeypatch):
    monkeypatch.setattr(footers, "is_one_machine", lambda _: False)
    for number in range(70):
        write(tmp_path / "in" / f"{number:02}.parquet", a=[number], b=["x"])
    done = lake.table("t").add_files(tmp_path / "in")

    assert (done.files, done.rows) == (70, 70)
    found = lake.sql("SELECT lower_bound, upper_bound FROM t.column_stats WHERE column_name = 'a'")
    assert rows(found) == [("0", "69")]
    (tmp_path / "in" / "00.parquet").write_bytes(b"no Parquet at all")
    with pytest.raises(InvalidRequest, match=r"00\.parquet is not a Parquet file"):
        lake.create_table("u", {"a": "int", "b": "string"}).add_files(tmp_path / "in")


@pytest.mark.parametrize("codec", ["uncompressed", "zstd"])
def test_a_file_that_spark_misreads_is_refused(lake, spark, tmp_path, codec):
    lake.sql("CREATE TABLE texts (s STRING, id BIGINT)")
    made = spark.range(3).selectExpr("concat('s', id) AS s", "id").coalesce(1).write
    made = made.option("compression", codec).option("parquet.writer.version", "v2")
    made.parquet(f"{tmp_path}/in")
    (path,) = (tmp_path / "in").glob("*.parquet")

    if codec == "uncompressed":
        with pytest.raises(InvalidRequest, match=f"^Spark misreads column 's' of {path}: "):
            lake.table("texts").add_files(path)
        # It is a fault of Spark: without it, the file could be added.
        assert spark.read.parquet(f"{path}").count() == 3
        assert rows(spark.read.parquet(f"{path}"))[0] != ("s0", 0)
    else:
        lake.table("texts").add_files(path)
    assert rows(lake.sql("FROM texts ORDER BY id")) == (
        [] if codec == "uncompressed" else [(f"s{n}", n) for n in range(3)]
    )


def test_a_float_of_the_path_stays_the_number_that_it_is(lake, tmp_path):
    lake.sql("CREATE TABLE f (a INT, k FLOAT)")
    table = lake.table("f")
    table.add_files(write(tmp_path / "k=1.1" / "1.parquet", a=[1]))
    before = newest(lake)
    with pytest.raises(Unsupported) as refused:
        lake.sql("ALTER TABLE f ALTER COLUMN k TYPE DOUBLE")

    assert str(refused.value) == (
        "cannot change 'k' of main.f from float32 to float64: files that were added have its"
        " values in their paths, which would be read as other numbers; rewrite those files"
        " first with Table.rewrite()"
    )
    assert newest(lake) == before
    table.rewrite()
    lake.sql("ALTER TABLE f ALTER COLUMN k TYPE DOUBLE")
    assert rows(table.read()) == [(1, 1.100000023841858)]
