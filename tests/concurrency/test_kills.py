"""A Spark process is killed at each step of what it does: the lake reads as before, or as after.

What it left behind is found as orphans, and nothing else is.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

import shelduck
from tests.concurrency.spark_victim import RUN_JOBS, treat_as_large
from tests.support.oracle import DuckDBOracle

pytestmark = [pytest.mark.slow, pytest.mark.turns(2)]

BEFORE = [(n, n % 4, 0) for n in range(400)]
_TABLE = "CREATE TABLE {} (id BIGINT, k BIGINT, v BIGINT)"
_FILL = "INSERT INTO {} SELECT n, n % 4, 0 FROM range({}, {}) AS r(n)"

_WRITTEN = "shelduck.write.parquet.write.write_files"
_DELETED = "shelduck.write.deletes.delete_files.write_delete_files"
_REWRITTEN = "shelduck.write.parquet.write.write_together"
_BESIDE_COPIES = "shelduck.write.parquet.write.write_copied"
_MOVED = "shelduck.engine.files.storage.carry_file"
_PLACED = "shelduck.write.parquet.clustering.place_files"
_COPIED = "shelduck.engine.files.storage.copy_file"

APPEND = "INSERT INTO {} SELECT id, id % 4, 1 FROM range(400, 600)"
DELETE = "DELETE FROM {} WHERE id % 2 = 0"
UPDATE = "UPDATE {} SET v = v + 1 WHERE id % 2 = 0"
MERGE = (
    "MERGE INTO {} AS t USING (SELECT id, id % 4 AS k, 2 AS v FROM range(300, 500)) AS s"
    " ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
)
OVERWRITE = "INSERT OVERWRITE {} SELECT id, id % 4, 3 FROM range(20)"
COMPACT = "OPTIMIZE {}"

# What each makes of the rows.
AFTER = {
    APPEND: BEFORE + [(n, n % 4, 1) for n in range(400, 600)],
    DELETE: BEFORE[1::2],
    UPDATE: [(n, k, v + (n % 2 == 0)) for n, k, v in BEFORE],
    MERGE: BEFORE[:300] + [(n, n % 4, 2) for n in range(300, 500)],
    OVERWRITE: [(n, n % 4, 3) for n in range(20)],
    COMPACT: BEFORE,
}
# Within a commit every statement has its turn in test_killed_commits.py.
POINTS = {
    # Who writes files registers first, in a commit of its own.
    APPEND: ["job", _WRITTEN, "after 1", "before 2", "after 2"],
    DELETE: [_DELETED, "after 2"],
    UPDATE: ["job", _WRITTEN],
    MERGE: [_WRITTEN, _DELETED, "statement 5", "after 2"],
    OVERWRITE: ["before 2"],
    COMPACT: ["job", _REWRITTEN, "before 2", "after 2"],
}
# Tasks write new files of partitions where they stay; those of a compaction are moved there.
POINTS_OF_PARTITIONS = {APPEND: ["job", _PLACED], COMPACT: [_MOVED, "after 2"]}
CASES = [("t", s, p) for s, points in POINTS.items() for p in points] + [
    ("p", s, p) for s, points in POINTS_OF_PARTITIONS.items() for p in points
]


@pytest.fixture(autouse=True)
def as_large_files(monkeypatch):
    """Whoever finishes a job has its limits."""
    treat_as_large(monkeypatch.setattr)


def filled(url, data, table, spark, files=6, *, is_own=False):
    """A lake with one table of so many files, or of that many for each partition.

    DuckDB writes them, or Shelduck if they are its own: a job copies what it knows to be its own.
    """
    ends = [*(60 * n for n in range(1, 6)), *range(301, 295 + files), 400]
    fill = [_FILL.format(table, first, end) for first, end in pairwise([0, *ends])]
    fill = [text.replace(") AS", ", 1, 1) AS") for text in fill] if is_own else fill
    with shelduck.connect(url, data, spark) as lake:
        keys = " PARTITIONED BY (k)" if table == "p" else ""
        lake.sql(_TABLE.format(table) + keys)
        if is_own:
            lake.set_option("data_inlining_row_limit", 0)
        for statement in fill if is_own else ():
            lake.sql(statement)
    with DuckDBOracle(url, None, {"DATA_INLINING_ROW_LIMIT": 0}) as oracle:
        for statement in () if is_own else fill:
            oracle.execute(statement)


def run_victim(url, data, statement, point):
    victim = subprocess.Popen(
        [sys.executable, "-m", "tests.concurrency.spark_victim", url, data, statement, point],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = victim.communicate(timeout=240)
    finally:
        if victim.poll() is None:
            os.killpg(victim.pid, signal.SIGKILL)
    assert victim.returncode == -signal.SIGKILL, output
    end_leases(url)


def end_leases(url):
    """What a writer left is nobody's when its lease has ended: the minute is not waited for."""
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as catalog, catalog:
        known = catalog.execute("SELECT 1 FROM sqlite_master WHERE name = 'shelduck_writer'")
        if known.fetchone():
            catalog.execute("UPDATE shelduck_writer SET expires = '2000-01-01 00:00:00+00'")


