"""A scan of dictionaries finds all values of a column, or says that the file must be read."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shelduck.engine.bridge import engine_for
from shelduck.read.scan.column_values import OF_FILE, DictionaryFile, dictionary_values
from tests.support.scans import column, table

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

UNREAD = {None}
SOME = ["a", "b", None, "a"] * 500
DISTINCT = [f"text {n}" for n in range(2000)]
# 6 MB in a dictionary.
LARGE = [f"{n}".rjust(3000) for n in range(2000)]


def write(path: Path, values: list[object], kind: object = None, **options: object) -> None:
    made = pa.array(values, kind or pa.string())
    field = pa.field("v", made.type, metadata={b"PARQUET:field_id": b"7"})
    pq.write_table(pa.table([made], pa.schema([field])), path, **options)


def found(
    spark: SparkSession, folder: Path, names: list[str], kind: str = "varchar", name: object = None
) -> dict[str, set[object]]:
    """The values of each file by its name."""
    v = column("c", kind, 7)
    files = [DictionaryFile(n, str(folder / each), name) for n, each in enumerate(names)]
    values = defaultdict(set)
    for row in dictionary_values(engine_for(spark), table(v), v, files).collect():
        values[names[row[OF_FILE]]].add(row["c"])
    return dict(values)


def test_texts_are_found_only_where_dictionaries_have_all(spark, tmp_path):
    write(tmp_path / "few", SOME)
    write(tmp_path / "groups", ["a"] * 10 + ["b"] * 10 + [None] * 10, row_group_size=10)
    write(tmp_path / "nulls", [None] * 10)
    write(tmp_path / "second version", SOME, version="2.6", data_page_version="2.0")
    write(tmp_path / "gzip", SOME, compression="gzip")
    # An array that has a value in its dictionary which no row has.
    unused = pa.DictionaryArray.from_arrays(pa.array([0, None, 0]), pa.array(["a", "unused"]))
    pq.write_table(
        pa.table(
            [unused], pa.schema([pa.field("v", unused.type, metadata={"PARQUET:field_id": "7"})])
        ),
        tmp_path / "unused",
    )
    write(tmp_path / "plain", SOME, use_dictionary=False)
    write(tmp_path / "full", SOME + DISTINCT, dictionary_pagesize_limit=100, data_page_size=100)
    write(
        tmp_path / "full later",
        SOME + DISTINCT,
        dictionary_pagesize_limit=9000,
        row_group_size=2000,
    )
    write(tmp_path / "large", LARGE, dictionary_pagesize_limit=10_000_000)
    write(tmp_path / "numbers", [1, 2], pa.int64())
    write(tmp_path / "bytes", [b"a"], pa.binary())
    pq.write_table(pa.table({"other": ["a"]}), tmp_path / "other")
    (tmp_path / "damaged").write_bytes(b"PAR1 and no more")
    names = sorted(path.name for path in tmp_path.iterdir())

    assert found(spark, tmp_path, [*names, "missing"]) == {
        "few": {"a", "b"},
        "groups": {"a", "b"},
        "second version": {"a", "b"},
        "gzip": {"a", "b"},
        "unused": {"a", "unused"},
        **dict.fromkeys(("plain", "full", "full later", "large", "numbers", "bytes"), UNREAD),
        **dict.fromkeys(("other", "damaged", "missing"), UNREAD),
    }


@pytest.mark.parametrize(("kind", "arrow"), [("float64", pa.float64()), ("float32", pa.float32())])
def test_floats_are_found_as_they_are(spark, tmp_path, kind, arrow):
    write(tmp_path / "few", [0.5, None, float("inf"), -2.0], arrow)
    write(tmp_path / "texts", ["0.5"])
    write(tmp_path / "others", [0.5], pa.float32() if kind == "float64" else pa.float64())

    assert found(spark, tmp_path, ["few", "texts", "others"], kind) == {
        "few": {0.5, float("inf"), -2.0},
        "texts": UNREAD,
        "others": UNREAD,
    }


def test_a_column_is_found_by_the_name_that_a_mapping_gives_it(spark, tmp_path):
    pq.write_table(pa.table({"c": ["no"], "named": ["yes"], "V": ["other"]}), tmp_path / "file")

    assert found(spark, tmp_path, ["file"], name="named") == {"file": {"yes"}}
    assert found(spark, tmp_path, ["file"], name="v") == {"file": UNREAD}
