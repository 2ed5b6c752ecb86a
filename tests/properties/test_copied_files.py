"""Whatever a table holds, a job that copies columns leaves what one that writes all does."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import shelduck
from shelduck.files import compact
from shelduck.jobs import convert, lots
from tests.support.lengths import shown, turns
from tests.support.oracle import DuckDBOracle

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

# A type, and its value for the row of a number, called `id`.
KINDS = {
    "BOOLEAN": "id % 2 = 0",
    "INT": "CAST(id * 7 AS INT)",
    "BIGINT": "id * 5000000000",
    "SMALLINT": "CAST(id AS SMALLINT)",
    "FLOAT": "IF(id % 5 = 0, CAST('NaN' AS FLOAT), CAST(id / 8 AS FLOAT))",
    "DOUBLE": "IF(id % 5 = 0, CAST('-Infinity' AS DOUBLE), id / 8)",
    "DECIMAL(9,2)": "CAST(id AS DECIMAL(9,2))",
    "DECIMAL(30,4)": "CAST(id AS DECIMAL(30,4)) / 4",
    "STRING": "concat('text ', id % 3)",
    "BINARY": "CAST(concat('b', id) AS BINARY)",
    "DATE": "DATE'1960-01-01' + CAST(id AS INT)",
    "TIMESTAMP": "TIMESTAMP'2024-05-01 00:00:00' + make_interval(0, 0, 0, CAST(id AS INT))",
    "TIMESTAMP_NTZ": "TIMESTAMP_NTZ'1950-05-01 00:00:00.000001'",
    "ARRAY<INT>": "array(CAST(id AS INT), NULL)",
    "STRUCT<x: INT, y: ARRAY<STRING>>": "named_struct('x', CAST(id AS INT), 'y', array('a'))",
    "MAP<STRING, STRUCT<z: DATE>>": "map('k', named_struct('z', DATE'2020-01-01'))",
}
# Types that a job converts: from, a value, to.
CONVERTED = [
    ("STRING", "CAST(id * 3 AS STRING)", "INT"),
    ("BIGINT", "id", "INT"),
    ("INT", "CAST(id AS INT)", "STRING"),
    ("DOUBLE", "CAST(id AS DOUBLE)", "DECIMAL(12,3)"),
    ("DATE", "DATE'2001-01-01' + CAST(id AS INT)", "STRING"),
    ("STRUCT<a: STRING, b: INT>", "named_struct('a', '5', 'b', 1)", "STRUCT<a: INT, b: INT>"),
]
# What gives a column of a type another one, and leaves the files.
RESHAPED = {
    "INT": "ALTER TABLE t ALTER COLUMN {} TYPE BIGINT",
    "SMALLINT": "ALTER TABLE t ALTER COLUMN {} TYPE INT",
    "FLOAT": "ALTER TABLE t ALTER COLUMN {} TYPE DOUBLE",
    "DATE": "ALTER TABLE t ALTER COLUMN {} TYPE TIMESTAMP_NTZ",
    "DECIMAL(9,2)": "ALTER TABLE t ALTER COLUMN {} TYPE DECIMAL(20,4)",
    "ARRAY<INT>": "ALTER TABLE t ALTER COLUMN {}.element TYPE BIGINT",
    "STRUCT<x: INT, y: ARRAY<STRING>>": "ALTER TABLE t ADD COLUMN {}.z INT DEFAULT 4",
}
OPTIONS = {
    "parquet_compression": ["zstd", "snappy", "gzip", "uncompressed"],
    "parquet_version": ["1", "2"],
    "parquet_row_group_size_bytes": ["1024", "100000000"],
    # Nothing is put together: there are as many files after both ways.
    "target_file_size": ["1"],
}
STATS = (
    "SELECT column_id, contains_nan, min_value, max_value, null_count, value_count"
    " FROM __ducklake_metadata_lake.ducklake_file_column_stats JOIN"
    " __ducklake_metadata_lake.ducklake_data_file f USING (data_file_id)"
    " WHERE f.end_snapshot IS NULL ORDER BY ALL"
)
SEEDS = range(1000)


class Drawn:
    """A table with a column `v` to convert; ``statements`` make it and change it."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.kind, self.value, self.target = self.chance.choice(CONVERTED)
        kinds = self.chance.sample([*KINDS], self.chance.randint(1, 6))
        # What each column is called now, its value, and its type.
        self.values = {f"c{n}": KINDS[kind] for n, kind in enumerate(kinds)}
        self.kinds = {f"c{n}": kind for n, kind in enumerate(kinds)}
        self.count = 0
        self.statements = [
            "CALL set_option('data_inlining_row_limit', 0)",
            f"CREATE TABLE t ({', '.join(self._shuffled(kinds))})",
            *map(self._option, OPTIONS),
            "ALTER TABLE t SET TBLPROPERTIES ('shelduck.metadataNarrowing' = 'false')",
            "ALTER TABLE t SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')",
        ]
        steps = [self.insert, self.insert, self.update, self.rename, self.drop, self.add]
        steps += [self.delete, self.partition, self.rewrite, self.begin_again, self.reshape]
        for step in [self.insert, *self.chance.choices(steps, k=self.chance.randint(0, 5))]:
            self.statements.append(step())

    def _shuffled(self, kinds: list[str]) -> list[str]:
        columns = [
            "id BIGINT",
            f"v {self.kind}",
            *map(" ".join, zip(self.values, kinds, strict=True)),
        ]
        return self.chance.sample(columns, len(columns))

    def _option(self, name: str) -> str:
        return (
            f"CALL set_option('{name}', '{self.chance.choice(OPTIONS[name])}', table_name => 't')"
        )

    def insert(self) -> str:
        first, self.count = self.count, self.count + self.chance.choice([1, 3, 40])
        values = self.values | {"v": self.value}
        nulls = {name: self.chance.choice([1, 2, 9]) for name in values}
        given = [f"IF(id % {nulls[n]} = 0, NULL, {value}) AS {n}" for n, value in values.items()]
        rows = f"SELECT id, {', '.join(given)} FROM range({first}, {self.count})"
        return f"INSERT INTO t BY NAME {rows}"

    def begin_again(self) -> str:
        """Older files then lack the column."""
        return f"ALTER TABLE t DROP COLUMN v, ADD COLUMN v {self.kind}"

    def update(self) -> str:
        return f"UPDATE t SET id = id WHERE id % 3 = {self.chance.randrange(3)}"

    def delete(self) -> str:
        return f"DELETE FROM t WHERE id = {self.chance.randrange(self.count)}"

    def rename(self) -> str:
        old = self.chance.choice([*self.values])
        self.values[f"r_{old}"] = self.values.pop(old)
        return f"ALTER TABLE t RENAME COLUMN {old} TO r_{old}"

    def reshape(self) -> str:
        """Older files then have another type of a column."""
        known = [name for name in self.values if self.kinds.get(name) in RESHAPED]
        if not known:
            return self.insert()
        name = self.chance.choice(known)
        return RESHAPED[self.kinds.pop(name)].format(name)

    def drop(self) -> str:
        if len(self.values) == 1:
            return self.insert()
        gone = self.chance.choice([*self.values])
        del self.values[gone]
        return f"ALTER TABLE t DROP COLUMN {gone}"

    def add(self) -> str:
        name = f"c{len(self.statements)}"
        self.values[name] = "id % 3"
        return f"ALTER TABLE t ADD COLUMN {name} BIGINT DEFAULT 7"

    def partition(self) -> str:
        return "ALTER TABLE t SET PARTITIONED BY (bucket(2, id))"

    def rewrite(self) -> str:
        return "CALL rewrite_data_files('t', delete_threshold => 0)"