def files_below(data):
    """Every file but checksums."""
    return {str(p) for p in Path(data).rglob("*") if p.is_file() and p.suffix != ".crc"}


def files_of_catalog(oracle, data, table):
    dump = oracle.dump_metadata()
    rows = [*dump["ducklake_data_file"], *dump["ducklake_delete_file"]]
    waiting = [row["path"] for row in dump["ducklake_files_scheduled_for_deletion"]]
    return {f"{data}main/{table}/{row['path']}" for row in rows} | {data + p for p in waiting}


@pytest.mark.parametrize(
    "case",
    CASES,
    ids=[f"{t}, {s.split(' {')[0].lower()}, {p.rpartition('.')[2]}" for t, s, p in CASES],
)
def test_a_killed_process_leaves_the_lake_as_before_or_as_after(case, sqlite_url, data_path, spark):
    table, statement, point = case
    filled(sqlite_url, data_path, table, spark)
    known, statement_here = files_below(data_path), statement.format(table)
    with DuckDBOracle(sqlite_url) as oracle:
        base = oracle.snapshot()

    run_victim(sqlite_url, data_path, statement_here, point)

    left = files_below(data_path) - known
    has_landed = point == "after 2"
    rows = AFTER[statement] if has_landed else BEFORE
    with closing(shelduck.connect(sqlite_url, spark=spark)) as lake:
        assert_read(lake, sqlite_url, table, rows)
        assert lake.snapshots()[-1].id == base + has_landed
        if not has_landed:
            lake.sql(statement_here)
            assert_read(lake, sqlite_url, table, AFTER[statement])
        removed = lake.remove_orphans(older_than=timedelta(0)).files
        assert set(removed) == (set() if has_landed else left)
        assert_read(lake, sqlite_url, table, AFTER[statement])
    with DuckDBOracle(sqlite_url) as oracle:
        assert files_below(data_path) == files_of_catalog(oracle, data_path, table)
        assert oracle.rows(table, version=base) == BEFORE


# Submitted, and RUNNING at once because nobody writes; the first lot, the second, published.
STEPS = [f"after {n}" for n in range(1, 5)]


@pytest.mark.parametrize("point", [*STEPS, "job", _WRITTEN, _REWRITTEN])
def test_a_job_that_was_killed_is_finished_by_another_process(sqlite_url, data_path, spark, point):
    kill_and_finish(sqlite_url, data_path, spark, point, is_own=False)


@pytest.mark.parametrize("point", ["after 2", "after 3", "job", _WRITTEN, _BESIDE_COPIES])
def test_a_job_that_was_killed_while_it_copied_columns_is_finished_by_another_process(
    sqlite_url, data_path, spark, point
):
    kill_and_finish(sqlite_url, data_path, spark, point, is_own=True)


def kill_and_finish(sqlite_url, data_path, spark, point, *, is_own):
    """Kill a job over twelve files, and let another process finish it."""
    filled(sqlite_url, data_path, "t", spark, files=12, is_own=is_own)
    with shelduck.connect(sqlite_url, spark=spark) as lake:
        lake.set_option("target_file_size", 1, table="t")
        base = lake.snapshots()[-1].id
    known = files_below(data_path)

    run_victim(sqlite_url, data_path, "ALTER TABLE t ALTER COLUMN v TYPE STRING", point)

    left = files_below(data_path) - known
    after = [(n, k, str(v)) for n, k, v in BEFORE]
    with shelduck.connect(sqlite_url, spark=spark) as lake:
        [job] = lake.jobs()
        if job.state is not shelduck.JobState.FINISHED:
            assert_read(lake, sqlite_url, "t", BEFORE)
        with DuckDBOracle(sqlite_url) as oracle:
            orphans = left - files_of_catalog(oracle, data_path, "t")
        job.wait()
        assert_read(lake, sqlite_url, "t", after)
        assert set(lake.remove_orphans(older_than=timedelta(0)).files) == orphans
        assert_read(lake, sqlite_url, "t", after)
    with DuckDBOracle(sqlite_url) as oracle:
        # Twelve files that were there and twelve that took their places: none was written twice.
        every = oracle.dump_metadata()["ducklake_data_file"]
        assert len([f for f in every if f["end_snapshot"] is not None]) == 12
        assert len(every) == 24
        assert oracle.rows("t", version=base) == BEFORE


