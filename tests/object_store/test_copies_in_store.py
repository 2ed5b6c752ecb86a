"""A job on S3: the store copies the columns that stay, and the job uploads the converted one."""

from __future__ import annotations

import io

import pyarrow.parquet as pq
import pytest

import shelduck
from tests.support.lakes import rows
from tests.support.s3 import BUCKET, Fault, fail, traffic

pytestmark = pytest.mark.s3

# The smallest part that S3 takes and copies.
LEAST = 5 << 20
ROWS = 700_000
TABLE = "CREATE TABLE t (id BIGINT, v STRING, words STRING, tags ARRAY<STRING>)"
MADE = (
    f"INSERT INTO t SELECT id, CAST(id % 1000 AS STRING), md5(CAST(id AS STRING)),"
    f" array(CAST(id % 7 AS STRING)) FROM range(0, {ROWS}, 1, 1)"
)
CHANGE = "ALTER TABLE t ALTER COLUMN v TYPE INT"
SUMS = "SELECT count(*), sum(v), min(words), max(words), sum(id), sum(CAST(tags[{}] AS INT)) FROM t"


@pytest.fixture
def table(lake):
    """A file of two row groups that is large enough for a copy in the store."""
    lake.sql(TABLE)
    lake.sql("CALL set_option('parquet_row_group_size_bytes', 12000000, table_name => 't')")
    lake.sql(MADE)


@pytest.fixture
def faults(s3):
    yield lambda *given: fail(s3.endpoint, *given)
    fail(s3.endpoint)


def change(lake):
    lake.sql(CHANGE).collect()
    lake.run_jobs()


def file_of(s3, objects):
    """The only object of the newest snapshot: its bytes and its footer."""
    [key] = objects.named()
    content = s3.client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
    return content, pq.ParquetFile(io.BytesIO(content))


@pytest.mark.usefixtures("table")
def test_the_store_copies_what_stays(lake, s3, sqlite_url, duckdb, objects):
    before, old = file_of(s3, objects)
    expected = [tuple(row) for row in lake.sql(SUMS.format(0)).collect()]
    traffic(s3.endpoint)

    change(lake)

    seen, received = traffic(s3.endpoint)
    # Each large row group is copied, but for what fills the part before it.
    groups = [old.metadata.row_group(n) for n in range(old.metadata.num_row_groups)]
    sizes = [sum(g.column(n).total_compressed_size for n in range(4)) for g in groups]
    assert seen["COPY"] == sum(size > 2 * LEAST for size in sizes) > 1
    assert received < len(before) / 2
    after, new = file_of(s3, objects)
    assert len(after) - len(before) < len(before) / 4
    assert new.read(["words"]) == old.read(["words"])
    [(count, total, *_)] = got = rows(lake.sql(SUMS.format(0)))
    assert (count, total) == (ROWS, sum(n % 1000 for n in range(ROWS)))
    assert got == [(n, int(v), *others) for n, v, *others in expected]
    where = "SELECT id, v, words FROM t WHERE v = 17 AND id > 690000 ORDER BY id"
    with duckdb(sqlite_url) as oracle:
        assert oracle.sql(SUMS.format(1)) == got
        assert oracle.sql(where) == rows(lake.sql(where))
        assert [name for name, kind, *_ in oracle.sql("DESCRIBE t") if kind == "INTEGER"] == ["v"]
    lake.sql("ALTER TABLE t UNDO JOB 1").collect()
    lake.run_jobs()
    assert rows(lake.sql("SELECT count(*) FROM t WHERE v = CAST(id % 1000 AS STRING)")) == [(ROWS,)]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["403", "400"])
@pytest.mark.usefixtures("table")
def test_a_store_that_does_not_copy_gets_all_bytes(lake, s3, faults, how):
    faults(Fault("COPY", "", how))
    change(lake)
    assert rows(lake.sql("SELECT count(*), sum(v) FROM t WHERE length(words) = 32")) == [
        (ROWS, sum(n % 1000 for n in range(ROWS)))
    ]
    assert uploads(s3) == []


@pytest.mark.slow
@pytest.mark.usefixtures("table")
def test_an_upload_that_fails_leaves_the_job_and_nothing_else(lake, s3, faults, objects):
    was = objects.there()
    faults(Fault("MULTIPART", "part-", "403", times=1, after=1))
    with pytest.raises(shelduck.StorageUnavailable, match="refuses these credentials"):
        change(lake)
    faults()
    assert (objects.there(), uploads(s3)) == (was, [])
    assert [job.look().state.value for job in lake.jobs()] == ["RUNNING"]
    lake.run_jobs()
    assert rows(lake.sql("SELECT count(v) FROM t")) == [(ROWS,)]


def uploads(s3):
    """The uploads that nobody ended."""
    return s3.client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])
