"""Tables exported to Iceberg, and what two readers that know nothing of the lake make of them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import shelduck
from shelduck.errors import AlreadyExists, Conflict, InvalidRequest, Unsupported
from shelduck.formats.iceberg import iceberg_export, iceberg_metadata
from tests.support.iceberg import IcebergReaders
from tests.support.meanwhile import once_before
from tests.support.no_bridge import without_bridge
from tests.support.normal import spark_rows

EVOLVED = [
    (
        "CREATE TABLE t (id INT, a STRING, b STRING, s STRUCT<x: INT, y: STRING>, l ARRAY<INT>,"
        " m MAP<STRING, INT>, ls ARRAY<STRUCT<p: INT>>, f FLOAT, n INT, again STRING,"
        " q DECIMAL(9,2), ts TIMESTAMP_NTZ) TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
    ),
    (
        "INSERT INTO t VALUES"
        " (1, 'a1', 'b1', named_struct('x', 1, 'y', 'p'), array(1, null), map('k', 1),"
        "  array(named_struct('p', 1)), 1.1, 6, 'old', 1.50, TIMESTAMP_NTZ '2024-02-29 12:00:00'),"
        " (2, 'a2', 'b2', null, array(), map(), array(), 2.5, 7, 'old', 2.50, null),"
        " (3, null, null, named_struct('x', null, 'y', null), null, null, array(), null, null,"
        "  null, null, null),"
        " (4, 'a4', 'b4', null, array(4), map('k', null), array(), -0.0, -8, 'old', -1.25, null)"
    ),
    # Two names that change places.
    "ALTER TABLE t RENAME COLUMN a TO c",
    "ALTER TABLE t RENAME COLUMN b TO a",
    "ALTER TABLE t RENAME COLUMN c TO b",
    "ALTER TABLE t ALTER COLUMN s.x TYPE BIGINT",
    "ALTER TABLE t RENAME COLUMN s.y TO z",
    "ALTER TABLE t ALTER COLUMN l.element TYPE BIGINT",
    "ALTER TABLE t ALTER COLUMN m.value TYPE BIGINT",
    "ALTER TABLE t ALTER COLUMN f TYPE DOUBLE",
    "ALTER TABLE t ALTER COLUMN n TYPE BIGINT",
    "ALTER TABLE t ALTER COLUMN q TYPE DECIMAL(20,2)",
    "ALTER TABLE t ADD COLUMN d INT DEFAULT 5",
    "ALTER TABLE t ADD COLUMN s.w STRING DEFAULT 'neu'",
    "ALTER TABLE t ADD COLUMN ls.element.r INT",
    "ALTER TABLE t DROP COLUMN again",
    "ALTER TABLE t ADD COLUMN again INT",
    (
        "INSERT INTO t VALUES"
        " (5, 'B5', 'A5', named_struct('x', 5000000000, 'z', 'q', 'w', 'w'), array(6000000000),"
        "  map('z', 7000000000), array(named_struct('p', 5, 'r', 55)), 1.1, 8000000000, 99.50,"
        "  TIMESTAMP_NTZ '1969-12-31 23:59:59.999999', 2, 77),"
        " (6, 'B6', 'A6', null, array(), map(), array(), 0.1, 6, 2.50, null, 5, 6)"
    ),
    "DELETE FROM t WHERE id = 2",
]
# What is true of one row and false of its neighbour, where a type, a name or a default has changed.
SEAMS = {
    "id = 1": {1},
    "a = 'b1'": {1},
    "b = 'a1'": {1},
    "b = 'b1'": set(),
    "n = 6": {1, 6},
    "n < 7": {1, 4, 6},
    "n >= 7": {5},
    "n = 8000000000": {5},
    "n > 7999999999": {5},
    "f = 0.1": {6},
    "f < 0": set(),
    "f <= 0": {4},
    "f is null": {3},
    "q = 1.50": {1},
    "q > 99.49": {5},
    "d = 5": {1, 3, 4, 6},
    "d < 5": {5},
    "d is null": set(),
    "again is null": {1, 3, 4},
    "again = 77": {5},
    "ts < '1970-01-01T00:00:00'": {5},
    "ts >= '2024-02-29T12:00:00'": {1},
}


@pytest.fixture(scope="module")
def spark_lake(spark, tmp_path_factory):
    """A lake whose small writes go into files, for tests that do not change each other's tables."""
    folder = tmp_path_factory.mktemp("lake")
    lake = shelduck.connect(f"sqlite:///{folder}/catalog.db", f"{folder}/data", spark)
    lake.set_option("data_inlining_row_limit", 0)
    yield lake, folder
    lake.close()