# More files than one lot: both lots have landed after the fourth commit, and the fifth publishes.
@pytest.mark.parametrize("point", [_COPIED, "after 4", "after 5"])
def test_a_job_is_killed_while_it_copies_what_was_written_meanwhile(
    sqlite_url, data_path, spark, point
):
    orphans, state = killed_job(sqlite_url, data_path, spark, point, files=12)

    assert bool(orphans) == (point == _COPIED)
    assert (state is shelduck.JobState.FINISHED) == (point == "after 5")


# A small table is written whole, also what was written meanwhile, and the third commit publishes.
@pytest.mark.parametrize("point", ["before 3", "after 3"])
def test_a_job_is_killed_while_it_publishes_a_small_table(sqlite_url, data_path, spark, point):
    orphans, state = killed_job(sqlite_url, data_path, spark, point, files=6)

    assert bool(orphans) == (point == "before 3")
    assert (state is shelduck.JobState.FINISHED) == (point == "after 3")


# Submitted, what was written since is converted back, and the third commit publishes.
@pytest.mark.parametrize(
    "point", ["after 1", _BESIDE_COPIES, "after 2", _COPIED, "before 3", "after 3"]
)
def test_an_undo_that_was_killed_is_finished_by_another_process(
    sqlite_url, data_path, spark, point
):
    filled(sqlite_url, data_path, "t", spark, files=6)
    with shelduck.connect(sqlite_url, spark=spark) as lake:
        lake.set_option("data_inlining_row_limit", 0)
        lake.set_option("target_file_size", 1, table="t")
        lake.sql("ALTER TABLE t ALTER COLUMN v TYPE STRING")
        lake.sql("INSERT INTO t SELECT id, id % 4, '1' FROM range(400, 600)")
        lake.sql("UPDATE t SET v = '7' WHERE id < 10")
        base = lake.snapshots()[-1].id
        now = [(n, k, str(7 if n < 10 else v)) for n, k, v in AFTER[APPEND]]
        assert_read(lake, sqlite_url, "t", now)
    there = files_below(data_path)

    run_victim(sqlite_url, data_path, "ALTER TABLE t UNDO JOB 1", point)

    left = files_below(data_path) - there
    with shelduck.connect(sqlite_url, spark=spark) as lake:
        [job, _] = lake.jobs()
        assert (job.state is shelduck.JobState.FINISHED) == (point == "after 3")
        with DuckDBOracle(sqlite_url) as oracle:
            orphans = left - files_of_catalog(oracle, data_path, "t")
        assert bool(orphans) == (point in (_BESIDE_COPIES, _COPIED, "before 3"))
        job.wait()
        back = [(n, k, 7 if n < 10 else v) for n, k, v in AFTER[APPEND]]
        assert_read(lake, sqlite_url, "t", back)
        assert set(lake.remove_orphans(older_than=timedelta(0)).files) == orphans
        assert_read(lake, sqlite_url, "t", back)
    with DuckDBOracle(sqlite_url) as oracle:
        assert oracle.rows("t", version=base) == now


def killed_job(url, data, spark, point, files):
    """Kill a job that converts a table with later rows, and let another process finish it.

    Returns the orphans of the killed process, and the state in which it left the job.
    """
    filled(url, data, "t", spark, files)
    with shelduck.connect(url, spark=spark) as lake:
        lake.set_option("target_file_size", 1, table="t")
        lake.table("t").alter(shelduck.change_type("v", "string"))
        lake.sql(APPEND.format("t"))
        before = lake.snapshots()[-1].id
    known = files_below(data)

    run_victim(url, data, RUN_JOBS, point)

    left = files_below(data) - known
    after = [(n, k, str(v)) for n, k, v in AFTER[APPEND]]
    with shelduck.connect(url, spark=spark) as lake:
        [job] = lake.jobs()
        state = job.state
        with DuckDBOracle(url) as oracle:
            orphans = left - files_of_catalog(oracle, data, "t")
        job.wait()
        assert_read(lake, url, "t", after)
        assert set(lake.remove_orphans(older_than=timedelta(0)).files) == orphans
        assert_read(lake, url, "t", after)
    with DuckDBOracle(url) as oracle:
        assert oracle.rows("t", version=before) == AFTER[APPEND]
        oracle.execute("CALL ducklake_merge_adjacent_files('lake', 't')")
        assert oracle.rows("t") == after
    return orphans, state


MAKE_ROLLUP = "CREATE MATERIALIZED VIEW r AS SELECT k, SUM(v) s, COUNT(*) n FROM t GROUP BY k"
IN_ROLLUP = "SELECT k, SUM(v), COUNT(*) FROM t GROUP BY k ORDER BY k"
# Submitted, claimed, RUNNING, filled, listed.
ROLLUP_STEPS = [f"after {n}" for n in range(1, 6)]


