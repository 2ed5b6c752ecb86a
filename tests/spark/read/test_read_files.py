"""Files as lakes have them: deletes, adopted files, files without ids, later rows, inlined rows."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest

from shelduck.errors import Unsupported
from shelduck.model.files.data_file import (
    ROW_ID_FIELD,
    SNAPSHOT_FIELD,
    DeleteFile,
    InlinedRows,
    MappedName,
    NameMapping,
)
from shelduck.model.tables.schema import Schema
from shelduck.read.plan.scan import FileSource, plan_scan
from shelduck.read.scan.scan_frames import Origin, read_rows
from tests.support.no_bridge import without_bridge
from tests.support.scans import arrow, column, known, table, written

NUMBERS = table(column("a", "int32", 1))


def integers(path, values, number=1, **more):
    fields = [arrow("a", pa.int32(), 1)]
    return written(path, fields, [{"a": v} for v in values], number, **more)


def delete_file(path, positions, snapshots=None):
    fields = [arrow("file_path", pa.string(), 2147483646), arrow("pos", pa.int64(), 2147483645)]
    if snapshots is not None:
        fields.append(arrow("_ducklake_internal_snapshot_id", pa.int64(), SNAPSHOT_FIELD))
    rows = [
        {"file_path": "x", "pos": p, "_ducklake_internal_snapshot_id": s}
        for p, s in zip(positions, snapshots or positions, strict=True)
    ]
    written(path, fields, rows)
    return DeleteFile(str(path), "parquet", len(positions))


@pytest.mark.slow
def test_deleted_rows_of_delete_files_and_of_the_catalog_are_gone(tmp_path, rows):
    dead = delete_file(tmp_path / "dead.parquet", [0, 250])
    one = integers(tmp_path / "1.parquet", range(300), delete_file=dead, inlined_deletes=(1, 299))
    two = integers(tmp_path / "2.parquet", [0, 1], 2, inlined_deletes=(1,))
    three = integers(tmp_path / "3.parquet", [-1], 3)

    assert rows(NUMBERS, [one, two, three], "a < 3 or a > 248") == [
        (-1,), (0,), (2,), (249,), *((n,) for n in range(251, 299)),
    ]  # fmt: skip
    assert rows(NUMBERS, [one], "a = 250") == []


@pytest.mark.slow
def test_rows_deleted_after_the_snapshot_are_there(tmp_path, rows):
    dead = delete_file(tmp_path / "dead.parquet", [0, 1, 2], [9, 10, 11])
    file = integers(tmp_path / "1.parquet", [5, 6, 7, 8], delete_file=dead)

    assert rows(NUMBERS, [file]) == [(7,), (8,)]


@pytest.mark.slow
def test_deletes_find_their_file_when_two_files_have_one_name(tmp_path, rows):
    one = integers(tmp_path / "x/part.parquet", [1, 2], inlined_deletes=(0,))
    two = integers(tmp_path / "y/part.parquet", [3, 4], 2, inlined_deletes=(1,))

    assert rows(NUMBERS, [one, two]) == [(2,), (3,)]


def test_paths_with_odd_characters_are_taken_as_they_are(tmp_path, rows):
    file = integers(tmp_path / "k=a%20b {1,2}[x]" / "f*.parquet", [1, 2], inlined_deletes=(0,))

    assert rows(NUMBERS, [file]) == [(2,)]


def test_deletion_vectors_are_refused_without_a_bridge(tmp_path, spark, monkeypatch):
    without_bridge(monkeypatch)
    vector = DeleteFile(str(tmp_path / "v-delete.puffin"), "puffin", 1)
    file = integers(tmp_path / "1.parquet", [1], delete_file=vector)

    with pytest.raises(Unsupported, match="puffin"):
        read_rows(spark, plan_scan(NUMBERS, [file], {}))


@pytest.mark.slow
def test_rows_of_a_merged_file_that_a_later_snapshot_wrote_are_not_there_yet(tmp_path, rows):
    fields = [
        arrow("a", pa.int32(), 1),
        arrow("_ducklake_internal_snapshot_id", pa.int64(), SNAPSHOT_FIELD),
    ]
    made = [{"a": n, "_ducklake_internal_snapshot_id": n} for n in (9, 10, 11)]
    merged = written(tmp_path / "1.parquet", fields, made, partial_max=11)

    assert rows(NUMBERS, [merged]) == [(10,), (9,)]
    assert rows(NUMBERS, [merged], "a = 11") == []
    assert rows(NUMBERS, [merged._replace(partial_max=None)]) == [(10,), (9,)]


def test_row_ids_are_embedded_ones_or_counted_from_the_start_of_the_file(tmp_path, rows):
    embedded = [
        arrow("a", pa.int32(), 1),
        arrow("_ducklake_internal_row_id", pa.int64(), ROW_ID_FIELD),
    ]
    one = integers(tmp_path / "1.parquet", [10, 11, 12], inlined_deletes=(0,))
    two = written(tmp_path / "2.parquet", embedded, [{"a": 20, "_ducklake_internal_row_id": 7}], 2)
    three = integers(tmp_path / "3.parquet", [30, 31], 3)

    found = rows(NUMBERS, [one, two, three], origins=[Origin.ROW_ID])

    assert found == [(11, 1001), (12, 1002), (20, 7), (30, 3000), (31, 3001)]
    assert rows(NUMBERS, [three], f"{Origin.ROW_ID} = 3001", origins=[Origin.ROW_ID]) == [
        (31, 3001)
    ]


def test_files_with_a_name_mapping_are_read_by_its_names_whatever_their_ids(tmp_path, rows):
    inside = pa.struct([arrow("Old", pa.int32(), None)])
    fields = [
        arrow("B", pa.int32(), 1),
        arrow("l", pa.list_(arrow("item", pa.int32(), None)), None),
        arrow("s", inside, None),
    ]
    file = written(
        tmp_path / "f.parquet", fields, [{"B": 5, "l": [1], "s": {"Old": 2}}], mapping_id=3
    )
    mapping = NameMapping(
        3,
        (
            MappedName("b", 2, is_partition=False),
            MappedName("l", 3, False, (MappedName("list", 4, is_partition=False),)),
            MappedName("s", 5, False, (MappedName("old", 6, is_partition=False),)),
        ),
    )
    now = table(
        column("a", "int32", 1, default="9"),
        column("renamed", "int64", 2),
        column("l", "list", 3, column("element", "int64", 4)),
        column("s", "struct", 5, column("x", "int32", 6)),
    )

    assert rows(now, [file], "renamed = 5", {3: mapping}) == [(9, 5, [1], (2,))]


def test_lists_of_old_writers_are_read_with_either_reader(tmp_path, spark):
    query = "SELECT array(1, 2) AS a, array(1, NULL) AS b, array(struct(3 AS z)) AS c"
    settings = ("spark.sql.parquet.writeLegacyFormat", "spark.sql.parquet.enableVectorizedReader")
    spark.conf.set(settings[0], "true")
    try:
        spark.sql(query).coalesce(1).write.parquet(str(tmp_path / "old"))
    finally:
        spark.conf.unset(settings[0])
    [path] = (tmp_path / "old").glob("*.parquet")
    mapping = NameMapping(
        3,
        tuple(
            MappedName(name, number, False, (MappedName("list", number + 1, False, inside),))
            for name, number, inside in (
                ("a", 1, ()), ("b", 3, ()), ("c", 5, (MappedName("z", 7, is_partition=False),)),
            )
        ),
    )  # fmt: skip
    now = table(
        column("a", "list", 1, column("element", "int64", 2)),
        column("b", "list", 3, column("element", "int32", 4)),
        column("c", "list", 5, column("element", "struct", 6, column("zz", "int64", 7))),
    )
    plan = plan_scan(now, [known(path, mapping_id=3)], {3: mapping})
    for vectorized in ("true", "false"):
        spark.conf.set(settings[1], vectorized)
        try:
            assert read_rows(spark, plan).collect() == [([1, 2], [1, None], [(3,)])]
        finally:
            spark.conf.unset(settings[1])


def test_partition_values_are_columns_and_filters_on_them_hold(tmp_path, rows):
    places = [
        ("region=eu%2Fx/n=3", ("eu/x", "3")),
        ("region=__HIVE_DEFAULT_PARTITION__/n=4", (None, "4")),
    ]
    files = [
        integers(tmp_path / place / "f.parquet", [n], n, mapping_id=3, partition_values=values)
        for n, (place, values) in enumerate(places, 1)
    ]
    mapping = NameMapping(
        3,
        (
            MappedName("a", 1, is_partition=False),
            MappedName("region", 2, is_partition=True),
            MappedName("n", 3, is_partition=True),
        ),
    )
    now = table(column("a", "int32", 1), column("region", "varchar", 2), column("n", "int64", 3))

    assert rows(now, files, mappings={3: mapping}) == [(1, "eu/x", 3), (2, None, 4)]
    assert rows(now, files, "n < 4", {3: mapping}) == [(1, "eu/x", 3)]
    assert rows(now, files, "region is null and a > 0", {3: mapping}) == [(2, None, 4)]


def test_a_file_with_a_column_without_id_is_read_by_position(tmp_path, rows):
    fields = [arrow("y", pa.int32(), None), arrow("x", pa.int32(), 1)]
    file = written(tmp_path / "f.parquet", fields, [{"y": 1, "x": 2}])
    now = table(column("x", "int32", 1), column("y", "int32", 2), column("z", "int32", 3))

    assert rows(now, [file], "x = 1") == [(1, 2, None)]


def test_inlined_rows_have_todays_columns_and_types(spark):
    old = Schema(
        (
            column("f", "float32", 1), column("d", "date", 2), column("t", "timestamptz", 3),
            column("s", "struct", 4, column("x", "int32", 5), column("gone", "int32", 6)),
            column("m", "map", 7, column("key", "varchar", 8), column("value", "decimal(5,2)", 9)),
            column("b", "blob", 10), column("u", "uint64", 11),
        )
    )  # fmt: skip
    part = InlinedRows(
        old,
        (
            ("1.1", "2024-02-29", "2024-01-01 02:00:00+02", {"x": "7", "gone": "1"}, [("k", "1.5")],
             b"\x00", "18446744073709551615"),
            ("nan", "0044-03-15 (BC)", None, None, None, None, None),
        ),
        (40, 41),
        (2, 3),
    )  # fmt: skip
    now = table(
        column("f", "float64", 1), column("d", "timestamp", 2), column("t", "timestamptz", 3),
        column("s", "struct", 4, column("x", "int64", 5), column("n", "int32", 12, default="3")),
        column("m", "map", 7, column("key", "varchar", 8), column("value", "decimal(7,2)", 9)),
        column("b", "blob", 10), column("u", "uint64", 11),
        column("added", "varchar", 13, default="new"),
    )  # fmt: skip
    frame = read_rows(spark, plan_scan(now, [], {}), inlined=[part], origins=[Origin.ROW_ID])

    first, second = frame.withColumns(
        {"t": frame.t.cast("string"), "d": frame.d.cast("string")}
    ).collect()

    assert tuple(first) == (
        1.100000023841858, "2024-02-29 00:00:00", "2024-01-01 00:00:00", (7, 3),
        {"k": Decimal("1.50")}, bytearray(b"\x00"), Decimal(18446744073709551615), "new", 40,
    )  # fmt: skip
    assert str(second.f) == "nan"
    assert tuple(second)[1:] == ("-0043-03-15 00:00:00", None, None, None, None, None, "new", 41)


@pytest.mark.slow
def test_inlined_rows_and_files_stand_in_one_frame(tmp_path, rows):
    file = integers(tmp_path / "1.parquet", [1])
    part = InlinedRows(Schema((column("old", "int8", 1),)), (("2",), (None,)), (7, 8), (2, 2))

    assert rows(NUMBERS, [file], inlined=[part]) == [(1,), (2,), (None,)]
    assert rows(NUMBERS, [file], "a = 2", inlined=[part]) == [(2,)]


def test_files_that_the_catalog_rules_out_are_not_read(tmp_path, spark):
    files = [integers(tmp_path / f"{n}.parquet", [n, n + 1], n) for n in (10, 20, 30)]
    asked = []

    class Second(FileSource):
        def parts(self, group, filters):
            asked.append(filters)
            _, second, _ = (replace(group, files=(f,), values=((),)) for f in group.files)
            return [second] if filters else [group]

    frame = read_rows(spark, plan_scan(NUMBERS, files, {}), Second())

    assert frame.where("a >= 21").collect() == [(21,)]
    assert any("21" in text for texts in asked for text in texts)
    assert frame.count() == 6


def test_old_timestamps_and_int96_are_read_in_the_gregorian_calendar(tmp_path, rows):
    old = dt.datetime(1500, 3, 1, 12)  # noqa: DTZ001 - a timestamp without zone
    micros = written(tmp_path / "m.parquet", [arrow("a", pa.timestamp("us"), 1)], [{"a": old}])
    now = table(column("a", "timestamp", 1))

    assert rows(now, [micros], "a < timestamp_ntz'1600-01-01'") == [(old,)]
