"""A job changes three types while two other processes write: nothing is lost, the past stays.

One process converts, one appends and deletes through Shelduck, and one inserts, updates and deletes
through DuckDB's extension: before, while and after the new types are published.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

import shelduck
from shelduck import JobState, change_type
from shelduck.catalog.commit import commit as catalog_commit
from shelduck.errors import Conflict
from shelduck.jobs import lots, worker
from tests.support.oracle import DuckDBOracle, at

pytestmark = [pytest.mark.slow, pytest.mark.turns(2)]

WRITERS = ("shelduck", "duckdb")
_START = 120
_ACT = 240

# One text for both engines.
_BASE = (
    "SELECT id, CASE WHEN id % 97 = 0 THEN NULL ELSE CAST(id * 7 % 1000003 - 500000 AS STRING) END"
    " AS v, CAST(id % 100000 AS DOUBLE) / 4 AS d,"
    " CAST(DATE '2024-01-01' + CAST(id % 366 AS INT) AS STRING) AS day FROM {}"
)
# The same for old types as for new ones, where values are summed.
_SUMS = (
    "SELECT count(*), sum(id), min(id), max(id),"
    " count(v), sum(id % 1009 * CAST(v AS BIGINT)), min(v), max(v),"
    " count(d), sum(id % 1009 * CAST(d AS DOUBLE)), min(d), max(d), count(day), sum(id % 1009 *"
    " (366 * year(CAST(day AS DATE)) + dayofyear(CAST(day AS DATE)))), min(day), max(day) FROM {}"
)
_HASHES = (
    "SELECT count(DISTINCT id), count(DISTINCT rowid), sum(hash(rowid, id, v, d, day)) FROM {}"
)
_TEXTS = (
    "SELECT count(*), sum(hash(id, CAST(v AS VARCHAR), CAST(d AS DOUBLE), CAST(day AS VARCHAR)))"
    " FROM {}"
)
_SAME_IDS = (
    "SELECT count(*), count_if(old.id <> now.id) FROM (SELECT rowid AS r, id FROM t) AS now"
    " JOIN (SELECT rowid AS r, id FROM {}) AS old USING (r)"
)


class Writers:
    """The two processes, and what they say that they did."""

    def __init__(self, url, folder, size):
        self.folder = folder
        self.logs = {name: folder / f"{name}.out" for name in WRITERS}
        program = [sys.executable, "-m", "tests.concurrency.job_story_writers"]
        self.processes = []
        for name in WRITERS:
            with self.logs[name].open("w") as output:
                self.processes.append(
                    subprocess.Popen(
                        [*program, name, url, folder, str(size)],
                        cwd=Path(__file__).parents[2],
                        stdout=output,
                        stderr=subprocess.STDOUT,
                    )
                )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()

    def start(self):
        self._until(lambda: len(list(self.folder.glob("ready-*"))) == len(WRITERS), _START)
        (self.folder / "go").touch()

    def stop(self):
        (self.folder / "stop").touch()
        assert [p.wait(_ACT) for p in self.processes] == [0, 0], self._output()

    def landed(self, name, after=-1, before=sys.maxsize):
        """What one of them did in the snapshots between two."""
        log = self.folder / f"{name}.jsonl"
        lines = log.read_text().splitlines(keepends=True) if log.exists() else []
        # The last line may be half written.
        found = [json.loads(line) for line in lines if line.endswith("\n")]
        return [e for e in found if after < e.get("snapshot", -1) < before]

    def all_landed(self, last=sys.maxsize):
        """What both did up to a snapshot, in that order."""
        found = [entry for name in WRITERS for entry in self.landed(name, before=last + 1)]
        return sorted(found, key=lambda entry: entry["snapshot"])

    def act(self, count, after=-1):
        """Wait until each has landed so many operations more, or so many after a snapshot."""
        wanted = {n: count + (len(self.landed(n)) if after < 0 else 0) for n in WRITERS}
        self._until(lambda: all(len(self.landed(n, after)) >= wanted[n] for n in WRITERS), _ACT)

    def _until(self, is_so, seconds):
        deadline = time.monotonic() + seconds
        while not is_so():
            assert all(p.poll() is None for p in self.processes), self._output()
            assert time.monotonic() < deadline, self._output()
            time.sleep(0.05)

    def _output(self):
        return "\n".join(log.read_text() for log in self.logs.values())


class Sampler:
    """What snapshots held while they were the newest, as DuckDB read it."""

    def __init__(self, oracle):
        self.oracle = oracle
        self.taken = {}

    def take(self, *_):
        # Inside a transaction all is read at the snapshot that was the newest at its begin.
        self.oracle.execute("BEGIN")
        [(snapshot,)] = self.oracle.sql("FROM ducklake_current_snapshot('lake')")
        self.taken[snapshot] = measured(self.oracle, "t")
        self.oracle.execute("COMMIT")


def measured(oracle, table):
    return [*oracle.sql(_SUMS.format(table)), *oracle.sql(_HASHES.format(table))]


def filled(lake, url, size, files):
    """Makes the table: Shelduck writes one half of its files, DuckDB the other."""
    lake.sql("CREATE TABLE t (id BIGINT NOT NULL, v STRING, d DOUBLE, day STRING)")
    step = size // files
    with DuckDBOracle(url) as oracle:
        for n in range(0, size, 2 * step):
            lake.sql("INSERT INTO t " + _BASE.format(f"range({n}, {n + step}, 1, 1)"))
            there = f"range({n + step}, {n + 2 * step}) AS r(id)"
            oracle.execute("INSERT INTO t " + _BASE.format(there))
    # A file of its own for each file that is written anew.
    lake.set_option("target_file_size", 1, table="t")
    assert lake.table("t").files().count() == files


def between(monkeypatch, writers, sampler):
    """Let others act while files are converted, and look right before the commits that matter."""
    land, publish = lots.land, worker.publication
    record, step = catalog_commit.record_job, catalog_commit.step_job
    written, attempts = [], []

    def lands(parts, commit):
        written.append(parts)
        if len(written) > 1:
            return land(parts, commit)
        third, commits = -(-len(parts) // 3), count()

        def one_by_one(some):
            if some is parts:
                raise Conflict("the lot lands file by file")
            if next(commits) % third == 0:
                writers.act(1)
                sampler.take()
            return commit(some)

        return land(parts, one_by_one)

    def publishes(*arguments):
        attempts.append(arguments)
        if len(attempts) == 1:
            # The job has seen that nothing is left, which is not so any more.
            writers.act(1)
            while writers.landed("duckdb")[-1]["kind"] == "delete":
                writers.act(1)
        return publish(*arguments)

    def records(*arguments):
        sampler.take()
        return record(*arguments)

    def steps(connection, moved, *arguments):
        if moved.state is JobState.FINISHED:
            sampler.take()
        return step(connection, moved, *arguments)

    monkeypatch.setattr(lots, "land", lands)
    monkeypatch.setattr(worker, "publication", publishes)
    # The catalog is locked there: nobody commits between the look and the commit.
    monkeypatch.setattr(catalog_commit, "record_job", records)
    monkeypatch.setattr(catalog_commit, "step_job", steps)


def expected_in(oracle, size, entries):
    """Makes the view `temp.expected` of DuckDB: the rows that entries of the logs lead to."""
    types = "id BIGINT, v VARCHAR, d DOUBLE, day VARCHAR"
    oracle.execute(f"CREATE OR REPLACE TEMP TABLE changed ({types}, alive BOOLEAN)")
    changed = {key: row for entry in entries for key, row in entry["rows"]}
    found = [(key, *(row or [None] * 3), row is not None) for key, row in changed.items()]
    for n in range(0, len(found), 1000):
        texts = ", ".join(
            f"({', '.join('NULL' if x is None else repr(x) for x in row)})"
            for row in found[n : n + 1000]
        )
        oracle.execute(f"INSERT INTO temp.changed VALUES {texts}")
    base = _BASE.format(f"range({size}) AS r(id)")
    oracle.execute(
        f"CREATE OR REPLACE TEMP VIEW expected AS SELECT * FROM ({base})"
        " WHERE id NOT IN (SELECT id FROM temp.changed)"
        " UNION ALL SELECT id, v, d, day FROM temp.changed WHERE alive"
    )


def assert_holds_exactly(oracle, lake, folder):
    """Both engines read the rows of `temp.expected`, each once and with its new types."""
    file = f"{folder}/expected.parquet"
    typed = "id, CAST(v AS INT) AS v, CAST(d AS DECIMAL(18,2)) AS d, CAST(day AS DATE) AS day"
    oracle.execute(f"COPY (SELECT {typed} FROM temp.expected) TO '{file}'")
    both = ("SELECT * FROM t", f"SELECT * FROM '{file}'")
    assert oracle.sql(f"{both[0]} EXCEPT ALL {both[1]} LIMIT 9") == []
    assert oracle.sql(f"{both[1]} EXCEPT ALL {both[0]} LIMIT 9") == []
    wanted, here = lake.spark.read.parquet(file), lake.table("t").read()
    assert here.dtypes == wanted.dtypes
    assert here.exceptAll(wanted).limit(9).collect() == []
    assert here.count() == wanted.count()


def assert_ids_stay(oracle, size, first):
    """Every row has a row id of its own, which is the one that it had at a snapshot."""
    assert oracle.sql("SELECT count(*) - count(DISTINCT rowid) FROM t") == [(0,)]
    [(kept, moved)] = oracle.sql(_SAME_IDS.format(at("t", first)))
    assert moved == 0
    assert oracle.sql(f"SELECT count(*) FROM temp.expected WHERE id < {size}") == [(kept,)]


def assert_past_stays(oracle, lake, taken, writers, size):
    """Snapshots read as when they were the newest, and hold what the logs say."""
    for snapshot, then in taken.items():
        assert measured(oracle, at("t", snapshot)) == then
        found = lake.sql(_SUMS.format(f"t VERSION AS OF {snapshot}")).collect()
        assert tuple(found[0]) == then[0]
        expected_in(oracle, size, writers.all_landed(snapshot))
        wanted = oracle.sql(_TEXTS.format("temp.expected"))
        assert oracle.sql(_TEXTS.format(at("t", snapshot))) == wanted


@pytest.fixture
def lake(postgres_url, data_path, spark):
    with closing(shelduck.connect(postgres_url, data_path, spark, progress=False)) as found:
        yield found


@pytest.mark.parametrize("rows_and_files", [(20_000, 8), (2_000_000, 40)], ids=["small", "large"])
def test_nobody_loses_anything_while_types_change(
    lake, postgres_url, tmp_path, monkeypatch, rows_and_files
):
    size, files = rows_and_files
    with Writers(postgres_url, tmp_path, size) as writers, DuckDBOracle(postgres_url) as oracle:
        filled(lake, postgres_url, size, files)
        sampler = Sampler(oracle)
        sampler.take()
        writers.start()
        writers.act(1)
        between(monkeypatch, writers, sampler)
        job = lake.table("t").alter(
            change_type("v", "int"), change_type("d", "decimal(18,2)"), change_type("day", "date")
        )
        published = job.wait().snapshot
        monkeypatch.undo()
        sampler.taken[published] = measured(oracle, at("t", published))
        writers.act(3, published)
        sampler.take()
        writers.stop()

    told = job.look()
    assert (told.state, told.published) == (JobState.FINISHED, published)
    for name in WRITERS:
        assert writers.landed(name, -1, told.base)
        assert len(writers.landed(name, told.base, published)) >= 3
        assert len(writers.landed(name, published)) >= 3
    assert {told.base - 1, published - 1} < set(sampler.taken)
    with DuckDBOracle(postgres_url) as oracle:
        expected_in(oracle, size, writers.all_landed())
        assert_holds_exactly(oracle, lake, tmp_path)
        assert_ids_stay(oracle, size, min(sampler.taken))
        assert_past_stays(oracle, lake, sampler.taken, writers, size)
