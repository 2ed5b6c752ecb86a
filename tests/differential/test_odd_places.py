"""Partitions, directories and files of awkward names, from their writing to their cleaning."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import duckdb
import pytest

import shelduck
from tests.support.lakes import catalog_files, rows
from tests.support.no_bridge import without_bridge
from tests.support.odd_names import LONG, VALUES
from tests.support.oracle import DuckDBOracle

pytestmark = pytest.mark.slow

# Of directories and files that are adopted; Spark opens no file with a colon in its name.
NAMES = [
    v for v in VALUES if not set("/:") & set(v) and v not in ("", ".", "..") and v[0] not in "._"
]
FOLDER = "a b#c%2B+d?e[f]{g}'\"h`:i&j;k=l,m\\n😀" + unicodedata.normalize("NFD", "é")
WRITTEN = [
    (start + n, value) for start in (0, 1000) for n, value in enumerate([*VALUES, None, LONG])
]
CHANGED = sorted(
    (n + 5000 if n < 1000 and n % 3 == 0 else n, value) for n, value in WRITTEN if n < 1000 or n % 2
)


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / FOLDER
    made.mkdir()
    return made


@pytest.fixture
def lake(spark, tmp_path, folder):
    with shelduck.connect(f"sqlite:///{tmp_path}/lake.db", f"{folder}/data", spark) as made:
        made.set_option("data_inlining_row_limit", 0)
        yield made


def agreed(lake, lake_file, monkeypatch=None):
    """The rows by us, by us without the bridge, and by DuckDB."""
    query = "SELECT id, city FROM t ORDER BY id"
    found = rows(lake.sql(query))
    with DuckDBOracle(f"sqlite:///{lake_file}") as oracle:
        assert oracle.sql(query) == found
        for value in ("A+B", "#", "a%b", "x "):
            some = oracle.sql("SELECT id FROM t WHERE city = ? ORDER BY id", [value])
            assert (
                rows(lake.table("t").read().where(f"city = '{value}'").select("id").sort("id"))
                == some
            )
    if monkeypatch is not None:
        with monkeypatch.context() as patched:
            without_bridge(patched)
            assert rows(lake.sql(query)) == found
    return found


def files_below(folder: Path) -> set[str]:
    found = (p for p in (folder / "data").rglob("*") if p.is_file() and p.suffix == ".parquet")
    return {p.relative_to(folder / "data").as_posix() for p in found}


def test_partitions_of_any_name_live_and_go(lake, spark, tmp_path, folder, monkeypatch):
    catalog = tmp_path / "lake.db"
    lake.sql("CREATE TABLE t (id BIGINT, city STRING)")
    lake.sql("ALTER TABLE t SET PARTITIONED BY (city)")
    for half in (WRITTEN[: len(WRITTEN) // 2], WRITTEN[len(WRITTEN) // 2 :]):
        lake.table("t").append(spark.createDataFrame(half, "id BIGINT, city STRING"))
    assert agreed(lake, catalog) == WRITTEN
    lake.sql("DELETE FROM t WHERE id >= 1000 AND id % 2 = 0")
    lake.sql("UPDATE t SET id = id + 5000 WHERE id < 1000 AND id % 3 = 0")
    assert agreed(lake, catalog, monkeypatch) == CHANGED
    lake.set_option("data_inlining_row_limit", 10)
    lake.sql("INSERT INTO t VALUES (9000, '#'), (9001, 'a%b')")
    lake.flush_inlined_data()
    lake.table("t").compact()
    lake.expire_snapshots(versions=[s.id for s in lake.snapshots()[:-1]])

    deleted = lake.cleanup_old_files(cleanup_all=True)

    assert deleted.files
    assert lake.remove_orphans(older_than="0 seconds", duckdb_files=True).files == ()
    assert files_below(folder) == catalog_files(catalog, live=True)
    assert agreed(lake, catalog) == [*CHANGED, (9000, "#"), (9001, "a%b")]


def test_files_of_any_name_are_adopted_read_and_kept(lake, tmp_path, folder, monkeypatch):
    places = []
    with duckdb.connect() as writer:
        for number, name in enumerate(NAMES):
            place = folder / f"city={name}" if number % 2 else folder / "others"
            place.mkdir(exist_ok=True)
            places.append(str(place / f"{name}.parquet"))
            rows_of = writer.sql(f"SELECT {number}::BIGINT AS id, 'v' AS city")
            rows_of.write_parquet(str(tmp_path / "one.parquet"))
            (tmp_path / "one.parquet").rename(places[-1])
    lake.sql("CREATE TABLE t (id BIGINT, city STRING)")
    lake.table("t").add_files(places, hive_partitioning=False)
    expected = [(n, "v") for n in range(len(NAMES))]
    assert agreed(lake, tmp_path / "lake.db", monkeypatch) == expected
    lake.table("t").compact()
    lake.expire_snapshots(versions=[s.id for s in lake.snapshots()[:-1]])
    kept = lake.cleanup_old_files(cleanup_all=True).kept
    assert set(kept) == set(places)
    assert all(Path(place).exists() for place in places)
    assert set(lake.cleanup_old_files(cleanup_all=True, include_adopted=True).files) == set(places)
    assert not any(Path(place).exists() for place in places)
