"""What a lake on S3 goes through, in a process whose Spark has the JARs for it.

    python -m tests.support.s3_story CATALOG DATA_PATH ANSWERS

The endpoint and the keys are those of the environment; the rows that were seen go to ANSWERS.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

import shelduck
from tests.support.jars import locked
from tests.support.odd_names import FEW, ODD
from tests.support.spark import QUICK, settings


def session(folder: Path) -> SparkSession:
    builder = SparkSession.builder.master("local[2]").appName("shelduck-s3")
    s3a = {
        "endpoint": os.environ["AWS_ENDPOINT_URL_S3"],
        "endpoint.region": "us-east-1",
        "path.style.access": "true",
        "access.key": os.environ["AWS_ACCESS_KEY_ID"],
        "secret.key": os.environ["AWS_SECRET_ACCESS_KEY"],
        "connection.ssl.enabled": "false",
    }
    own = {
        "spark.jars": ",".join(str(jar.path) for jar in locked("s3")),
        "spark.driver.memory": "2g",
        "spark.ui.showConsoleProgress": "false",
    }
    own |= {f"spark.hadoop.fs.s3a.{key}": value for key, value in s3a.items()}
    for key, value in (settings(folder) | QUICK | own).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def story(lake: shelduck.Lake) -> dict[str, object]:
    """Write, change, compact and clean; return what was seen on the way."""
    spark = lake.spark
    lake.set_option("data_inlining_row_limit", 0)
    lake.sql("CREATE TABLE t (id BIGINT, city STRING)")
    lake.sql("ALTER TABLE t SET PARTITIONED BY (city)")
    for start in (0, 1000):
        rows = [(start + n, value) for n, value in enumerate(FEW)]
        lake.table("t").append(spark.createDataFrame(rows, "id BIGINT, city STRING"))
    seen: dict[str, object] = {"written": seen_rows(lake)}
    lake.sql("DELETE FROM t WHERE id >= 1000 AND id % 2 = 0")
    lake.sql("UPDATE t SET id = id + 5000 WHERE id < 1000 AND id % 3 = 0")
    seen["changed"] = seen_rows(lake)
    lake.table("t").compact()

    lake.expire_snapshots(versions=[s.id for s in lake.snapshots()[:-1]])
    seen["deleted"] = list(lake.cleanup_old_files(cleanup_all=True).files)
    seen["orphans"] = list(lake.remove_orphans(older_than="0 seconds", duckdb_files=True).files)
    seen["compacted"] = seen_rows(lake)
    lake.sql("CREATE TABLE dropped AS SELECT * FROM t")
    lake.sql("DROP TABLE dropped")
    lake.expire_snapshots(versions=[s.id for s in lake.snapshots()[:-1]])
    lake.cleanup_old_files(cleanup_all=True)

    lake.sql("CREATE TABLE odd (id BIGINT, city STRING)")
    lake.sql("ALTER TABLE odd SET PARTITIONED BY (city)")
    rows = spark.createDataFrame(list(enumerate(ODD)), "id BIGINT, city STRING")
    lake.table("odd").append(rows.coalesce(1))
    found = lake.sql("SELECT id, city FROM odd ORDER BY id").collect()
    seen["odd"] = [list(row) for row in found]
    return seen


def seen_rows(lake: shelduck.Lake) -> list[list[object]]:
    return [list(row) for row in lake.sql("SELECT id, city FROM t ORDER BY id").collect()]


def main(catalog: str, data_path: str, answers: str) -> None:
    with TemporaryDirectory() as folder:
        spark = session(Path(folder))
        with shelduck.connect(catalog, data_path, spark) as lake:
            Path(answers).write_text(json.dumps(story(lake)))
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