@pytest.fixture(scope="module")
def evolved(spark_lake):
    """The evolved table, and where it was exported."""
    lake, folder = spark_lake
    for statement in EVOLVED:
        lake.sql(statement)
    table = lake.table("t")
    return table, table.export_iceberg(folder / "evolved"), folder / "evolved"


@pytest.fixture
def lake(spark, tmp_path):
    """A lake of the test's own; small writes stay in the catalog."""
    with shelduck.connect(f"sqlite:///{tmp_path}/catalog.db", f"{tmp_path}/data", spark) as found:
        yield found


def metadata(path):
    return json.loads(Path(path).read_text())


def run(lake, *statements):
    for statement in statements:
        lake.sql(statement)


def by_both(rows):
    """What both readers have to say."""
    return {"duckdb": rows, "pyiceberg": rows}


def ids(readers, where=None, **more):
    return {
        name: {i for (i,) in rows}
        for name, rows in readers.rows(where, columns="id", **more).items()
    }


@pytest.mark.slow
def test_an_evolved_table_reads_as_in_the_lake(evolved):
    table, done, path = evolved
    expected = spark_rows(table.read())

    assert len(expected) == 5
    assert IcebergReaders(path).by_duckdb() == expected
    assert IcebergReaders(done.path).by_duckdb() == expected
    # PyIceberg shows a NULL list of structs as an empty one, so none is NULL here.
    assert IcebergReaders(path).by_pyiceberg() == expected
    assert (done.files, done.snapshot) == (2, table.history()[0].id)


def test_field_ids_are_those_of_the_lake_at_every_level(evolved):
    table, _, path = evolved
    exported = IcebergReaders(path).table().schema()

    for field in table.columns.walk():
        assert exported.find_column_name(field.id).rpartition(".")[2] == field.name


def test_filters_find_what_they_should_where_the_table_has_changed(evolved):
    _, _, path = evolved
    readers = IcebergReaders(path)

    for where, expected in SEAMS.items():
        assert ids(readers, where) == by_both(expected), where


def test_filters_on_parts_of_structs_find_what_they_should(evolved):
    _, _, path = evolved
    readers = IcebergReaders(path)

    for where, expected in {"s.x = 1": {1}, "s.x > 4999999999": {5}, "s.w = 'neu'": {1, 3}}.items():
        assert {i for (i,) in readers.by_duckdb(where, columns="id")} == expected


def test_floats_that_became_doubles_are_reported_since_readers_compare_them_as_floats(evolved):
    table, done, path = evolved
    [loss] = [loss for loss in done.report.losses if loss.subject == "column 'f'"]
    [old, _] = sorted(row.data_file_id for row in table.files().collect())

    assert "1 file(s) hold float32" in loss.what
    assert f"table.rewrite([{old}])" in loss.what
    # The row of 1.1 as float32 is 1.100000023841858, which is more than 1.1.
    assert spark_rows(table.read().where("f > 1.1D").select("id")) == [(1,)]
    assert ids(IcebergReaders(path), "f > 1.1") == by_both(set())


def test_lists_and_maps_of_structs_are_reported_since_pyiceberg_shows_null_as_empty(spark_lake):
    lake, folder = spark_lake
    run(
        lake,
        "CREATE TABLE nulls (id INT, ls ARRAY<STRUCT<p: INT>>, ms MAP<INT, STRUCT<p: INT>>)",
        "INSERT INTO nulls VALUES (1, null, null)",
    )
    done = lake.table("nulls").export_iceberg(folder / "nulls")
    readers = IcebergReaders(folder / "nulls")

    assert readers.by_duckdb() == [(1, None, None)]
    assert readers.by_pyiceberg() == [(1, [], ("map", []))]
    assert [str(loss) for loss in done.report.losses] == [
        "column 'ls': PyIceberg 0.12 shows a NULL list of structs as an empty one",
        "column 'ms': PyIceberg 0.12 shows a NULL map to structs as an empty one",
    ]


