"""A walk over an encrypted lake, with Spark's log and interface; what it shows becomes files.

    python -m tests.support.sealed_walk FOLDER

Keys are in FOLDER/lake.db, of which FOLDER/told must have none.
"""

from __future__ import annotations

import json
import logging
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

import shelduck
from tests.differential.test_encrypted import STORY
from tests.support.secret_places import every_text, reached, rest_of_spark, settings_of, shown
from tests.support.secret_walk import LOG4J
from tests.support.spark import QUICK, settings

if TYPE_CHECKING:
    from collections.abc import Iterator


def telling_session(folder: Path) -> SparkSession:
    """A session that shows and logs whatever it does."""
    log = folder / "log4j2.properties"
    log.write_text(LOG4J.format(folder=folder))
    own = {
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": str(folder / "told"),
        "spark.eventLog.compress": "false",
        "spark.sql.ui.explainMode": "extended",
        "spark.sql.ui.retainedExecutions": "100000",
        "spark.driver.extraJavaOptions": (
            f"{QUICK['spark.driver.extraJavaOptions']} -Dlog4j2.configurationFile=file:{log}"
        ),
    }
    builder = SparkSession.builder.master("local[2]").appName("shelduck-sealed")
    for key, value in (settings(folder) | QUICK | own).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def walked(folder: Path, spark: SparkSession) -> Iterator[str]:
    """What all that is done with the lake shows."""
    lake = shelduck.attach(
        spark, "lake", f"sqlite:///{folder}/lake.db", f"{folder}/data", encrypted=True
    )
    for statement in STORY:
        yield from shown(lake.execute(statement))
    table = lake.table("t")
    for query in ("SELECT * FROM lake.t WHERE id > 5", "DELETE FROM lake.t WHERE id = 6"):
        for word in ("EXTENDED", "FORMATTED", "CODEGEN"):
            with suppress(shelduck.ShelduckError):
                yield from shown(spark.sql(f"EXPLAIN {word} {query}").collect())
    spark.sql("INSERT INTO lake.t (id, part, label) SELECT id, 1, 'x' FROM range(5000, 5100)")
    spark.table("lake.t").groupBy("part").count().collect()
    spark.sql("UPDATE lake.t SET part = 2 WHERE id = 5001")
    yield from shown(table.changes(2, 8).collect())
    yield from shown(table.files().collect())
    yield from shown(lake.check())
    for each in reached(lake):
        yield from (repr(each), str(each))
    yield from shown(list(settings_of(spark, lambda _: False)))
    file = max((folder / "data").rglob("*.parquet"), key=lambda path: path.stat().st_mtime)
    for content in (b"PARE", file.read_bytes()[:-30] + b"x" * 30):
        file.write_bytes(content)
        for act in (lambda: table.read().collect(), lambda: table.delete("id > 0"), lake.check):
            try:
                yield from shown(act())
            except Exception as error:  # noqa: BLE001 - as it should
                yield every_text(error)
    yield from (text for _, text in rest_of_spark(spark))


def main(folder: Path) -> None:
    told = folder / "told"
    told.mkdir()
    logging.basicConfig(level=logging.DEBUG, filename=told / "python.txt")
    spark = telling_session(folder)
    seen = list(walked(folder, spark))
    spark.stop()
    (told / "seen.json").write_text(json.dumps({"seen": seen}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
