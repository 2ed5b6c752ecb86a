"""A query of a lake in an application with Spark's UI: what its REST interface shows of it."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from urllib.request import urlopen

import shelduck
from tests.support.spark import local_session

STATEMENTS = """
    CREATE TABLE t (id BIGINT, day INT);
    ALTER TABLE t SET PARTITIONED BY (day);
    INSERT INTO t SELECT id, int(id % 20) FROM range(4000);
"""


def main() -> None:
    """Write the metrics of each node, and the description of the plan, as JSON."""
    folder = Path(sys.argv[1])
    more = {"spark.ui.enabled": "true", "spark.ui.port": "0"}
    with local_session(folder, more) as spark:
        lake = shelduck.attach(spark, "lake", f"sqlite:///{folder}/lake.db", f"{folder}/data/")
        lake.sql(STATEMENTS)
        spark.sql("SELECT sum(id) FROM lake.main.t WHERE day IN (3, 4, 5)").collect()
        context = spark.sparkContext
        address = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/sql"
        sys.stdout.write(json.dumps(_last(f"{address}?details=true&length=1000")))
        shelduck.detach(spark, "lake")


def _last(address: str) -> list[object]:
    """The last query, as soon as Spark has written down that it ended."""
    for _ in range(100):
        with urlopen(address) as answer:
            query = json.load(answer)[-1]
        if query["status"] == "COMPLETED":
            break
        time.sleep(0.1)
    found = {
        node["nodeName"].strip(): {m["name"]: m["value"] for m in node["metrics"]}
        for node in query["nodes"]
    }
    return [found, query["planDescription"]]


if __name__ == "__main__":
    main()
