"""Delta tables that are not imported: one clear error, and no trace in the catalog."""

from __future__ import annotations

import json
import sys

import pyarrow as pa
import pytest

import shelduck
from shelduck.formats.delta import vectors as delta_vectors
from tests.support.delta import HandMade, column, metadata, protocol

A = column("a", "long")


@pytest.fixture
def lake(spark, sqlite_url, data_path):
    with shelduck.connect(sqlite_url, data_path, spark) as lake:
        yield lake
        assert lake.tables() == []
        assert [s.id for s in lake.snapshots()] == [0]


@pytest.fixture
def delta(tmp_path):
    return HandMade(tmp_path / "delta")


def add(delta, name="1.parquet", **columns):
    delta.write_file(name, pa.table(columns or {"a": [1, 2]}))
    return delta.add(name)


def refused(lake, delta, kind, match):
    with pytest.raises(kind, match=match):
        lake.import_delta(getattr(delta, "path", delta), "t")


def test_a_directory_that_is_no_delta_table(lake, tmp_path):
    refused(lake, tmp_path, shelduck.InvalidRequest, "has no _delta_log with commits")
    refused(lake, tmp_path / "nowhere", shelduck.InvalidRequest, "there is no Delta table at")


def test_an_unknown_reader_feature_in_any_version(lake, delta):
    delta.commit(protocol(), metadata([A]), add(delta))
    delta.commit(protocol("timeTravelling"))
    delta.commit(protocol())
    refused(
        lake,
        delta,
        shelduck.Unsupported,
        r"version 1 of the Delta table at .* needs the reader feature\(s\) timeTravelling.*drop",
    )


def test_a_reader_version_of_the_future(lake, delta):
    future = {"protocol": {"minReaderVersion": 4, "minWriterVersion": 7}}
    delta.commit(future, metadata([A]))
    refused(
        lake, delta, shelduck.Unsupported, "needs reader version 4, but Shelduck supports at most 3"
    )


def test_a_data_file_of_the_newest_version_is_gone(lake, delta):
    delta.commit(protocol(), metadata([A]), add(delta))
    (delta.path / "1.parquet").unlink()
    refused(lake, delta, shelduck.InvalidRequest, "needs the data file .*1.parquet, which does not")


def test_a_file_that_is_no_parquet(lake, delta):
    delta.commit(protocol(), metadata([A]), add(delta))
    (delta.path / "1.parquet").write_text("not a Parquet file at all")
    refused(lake, delta, shelduck.InvalidRequest, "1.parquet is not a Parquet file")


def test_a_type_that_is_not_a_widening_of_the_file(lake, delta):
    delta.commit(protocol(), metadata([A]), add(delta))
    delta.commit(add(delta, "2.parquet", a=["text"]), add(delta, "3.parquet", a=[0.5]))
    with pytest.raises(shelduck.InvalidRequest) as raised:
        lake.import_delta(delta.path, "t")
    assert str(raised.value).splitlines()[1:] == [
        f"  - {delta.path}/2.parquet: column 'a' is int64 in the table but varchar in the file",
        f"  - {delta.path}/3.parquet: column 'a' is int64 in the table but float64 in the file",
    ]


def test_a_type_that_narrows(lake, delta):
    delta.commit(protocol(), metadata([column("a", "double")]), add(delta, a=[2**60]))
    refused(lake, delta, shelduck.InvalidRequest, "is float64 in the table but int64 in the file")


def test_a_change_of_type_that_is_no_widening(lake, delta):
    changes = [{"fromType": "string", "toType": "integer"}]
    delta.commit(protocol(), metadata([column("a", "string")]), add(delta, a=["1"]))
    changed = column("a", "integer") | {"metadata": {"delta.typeChanges": changes}}
    delta.commit(protocol("typeWidening"), metadata([changed]))
    refused(lake, delta, shelduck.Unsupported, "column 'a' .* from string to integer .*typeChang")


def test_a_type_without_a_place(lake, delta):
    shape = {"type": "struct", "fields": [column("v", "geometry")]}
    delta.commit(protocol(), metadata([column("s", shape)]))
    refused(lake, delta, shelduck.Unsupported, r"column 's\.v' of the Delta table is geometry")


def test_a_commit_is_missing(lake, delta):
    delta.commit(protocol(), metadata([A]), add(delta))
    delta.commit(add(delta, "2.parquet"), version=2)
    refused(lake, delta, shelduck.CorruptLake, "has no version 1, .*restore 0000000000000000000")