def stored(lake: shelduck.Lake) -> list[dict[str, Any]]:
    """What pyarrow finds in the files of the table."""
    files = [f for f in lake.table("t").files().collect() if f.end_snapshot is None]
    tables = [pq.read_table(f.file_path, partitioning=None) for f in files]
    return sorted((row for table in tables for row in table.to_pylist()), key=itemgetter("id"))


def seen(url: str) -> tuple[str, Counter[str]]:
    """What DuckDB reads, and the statistics that it finds."""
    with DuckDBOracle(url) as oracle:
        rows = oracle.sql("SELECT rowid, * FROM t ORDER BY rowid")
        return repr(rows), Counter(map(repr, oracle.sql(STATS)))


def holds(more: dict[str, Any], some: dict[str, Any]) -> bool:
    """Whether a row of a file that was written whole has all that one of a copied file has."""
    return all(repr(more[name]) == repr(some[name]) for name in some)


def found(seed: int, spark: SparkSession, folder: Path, patch: pytest.MonkeyPatch) -> int:
    """How many files of a drawn table were copied; both ways leave the same."""
    drawn = Drawn(seed)
    change = f"ALTER TABLE t ALTER COLUMN v TYPE {drawn.target}"
    return compared(drawn.statements, change, spark, folder, patch)


