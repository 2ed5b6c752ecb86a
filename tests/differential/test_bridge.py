"""The bridge against DuckDB's extension: its delete files read by us, our nested ids read by it."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from shelduck.engine.bridge import Deletes, Engine, FileEntry, FileRelation, engine_for
from tests.support.oracle import DuckDBOracle

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def bridge(spark: SparkSession) -> Engine:
    return engine_for(spark)


@pytest.fixture
def duck(sqlite_url: str, tmp_path: Path) -> Iterator[DuckDBOracle]:
    oracle = DuckDBOracle(sqlite_url, f"{tmp_path}/data/", {"DATA_INLINING_ROW_LIMIT": 0})
    yield oracle
    oracle.close()


def files_below(folder: Path) -> tuple[list[Path], str]:
    """The data files and the one delete file that DuckDB wrote."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    (deletes,) = (path for path in files if "delete" in path.name)
    return [path for path in files if path != deletes], str(deletes)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [".puffin", ".parquet"])
def test_deletes_of_duckdb_leave_the_same_rows(
    bridge: Engine, duck: DuckDBOracle, tmp_path: Path, kind: str
) -> None:
    duck.execute("CALL lake.set_option('write_deletion_vectors', ?)", [kind == ".puffin"])
    duck.execute("CREATE TABLE t AS SELECT range AS id FROM range(200000)")
    duck.execute("DELETE FROM t WHERE id % 7 = 0 OR id BETWEEN 70000 AND 140000")
    (data,), deletes = files_below(tmp_path / "data")
    assert deletes.endswith(kind)

    def lister(_: list[str]) -> list[FileEntry]:
        return [FileEntry(str(data), data.stat().st_size, (), Deletes(deletes))]

    table = bridge.relation(
        FileRelation(
            StructType.fromDDL("id bigint"),
            StructType([]),
            lister,
            with_deletes=True,
            size_in_bytes=1,
        )
    )
    ours = table.agg(sf.count("*"), sf.sum("id")).first()
    assert [tuple(ours)] == duck.sql("SELECT count(*), sum(id)::BIGINT FROM t")


def test_duckdb_reads_nested_columns_by_the_ids_that_we_write(
    bridge: Engine, duck: DuckDBOracle, spark: SparkSession, sqlite_url: str, tmp_path: Path
) -> None:
    duck.execute(
        "CREATE TABLE t (id BIGINT, l STRUCT(a BIGINT, b VARCHAR[])[], m MAP(VARCHAR, INT))"
    )
    ids = {
        ("id",): 1,
        ("l",): 2,
        ("l", "list", "element"): 3,
        ("l", "list", "element", "a"): 4,
        ("l", "list", "element", "b"): 5,
        ("l", "list", "element", "b", "list", "element"): 6,
        ("m",): 7,
        ("m", "key_value", "key"): 8,
        ("m", "key_value", "value"): 9,
    }
    rows = spark.sql(
        "SELECT 7L id, array(named_struct('a', 1L, 'b', array('x', NULL))) l, map('k', 5) m"
    )
    files = bridge.writer()
    assert files is not None
    writer = rows.coalesce(1).write.format(files.write_format).options(**files.id_options(ids))
    writer.save(str(tmp_path / "new"))
    (path,) = (tmp_path / "new").glob("*.parquet")
    # Our file takes the place of DuckDB's, which has no name mapping: only ids can lead it.
    duck.execute("INSERT INTO t VALUES (1, [{'a': 2, 'b': ['old']}], MAP {'o': 3})")
    duck.close()
    (own,) = (tmp_path / "data").rglob("*.parquet")
    content = path.read_bytes()
    own.write_bytes(content)
    footer = int.from_bytes(content[-8:-4], "little")
    with sqlite3.connect(tmp_path / "catalog.db") as catalog:
        catalog.execute(
            "UPDATE ducklake_data_file SET file_size_bytes = ?, footer_size = ?",
            [len(content), footer],
        )
    catalog.close()
    with DuckDBOracle(sqlite_url) as reader:
        assert reader.rows("t") == [(7, [{"a": 1, "b": ["x", None]}], {"k": 5})]