def test_bounds_let_readers_leave_files_out(evolved):
    _, _, path = evolved
    readers = IcebergReaders(path)

    assert readers.files_for("id = 6") == 1
    assert readers.files_for("n > 100") == 1
    assert readers.files_for("a = 'zzz'") == 0
    # A file that lacks the column has the default, and floats have no bounds in the wider type.
    assert readers.files_for("d = 5") == 2
    assert readers.files_for("f > 1000000") == 1


def test_defaults_need_version_3_and_deletes_are_vectors_there(evolved):
    _, done, path = evolved
    content = metadata(done.path)
    fields = {f["name"]: f for f in content["schemas"][0]["fields"]}

    assert content["format-version"] == 3
    assert (fields["d"]["initial-default"], fields["d"]["write-default"]) == (5, 5)
    assert "initial-default" not in fields["again"]
    assert [p.suffix for p in (path / "data").rglob("*") if p.is_file()] == [".puffin"]


def test_version_2_asks_for_files_without_the_default_to_be_written_anew(evolved):
    table, _, path = evolved

    with pytest.raises(Unsupported) as refused:
        table.export_iceberg(path.with_name("version-2"), format_version=2)

    assert "1 file(s)" in str(refused.value)
    assert "column 'd' is missing, and version 2 cannot express that its rows have '5'" in str(
        refused.value
    )
    assert not path.with_name("version-2").exists()


def test_rows_in_the_catalog_are_flushed_only_when_asked(lake, tmp_path):
    run(
        lake,
        "CREATE TABLE t (id INT)",
        "INSERT INTO t VALUES (1), (2), (3)",
        "DELETE FROM t WHERE id = 2",
    )
    table = lake.table("t")

    with pytest.raises(Unsupported, match=r"2 row\(s\) are in the catalog and must be flushed"):
        table.export_iceberg(tmp_path / "out")
    assert not (tmp_path / "out").exists()

    done = table.export_iceberg(tmp_path / "out", rewrite=True)
    assert IcebergReaders(done.path).rows() == by_both([(1,), (3,)])


@pytest.mark.slow
def test_deletes_in_the_catalog_and_in_files_are_shown_in_both_versions(lake, tmp_path):
    run(
        lake,
        "CALL set_option('data_inlining_row_limit', 2)",
        "CREATE TABLE t (id INT)",
        "INSERT INTO t SELECT CAST(id AS INT) FROM range(0, 100, 1, 1)",
        "INSERT INTO t SELECT CAST(id AS INT) FROM range(100, 200, 1, 1)",
        "DELETE FROM t WHERE id BETWEEN 10 AND 19",
        "DELETE FROM t WHERE id = 20",
        "DELETE FROM t WHERE id = 150",
        "UPDATE t SET id = id + 1000 WHERE id IN (30, 31, 32)",
    )
    table = lake.table("t")
    expected = spark_rows(table.read())
    assert len(expected) == 188

    for version in (2, 3):
        place = tmp_path / f"v{version}"
        done = table.export_iceberg(place, format_version=version)
        readers = IcebergReaders(place)
        assert readers.rows() == by_both(expected)
        assert ids(readers, "id >= 18 and id < 22") == by_both({21})
        assert ids(readers, "id = 1031") == by_both({1031})
        summary = metadata(done.path)["snapshots"][0]["summary"]
        assert (summary["total-records"], summary["total-position-deletes"]) == ("203", "15")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("version", [2, 3])
def test_without_a_way_into_the_jvm_deletes_are_the_same(lake, tmp_path, monkeypatch, version):
    run(
        lake,
        "CALL set_option('data_inlining_row_limit', 2)",
        "CREATE TABLE t (id INT)",
        "INSERT INTO t SELECT CAST(id AS INT) FROM range(0, 30, 1, 1)",
        "INSERT INTO t SELECT CAST(id AS INT) FROM range(30, 60, 1, 1)",
        "DELETE FROM t WHERE id BETWEEN 1 AND 58",
        "DELETE FROM t WHERE id = 59",
    )
    without_bridge(monkeypatch)

    lake.table("t").export_iceberg(tmp_path / "out", format_version=version)

    assert IcebergReaders(tmp_path / "out").rows() == by_both([(0,)])


