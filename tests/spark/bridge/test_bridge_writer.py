from __future__ import annotations

import datetime as dt
import threading
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import functions as sf

from shelduck import Unsupported
from shelduck.engine.bridge import Engine

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


def write(
    bridge: Engine,
    rows: DataFrame,
    folder: Path,
    ids: Mapping[tuple[str, ...], int],
    **options: str,
) -> Path:
    files = bridge.writer()
    assert files is not None
    writer = rows.coalesce(1).write.format(files.write_format)
    writer.options(**files.id_options(ids), **options).save(str(folder))
    (path,) = folder.glob("*.parquet")
    return path


def ids_in(path: Path) -> dict[str, int]:
    """The field ids of a file, by dotted path."""
    found: dict[str, int] = {}

    def visit(field: object, parents: tuple[str, ...]) -> None:
        here = (*parents, field.name)
        if field.metadata and b"PARQUET:field_id" in field.metadata:
            found["/".join(here)] = int(field.metadata[b"PARQUET:field_id"])
        kind = field.type
        for n in range(kind.num_fields):
            visit(kind.field(n), here)

    for field in pq.read_schema(path):
        visit(field, ())
    return found


NESTED = """
SELECT id, array(string(id), 'x') tags, map('k', id) m,
 array(named_struct('a', id, 'b', map(id, array(id)))) l,
 named_struct('x', id, 'y', named_struct('z', array(array(id)))) s
FROM range(3)
"""
NESTED_IDS = {
    ("id",): 1,
    ("tags",): 2,
    ("tags", "list", "element"): 3,
    ("m",): 4,
    ("m", "key_value", "key"): 5,
    ("m", "key_value", "value"): 6,
    ("l",): 7,
    ("l", "list", "element"): 8,
    ("l", "list", "element", "a"): 9,
    ("l", "list", "element", "b"): 10,
    ("l", "list", "element", "b", "key_value", "key"): 11,
    ("l", "list", "element", "b", "key_value", "value"): 12,
    ("l", "list", "element", "b", "key_value", "value", "list", "element"): 13,
    ("s",): 14,
    ("s", "x"): 15,
    ("s", "y"): 16,
    ("s", "y", "z"): 17,
    ("s", "y", "z", "list", "element"): 18,
    ("s", "y", "z", "list", "element", "list", "element"): 19,
}