def compared(
    statements: list[str], change: str, spark: SparkSession, folder: Path, patch: pytest.MonkeyPatch
) -> int:
    """How many files a change copies; both ways leave the same."""
    copied, both = [], []
    with shelduck.connect(f"sqlite:///{folder}/c.db", f"{folder}/data/", spark) as lake:
        for statement in statements:
            lake.sql(statement)
    write = compact.write_copied

    def counted(spark, parts, table, files):
        copied.extend(files)
        return write(spark, parts, table, files)

    patch.setattr(compact, "write_copied", counted)
    patch.setattr(lots, "SMALL", 0)
    for name in ("copies", "writes"):
        if name == "writes":
            patch.setattr(convert, "copied_files", lambda *_: ({}, Counter()))
        url = f"sqlite:///{folder}/{name}.db"
        shutil.copy(folder / "c.db", folder / f"{name}.db")
        with shelduck.connect(url, f"{folder}/data/", spark) as lake:
            lake.sql(change)
            shown = sorted(map(repr, lake.sql("SELECT * FROM t").collect()))
            # What is written whole has laws of its own, and looking at it again takes long.
            assert name == "writes" or lake.check(rows=True).problems == ()
            both.append((shown, stored(lake), *seen(url)))
    (shown, files, theirs, stats), (shown_2, files_2, theirs_2, stats_2) = both
    assert (shown, theirs) == (shown_2, theirs_2), statements
    assert all(holds(*pair) for pair in zip(files_2, files, strict=True)), statements
    assert stats <= stats_2, statements
    return len(copied)


NUMBERS = {
    "BIGINT": "CAST(id * 5000000000 AS STRING)",
    "INT": "CAST(id AS STRING)",
    "SMALLINT": "CAST(id - 20 AS STRING)",
    "TINYINT": "CAST(id - 20 AS STRING)",
    "FLOAT": "IF(id % 5 = 0, 'NaN', CAST(id / 8 AS STRING))",
    "DOUBLE": "IF(id % 5 = 0, '-Infinity', CAST(id / 7 AS STRING))",
    "BOOLEAN": "IF(id % 3 = 0, 'true', 'false')",
}


def test_numbers_and_booleans_go_straight_into_their_columns(spark, tmp_path, monkeypatch):
    columns = [f"c{n}" for n in range(len(NUMBERS))]
    texts = ", ".join(
        f"IF(id % 7 = {n}, NULL, {value}) AS c{n}" for n, value in enumerate(NUMBERS.values())
    )
    statements = [
        "CALL set_option('data_inlining_row_limit', 0)",
        f"CREATE TABLE t (id BIGINT, {', '.join(f'{c} STRING' for c in columns)})",
        "CALL set_option('target_file_size', '1', table_name => 't')",
        f"INSERT INTO t SELECT id, {texts} FROM range(60)",
        f"INSERT INTO t SELECT id, {texts} FROM range(60, 64)",
    ]
    change = ", ".join(
        f"ALTER COLUMN {c} TYPE {kind}" for c, kind in zip(columns, NUMBERS, strict=True)
    )
    made = compared(statements, f"ALTER TABLE t {change}", spark, tmp_path, monkeypatch)
    assert made > 1


@pytest.mark.slow
@pytest.mark.parametrize("seeds", turns(SEEDS, 20), ids=shown)
def test_drawn_tables_are_converted_by_copying_as_by_writing(seeds, spark, tmp_path):
    copied = 0
    for seed in seeds:
        (tmp_path / str(seed)).mkdir()
        with pytest.MonkeyPatch.context() as patch:
            copied += found(seed, spark, tmp_path / str(seed), patch)

    assert copied > len(seeds)
