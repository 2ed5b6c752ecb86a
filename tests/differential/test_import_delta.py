"""Delta tables that become tables of a lake: each version is read as Delta's readers read it."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

import shelduck
from shelduck.formats.delta import import_verbs
from shelduck.lake.lookup import version_at
from shelduck.lake.results import TableName
from tests.support.delta import DeltaReaders, versions_of
from tests.support.normal import duckdb_rows, spark_rows
from tests.support.oracle import DuckDBOracle, at

GOLDEN = Path(__file__).parent.parent / "data" / "delta"


@pytest.fixture
def lake(spark, sqlite_url, data_path):
    with shelduck.connect(sqlite_url, data_path, spark) as lake:
        yield lake


@pytest.fixture(scope="module")
def readers():
    with DeltaReaders() as readers:
        yield readers


def same_as_deltalake(lake, url, readers, path, done):
    """The rows of each imported version after making sure that three readers agree on them."""
    ours = versions_of(lake, url, done)
    for version, rows in ours.items():
        assert readers.by_deltalake(path, version) == rows
    return ours


def test_widened_types_are_read_in_every_version(lake, sqlite_url):
    done = lake.import_delta(GOLDEN / "delta-type-widening", "t")

    # Version 1 enables type widening, which is a property of the table here, too.
    assert (done.versions, done.files, done.rows) == ((0, 1, 2), 2, 2)
    [note] = done.notes
    assert note.startswith("1 file(s) hold byte_decimal, byte_double, date_timestamp_ntz, decimal_")
    assert "byte_long" not in note
    old = (
        1,
        2,
        "3.4000000953674316",
        5,
        6,
        7,
        Decimal("123.45"),
        Decimal("67.89"),
        1,
        2,
        3,
        4,
        "2024-09-09",
    )
    widened = (
        *(1, 2, "3.4000000953674316", "5.0", "6.0", "7.0", Decimal("123.45"), Decimal("67.89")),
        *(1, 2, 3, 4, "2024-09-09T00:00:00"),
    )
    new = (
        *(9223372036854775807, 9223372036854775807),
        *("1.234567890123",) * 4,
        *(Decimal("12345678901234.56"), Decimal("12345678901.23456"), Decimal("123.4")),
        *(Decimal("12345.6"), Decimal("1234567890.1"), Decimal("123456789012345678.9")),
        "2024-09-09T12:34:56.123456",
    )
    ours = versions_of(lake, sqlite_url, done)
    assert ours == {0: [old], 1: [old], 2: [widened, new]}


def test_a_filter_on_a_widened_column_finds_old_rows(lake):
    lake.import_delta(GOLDEN / "delta-type-widening", "t")
    table = lake.table("t").read()

    assert table.where("float_double = CAST(3.4F AS DOUBLE)").count() == 1
    assert table.where("byte_double < 5.5").count() == 2
    assert table.where("date_timestamp_ntz > TIMESTAMP_NTZ '2024-09-09 00:00:01'").count() == 1


def test_columns_mapped_by_id_are_found_in_the_footers(lake, sqlite_url):
    done = lake.import_delta(GOLDEN / "table-with-columnmapping-mode-id", "t")

    leaves = [
        *("ByteType", "ShortType", "IntegerType", "LongType", "FloatType", "DoubleType"),
        *("decimal", "BooleanType", "StringType", "BinaryType", "DateType", "TimestampType"),
    ]
    nested = [
        *("nested_struct", "array_of_prims", "array_of_arrays", "array_of_map_of_arrays"),
        # Python has no dictionary with lists for keys.
        "array_of_structs", "struct_of_arrays_maps_of_structs.aa AS saa",
        "map_entries(struct_of_arrays_maps_of_structs.ab) AS sab",
        *("map_of_prims", "map_of_rows", "map_of_arrays", "map_of_maps"),
    ]  # fmt: skip

    def row(n):
        instant = f"1970-01-01T00:00:00.00{n}000Z" if n else "1970-01-01T00:00:00Z"
        return (
            *(n, n, n, n, f"{n}.0", f"{n}.0", n, str(n in (0, 2, 4)).lower(), str(n)),
            *(str(n).encode(), "2021-11-18", instant, (str(n), (n,)), [n, n + 1]),
            [[n, n + 1], [n + 2, n + 3]],
            [("map", sorted([(n, [2, 3]), (n + 1, [4, 5])], key=repr))],
            *([(n,), (n,)], [n, n + 1], [([n, n + 1], (n + 2,))]),
            ("map", sorted([(n, n + 1), (n + 2, n + 3)], key=repr)),
            ("map", [(n + 1, (n * 20,))]),
            ("map", sorted([(n, [n, None, n + 1]), (n + 1, [])], key=repr)),
            ("map", sorted([(n, ("map", [(n, n)])), (n + 1, ("map", [(n + 2, n)]))], key=repr)),
        )

    expected = sorted([*map(row, range(5)), (None,) * 23], key=repr)
    ours = lake.table("t").read()
    assert spark_rows(ours.selectExpr(*leaves, *nested)) == expected
    lake.close()
    with DuckDBOracle(sqlite_url) as oracle:
        columns = ", ".join([*leaves, *nested])
        assert duckdb_rows(oracle, at("t", done.snapshots[0]), columns) == expected


@pytest.mark.slow
def test_a_table_of_deltalake_is_read_alike_in_every_version(lake, sqlite_url, readers, tmp_path):
    path = tmp_path / "delta"
    first = pa.table(
        {"id": [1, 2, 3, 4], "p": ["x", "y z", "a/b=c", None], "v": [0.5, 1.5, None, 2]}
    )
    write_deltalake(path, first, partition_by=["p"])
    DeltaTable(path).delete("id = 2")
    write_deltalake(path, pa.table({"id": [5, 6], "p": ["x", "x"], "v": [1.0, 2.0]}), mode="append")
    DeltaTable(path).update({"v": "v * 10"}, predicate="id = 5")
    DeltaTable(path).create_checkpoint()
    DeltaTable(path).alter.add_columns([Field("n", PrimitiveType("string"))])
    more = pa.table({"id": [7], "p": ["new"], "v": [0.0], "n": ["née"]})
    write_deltalake(path, more, mode="append")
    DeltaTable(path).optimize.compact()

    done = lake.import_delta(path, "t")

    assert done.versions == tuple(range(DeltaTable(path).version() + 1))
    assert done.notes == ()
    ours = same_as_deltalake(lake, sqlite_url, readers, path, done)
    assert [len(rows) for rows in ours.values()] == [4, 3, 5, 5, 5, 6, 6]
    assert (5, "x", "10.0", None) in ours[done.versions[-1]]


def test_the_snapshots_say_which_versions_they_are(lake, tmp_path):
    path = tmp_path / "delta"
    write_deltalake(path, pa.table({"a": [1]}))
    DeltaTable(path).delete("a = 1")

    done = lake.import_delta(path, "t")

    told = {s.id: s for s in lake.snapshots()}
    assert [told[s].commit_message for s in done.snapshots.values()] == [
        "Delta version 0: WRITE",
        "Delta version 1: DELETE",
    ]
    extra = json.loads(told[done.snapshots[1]].commit_extra_info)["delta"]
    when = DeltaTable(path).history()[0]["timestamp"]
    assert extra["version"] == 1
    assert dt.datetime.fromisoformat(extra["timestamp"]).timestamp() == when / 1000


def test_a_table_mapped_by_name_keeps_its_columns_apart(lake, sqlite_url, readers, tmp_path):
    path = tmp_path / "delta"
    rows = pa.table({"a": [1, 2, 3], "b": ["x", "y", None], "s": [{"i": 1}, {"i": None}, None]})
    write_deltalake(path, rows, configuration={"delta.columnMapping.mode": "name"})
    DeltaTable(path).delete("a = 2")
    write_deltalake(path, rows, mode="append")

    done = lake.import_delta(path, "t")

    ours = same_as_deltalake(lake, sqlite_url, readers, path, done)
    assert ours[2] == [(1, "x", (1,))] * 2 + [(2, "y", (None,))] + [(3, None, None)] * 2


def test_partition_values_that_no_path_tells_come_from_the_log(
    spark, long_story_url, data_path, readers, tmp_path
):
    path = tmp_path / "delta"
    rows = pa.table({"a": [1, 2, 3], "p": ["x", "a/b=c", None]})
    mapped = {"delta.columnMapping.mode": "name"}
    write_deltalake(path, rows, partition_by=["p"], configuration=mapped)
    with shelduck.connect(long_story_url, data_path, spark) as lake:
        done = lake.import_delta(path, "t")

        table = lake.table("t").read()
        assert spark_rows(table) == [(1, "x"), (2, "a/b=c"), (3, None)]
        assert spark_rows(table) == readers.by_deltalake(path)
        assert table.where("p = 'x'").collect() == [(1, "x")]
        assert table.where("p IS NULL").collect() == [(3, None)]
        assert "3 file(s) have partition values that are not in their path" in done.notes[0]
    # DuckDB takes such values from paths only, and says so: it never reads another value.
    with (
        DuckDBOracle(long_story_url) as oracle,
        pytest.raises(duckdb.InvalidInputException, match="should have been read from hive"),
    ):
        oracle.rows("t")


@pytest.mark.slow
def test_an_imported_table_is_a_table_like_any_other(lake, sqlite_url, tmp_path):
    path = tmp_path / "delta"
    mapped = {"delta.columnMapping.mode": "name"}
    rows = pa.table({"a": [1, 2, 3], "p": ["x", "y", "y"], "s": [{"i": 1}, {"i": 2}, None]})
    write_deltalake(path, rows, partition_by=["p"], configuration=mapped)
    lake.import_delta(path, "t")
    table = lake.table("t")

    lake.sql("INSERT INTO t VALUES (4, 'z', NULL)")
    lake.sql("UPDATE t SET a = a * 10 WHERE p = 'y'")
    lake.sql("DELETE FROM t WHERE a = 20")
    lake.sql("ALTER TABLE t RENAME COLUMN s.i TO j")
    expected = [(1, "x", (1,)), (30, "y", None), (4, "z", None)]
    assert spark_rows(table.read()) == expected

    # What is written anew has its partition values inside, so that DuckDB reads it as well.
    table.rewrite()
    assert spark_rows(table.read()) == expected
    assert table.compact().skipped == 0
    lake.flush_inlined_data()
    lake.close()
    with DuckDBOracle(sqlite_url) as oracle:
        assert duckdb_rows(oracle, "t") == expected


def test_a_table_that_was_overwritten_with_other_columns(lake, sqlite_url, readers, tmp_path):
    path = tmp_path / "delta"
    write_deltalake(path, pa.table({"a": [1], "b": ["x"], "c": pa.array([1], pa.int32())}))
    write_deltalake(
        path,
        pa.table({"b": [2], "c": [2**40], "d": ["new"]}),
        mode="overwrite",
        schema_mode="overwrite",
    )

    done = lake.import_delta(path, "t")

    ids = {n: f.id for s in done.snapshots.values() for n, f in columns_at(lake, s).items()}
    first, second = (columns_at(lake, s) for s in done.snapshots.values())
    assert list(first) == ["a", "b", "c"]
    assert list(second) == ["b", "c", "d"]
    # Text cannot become a number, so b is another column; c only got wider.
    assert first["b"].id != second["b"].id
    assert first["c"].id == second["c"].id
    assert len(set(ids.values())) == 4
    assert same_as_deltalake(lake, sqlite_url, readers, path, done) == {
        0: [(1, "x", 1)],
        1: [(2, 2**40, "new")],
    }


def columns_at(lake, snapshot):
    found = version_at(lake._state, TableName("main", "t"), snapshot, None)
    return {f.name: f for f in found.columns}


def test_versions_after_a_checkpoint_whose_older_commits_are_gone(
    lake, sqlite_url, readers, tmp_path
):
    path = tmp_path / "delta"
    for number in range(5):
        write_deltalake(path, pa.table({"a": [number]}), mode="append")
        if number == 3:
            DeltaTable(path).create_checkpoint()
    for number in range(4):
        (path / "_delta_log" / f"{number:020}.json").unlink()

    done = lake.import_delta(path, "t")

    assert done.versions == (3, 4)
    assert done.notes == ("versions before 3 were left out: the log no longer contains them",)
    ours = same_as_deltalake(lake, sqlite_url, readers, path, done)
    assert ours == {3: [(0,), (1,), (2,), (3,)], 4: [(0,), (1,), (2,), (3,), (4,)]}


def test_versions_whose_files_were_vacuumed_are_left_out(lake, sqlite_url, readers, tmp_path):
    path = tmp_path / "delta"
    write_deltalake(path, pa.table({"a": [1, 2]}))
    DeltaTable(path).delete("a = 1")
    write_deltalake(path, pa.table({"a": [3]}), mode="append")
    gone = DeltaTable(path).vacuum(
        retention_hours=0, dry_run=False, enforce_retention_duration=False
    )

    done = lake.import_delta(path, "t")

    assert done.versions[0] == 1
    [note] = done.notes
    assert note == (
        f"versions 0 to 0 were left out: version 0 needs the data file {path}/{gone[0]}, which"
        " does not exist"
    )
    ours = same_as_deltalake(lake, sqlite_url, readers, path, done)
    assert ours[2] == [(2,), (3,)]


def test_an_import_that_stopped_goes_on(lake, sqlite_url, readers, tmp_path, monkeypatch):
    path = tmp_path / "delta"
    for number in range(4):
        write_deltalake(path, pa.table({"a": [number]}), mode="append")
    stage = import_verbs.stage_step

    def killed(step, *rest):
        if step.version == 2:
            raise KeyboardInterrupt
        return stage(step, *rest)

    monkeypatch.setattr(import_verbs, "stage_step", killed)
    with pytest.raises(KeyboardInterrupt):
        lake.import_delta(path, "t")
    assert spark_rows(lake.table("t").read()) == [(0,), (1,)]
    monkeypatch.undo()

    done = lake.import_delta(path, "t")

    assert (done.versions, done.files) == ((2, 3), 2)
    assert len([s for s in lake.snapshots() if "Delta" in (s.commit_message or "")]) == 4
    ours = same_as_deltalake(lake, sqlite_url, readers, path, done)
    assert ours[3] == [(0,), (1,), (2,), (3,)]


def test_versions_that_were_written_since_are_caught_up_with(lake, sqlite_url, readers, tmp_path):
    path = tmp_path / "delta"
    write_deltalake(path, pa.table({"a": [1, 2], "b": ["x", "y"]}))
    lake.import_delta(path, "t")

    assert lake.import_delta(path, "t").versions == ()

    DeltaTable(path).delete("a = 1")
    DeltaTable(path).alter.add_columns([Field("n", PrimitiveType("long"))])
    write_deltalake(path, pa.table({"a": [3], "b": ["z"], "n": [30]}), mode="append")
    done = lake.import_delta(path, "t")

    assert done.versions == (1, 2, 3)
    ours = same_as_deltalake(lake, sqlite_url, readers, path, done)
    assert ours[3] == [(2, "y", None), (3, "z", 30)]


def test_a_table_of_another_origin_or_changed_since_is_refused(lake, tmp_path):
    path = tmp_path / "delta"
    write_deltalake(path, pa.table({"a": [1]}))
    lake.create_table("mine", {"a": "bigint"})
    with pytest.raises(shelduck.AlreadyExists, match="was not imported from the Delta table at"):
        lake.import_delta(path, "mine")

    lake.import_delta(path, "t")
    lake.sql("INSERT INTO t VALUES (2)")
    write_deltalake(path, pa.table({"a": [3]}), mode="append")
    with pytest.raises(shelduck.InvalidRequest, match="was changed after the import"):
        lake.import_delta(path, "t")
    assert spark_rows(lake.table("t").read()) == [(1,), (2,)]


def test_another_delta_table_in_the_same_place_is_refused(lake, tmp_path):
    path = tmp_path / "delta"
    write_deltalake(path, pa.table({"a": [1]}))
    lake.import_delta(path, "t")
    shutil.rmtree(path)
    write_deltalake(path, pa.table({"a": [2]}))

    with pytest.raises(shelduck.InvalidRequest, match="one of them was changed after"):
        lake.import_delta(path, "t")


def test_sql_imports_too(lake, tmp_path):
    path = tmp_path / "delta"
    write_deltalake(path, pa.table({"a": [1]}))
    write_deltalake(path, pa.table({"a": [2]}), mode="append")

    rows = lake.sql(f"CALL import_delta('{path}', 'main.t')").collect()

    assert [row.delta_version for row in rows] == [0, 1]
    assert rows[1].snapshot_id == lake.snapshots()[-1].id
    with pytest.raises(shelduck.InvalidRequest, match="cannot be part of a transaction"):
        lake.sql(f"BEGIN; CALL import_delta('{path}', 'u')")


def test_old_timestamps_are_told_of(lake, tmp_path):
    path = tmp_path / "delta"
    instant = dt.datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=dt.UTC)
    write_deltalake(path, pa.table({"t": pa.array([instant], pa.timestamp("us", "UTC"))}))
    [file] = DeltaTable(path).file_uris()
    pq.write_table(pq.read_table(file), file, use_deprecated_int96_timestamps=True)

    done = lake.import_delta(path, "t")

    assert spark_rows(lake.table("t").read()) == [("2024-05-06T07:08:09.123456Z",)]
    assert "DuckDB by the time zone of its session" in done.notes[0]
