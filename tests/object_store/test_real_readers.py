"""Exports on S3 are read right by the Spark readers of Delta and of Iceberg themselves.

They run on Spark 4.1 (`make test-all`). Shelduck, in the same session, writes what they read.
"""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.support.lakes import rows
from tests.support.odd_names import ODD
from tests.support.real_readers import session_with_readers
from tests.support.s3 import BUCKET, KEY, SECRET

pytestmark = [pytest.mark.slow, pytest.mark.readers]


@pytest.fixture(scope="module")
def spark(s3, tmp_path_factory):
    """A session whose settings lead every reader to the server, whichever way paths are spelled."""
    settings = {
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "spark.hadoop.fs.s3a.endpoint": s3.endpoint,
        "spark.hadoop.fs.s3a.access.key": KEY,
        "spark.hadoop.fs.s3a.secret.key": SECRET,
        "spark.hadoop.fs.s3a.path.style.access": "true",
    }
    with session_with_readers(tmp_path_factory.mktemp("readers"), settings) as session:
        yield session


@pytest.fixture(params=("s3", "s3a"))
def place(request):
    """A directory for an export, whose name needs care, in both spellings."""
    return f"{request.param}://{BUCKET}/of others+{uuid4().hex[:8]}"


EVOLVING = (
    "ALTER TABLE t ALTER COLUMN n TYPE BIGINT",
    "ALTER TABLE t RENAME COLUMN s.x TO y",
    "ALTER TABLE t DROP COLUMN gone",
    "ALTER TABLE t RENAME COLUMN n TO gone",
    "ALTER TABLE t ADD COLUMN n STRING",
    "DELETE FROM t WHERE id IN (1, 2)",
    "INSERT INTO t (id, s, gone, n) VALUES (9, named_struct('y', 90), 5000000000, 'text')",
)
FIRST = [(n, (10 * n,), "old", n) for n in range(4)]
LAST = [*((n, (10 * n,), n, None) for n in (0, 3)), (9, (90,), 5000000000, "text")]


@pytest.fixture
def table(lake):
    lake.sql(
        "CREATE TABLE t (id BIGINT, s STRUCT<x: BIGINT>, gone STRING, n INT)"
        " TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
    )
    lake.sql(
        "INSERT INTO t SELECT id, named_struct('x', 10 * id), 'old', CAST(id AS INT) FROM range(4)"
    )
    return lake.table("t")


@pytest.fixture(params=("delta", "iceberg"))
def form(request):
    """What the table is exported to."""
    return request.param


def exported(table, form, place):
    """The version of the export that shows the newest snapshot."""
    done = (table.export_delta if form == "delta" else table.export_iceberg)(place)
    return 0 if form == "delta" else done.snapshot


def test_each_version_of_a_table_that_evolved_is_read(lake, table, form, place):
    before = exported(table, form, place)
    for statement in EVOLVING:
        lake.sql(statement)
    exported(table, form, place)

    read = lake.spark.read.format(form)
    newest = read.load(place).orderBy("id")
    assert newest.columns == ["id", "s", "gone", "n"]
    assert rows(newest) == LAST
    assert rows(newest.where("gone >= 3 AND s.y = 30")) == [LAST[1]]
    assert rows(read.option("versionAsOf", before).load(place).orderBy("id")) == FIRST


def test_files_of_partitions_of_any_name_are_read(lake, form, place):
    lake.sql("CREATE TABLE t (id BIGINT, city STRING) PARTITIONED BY (city)")
    made = lake.spark.createDataFrame(list(enumerate(ODD)), "id BIGINT, city STRING")
    lake.table("t").append(made.coalesce(1))
    lake.sql("DELETE FROM t WHERE id % 5 = 0")

    exported(lake.table("t"), form, place)

    found = lake.spark.read.format(form).load(place)
    left = [(n, value) for n, value in enumerate(ODD) if n % 5]
    assert rows(found.orderBy("id")) == left
    for n in (1, 16, 41):
        assert rows(found.where(found.city.eqNullSafe(ODD[n]))) == [(n, ODD[n])]
