"""Writing tables that are partitioned and sorted: files, order, values, and what is refused."""

from __future__ import annotations

from urllib.parse import unquote

import pytest

import shelduck
from shelduck.catalog.read import read
from shelduck.errors import AlreadyExists, InvalidRequest, NotFound, Unsupported
from shelduck.read.plan.scan import plan_scan
from shelduck.read.pruning import Pruner
from shelduck.read.table_rows import table_rows
from tests.support.lakes import rows
from tests.support.no_bridge import without_bridge

STATEMENTS = [
    "CREATE TABLE t (id BIGINT, region STRING, ts TIMESTAMP)",
    (
        "CREATE TABLE bucketed (id BIGINT, name STRING, n INT)"
        " PARTITIONED BY (bucket(8, id), bucket(8, name))"
    ),
    "INSERT INTO bucketed SELECT id, concat('n', id), id FROM range(400)",
    "INSERT INTO bucketed SELECT NULL, NULL, id FROM range(20)",
]


@pytest.fixture(params=["bridge", "public"])
def path_of_writing(request, monkeypatch):
    """Both ways to write: through the JVM, and by the public API as over Spark Connect."""
    if request.param == "public":
        without_bridge(monkeypatch)
    return request.param


def version_of(lake, name):
    state = lake._state
    with state.store.read() as connection:
        return read.table(connection, read.snapshot(connection), "main", name, state.info)


def known_files(lake, name):
    state = lake._state
    version = version_of(lake, name)
    with state.store.read() as connection:
        return version, read.data_files(connection, version)


@pytest.mark.slow
def test_a_file_holds_rows_of_one_partition_with_lists_and_maps_too(path_of_writing, lake, spark):
    assert path_of_writing
    table = lake.create_table(
        "nested",
        {"id": "int", "Región": "string", "l": "array<string>", "m": "map<string, int>"},
        partitioned_by=["`Región`", "bucket(2, id)"],
        sorted_by=["id desc"],
    )
    frame = spark.sql(
        "SELECT int(id) id, CASE id % 4 WHEN 0 THEN '' WHEN 1 THEN 'ñ / *{x}' WHEN 2 THEN 'a b'"
        " END `Región`, array('x', NULL) l, map('k', int(id)) m FROM range(40)"
    )
    table.append(frame)
    version, files = known_files(lake, "nested")
    assert len(files) == 8
    places = {unquote(f.path.removeprefix(version.path).rpartition("/")[0]) for f in files}
    assert places == {
        f"Región={value}/bucket={bucket}"
        for value in ("", "ñ / *{x}", "a b", "__HIVE_DEFAULT_PARTITION__")
        for bucket in (0, 1)
    }
    assert sorted(rows(table.read())) == sorted(rows(frame))
    for file in files:
        found = [r.id for r in spark.read.parquet(f"file://{file.path}").select("id").collect()]
        assert found == sorted(found, reverse=True)


@pytest.mark.guard
def test_zero_has_no_sign_in_a_partition(lake):
    lake.sql("CREATE TABLE z (x DOUBLE, y FLOAT) PARTITIONED BY (x, y)")
    lake.sql("INSERT INTO z SELECT double(if(id < 9, '-0.0', '0.0')), float('-0.0') FROM range(20)")
    version, [file] = known_files(lake, "z")
    assert file.path.startswith(f"{version.path}x=0.0/y=0.0/")
    assert file.record_count == 20


def test_a_table_is_made_of_a_query_in_partitions(lake):
    lake.sql(
        "CREATE TABLE made PARTITIONED BY (parity) SORTED BY (id DESC)"
        " AS SELECT id, id % 2 AS parity FROM range(100)"
    )
    version, files = known_files(lake, "made")
    assert (len(files), version.sort) == (2, ("id DESC NULLS LAST",))
    assert rows(lake.sql("SELECT count(*), sum(id) FROM made WHERE parity = 1")) == [(50, 2500)]
    [(text,)] = rows(lake.sql("SHOW CREATE TABLE made"))
    assert text.endswith("PARTITIONED BY (parity)\nSORTED BY (id DESC)")
    described = rows(lake.sql("DESCRIBE made"))
    assert described[2:] == [
        ("", "", ""),
        ("# Partitioning", "", ""),
        ("Part 0", "parity", None),
        ("", "", ""),
        ("# Sort Order", "", ""),
        ("Sort 0", "id DESC", None),
    ]


