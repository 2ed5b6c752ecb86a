"""Three engines in one session, each a catalog with the same tables in the same SQL."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyspark

import shelduck
from benchmarks.session import session
from tests.support.jars import locked

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

_SETTINGS = {
    "spark.sql.extensions": (
        "io.delta.sql.DeltaSparkSessionExtension,"
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
    ),
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.ice.type": "hadoop",
    # Delta reads its log in 50 tasks, which is for larger logs.
    "spark.databricks.delta.snapshotPartitions": "1",
}
_ICEBERG = {
    "format-version": "3",
    "write.delete.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.merge.mode": "merge-on-read",
}


@dataclass(frozen=True)
class Engine:
    """One engine: where its tables are, and how CREATE TABLE names its format.

    All of them mark deleted rows instead of rewriting files: Delta and Iceberg (format 3) with
    deletion vectors, Shelduck with DuckLake's delete files.
    """

    spark: SparkSession
    name: str
    schema: str
    format: str
    properties: dict[str, str]

    def table(self, name: str) -> str:
        """The full name of a table."""
        return f"{self.schema}.{name}"

    def run(self, statement: str) -> list[tuple[object, ...]]:
        """Run a statement to its end, and return its rows."""
        return [tuple(row) for row in self.spark.sql(statement).collect()]

    def make(self, name: str, query: str, more: dict[str, str] | None = None) -> None:
        """Create a table from a query, in place of an older one of that name."""
        self.drop(name)
        self.run(self.created(name, query, more))

    def created(self, name: str, query: str, more: dict[str, str] | None = None) -> str:
        """The statement that creates a table from a query."""
        options = ", ".join(f"'{k}' = '{v}'" for k, v in (self.properties | (more or {})).items())
        kind = f"USING {self.format} TBLPROPERTIES ({options})" if self.format else ""
        return f"CREATE TABLE {self.table(name)} {kind} AS {query}"

    def drop(self, name: str) -> None:
        self.run(f"DROP TABLE IF EXISTS {self.table(name)}")

    def compact(self, name: str) -> None:
        """Merge small files, and files with deleted rows, into large ones."""
        if self.name == "Iceberg":
            options = "map('rewrite-all', 'true')"
            self.run(
                f"CALL ice.system.rewrite_data_files(table => 'b.{name}', options => {options})"
            )
        else:
            self.run(f"OPTIMIZE {self.table(name)}")

    def convert(self, name: str, columns: Sequence[str], converted: str) -> None:
        """Turn a column of texts into one of numbers; the peers have to replace the table."""
        if self.name == "Shelduck":
            self.run(f"ALTER TABLE {self.table(name)} ALTER COLUMN {converted} TYPE INT")
            return
        listed = ", ".join(f"CAST({c} AS INT) AS {c}" if c == converted else c for c in columns)
        query = f"SELECT {listed} FROM {self.table(name)}"
        self.run("CREATE OR REPLACE " + self.created(name, query).removeprefix("CREATE "))

    def feed(self) -> dict[str, str]:
        """The properties of a table whose changes are to be read."""
        return {
            "Delta": {"delta.enableChangeDataFeed": "true"},
            # Iceberg shows no changes of tables with deletion vectors.
            "Iceberg": {"write.update.mode": "copy-on-write"},
        }.get(self.name, {})

    def snapshot(self, name: str) -> int:
        """The newest snapshot of a table."""
        if self.name == "Iceberg":
            history = f"SELECT snapshot_id FROM {self.table(name)}.snapshots ORDER BY committed_at"
            return int(str(self.run(history)[-1][0]))
        ((newest, *_), *_) = self.run(f"DESCRIBE HISTORY {self.table(name)}")
        return int(str(newest))

    def changes(self, name: str, before: int, after: int) -> DataFrame:
        """What happened to a table after one snapshot, up to another."""
        if self.name == "Iceberg":
            options = f"map('start-snapshot-id', '{before}', 'end-snapshot-id', '{after}')"
            self.run(
                "CALL ice.system.create_changelog_view("
                f"table => 'b.{name}', options => {options}, changelog_view => 'changes_of_{name}')"
            )
            return self.spark.table(f"changes_of_{name}")
        reader = self.spark.read.option("readChangeFeed", "true")
        return reader.option("startingVersion", before + 1).table(self.table(name))


@contextmanager
def engines(folder: Path) -> Iterator[list[Engine]]:
    """The engines in one session, Shelduck first, each with an empty schema."""
    if not pyspark.__version__.startswith("4.1."):
        raise SystemExit(f"Delta and Iceberg are for Spark 4.1, and this is {pyspark.__version__}")
    jars = {j.package.rpartition(":")[0]: j for j in reversed(locked("readers"))}
    missing = [j.package for j in jars.values() if not j.is_right]
    if missing:
        raise SystemExit(f"not here: {', '.join(missing)}; run `make jars`")
    paths = {
        "spark.jars": ",".join(str(j.path) for j in jars.values()),
        "spark.sql.catalog.ice.warehouse": str(folder / "ice"),
    }
    with session(folder, _SETTINGS | paths) as spark:
        spark.sparkContext.setLogLevel("OFF")
        catalog = f"sqlite:///{folder}/lake.db"
        shelduck.attach(spark, "lake", catalog, f"{folder}/lake/")
        for schema in ("lake.b", "spark_catalog.b", "ice.b"):
            spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {schema}")
        vectors = {"delta.enableDeletionVectors": "true"}
        yield [
            Engine(spark, "Shelduck", "lake.b", "", {}),
            Engine(spark, "Delta", "spark_catalog.b", "delta", vectors),
            Engine(spark, "Iceberg", "ice.b", "iceberg", _ICEBERG),
        ]
        shelduck.detach(spark, "lake")
