"""A process that carries one table into another one, and dies: run by test_killed_carries.py.

`python -m tests.concurrency.carrier url data source sink condition key point ready`: the point is
one of spark_victim.py, or "moment" if somebody else kills it; then it only says that it is ready.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import shelduck
from tests.concurrency.spark_victim import arm
from tests.support.spark import local_session


def main() -> None:
    url, data, source, sink, condition, key, point, ready = sys.argv[1:]
    more = {"spark.driver.memory": "1g"}
    with (
        tempfile.TemporaryDirectory() as scratch,
        local_session(Path(scratch), more) as spark,
        shelduck.connect(url, spark=spark, progress=False) as lake,
    ):
        while not any(table.name == source for table in lake.tables()):
            time.sleep(0.1)
        if point != "moment":
            arm(point, Path(data) / "main" / sink)
        Path(ready).touch()
        stream = lake.stream(source, key=key.split())
        (stream.where(condition) if condition else stream).to(sink, interval=0.1)


if __name__ == "__main__":
    main()
