"""A lake on S3: how many requests its verbs make, and what happens when requests fail.

    python -m tests.support.s3_traffic FOLDER ENDPOINT

What was seen goes to FOLDER/answers.json.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

import shelduck
from tests.support.s3 import BUCKET, KEY, SECRET, Fault, client_of, counted, fail
from tests.support.s3_settings import plain_session

FILES = 20
MANY = 1000


def count(endpoint: str, act) -> dict[str, int]:
    """The requests of each kind that an act makes."""
    counted(endpoint)
    act()
    return counted(endpoint)


def traffic(lake: shelduck.Lake, endpoint: str) -> dict[str, dict[str, int]]:
    spark, seen = lake.spark, {}
    rows = spark.range(0, FILES * 10, 1, FILES).selectExpr("id", "id % 5 AS p")
    lake.sql("CREATE TABLE t (id BIGINT, p BIGINT)")
    lake.sql("CREATE TABLE q (id BIGINT, p BIGINT)")
    lake.sql("ALTER TABLE q SET PARTITIONED BY (p)")
    t, q = lake.table("t"), lake.table("q")
    seen["first append"] = count(endpoint, lambda: t.append(rows))
    seen["append"] = count(endpoint, lambda: t.append(rows))
    seen["append 1"] = count(endpoint, lambda: t.append(rows.coalesce(1)))
    seen["append 5 partitions"] = count(endpoint, lambda: q.append(rows.coalesce(1)))
    seen["read"] = count(endpoint, lambda: t.read().where("id >= 0").collect())
    seen["delete"] = count(endpoint, lambda: lake.sql("DELETE FROM t WHERE id = 3"))
    seen["update"] = count(endpoint, lambda: lake.sql("UPDATE t SET p = 9 WHERE id = 5"))
    seen["compact"] = count(endpoint, t.compact)
    lake.expire_snapshots(versions=[s.id for s in lake.snapshots()[:-1]])
    seen["cleanup"] = count(endpoint, lambda: lake.cleanup_old_files(cleanup_all=True))
    seen["orphans"] = count(endpoint, lambda: lake.remove_orphans(older_than="0 seconds"))
    seen["open"], seen["plan"] = many_files(lake, endpoint)
    return seen


def many_files(lake: shelduck.Lake, endpoint: str) -> list[dict[str, int]]:
    """Requests to open a table of many files, and to plan a query of it."""
    lake.sql("CREATE TABLE many AS SELECT 1L AS id, 2L AS p")
    client = client_of(endpoint)
    first = lake.sql("SELECT filename FROM many").first()[0]
    source = {"Bucket": BUCKET, "Key": first.split("/", 3)[3]}
    for n in range(MANY - 1):
        client.copy_object(CopySource=source, Bucket=BUCKET, Key=f"outside/{n:04}.parquet")
    lake.table("many").add_files([f"s3://{BUCKET}/outside/"])
    opened = {}

    def plan() -> None:
        opened["rows"] = lake.table("many").read().where("id = 1")

    def explain() -> None:
        opened["rows"]._jdf.queryExecution().executedPlan().execute().getNumPartitions()

    return [count(endpoint, plan), count(endpoint, explain)]


def faults(lake: shelduck.Lake, endpoint: str) -> dict[str, object]:
    """What each fault leads to: the error, how long it took, and the rows afterwards."""
    spark = lake.spark
    lake.sql("CREATE TABLE f (id BIGINT, v STRING)")
    table = lake.table("f")
    rows = spark.range(0, 40, 1, 4).selectExpr("id", "CAST(id AS STRING) AS v")
    seen: dict[str, object] = {}

    def with_fault(name: str, act, *given: Fault) -> None:
        fail(endpoint, *given)
        began, error = time.monotonic(), None
        try:
            act()
        except shelduck.ShelduckError as raised:
            error = f"{type(raised).__name__}: {raised}"
        except Exception as raised:  # noqa: BLE001 - it is what is looked at
            error = f"NOT OURS {type(raised).__name__}: {str(raised)[:3000]}"
        fail(endpoint)
        files = {r[0] for r in lake.sql("SELECT DISTINCT filename FROM f").collect()}
        total = lake.sql("SELECT count(*), sum(id) FROM f").first()
        seen[name] = {
            "error": error,
            "seconds": time.monotonic() - began,
            "rows": list(total),
            "files": len(files),
        }

    def append() -> None:
        table.append(rows)

    def convert() -> None:
        lake.execute("ALTER TABLE f ALTER COLUMN v TYPE BIGINT PROPERTIES ('wait' = 'false')")
        lake.run_jobs()

    part = "/main/f/.*part-"
    with_fault("slow, then fine", append, Fault("PUT", part, "503", times=3))
    with_fault("reset, then fine", append, Fault("PUT", part, "reset", times=2))
    with_fault("append: slow for ever", append, Fault("PUT", part, "503", after=1))
    with_fault("append: reset for ever", append, Fault("PUT", part, "reset", after=1))
    with_fault("append: expired", append, Fault("", part, "400", after=2))
    with_fault("landing: slow for ever", append, Fault("HEAD", part, "503", after=4))
    lake.sql("CREATE TABLE g (id BIGINT, p BIGINT)")
    lake.sql("ALTER TABLE g SET PARTITIONED BY (p)")
    parts = rows.coalesce(1).selectExpr("id", "id % 5 AS p")
    # The task has written the other partitions by then.
    with_fault(
        "partitions: refused",
        lambda: lake.table("g").append(parts),
        Fault("PUT", "/main/g/p=4/", "403"),
    )
    listing = client_of(endpoint).list_objects_v2(Bucket=BUCKET, Prefix="lake/main/g/")
    seen["left in partitions"] = [found["Key"] for found in listing.get("Contents", ())]
    with_fault(
        "delete: slow for ever",
        lambda: lake.sql("DELETE FROM f WHERE id = 7"),
        Fault("PUT", "/main/f/", "503"),
    )
    with_fault("compaction: slow for ever", table.compact, Fault("PUT", part, "503"))
    with_fault("compaction: refused", table.compact, Fault("", part, "403"))
    with_fault("job: slow for ever", convert, Fault("PUT", part, "503"))
    seen["job before"] = [job.look().state.value for job in lake.jobs()]
    with_fault("job again", lake.run_jobs)
    seen["job after"] = [job.look().state.value for job in lake.jobs()]
    with_fault("compaction", table.compact)
    lake.expire_snapshots(versions=[s.id for s in lake.snapshots()[:-1]])
    clean = lambda: lake.cleanup_old_files(cleanup_all=True)  # noqa: E731
    with_fault("cleanup: slow for ever", clean, Fault("DELETE_MANY", "", "503"))
    with_fault("cleanup again", clean)
    with_fault("orphans", lambda: lake.remove_orphans(older_than="0 seconds"))
    return seen


def session(folder: Path) -> SparkSession:
    spark = plain_session(folder)
    spark.sparkContext.setLogLevel("OFF")
    return spark


def main(folder: Path, endpoint: str) -> None:
    spark = session(folder)
    told = {"endpoint": endpoint, "access_key": KEY, "secret_key": SECRET}
    answers: dict[str, object] = {}
    url = f"sqlite:///{folder}/lake.db"
    answers["connect"] = count(
        endpoint, lambda: shelduck.connect(url, f"s3://{BUCKET}/lake", spark, storage=told).close()
    )
    with shelduck.connect(url, spark=spark, storage=told) as lake:
        lake.set_option("data_inlining_row_limit", 0)
        for name, story in (("traffic", traffic), ("faults", faults)):
            answers[name] = story(lake, endpoint)
            (folder / "answers.json").write_text(json.dumps(answers, indent=1))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
