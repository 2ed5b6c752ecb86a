"""Lakes on S3 in one Spark session that knows nothing of S3: each is told in another way.

    python -m tests.support.s3_settings FOLDER ENDPOINT

What was seen goes to FOLDER/answers.json.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import shelduck
from tests.support.jars import locked
from tests.support.s3 import BUCKET, KEY, SECRET
from tests.support.spark import QUICK, settings


def plain_session(folder: Path) -> SparkSession:
    """A session with the connector, and without a setting for it."""
    builder = SparkSession.builder.master("local[2]").appName("shelduck-s3")
    own = {
        "spark.jars": ",".join(str(jar.path) for jar in locked("s3")),
        "spark.driver.memory": "2g",
        "spark.ui.showConsoleProgress": "false",
    }
    for key, value in (settings(folder) | QUICK | own).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def use(lake: shelduck.Lake) -> list[list[object]]:
    """Write by the bridge, by Python and by Spark's own writer; read all of it."""
    lake.set_option("data_inlining_row_limit", 0)
    lake.sql("CREATE TABLE t (id BIGINT, day STRING)")
    lake.sql("ALTER TABLE t SET PARTITIONED BY (day)")
    lake.sql("INSERT INTO t SELECT id, if(id % 2 = 0, 'a b', 'c%d') FROM range(6)")
    lake.sql("DELETE FROM t WHERE id = 3")
    lake.sql("UPDATE t SET id = id + 10 WHERE id < 2")
    lake.table("t").compact()
    return seen(lake)


def seen(lake: shelduck.Lake) -> list[list[object]]:
    return [list(row) for row in lake.sql("SELECT id, day FROM t ORDER BY id").collect()]


def in_plans(spark: SparkSession, text: str) -> bool:
    """Whether a text is in what Spark shows of the queries that it ran."""
    runs = spark._jsparkSession.sharedState().statusStore().executionsList()
    every = [runs.apply(n) for n in range(runs.size())]
    return any(text in run.physicalPlanDescription() + run.details() for run in every)


def main(folder: Path, endpoint: str) -> None:
    spark = plain_session(folder)
    answers: dict[str, object] = {}
    told = {"endpoint": endpoint, "access_key": KEY, "secret_key": SECRET}

    url = f"sqlite:///{folder}/given.db"
    with shelduck.connect(url, f"s3://{BUCKET}/given", spark, storage=told) as lake:
        answers["given"] = use(lake)
    shelduck.attach(spark, "lake", url, storage=told)
    answers["attached"] = [list(r) for r in spark.sql("FROM lake.main.t ORDER BY id").collect()]
    spark.sql("INSERT INTO lake.main.t VALUES (100, 'x')")
    answers["inserted"] = spark.sql("SELECT max(id) FROM lake.main.t").first()[0]
    shelduck.detach(spark)

    os.environ["AWS_ENDPOINT_URL"] = endpoint
    os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"] = KEY, SECRET
    with shelduck.connect(f"sqlite:///{folder}/env.db", f"s3a://{BUCKET}/env", spark) as lake:
        answers["environment"] = use(lake)
    del os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]
    del os.environ["AWS_ENDPOINT_URL"]

    hadoop = spark._jsparkSession.sessionState().newHadoopConf()
    answers["left"] = [hadoop.get(f"fs.s3a.{p}access.key") for p in ("", f"bucket.{BUCKET}.")]

    other = spark.newSession()
    for name, value in (
        ("endpoint", endpoint),
        ("access.key", KEY),
        ("secret.key", SECRET),
        ("path.style.access", "true"),
    ):
        other.conf.set(f"fs.s3a.{name}", value)
    with shelduck.connect(f"sqlite:///{folder}/own.db", f"s3://{BUCKET}/own", other) as lake:
        answers["session"] = use(lake)
        plain = other.read.format("binaryFile").option("recursiveFileLookup", "true")
        answers["plain"] = plain.load(f"s3a://{BUCKET}/own/main/t/").count() > 0
    answers["shown"] = in_plans(spark, SECRET)
    (folder / "answers.json").write_text(json.dumps(answers))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