@pytest.mark.slow
def test_our_delete_files_have_the_ids_of_iceberg_and_name_files_as_the_manifests_do(
    lake, tmp_path
):
    run(
        lake,
        "CALL set_option('data_inlining_row_limit', 0)",
        "CREATE TABLE t (id INT)",
        "INSERT INTO t SELECT CAST(id AS INT) FROM range(10)",
        "DELETE FROM t WHERE id IN (3, 4)",
    )
    lake.table("t").export_iceberg(tmp_path / "out")
    [path] = (tmp_path / "out" / "data").rglob("*.parquet")
    fields = {f.name: f.metadata[b"PARQUET:field_id"] for f in pq.read_schema(path)}
    tasks = IcebergReaders(tmp_path / "out").table().scan().plan_files()
    paths = {task.file.file_path for task in tasks if task.delete_files}

    assert fields == {"file_path": b"2147483546", "pos": b"2147483545"}
    assert set(pq.read_table(path)["file_path"].to_pylist()) == paths


@pytest.mark.slow
def test_compacted_files_with_rows_of_many_snapshots_read_as_in_the_lake(lake, tmp_path):
    run(
        lake,
        "CALL set_option('data_inlining_row_limit', 0)",
        "CREATE TABLE t (id INT, v STRING)",
        "INSERT INTO t VALUES (1, 'a')",
        "INSERT INTO t VALUES (2, 'b')",
        "INSERT INTO t VALUES (3, 'c')",
        "INSERT INTO t VALUES (4, 'd')",
        "UPDATE t SET v = 'z' WHERE id = 1",
    )
    table = lake.table("t")
    assert table.compact().new_files == 1
    [merged] = [f for f in table.files().collect() if f.partial_max is not None]
    table.delete("id = 3")

    table.export_iceberg(tmp_path / "out", format_version=3)

    assert merged.record_count > 1
    readers = IcebergReaders(tmp_path / "out")
    assert readers.rows() == by_both([(1, "z"), (2, "b"), (4, "d")])
    assert list(readers.types()) == ["id", "v"]


def test_a_second_export_adds_a_snapshot_and_the_first_stays_readable(lake, tmp_path):
    run(
        lake,
        "CALL set_option('data_inlining_row_limit', 0)",
        "CREATE TABLE t (id INT, v STRING)",
        "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
        "INSERT INTO t VALUES (3, 'c')",
    )
    table, place = lake.table("t"), tmp_path / "out"
    first = table.export_iceberg(place)
    run(
        lake,
        "ALTER TABLE t RENAME COLUMN v TO w",
        "ALTER TABLE t ALTER COLUMN id TYPE BIGINT",
        "ALTER TABLE t ADD COLUMN d INT DEFAULT 7",
        "DELETE FROM t WHERE id = 1",
        "DELETE FROM t WHERE id = 3",
        "INSERT INTO t VALUES (4, 'd', 8)",
    )
    second = table.export_iceberg(place)

    readers = IcebergReaders(place)
    old, new = [(1, "a"), (2, "b"), (3, "c")], [(2, "b", 7), (4, "d", 8)]
    names = [Path(done.path).name for done in (first, second)]
    assert names == ["v1.metadata.json", "v2.metadata.json"]
    assert (place / "metadata" / "version-hint.text").read_text() == "2"
    assert readers.rows() == by_both(new)
    assert readers.rows(snapshot=first.snapshot) == by_both(old)
    assert IcebergReaders(first.path).rows() == by_both(old)
    content = metadata(second.path)
    assert [s["snapshot-id"] for s in content["snapshots"]] == [first.snapshot, second.snapshot]
    assert content["snapshots"][1]["parent-snapshot-id"] == first.snapshot
    assert [s["schema-id"] for s in content["schemas"]] == [0, 1]
    assert [s["metadata-file"] for s in content["metadata-log"]] == [f"file://{first.path}"]