@pytest.mark.parametrize("point", [*ROLLUP_STEPS, "job", _WRITTEN])
def test_a_rollup_is_finished_by_another_process(sqlite_url, data_path, spark, point):
    filled(sqlite_url, data_path, "t", spark)
    known = files_below(data_path)

    run_victim(sqlite_url, data_path, MAKE_ROLLUP, point)

    orphans = files_below(data_path) - known
    with DuckDBOracle(sqlite_url) as oracle:
        landed = {f["path"] for f in oracle.dump_metadata()["ducklake_data_file"]}
    with shelduck.connect(sqlite_url, spark=spark) as lake:
        lake.sql(APPEND.format("t"))
        lake.run_jobs()
        assert lake.jobs()[0].state is shelduck.JobState.FINISHED
        assert_rolled_up(lake, sqlite_url, AFTER[APPEND])
        removed = set(lake.remove_orphans(older_than=timedelta(0)).files)
        assert removed == {path for path in orphans if not path.endswith(tuple(landed))}
        assert_rolled_up(lake, sqlite_url, AFTER[APPEND])


@pytest.mark.parametrize("point", [_WRITTEN, "statement 5", "before 2", "after 2"])
def test_a_killed_load_leaves_rollups_as_their_base(sqlite_url, data_path, spark, point):
    filled(sqlite_url, data_path, "t", spark)
    with shelduck.connect(sqlite_url, spark=spark) as lake:
        lake.sql(MAKE_ROLLUP)
        base = lake.snapshots()[-1].id
    known = files_below(data_path)

    run_victim(sqlite_url, data_path, APPEND.format("t"), point)

    left, has_landed = files_below(data_path) - known, point == "after 2"
    with shelduck.connect(sqlite_url, spark=spark) as lake:
        assert lake.snapshots()[-1].id == base + has_landed
        assert_rolled_up(lake, sqlite_url, AFTER[APPEND] if has_landed else BEFORE)
        if not has_landed:
            lake.sql(APPEND.format("t"))
        assert set(lake.remove_orphans(older_than=timedelta(0)).files) == (
            set() if has_landed else left
        )
        assert_rolled_up(lake, sqlite_url, AFTER[APPEND])


def assert_rolled_up(lake, url, rows):
    assert_read(lake, url, "t", rows)
    with DuckDBOracle(url) as oracle:
        wanted = oracle.sql(IN_ROLLUP)
        assert oracle.rows('"t$r"') == wanted
    assert sorted(map(tuple, lake.table("t$r").read().collect())) == wanted


def test_leaving_type_widening_goes_on_with_the_files_that_a_killed_process_left(
    sqlite_url, data_path, spark
):
    """Seventy files are more than one lot: the process dies right after the first is committed.

    Before, it registers in a commit of its own.
    """
    with shelduck.connect(sqlite_url, data_path, spark) as lake:
        lake.sql("CREATE TABLE t (id INT, k INT)")
        lake.set_option("target_file_size", 1)
    with DuckDBOracle(sqlite_url, None, {"DATA_INLINING_ROW_LIMIT": 0}) as oracle:
        for n in range(70):
            oracle.execute(f"INSERT INTO t VALUES ({n}, {n % 4})")
    with shelduck.connect(sqlite_url, spark=spark) as lake:
        lake.sql("ALTER TABLE t ALTER COLUMN id TYPE BIGINT")
        lake.sql("INSERT INTO t SELECT id + 3000000000, 0 FROM range(0, 20, 1, 1)")
        rows = [(n, n % 4) for n in range(70)] + [(3_000_000_000 + n, 0) for n in range(20)]
        wide = {f.file_path for f in lake.table("t").files().collect()[70:]}
        base = lake.snapshots()[-1].id

    run_victim(sqlite_url, data_path, "ALTER TABLE t DROP FEATURE typeWidening", "after 2")

    with shelduck.connect(sqlite_url, spark=spark) as lake:
        table = lake.table("t")
        assert lake.snapshots()[-1].id == base + 1
        assert len(table.pending_type_rewrites().files) == 6
        assert table.type_changes() == {"id": [{"fromType": "integer", "toType": "long"}]}
        assert_read(lake, sqlite_url, "t", rows)
        assert table.drop_feature("typeWidening").files == 6
        assert table.pending_type_rewrites().files == ()
        assert table.type_changes() == {}
        assert wide < {f.file_path for f in table.files().collect()}
        assert_read(lake, sqlite_url, "t", rows)
    with DuckDBOracle(sqlite_url) as oracle:
        assert oracle.rows("t", version=base) == rows


def assert_read(lake, url, table, rows):
    assert sorted(map(tuple, lake.sql(f"SELECT * FROM {table}").collect())) == rows
    with DuckDBOracle(url) as oracle:
        assert oracle.rows(table) == rows
        assert oracle.sql(f"SELECT count(*), count(DISTINCT rowid) FROM {table}") == [
            (len(rows), len(rows))
        ]
