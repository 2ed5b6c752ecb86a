"""Which Delta type shows a column, and which stored types readers take for it."""

from __future__ import annotations

import pytest

from shelduck.formats.delta.delta_export import file_uri
from shelduck.formats.delta.delta_schema import shown_as
from shelduck.model.files.data_file import PhysicalField
from shelduck.model.types.data_types import ducklake_type


def stored(kind, encoding=""):
    return PhysicalField("c", 1, ducklake_type(kind), encoding=encoding)


@pytest.mark.parametrize(
    ("kind", "delta"),
    [
        ("boolean", "boolean"),
        ("int8", "byte"),
        ("int16", "short"),
        ("int32", "integer"),
        ("int64", "long"),
        ("int128", "decimal(38,0)"),
        ("uint8", "short"),
        ("uint16", "integer"),
        ("uint32", "long"),
        ("uint64", "decimal(20,0)"),
        ("float32", "float"),
        ("float64", "double"),
        ("decimal(9,2)", "decimal(9,2)"),
        ("date", "date"),
        ("timestamp", "timestamp_ntz"),
        ("timestamp_s", "timestamp_ntz"),
        ("timestamptz", "timestamp"),
        ("varchar", "string"),
        ("json", "string"),
        ("uuid", "string"),
        ("time", "string"),
        ("blob", "binary"),
    ],
)
def test_a_type_is_shown_as(kind, delta):
    shown = shown_as(ducklake_type(kind))
    assert shown is not None
    assert shown.type == delta


@pytest.mark.parametrize("kind", ["timestamp_ns", "time_ns", "interval", "geometry"])
def test_a_type_is_left_out(kind):
    assert shown_as(ducklake_type(kind)) is None


@pytest.mark.parametrize(
    ("column", "file", "encoding"),
    [
        ("int32", "int32", ""),
        ("uint8", "uint8", ""),
        ("uint8", "int16", ""),
        ("timestamptz", "timestamptz", ""),
        ("timestamptz", "timestamp", "int96"),
        ("varchar", "json", ""),
        ("uuid", "varchar", ""),
        ("timestamp_ms", "timestamp", ""),
    ],
)
def test_what_is_stored_is_taken_as_it_is(column, file, encoding):
    shown = shown_as(ducklake_type(column))
    assert shown is not None
    assert shown.holds(stored(file, encoding))


@pytest.mark.parametrize(
    ("column", "file", "encoding", "narrow"),
    [
        ("int64", "int32", "", "integer"),
        ("float64", "float32", "", "float"),
        ("float64", "int16", "", "short"),
        ("decimal(20,2)", "int32", "", "integer"),
        ("decimal(20,5)", "decimal(9,2)", "", "decimal(9,2)"),
        ("timestamp", "date", "", "date"),
        ("float64", "int64", "", None),
        ("int32", "int64", "", None),
        ("int64", "uint32", "", None),
        ("timestamptz", "timestamptz", "ns", None),
        ("timestamp", "timestamp_ms", "", None),
        ("uuid", "uuid", "fixed", None),
        ("decimal(9,2)", "decimal(9,2)", "bytes", None),
    ],
)
def test_what_is_stored_is_narrower_by_deltas_list_or_to_be_written_anew(
    column, file, encoding, narrow
):
    shown = shown_as(ducklake_type(column))
    assert shown is not None
    assert not shown.holds(stored(file, encoding))
    assert shown.narrower(stored(file, encoding)) == narrow


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("/data/p=x y/1%.parquet", "/data/p%3Dx%20y/1%25.parquet"),
        ("file:///data/1.parquet", "/data/1.parquet"),
        ("s3://bucket/a b.parquet", "s3://bucket/a%20b.parquet"),
    ],
)
def test_paths_are_uris_that_duckdb_finds_too(path, uri):
    assert file_uri(path) == uri