def test_manifests_say_which_files_came_stayed_and_went(lake, tmp_path):
    run(
        lake,
        "CALL set_option('data_inlining_row_limit', 0)",
        "CREATE TABLE t (id INT)",
        "INSERT INTO t VALUES (1)",
        "INSERT INTO t VALUES (2)",
    )
    table = lake.table("t")
    first = table.export_iceberg(tmp_path / "out")
    run(lake, "DELETE FROM t WHERE id = 1", "INSERT INTO t VALUES (3)")
    second = table.export_iceberg(tmp_path / "out")

    found = IcebergReaders(tmp_path / "out").table()
    [manifest] = found.current_snapshot().manifests(found.io)
    entries = manifest.fetch_manifest_entry(found.io, discard_deleted=False)
    told = {(e.status.name, e.snapshot_id, e.sequence_number) for e in entries}
    assert told == {
        ("DELETED", second.snapshot, first.snapshot),
        ("EXISTING", first.snapshot, first.snapshot),
        ("ADDED", second.snapshot, second.snapshot),
    }


@pytest.mark.slow
def test_an_export_without_changes_of_the_table_since_adds_nothing(lake, tmp_path):
    run(lake, "CREATE TABLE t (id INT)", "CREATE TABLE other (id INT)")
    run(lake, "INSERT INTO t SELECT CAST(id AS INT) FROM range(100)")
    first = lake.table("t").export_iceberg(tmp_path / "out")
    run(lake, "INSERT INTO other VALUES (1)")

    again = lake.table("t").export_iceberg(tmp_path / "out")

    assert (again.snapshot, again.path) == (first.snapshot, first.path)
    assert len(list((tmp_path / "out" / "metadata").glob("v*.metadata.json"))) == 1


@pytest.mark.parametrize("hint", [None, "1"])
def test_readers_by_directory_are_shown_what_an_export_was_cut_off_before_showing(
    lake, tmp_path, hint
):
    run(lake, "CREATE TABLE t (id INT)")
    table, place = lake.table("t"), tmp_path / "out"
    table.export_iceberg(place)
    run(lake, "ALTER TABLE t ADD COLUMN v INT")
    table.export_iceberg(place)
    shown = place / "metadata" / "version-hint.text"
    shown.unlink() if hint is None else shown.write_text(hint)

    table.export_iceberg(place)

    assert shown.read_text() == "2"
    assert list(IcebergReaders(place).types()) == ["id", "v"]
    assert len(list(shown.parent.glob("v*.metadata.json"))) == 2


def test_snapshots_that_the_lake_has_expired_are_shown_no_more(lake, tmp_path):
    run(
        lake,
        "CALL set_option('data_inlining_row_limit', 0)",
        "CREATE TABLE t (id INT)",
        "INSERT INTO t VALUES (1)",
    )
    table, snapshots = lake.table("t"), []
    for number in (2, 3, 4):
        snapshots.append(table.export_iceberg(tmp_path / "out").snapshot)
        run(lake, f"INSERT INTO t VALUES ({number})")
    lake.expire_snapshots(versions=[snapshots[1]])
    last = table.export_iceberg(tmp_path / "out")

    content = metadata(last.path)
    kept = [snapshots[0], snapshots[2], last.snapshot]
    assert [s["snapshot-id"] for s in content["snapshots"]] == kept
    # Nobody can say any more what was newest between the first and the third.
    assert [s["snapshot-id"] for s in content["snapshot-log"]] == kept[1:]
    assert ids(IcebergReaders(tmp_path / "out")) == by_both({1, 2, 3, 4})


def test_partitions_are_reported_and_rows_are_all_there(lake, tmp_path):
    run(
        lake,
        "CREATE TABLE t (id INT, day DATE) PARTITIONED BY (bucket(4, id), month(day))",
        "INSERT INTO t SELECT CAST(id AS INT), date_add(DATE'2024-01-01', CAST(id AS INT) * 10)"
        " FROM range(12)",
    )
    table = lake.table("t")
    done = table.export_iceberg(tmp_path / "out")

    assert IcebergReaders(tmp_path / "out").rows() == by_both(spark_rows(table.read()))
    assert [str(loss) for loss in done.report.losses] == [
        (
            "partitioning by bucket(4, id), month(day): not shown; readers can skip files only by"
            " bounds"
        )
    ]
    assert done.files > IcebergReaders(tmp_path / "out").files_for("day >= '2024-04-01'")