def test_the_newest_commits_are_missing(lake, delta):
    delta.commit(protocol(), metadata([A]), add(delta))
    (delta.log / "_last_checkpoint").write_text(json.dumps({"version": 10, "size": 3}))
    refused(lake, delta, shelduck.CorruptLake, "refers to a checkpoint of version 10, .* is 0")


def test_a_commit_that_cannot_be_read(lake, delta):
    delta.commit(protocol(), metadata([A]), add(delta))
    (delta.log / f"{1:020}.json").write_text("{")
    refused(lake, delta, shelduck.CorruptLake, "00001.json is not a commit of a Delta table")


def test_a_deletion_vector_that_is_not_what_the_log_says(lake, delta):
    vector = delta_vectors.inline_vector(delta_vectors.bitmap()([0]))
    words = {"storageType": "i", "pathOrInlineDv": vector.place, "sizeInBytes": vector.size}
    delta.write_file("1.parquet", pa.table({"a": [1, 2, 3]}))
    file = delta.add("1.parquet", vector=words | {"cardinality": 2})
    delta.commit(protocol("deletionVectors"), metadata([A]), file)
    refused(lake, delta, shelduck.CorruptLake, "has 1 rows, but the log says 2")


def test_a_deletion_vector_that_is_gone(lake, delta):
    delta.write_file("1.parquet", pa.table({"a": [1, 2]}))
    vector = {
        "storageType": "u",
        "pathOrInlineDv": "vBn[lx{q8@P<9BNH/isA",
        "offset": 1,
        "sizeInBytes": 36,
        "cardinality": 1,
    }
    delta.commit(protocol("deletionVectors"), metadata([A]), delta.add("1.parquet", vector=vector))
    refused(lake, delta, shelduck.CorruptLake, "cannot read the deletion vector of .*1.parquet")


def test_deletion_vectors_without_pyroaring(lake, delta, monkeypatch):
    delta.write_file("1.parquet", pa.table({"a": [1, 2]}))
    vector = delta_vectors.inline_vector(delta_vectors.bitmap()([0]))
    words = {"storageType": "i", "pathOrInlineDv": vector.place, "sizeInBytes": vector.size}
    file = delta.add("1.parquet", vector=words | {"cardinality": 1})
    delta.commit(protocol("deletionVectors"), metadata([A]), file)
    monkeypatch.setitem(sys.modules, "pyroaring", None)
    refused(lake, delta, shelduck.Unsupported, r"pip install '\.\[delta\]'")


def test_null_where_the_table_says_not_null(lake, delta):
    fields = [column("a", "long", nullable=False), column("b", "long", nullable=False)]
    rows = {"a": pa.array([1, None], pa.int64())}
    delta.commit(protocol(), metadata(fields), add(delta, **rows))
    with pytest.raises(shelduck.InvalidRequest) as raised:
        lake.import_delta(delta.path, "t")
    assert "column 'b' is NOT NULL but not in the file" in str(raised.value)


def test_a_partition_value_that_is_none_of_its_type(lake, delta):
    delta.write_file("1.parquet", pa.table({"b": [1]}))
    fields = [column("b", "long"), column("p", "date")]
    file = delta.add("1.parquet", values={"p": "yesterday"})
    delta.commit(protocol(), metadata(fields, partition_by=["p"]), file)
    refused(lake, delta, shelduck.InvalidRequest, "partition column 'p': 'yesterday' is not a")


def test_a_table_below_the_lakes_own_files(lake, data_path, tmp_path):
    inside = HandMade(tmp_path / "data" / "delta")
    inside.commit(protocol(), metadata([A]), add(inside))
    refused(lake, inside, shelduck.InvalidRequest, "is below the lake's data path")


def test_a_mode_of_column_mapping_that_nobody_knows(lake, delta):
    mode = {"delta.columnMapping.mode": "guess"}
    delta.commit(protocol("columnMapping"), metadata([A], configuration=mode))
    refused(lake, delta, shelduck.Unsupported, "column mapping mode 'guess'")


def test_a_file_without_ids_where_ids_are_all_that_counts(lake, delta):
    mode = {"delta.columnMapping.mode": "id"}
    fields = [column("a", "long", number=1)]
    delta.commit(protocol("columnMapping"), metadata(fields, configuration=mode), add(delta))
    refused(
        lake,
        delta,
        shelduck.InvalidRequest,
        "1.parquet: it has no field ids, which this Delta table needs",
    )


def test_a_reserved_name(lake, delta):
    delta.commit(protocol(), metadata([column("__shelduck_x", "long")]))
    refused(lake, delta, shelduck.InvalidRequest, "is reserved")
