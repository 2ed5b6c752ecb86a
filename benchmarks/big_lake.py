"""A lake of a million files and a hundred thousand snapshots, made by SQL alone."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from sqlalchemy import text

import shelduck
from benchmarks.catalogs import NUMBERS, multiply_only_file
from shelduck.catalog.databases.store import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Only the newest files and the oldest exist, as names of the only one that was written.
REAL_FILES, OLD_FILES = 2_000, 100

# The file with the id n + 1 begins in the snapshot of its share; one file in fifty has ended.
_HISTORY = """
INSERT INTO ducklake_snapshot
  (snapshot_id, snapshot_time, schema_version, next_catalog_id, next_file_id)
SELECT s.snapshot_id + n.i, s.snapshot_time, s.schema_version, s.next_catalog_id, s.next_file_id
FROM ducklake_snapshot AS s CROSS JOIN {numbers} AS n WHERE s.snapshot_id = :last;

INSERT INTO ducklake_snapshot_changes (snapshot_id, changes_made, author, commit_message)
SELECT :last + n.i, 'inserted_into_table:' || CAST(:table AS VARCHAR), 'load', 'rows of an hour'
FROM {numbers} AS n;

UPDATE ducklake_data_file SET begin_snapshot = :last + 1 + (data_file_id - :first) / :share
WHERE data_file_id > :first;

UPDATE ducklake_data_file SET end_snapshot = begin_snapshot + 5
WHERE data_file_id > :first AND data_file_id < :ended AND data_file_id % 50 = 0
"""


def make_lake(spark: SparkSession, url: str, folder: Path, files: int, snapshots: int) -> None:
    """Make a lake whose table `t` has that many files, added by that many snapshots.

    Each file has 1,000 rows and ids of its own. The newest `REAL_FILES` exist, and the oldest
    `OLD_FILES`.
    """
    with shelduck.connect(url, f"{folder}/data/", spark, progress=False) as lake:
        table = lake.create_table("t", {"id": "bigint", "name": "string", "price": "double"})
        rows = spark.range(0, 1000, 1, 1)
        table.append(rows.selectExpr("id", "concat('n-', id) AS name", "id / 4 AS price"))
        [original] = table.read().inputFiles()
    multiply_only_file(url, files)
    _give_history(url, files, snapshots)
    source = Path(unquote(urlsplit(original).path))
    # The original is in the directory of its write, and the copies are in that of the table.
    home = source.parent.parent
    real = {*range(1, min(OLD_FILES, files)), *range(max(1, files - REAL_FILES), files)}
    for number in sorted(real):
        os.link(source, home / f"copy-{number}.parquet")
    shutil.copy(source, source.parent / "source")


def _give_history(url: str, files: int, snapshots: int) -> None:
    store = open_store(url)
    with store.write() as connection:

        def ask(question: str) -> int:
            return int(connection.execute(text(question)).scalar_one())

        last = ask("SELECT max(snapshot_id) FROM ducklake_snapshot")
        first = ask("SELECT min(data_file_id) FROM ducklake_data_file")
        known = {
            "copies": snapshots,
            "last": last,
            "first": first,
            "table": ask("SELECT max(table_id) FROM ducklake_table"),
            "share": -(-files // snapshots),
            "ended": first + files - REAL_FILES,
        }
        for statement in _HISTORY.split(";"):
            asked = statement.format(numbers=NUMBERS[connection.dialect.name])
            given = {name: value for name, value in known.items() if f":{name}" in asked}
            connection.execute(text(asked), given)
    with store.write() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("ANALYZE"))
    store.close()
