"""Spark's classes as the JVM has parsed and checked them, in a file that later JVMs map.

    python -m tests.support.class_archive FILE

A JVM loads 15,000 classes until Spark has run a few queries, which takes ten seconds of CPU; with
the file it is half. The session of the tests uses the file if it is there. A JVM that finds other
JARs, or is another version itself, starts as if there were none.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import shelduck
from tests.support.spark import CLASS_ARCHIVE, QUICK, local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STATEMENTS = (
    "CALL set_option('data_inlining_row_limit', 0)",
    "CREATE TABLE t (id BIGINT, p INT, v STRING) PARTITIONED BY (p)",
    "INSERT INTO t SELECT id, id % 3, 'a' FROM range(100)",
    "DELETE FROM t WHERE id % 10 = 3",
    "UPDATE t SET v = 'b' WHERE id % 10 = 5",
    "MERGE INTO t USING (SELECT 7 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'c'",
    "SELECT p, count(*), min(id) FROM t WHERE id > 8 GROUP BY p ORDER BY p",
    "SELECT * FROM table_changes('t', 2)",
    "ALTER TABLE t ADD COLUMN w INT DEFAULT 1",
    "ALTER TABLE t ALTER COLUMN w TYPE STRING",
    "OPTIMIZE t",
)


def run(spark: SparkSession, folder: Path) -> None:
    """Run statements that load the classes of most others."""
    with shelduck.connect(f"sqlite:///{folder}/l.db", f"{folder}/data/", spark) as lake:
        for statement in STATEMENTS:
            lake.sql(statement).collect()


def main(file: Path = CLASS_ARCHIVE) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    options = "spark.driver.extraJavaOptions"
    archive = f"-XX:ArchiveClassesAtExit={file} -Xshare:auto -Xlog:disable"
    with (
        TemporaryDirectory() as folder,
        local_session(Path(folder), {options: f"{QUICK[options]} {archive}"}) as spark,
    ):
        run(spark, Path(folder))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
