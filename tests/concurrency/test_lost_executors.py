"""Executors are killed in the middle of a write into partitions, where files stay."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from uuid import uuid4

import pytest

import shelduck
from shelduck import SparkFailed
from shelduck.write.changes import append as appends
from tests.support.cluster import cluster_session, executor_processes, standalone_cluster
from tests.support.jars import locked, s3_settings
from tests.support.lakes import catalog_files, rows
from tests.support.oracle import DuckDBOracle
from tests.support.s3 import BUCKET, running_s3

pytestmark = [pytest.mark.slow, pytest.mark.cluster]

PARTITIONS, TASKS = 60, 6
BEFORE = [(n, n) for n in range(3)]
AFTER = [*BEFORE, *((n, n % PARTITIONS) for n in range(1000, 7000))]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """The address of a cluster and its folder."""
    folder = tmp_path_factory.mktemp("cluster").resolve()
    with standalone_cluster(folder) as url:
        yield url, folder


def session(cluster, folder, failures):
    """A session in which a task may fail so often; it has the connector for S3 if that is here."""
    jars = os.pathsep.join(str(jar.path) for jar in locked("s3") if jar.path.exists())
    more = {
        "spark.driver.extraClassPath": jars,
        "spark.executor.extraClassPath": jars,
        # Small as they are, the tasks of a write stay apart.
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
        "spark.sql.shuffle.partitions": str(TASKS),
        "spark.task.maxFailures": str(failures),
    }
    return cluster_session(cluster[0], folder / "session", more)


class Disk:
    """The files of a lake on a local disk."""

    server = None

    def __init__(self, folder: Path) -> None:
        self.data = f"{folder}/data/"

    def there(self) -> set[str]:
        """All files, checksums included, by their paths below the directory of the lake."""
        found = (p for p in Path(self.data).rglob("*") if p.is_file())
        return {p.relative_to(self.data).as_posix() for p in found}


class Store:
    """The files of a lake on S3."""

    def __init__(self, server) -> None:
        self.server, self.prefix = server, f"{uuid4().hex[:8]}/"
        self.data = f"s3://{BUCKET}/{self.prefix}"

    def there(self) -> set[str]:
        """All objects, by their keys below the directory of the lake."""
        return {key.removeprefix(self.prefix) for key in self.server.keys(self.prefix)}


@pytest.fixture(params=["disk", "s3"])
def files(request, tmp_path):
    if request.param == "disk":
        yield Disk(tmp_path)
        return
    s3_settings()
    with running_s3() as server:
        yield Store(server)


class Killer(threading.Thread):
    """Kills all executors when about half of the files are there; `left` are the new ones then.

    By then some tasks have ended, and others are in the middle.
    """

    def __init__(self, folder, files):
        super().__init__(daemon=True)
        self.folder, self.files, self.known = folder, files, files.there()
        self.left = set()

    def run(self):
        while len(self.left) < PARTITIONS // 2:
            time.sleep(0.001)
            self.left = without_checksums(self.files.there() - self.known)
        for process in executor_processes(self.folder):
            os.kill(process, signal.SIGKILL)
        self.left = without_checksums(self.files.there() - self.known)


def without_checksums(names):
    return {name for name in names if not name.endswith(".crc")}


def filled(url, files, spark):
    lake = shelduck.connect(url, files.data, spark)
    lake.set_option("data_inlining_row_limit", 0)
    lake.sql("CREATE TABLE t (id BIGINT, k BIGINT) PARTITIONED BY (k)")
    lake.sql("INSERT INTO t SELECT id, id FROM range(3)")
    return lake


def append(lake):
    new = lake.spark.range(1000, 7000, 1, 4)
    lake.table("t").append(new.selectExpr("id", f"id % {PARTITIONS} AS k"))


def by_duckdb(url, files):
    with DuckDBOracle(url, store=files.server) as oracle:
        return oracle.sql("SELECT id, k FROM t ORDER BY id")


def test_a_write_that_spark_ends_on_new_executors_leaves_only_its_own_files(
    cluster, sqlite_url, tmp_path, files
):
    with session(cluster, tmp_path, 4) as spark, filled(sqlite_url, files, spark) as lake:
        killer = Killer(cluster[1], files)
        killer.start()

        append(lake)

        killer.join()
        assert rows(lake.sql("SELECT id, k FROM t ORDER BY id")) == AFTER
        named = catalog_files(tmp_path / "catalog.db", live=True)
        assert without_checksums(files.there()) == named
        # What the lost ones had written is gone.
        assert killer.left - named
        assert by_duckdb(sqlite_url, files) == AFTER


def test_what_a_write_that_fails_leaves_is_invisible_and_an_orphan(
    cluster, sqlite_url, tmp_path, files
):
    with session(cluster, tmp_path, 1) as spark, filled(sqlite_url, files, spark) as lake:
        before, snapshots = files.there(), len(lake.snapshots())
        killer = Killer(cluster[1], files)
        killer.start()

        with pytest.raises(SparkFailed, match="ExecutorLostFailure") as caught:
            append(lake)

        killer.join()
        assert str(caught.value).startswith("append() of main.t failed in Spark: ExecutorLost")
        assert "; give executors more memory" in str(caught.value)
        assert "\n" not in str(caught.value)
        lost = without_checksums(files.there() - before)
        # Tasks that had ended told of theirs, which are gone.
        assert 0 < len(lost) < len(killer.left)
        assert len(lake.snapshots()) == snapshots
        assert rows(lake.sql("SELECT id, k FROM t ORDER BY id")) == BEFORE
        assert by_duckdb(sqlite_url, files) == BEFORE
        assert lake.remove_orphans().files == ()
        assert without_checksums(files.there() - before) == lost
        removed = lake.remove_orphans(older_than="0 seconds").files
        assert {path.removeprefix(files.data) for path in removed} == lost
        assert files.there() == before
        append(lake)
        assert rows(lake.sql("SELECT id, k FROM t ORDER BY id")) == AFTER


def test_rows_whose_executors_are_lost_after_they_got_numbers_get_others(
    cluster, sqlite_url, tmp_path, monkeypatch
):
    numbered = appends.numbered

    def killed(*arguments):
        monkeypatch.undo()
        for process in executor_processes(cluster[1]):
            os.kill(process, signal.SIGKILL)
        return numbered(*arguments)

    files = Disk(tmp_path)
    with session(cluster, tmp_path, 4) as spark:
        lake = shelduck.connect(sqlite_url, files.data, spark)
        lake.sql("CREATE TABLE t (id BIGINT GENERATED ALWAYS AS IDENTITY, v BIGINT)")
        insert = "INSERT INTO t (v) SELECT id FROM range(0, 5000, 1, 4)"
        lake.sql(insert)
        monkeypatch.setattr(appends, "numbered", killed)

        with pytest.raises(
            SparkFailed, match=r"CHECKPOINT_RDD_BLOCK\S+ Check.*; give executors more"
        ):
            lake.sql(insert)

        lake.sql(insert)
        lake.close()
    with DuckDBOracle(sqlite_url) as oracle:
        counted = "SELECT count(*), count(DISTINCT id), min(id), max(id) FROM t"
        assert oracle.sql(counted) == [(10_000, 10_000, 1, 15_000)]
