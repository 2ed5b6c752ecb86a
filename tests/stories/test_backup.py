"""A lake is copied while it is written: the catalog first, then the files, as the guide says."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

import shelduck
from shelduck import CorruptLake
from tests.support.oracle import DuckDBOracle

MOVED = "UPDATE ducklake_metadata SET value = '{}' WHERE key = 'data_path'"


def made(url, data, spark):
    lake = shelduck.connect(url, str(data), spark)
    lake.sql("CREATE TABLE t AS SELECT id, 'first' AS v FROM range(100)")
    lake.sql("DELETE FROM t WHERE id < 10")
    lake.sql("INSERT INTO t VALUES (1000, 'in the catalog')")
    return lake


def meanwhile(lake):
    """What others do between the two steps of a copy: rows come, and files are replaced."""
    lake.sql("INSERT INTO t SELECT id, 'later' AS v FROM range(500)")
    lake.table("t").compact(min_files=1)
    lake.sql("ALTER TABLE t RENAME COLUMN v TO w")


def backup(source, target):
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)


def moved(catalog, data):
    with closing(sqlite3.connect(catalog)) as connection, connection:
        connection.execute(MOVED.format(f"{data}/"))


@pytest.mark.slow
def test_the_catalog_and_then_the_files_are_the_lake_of_that_moment(tmp_path, spark):
    data, copy = tmp_path / "data", tmp_path / "copied"
    with made(f"sqlite:///{tmp_path}/a.db", data, spark) as lake:
        backup(tmp_path / "a.db", tmp_path / "b.db")
        meanwhile(lake)
        shutil.copytree(data, copy)
    shutil.rmtree(data)
    moved(tmp_path / "b.db", copy)

    with DuckDBOracle(f"sqlite:///{tmp_path}/b.db") as duckdb:
        assert duckdb.sql("SELECT count(*), max(id), min(id) FROM t") == [(91, 1000, 10)]
    with shelduck.connect(f"sqlite:///{tmp_path}/b.db", spark=spark) as restored:
        assert restored.table("t").read().columns == ["id", "v"]
        assert restored.table("t").read().count() == 91
        later = restored.remove_orphans(older_than="0 days").files
        assert len(later) >= 2
        restored.sql("INSERT INTO t SELECT id, 'again' AS v FROM range(50)")
        assert restored.table("t").read().count() == 141


@pytest.mark.slow
def test_the_files_and_then_the_catalog_lack_files(tmp_path, spark):
    data, copy = tmp_path / "data", tmp_path / "copied"
    with made(f"sqlite:///{tmp_path}/a.db", data, spark) as lake:
        shutil.copytree(data, copy)
        meanwhile(lake)
        backup(tmp_path / "a.db", tmp_path / "b.db")
    shutil.rmtree(data)
    moved(tmp_path / "b.db", copy)

    lost = pytest.raises(CorruptLake, match=r"data file .* of main\.t is missing")
    with shelduck.connect(f"sqlite:///{tmp_path}/b.db", spark=spark) as restored, lost:
        restored.table("t").read().collect()


@pytest.mark.slow
def test_a_dump_of_postgresql_is_restored_elsewhere(tmp_path, spark, postgres_server):
    data, copy = tmp_path / "data", tmp_path / "copied"
    dump = tmp_path / "lake.dump"
    with postgres_server.fresh_database() as url, postgres_server.fresh_database() as target:
        with made(url, data, spark) as lake:
            run(url, "pg_dump", "--format=custom", f"--file={dump}", url)
            meanwhile(lake)
            shutil.copytree(data, copy)
        shutil.rmtree(data)
        run(url, "pg_restore", f"--dbname={target}", dump)
        with psycopg.connect(target) as connection:
            connection.execute(MOVED.format(f"{copy}/"))

        with shelduck.connect(target, spark=spark) as restored:
            assert restored.table("t").read().count() == 91
            restored.sql("ALTER TABLE t ALTER COLUMN id TYPE STRING")
            restored.sql("INSERT INTO t VALUES ('x', 'after')")
            assert restored.table("t").read().where("id = 'x'").count() == 1


def run(url, program, *arguments):
    """Runs a program of the version of the server."""
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT setting FROM pg_config WHERE name = 'BINDIR'")
        [folder] = found.fetchone()
    subprocess.run([Path(folder) / program, *map(str, arguments)], check=True, capture_output=True)