def test_odd_letters_in_paths_do_no_harm(spark, tmp_path):
    folder = tmp_path / "odd #1 %20 ä?"
    folder.mkdir()
    with shelduck.connect(f"sqlite:///{tmp_path}/catalog.db", f"{folder}/data", spark) as lake:
        run(
            lake,
            "CREATE TABLE t (id INT, p STRING) PARTITIONED BY (p)",
            "INSERT INTO t VALUES (1, 'a b'), (2, 'c%d'), (3, 'e=f/g'), (4, '?#'), (5, '?#')",
            "DELETE FROM t WHERE id = 5",
        )
        table = lake.table("t")
        expected = spark_rows(table.read())
        for version in (2, 3):
            place = folder / f"out {version}"
            table.export_iceberg(place, rewrite=True, format_version=version)
            assert IcebergReaders(place).rows() == by_both(expected)


def test_a_table_without_rows_is_a_table_without_rows(lake, tmp_path):
    run(lake, "CREATE TABLE t (id INT COMMENT 'who', v STRING)")
    lake.table("t").export_iceberg(tmp_path / "out")
    readers = IcebergReaders(tmp_path / "out")

    assert readers.rows() == by_both([])
    assert readers.types() == {"id": "int", "v": "string"}
    assert readers.table().schema().find_field("id").doc == "who"


def test_what_cannot_be_exported_is_refused_by_name(lake, tmp_path):
    run(lake, "CREATE TABLE t (id INT)", "CREATE TABLE other (id INT)")
    table = lake.table("t")
    with pytest.raises(
        InvalidRequest, match="cannot export to 'hudi'; use one of 'delta', 'iceberg'"
    ):
        table.plan_export("hudi")
    with pytest.raises(InvalidRequest, match="Iceberg's format version must be 2 or 3, not 4"):
        table.export_iceberg(tmp_path / "out", format_version=4)
    with pytest.raises(InvalidRequest, match="below the lake's data path"):
        table.export_iceberg(tmp_path / "data" / "main" / "t")
    with (
        lake.transaction() as tx,
        pytest.raises(InvalidRequest, match=r"export_iceberg\(\) commits by itself"),
    ):
        tx.table("t").export_iceberg(tmp_path / "out")
    assert not (tmp_path / "out").exists()

    table.export_iceberg(tmp_path / "out", format_version=3)
    with pytest.raises(InvalidRequest, match="already has format version 3, and Iceberg cannot go"):
        table.export_iceberg(tmp_path / "out", format_version=2)
    with pytest.raises(AlreadyExists, match=r"Iceberg metadata of another table .* main\.other"):
        lake.table("other").export_iceberg(tmp_path / "out")
    assert len(list((tmp_path / "out" / "metadata").glob("*.json"))) == 1


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("00001-0b9e.metadata.json", "{}", "Iceberg metadata of another writer"),
        ("v1.metadata.json", '{"format-version": 2}', "is not table metadata that Shelduck wrote"),
        ("v1.metadata.json", "[]", "is not table metadata that Shelduck wrote"),
    ],
)
def test_a_directory_with_metadata_of_others_is_left_alone(lake, tmp_path, name, text, why):
    run(lake, "CREATE TABLE t (id INT)")
    there = tmp_path / "out" / "metadata" / name
    there.parent.mkdir(parents=True)
    there.write_text(text)

    with pytest.raises(AlreadyExists, match=why):
        lake.table("t").export_iceberg(tmp_path / "out")

    assert [p for p in (tmp_path / "out").rglob("*") if p.is_file()] == [there]
    assert there.read_text() == text