def test_every_level_gets_its_id(bridge: Engine, spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.sql(NESTED)
    path = write(bridge, rows, tmp_path / "t", NESTED_IDS)
    assert sorted(ids_in(path).values()) == list(range(1, 20))
    # pyarrow calls the entries of a map as the map itself.
    assert ids_in(path)["l/element/b/b/value/element"] == 13
    back = spark.read.parquet(str(path))
    assert back.orderBy("id").collect() == rows.orderBy("id").collect()


def test_names_may_hold_any_character(bridge: Engine, spark: SparkSession, tmp_path: Path) -> None:
    names = ["a.b", "c=d;e", "t\tn\nr", "ünï 🦆", "b\\s \\N", "${none}", "q'\"`"]
    rows = spark.range(1).select(*(sf.array("id").alias(name) for name in names))
    ids = {(name,): n * 2 for n, name in enumerate(names, 1)}
    ids |= {(name, "list", "element"): n * 2 + 1 for n, name in enumerate(names, 1)}
    found = ids_in(write(bridge, rows, tmp_path / "t", ids))
    assert [found[name] for name in names] == [2, 4, 6, 8, 10, 12, 14]
    assert sorted(found.values()) == list(range(2, 16))


def test_the_option_is_the_only_source_of_ids(
    bridge: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    rows = spark.range(1).select(sf.col("id").alias("id", metadata={"parquet.field.id": 77}))
    assert ids_in(write(bridge, rows, tmp_path / "t", {("id",): 5})) == {"id": 5}


def test_a_field_without_an_id_is_refused_before_anything_is_written(
    bridge: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    rows = spark.sql("SELECT array(1) a")
    with pytest.raises(IllegalArgumentException, match=r"field at \[a, list, element\] has no"):
        write(bridge, rows, tmp_path / "t", {("a",): 1})
    with pytest.raises(IllegalArgumentException, match=r"no written field lies at \[b\]"):
        write(bridge, rows, tmp_path / "t", {("a",): 1, ("a", "list", "element"): 2, ("b",): 3})
    assert list(tmp_path.glob("t/*.parquet")) == []


def test_a_name_that_spark_would_replace_is_refused(
    bridge: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    rows = spark.range(1).withColumnRenamed("id", "${user.home}")
    with pytest.raises(Unsupported, match=r"contains \$\{\.\.\.\}.*; rename the column"):
        write(bridge, rows, tmp_path / "t", {("${user.home}",): 1})


def test_a_variant_needs_only_its_own_id(
    bridge: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    path = write(bridge, spark.sql("SELECT parse_json('[1]') v"), tmp_path / "t", {("v",): 1})
    assert ids_in(path) == {"v": 1}
    assert spark.read.parquet(str(path)).selectExpr("to_json(v)").first()[0] == "[1]"


@pytest.fixture
def unusual_session(spark: SparkSession) -> Iterator[None]:
    settings = {
        "spark.sql.parquet.outputTimestampType": "INT96",
        "spark.sql.parquet.writeLegacyFormat": "true",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.compression.codec": "snappy",
    }
    for key, value in settings.items():
        spark.conf.set(key, value)
    yield
    for key in settings:
        spark.conf.unset(key)


@pytest.mark.usefixtures("unusual_session")
def test_the_format_of_a_file_does_not_depend_on_the_session(
    bridge: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    rows = spark.sql(
        "SELECT DATE'1500-01-01' d, TIMESTAMP'1500-01-01 00:00:00' t, CAST(1.5 AS decimal(5,1)) n,"
        " array(1) a"
    )
    ids = {("d",): 1, ("t",): 2, ("n",): 3, ("a",): 4, ("a", "list", "element"): 5}
    path = write(bridge, rows, tmp_path / "t", ids, compression="zstd")
    file = pq.ParquetFile(path)
    kinds = [file.schema.column(n).physical_type for n in range(4)]
    assert kinds == ["INT32", "INT64", "INT32", "INT32"]
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"
    assert file.schema.column(3).path == "a.list.element"
    row = file.read().to_pylist()[0]
    assert row["d"] == dt.date(1500, 1, 1)
    assert row["t"].replace(tzinfo=None) == dt.datetime(1500, 1, 1)  # noqa: DTZ001
    assert spark.conf.get("spark.sql.parquet.writeLegacyFormat") == "true"


def test_a_write_leaves_nothing_but_data_files(
    bridge: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    write(bridge, spark.range(3), tmp_path / "t", {("id",): 1})
    visible = [path.suffix for path in (tmp_path / "t").iterdir() if path.name[0] != "."]
    assert visible == [".parquet"]


def test_threads_that_never_saw_the_bridge_can_write(
    bridge: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    failures: list[Exception] = []

    def work() -> None:
        try:
            write(bridge, spark.range(3), tmp_path / "t", {("id",): 1})
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    assert failures == []
    assert len(list(tmp_path.glob("t/*.parquet"))) == 1


def test_a_partitioned_write_gives_ids_to_what_is_in_the_file(
    bridge: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    rows = spark.range(4).withColumn("k", sf.expr("id % 2"))
    files = bridge.writer()
    assert files is not None
    writer = rows.coalesce(1).write.format(files.write_format).partitionBy("k")
    writer.options(**files.id_options({("id",): 1})).save(str(tmp_path / "t"))
    assert [ids_in(path) for path in (tmp_path / "t").glob("k=*/*.parquet")] == [{"id": 1}] * 2