@pytest.mark.slow
def test_a_transaction_writes_under_the_keys_that_it_sets(lake):
    with lake.transaction() as tx:
        table = tx.table("t")
        table.append(lake._state.spark.sql("SELECT id, 'a' region FROM range(30)"))
        table.alter(shelduck.set_partitioning("region"))
        table.append(lake._state.spark.sql("SELECT id, 'b' region FROM range(30)"))
        table.alter(shelduck.set_partitioning("bucket(2, id)"), shelduck.set_sorting("id"))
        table.append(lake._state.spark.sql("SELECT id, 'c' region FROM range(30)"))
    version, files = known_files(lake, "t")
    assert [key.transform for key in version.partition] == ["bucket(2)"]
    assert version.partition_id >= 0
    assert rows(lake.sql("SELECT region, count(*) FROM t GROUP BY ALL ORDER BY ALL")) == [
        ("a", 30),
        ("b", 30),
        ("c", 30),
    ]
    keyed = lake.sql("SELECT spec_id, count(*) FROM t.files GROUP BY ALL ORDER BY 1").collect()
    # Rows that were written under keys that no snapshot ever had are in no partition.
    assert [tuple(row) for row in keyed] == [(None, len(files) - 2), (version.partition_id, 2)]


def test_the_python_api_sets_and_resets_the_layout(lake):
    table = lake.table("t")
    table.alter(
        shelduck.set_partitioning("region", "days(ts)"), shelduck.set_sorting("upper(region)")
    )
    version = version_of(lake, "t")
    assert [k.transform for k in version.partition] == ["identity", "year", "month", "day"]
    assert version.sort == ("upper(region) ASC NULLS LAST",)
    assert "applies to new files" in str(table.plan_alter(shelduck.reset_sorting()))
    table.alter(shelduck.reset_partitioning(), shelduck.reset_sorting())
    version = version_of(lake, "t")
    assert (version.partition, version.partition_id, version.sort) == ((), None, ())
    before = table.history()
    table.alter(shelduck.reset_partitioning(), shelduck.reset_sorting())
    assert table.history() == before


@pytest.mark.parametrize(
    ("columns", "keys", "error", "told"),
    [
        ({"a": "int"}, {"partitioned_by": ["b"]}, NotFound, "b"),
        (
            {"a": "int"},
            {"partitioned_by": ["year(a)"]},
            InvalidRequest,
            "year does not apply to a column of type int32",
        ),
        (
            {"a": "array<int>"},
            {"partitioned_by": ["a"]},
            InvalidRequest,
            "cannot be a partition key",
        ),
        ({"a": "int"}, {"sorted_by": ["upper(b)"]}, NotFound, "b"),
        ({"a": "int"}, {"partitioned_by": ["truncate(2, a)"]}, Unsupported, "truncate()"),
    ],
)
def test_a_layout_that_makes_no_sense_makes_no_table(lake, columns, keys, error, told):
    with pytest.raises(error) as refused:
        lake.create_table("wrong", columns, **keys)
    assert told in str(refused.value)
    lake.create_table("wrong", columns)
    with pytest.raises(AlreadyExists):
        lake.create_table("wrong", columns)


def test_values_that_name_no_directory_fail_the_write(lake):
    lake.sql("CREATE TABLE long (s STRING, b BINARY) PARTITIONED BY (s)")
    with pytest.raises(InvalidRequest, match="too long to name a directory"):
        lake.sql("INSERT INTO long SELECT repeat('é', 100), NULL FROM range(20)")
    with pytest.raises(InvalidRequest, match="too long to name a directory"):
        lake.sql("INSERT INTO long SELECT repeat('x', 240), NULL FROM range(20)")
    lake.sql("ALTER TABLE long SET PARTITIONED BY (b)")
    with pytest.raises(InvalidRequest, match="only text can name a partition"):
        lake.sql("INSERT INTO long SELECT 's', X'FF00' FROM range(20)")
    lake.sql("ALTER TABLE long SET PARTITIONED BY (bucket(4, s), bucket(4, b))")
    lake.sql("INSERT INTO long SELECT repeat('é', 100), X'FF00' FROM range(20)")
    assert rows(lake.sql("SELECT count(*), max(length(s)) FROM long")) == [(20, 100)]