def test_without_pyiceberg_the_error_says_what_to_install(lake, tmp_path, monkeypatch):
    run(lake, "CREATE TABLE t (id INT)")
    ours = [m for m in sys.modules if m.startswith("shelduck.formats.iceberg.")]
    for module in [*ours, *(m for m in sys.modules if m.partition(".")[0] == "pyiceberg")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "pyiceberg", None)

    assert lake.table("t").plan_export("iceberg").is_ready
    with pytest.raises(InvalidRequest, match=r"pip install '\.\[iceberg\]'"):
        lake.table("t").export_iceberg(tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize("step", ["write_manifest_list", "next_metadata", "publish"])
def test_an_export_that_fails_leaves_what_readers_saw(lake, tmp_path, monkeypatch, step):
    run(
        lake,
        "CALL set_option('data_inlining_row_limit', 0)",
        "CREATE TABLE t (id INT)",
        "INSERT INTO t VALUES (1), (2)",
        "DELETE FROM t WHERE id = 1",
    )
    table, place = lake.table("t"), tmp_path / "out"
    table.export_iceberg(place)
    before = {p: p.read_bytes() for p in place.rglob("*") if p.is_file()}
    run(lake, "INSERT INTO t VALUES (3)")

    def fail(*_, **__):
        raise Conflict("no")

    monkeypatch.setattr(iceberg_export, step, fail)
    with pytest.raises(Conflict):
        table.export_iceberg(place)

    assert {p: p.read_bytes() for p in place.rglob("*") if p.is_file()} == before
    assert ids(IcebergReaders(place)) == by_both({2})


def test_an_export_that_another_one_overtook_is_a_conflict(lake, tmp_path, monkeypatch):
    run(lake, "CREATE TABLE t (id INT)")
    table, place = lake.table("t"), tmp_path / "out"
    first = table.export_iceberg(place)
    run(lake, "ALTER TABLE t ADD COLUMN v INT")

    def overtaken(*arguments, **more):
        Path(first.path).with_name("v2.metadata.json").write_text("{}")
        return write(*arguments, **more)

    write = iceberg_export.write_manifest_list
    monkeypatch.setattr(iceberg_export, "write_manifest_list", overtaken)
    with pytest.raises(Conflict, match=r"another export to .* was faster; export again"):
        table.export_iceberg(place)


def test_the_slower_of_two_exports_leaves_nothing(lake, tmp_path, monkeypatch):
    run(lake, "CREATE TABLE t (id INT)", "INSERT INTO t SELECT 1")
    table, place = lake.table("t"), tmp_path / "out"
    seen = {}

    def overtake():
        table.export_iceberg(place, rewrite=True)
        seen.update((p, p.read_bytes()) for p in place.rglob("*") if p.is_file())
        return len(seen)

    after = once_before(monkeypatch, iceberg_export, "publish", overtake)
    with pytest.raises(Conflict, match=r"another export to .* was faster; export again"):
        table.export_iceberg(place, rewrite=True)

    left = {p: p.read_bytes() for p in place.rglob("*") if p.is_file()}
    others = [p for p in left if p not in seen]
    # The manifests of the slower one were there when the faster one had ended, and are gone.
    assert (others, len(left) < after[0]) == ([], True)
    assert ids(IcebergReaders(place)) == by_both({1})


def test_a_slow_export_does_not_take_readers_back(lake, tmp_path, monkeypatch):
    run(lake, "CREATE TABLE t (id INT)", "INSERT INTO t SELECT 1")
    table, place = lake.table("t"), tmp_path / "out"

    def overtake():
        run(lake, "INSERT INTO t SELECT 2")
        table.export_iceberg(place, rewrite=True)

    once_before(monkeypatch, iceberg_metadata, "_hint", overtake)
    table.export_iceberg(place, rewrite=True)

    assert (place / "metadata/version-hint.text").read_text() == "2"
    assert ids(IcebergReaders(place)) == by_both({1, 2})


def test_names_that_iceberg_cannot_tell_apart_are_refused(lake, tmp_path):
    run(lake, "CREATE TABLE t (`s.x` INT, s STRUCT<x: INT>)")

    with pytest.raises(
        Unsupported, match=r"cannot express the columns of main\.t as an Iceberg schema"
    ):
        lake.table("t").export_iceberg(tmp_path / "out")


def test_procedures_show_the_report_and_where_the_export_is(lake, tmp_path):
    run(
        lake,
        "CREATE TABLE t (id INT, u UUID)",
        "INSERT INTO t VALUES (1, '00000000-0000-0000-0000-000000000001')",
    )
    loss = ("loss", "column 'u'", "UUIDs are shown as text, as the files hold them", None, None)

    found = lake.sql("CALL plan_export('t', 'iceberg')")
    assert [tuple(row) for row in found.collect()] == [
        ("flush", "main.t", "1 row(s) are in the catalog", None, None),
        loss,
    ]
    done = lake.sql(f"CALL export_iceberg('t', '{tmp_path}/out', rewrite => true)")
    [row] = done.collect()
    path = f"{tmp_path}/out/metadata/v1.metadata.json"
    assert (row.metadata_file, row.files, row.losses) == (path, 1, 1)
    assert IcebergReaders(row.metadata_file).rows() == by_both(
        [(1, "00000000-0000-0000-0000-000000000001")]
    )
