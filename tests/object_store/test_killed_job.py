"""A worker is killed in the middle of a job on S3, and another process goes on where it was."""

from __future__ import annotations

import pytest

import shelduck
from tests.concurrency.spark_victim import treat_as_large
from tests.concurrency.test_kills import run_victim
from tests.support.lakes import rows
from tests.support.s3 import BUCKET

pytestmark = [pytest.mark.s3, pytest.mark.slow]

WRITTEN = "shelduck.write.parquet.write.write_together"
FILES = 12
BEFORE = [(n, str(n)) for n in range(FILES * 10)]
AFTER = [(n, n) for n in range(FILES * 10)]


@pytest.fixture(autouse=True)
def as_large_files(monkeypatch):
    """Whoever finishes a job has the limits of the victim: lot by lot, as with large files."""
    treat_as_large(monkeypatch.setattr)


def test_a_job_whose_worker_was_killed_is_finished_by_another(
    sqlite_url, data_path, spark, duckdb, objects
):
    with duckdb(sqlite_url, data_path, {"DATA_INLINING_ROW_LIMIT": 0}) as oracle:
        oracle.execute("CREATE TABLE t (id BIGINT, v VARCHAR)")
        for n in range(0, FILES * 10, 10):
            oracle.execute(f"INSERT INTO t SELECT i, i::VARCHAR FROM range({n}, {n + 10}) r(i)")
    with shelduck.connect(sqlite_url, spark=spark) as lake:
        lake.set_option("target_file_size", 1, table="t")

    # The first lot has landed, and the second is written.
    run_victim(sqlite_url, data_path, "ALTER TABLE t ALTER COLUMN v TYPE BIGINT", f"{WRITTEN} 2")

    left = set(objects.there())
    with shelduck.connect(sqlite_url, spark=spark) as lake:
        [job] = lake.jobs()
        assert job.look().state is shelduck.JobState.RUNNING
        assert rows(lake.sql("SELECT * FROM t ORDER BY id")) == BEFORE
        base = lake.snapshots()[-1].id
        job.wait()
        assert rows(lake.sql("SELECT * FROM t ORDER BY id")) == AFTER
        with duckdb(sqlite_url) as oracle:
            assert oracle.rows("t") == AFTER
            assert oracle.rows("t", version=base) == BEFORE
            every = oracle.dump_metadata()["ducklake_data_file"]
        # Twelve files that were there and twelve that took their places: none was written twice.
        assert len(every) == 2 * FILES
        known = {f"{objects.prefix}main/t/{file['path']}" for file in every}
        assert len(left & known) > FILES
        lost = lake.remove_orphans(older_than="0 seconds").files
        assert {path.removeprefix(f"s3://{BUCKET}/") for path in lost} == left - known != set()
        assert set(objects.there()) == known