@pytest.mark.parametrize(
    ("filters", "buckets"),
    [
        (["(id = 34L)"], {3}),
        (["(id IN (34L, -34L))"], {3, 5}),
        (["((id = 34L) OR (id = -34L))"], {3, 5}),
        (["((id = 34L) OR (n = 1))"], set(range(8))),
        (["(id > 34L)"], set(range(8))),
    ],
)
def test_files_of_other_buckets_are_left_out(lake, filters, buckets):
    state = lake._state
    version = version_of(lake, "bucketed")
    found = table_rows(state.store, version, state.layouts)
    [group] = plan_scan(version, found.files, found.mappings, None).groups
    kept = Pruner(state.store, version)(group, filters)
    files = [f for f in group.files if f.id in kept and "bucket=_" not in f.path]
    # Statistics leave none of them out: every bucket has values from all over.
    assert {int(f.path.partition("/bucket=")[2][0]) for f in files} == buckets


@pytest.mark.slow
def test_what_pruning_leaves_is_right(lake):
    assert rows(lake.sql("SELECT name FROM bucketed WHERE id = 34")) == [("n34",)]
    assert rows(
        lake.sql("SELECT id FROM bucketed WHERE name IN ('n1', 'n399', 'x') ORDER BY id")
    ) == [(1,), (399,)]
    assert rows(lake.sql("SELECT count(*) FROM bucketed WHERE id IS NULL")) == [(20,)]
    lake.sql("ALTER TABLE bucketed RESET PARTITIONED BY")
    lake.sql("ALTER TABLE bucketed ALTER COLUMN n TYPE BIGINT")
    lake.sql("INSERT INTO bucketed SELECT 34, 'again', id FROM range(20)")
    assert rows(lake.sql("SELECT count(*) FROM bucketed WHERE id = 34")) == [(21,)]


@pytest.mark.slow
def test_rows_are_sorted_once_before_they_are_written(lake, spark):
    """Spark would sort again by the keys of directories, and so lose the order within them."""
    lake.sql("CREATE TABLE s (a INT, b INT) PARTITIONED BY (b) SORTED BY (a)")
    lake.table("s").append(
        spark.sql("SELECT int(hash(id) % 100) a, int(id % 3) b FROM range(3000)")
    )
    _, files = known_files(lake, "s")
    assert len(files) == 3
    for file in files:
        found = [r.a for r in spark.read.parquet(f"file://{file.path}").collect()]
        assert found == sorted(found)


@pytest.mark.sampled(1)
def test_no_rows_for_partitions_are_no_rows(path_of_writing, lake, spark):
    assert path_of_writing
    table = lake.create_table("p", {"id": "bigint", "k": "string"}, partitioned_by=["k"])
    none = spark.sql("SELECT id, 'a' AS k FROM range(5) WHERE rand() > 2")
    table.append(none)
    table.overwrite_partitions(none)
    table.append(spark.sql("SELECT id, 'a' AS k FROM range(50)"))
    table.overwrite(none, where="id = 3")
    assert table.read().count() == 49
    table.overwrite(none)
    assert rows(table.read()) == []


@pytest.mark.slow
def test_rows_in_partitions_are_updated_after_they_were_compacted(lake, spark):
    table = lake.create_table("p", {"id": "bigint", "k": "string"}, partitioned_by=["k"])
    for n in range(2):
        table.append(spark.sql(f"SELECT id + {n * 50} AS id, 'a' AS k FROM range(50)"))
    assert table.compact().new_files == 1
    assert table.update({"k": "'b'"}, where="id = 7").updated == 1
    assert rows(table.read().where("k = 'b'")) == [(7, "b")]
