"""An encrypted lake on S3: each object is encrypted, and DuckDB reads what we write."""

from __future__ import annotations

import pytest

import shelduck
from tests.support.oracle import DuckDBOracle
from tests.support.s3 import BUCKET

pytestmark = pytest.mark.s3


def test_rows_and_deletes_on_s3_are_encrypted(sqlite_url, data_path, spark, s3, objects):
    with shelduck.connect(sqlite_url, data_path, spark, encrypted=True) as lake:
        lake.sql("CREATE TABLE t (id BIGINT, v STRING)")
        table = lake.table("t")
        table.append(spark.range(3000).selectExpr("id", "concat('x', id % 7) AS v"))
        table.delete("id % 10 = 3")
        table.update({"v": "'new'"}, where="id % 10 = 4")
        assert lake.check().is_sound
        found = table.read().where("v <> 'x1'").selectExpr("count(*)", "sum(id)").collect()
    assert len(objects.there()) > 2
    for key in objects.there():
        content = s3.client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
        assert (content[:4], content[-4:]) == (b"PARE", b"PARE")
    with DuckDBOracle(sqlite_url, store=s3) as duckdb:
        duckdb.execute("DELETE FROM t WHERE v = 'x2'")
        assert found == duckdb.sql(
            "SELECT count(*), sum(id) FROM t AT (VERSION => 4) WHERE v <> 'x1'"
        )
        theirs = duckdb.sql("SELECT count(*), sum(id) FROM t")
    with shelduck.connect(sqlite_url, spark=spark) as lake:
        ours = lake.table("t").read().selectExpr("count(*)", "sum(id)").collect()
    assert ours == theirs
