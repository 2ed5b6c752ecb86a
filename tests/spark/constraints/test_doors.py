"""Rules of tables hold for calls by name in an attached session, too, and for streams."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck import InvalidRequest
from tests.support.attaching import attached_lake
from tests.support.lakes import rows

pytestmark = pytest.mark.every_spark


@pytest.fixture
def lake(spark, tmp_path):
    with attached_lake(
        spark,
        tmp_path,
        "CREATE TABLE t (x INT CHECK (x > 0), g INT GENERATED ALWAYS AS (x + 1),"
        " id BIGINT GENERATED ALWAYS AS IDENTITY)",
    ) as found:
        yield found


def good(spark):
    return spark.range(1).select(F.lit(5).alias("x"))


def test_writers_by_name_compute_columns_and_keep_to_constraints(lake, spark):
    good(spark).writeTo("lake.main.t").append()
    good(spark).write.mode("append").saveAsTable("lake.main.t")
    spark.sql("INSERT INTO lake.main.t (x) VALUES (6)")
    spark.sql(
        "MERGE INTO lake.main.t USING (SELECT 7 AS n) ON x = n"
        " WHEN NOT MATCHED THEN INSERT (x) VALUES (n)"
    )
    found = rows(spark.sql("SELECT x, g, id FROM lake.main.t ORDER BY id"))
    assert found == [(5, 6, 1), (5, 6, 2), (6, 7, 3), (7, 8, 4)]
    bad = good(spark).select((-F.col("x")).alias("x"))
    for act in (
        lambda: bad.writeTo("lake.main.t").append(),
        lambda: bad.write.mode("append").saveAsTable("lake.main.t"),
        lambda: spark.sql("INSERT INTO lake.main.t (x) SELECT -5"),
    ):
        with pytest.raises(InvalidRequest, match=r"check_1 \(x > 0\) of main.t is not satisfied"):
            act()
    assert spark.table("lake.main.t").count() == 4


def test_a_stream_computes_columns_and_stops_at_a_bad_row(lake, spark, tmp_path):
    spark.sql("CREATE TABLE lake.main.source (x INT)")
    spark.sql("INSERT INTO lake.main.source VALUES (1), (2)")

    def run() -> None:
        stream = spark.readStream.table("lake.main.source").writeStream
        stream = stream.option("checkpointLocation", f"{tmp_path}/at").trigger(availableNow=True)
        stream.toTable("lake.main.t").awaitTermination()

    run()
    found = rows(spark.sql("SELECT x, g, id FROM lake.main.t ORDER BY x"))
    assert [row[:2] for row in found] == [(1, 2), (2, 3)]
    assert {row[2] for row in found} == {1, 2}
    spark.sql("INSERT INTO lake.main.source VALUES (-1)")
    with pytest.raises(Exception, match=r"check_1 \(x > 0\) of main.t is not satisfied"):
        run()
    assert spark.table("lake.main.t").count() == 2
