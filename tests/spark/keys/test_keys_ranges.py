"""Where the keys of a load lie: a condition that holds for all of them, and leaves files out."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from shelduck.keys import unique_keys
from shelduck.read import table_rows
from shelduck.read.pruning import Pruner
from shelduck.write.merge import key_ranges
from shelduck.write.merge.key_ranges import near_keys
from shelduck.write.parquet import kept
from tests.support.lakes import rows
from tests.support.oracle import DuckDBOracle
from tests.support.scans import column

STATEMENTS = ["CREATE TABLE u (k INT, s STRING, v INT) UNIQUE KEY (k, s)"]


@pytest.fixture(params=["few", "collected", "many"])
def few_or_many(request, monkeypatch):
    """All ways to look at keys: here, here if they are whole numbers, and by Spark."""
    if request.param != "few":
        monkeypatch.setattr(kept, "FEW", 0)
        monkeypatch.setattr(key_ranges, "FEW", 0)
    if request.param == "many":
        monkeypatch.setattr(key_ranges, "MOST_SHARED", 0)


def near(spark, kind, values, *, others=()):
    """Which of the values, and of others, are near a load of the values."""
    listed = ", ".join(f"(CAST({v} AS {kind}))" for v in values)
    load = spark.sql(f"SELECT k FROM VALUES {listed} AS x(k)").localCheckpoint()
    both = ", ".join(f"(CAST({v} AS {kind}))" for v in (*values, *others))
    table = spark.sql(f"SELECT k FROM VALUES {both} AS x(k)")
    condition = near_keys(load, [column("k", "int32", 1)], len(values))
    return table.where(condition).count() - len(values)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("INT", ["-2147483648", "2147483647", "0"]),
        ("BIGINT", ["-9223372036854775808", "9223372036854775807", "NULL"]),
        ("DECIMAL(38, 2)", ["-0.01", "123456789012345678901234567890.12", "NULL"]),
        ("DECIMAL(38, 0)", ["10000000000000000000000000000000000001", f"3{'0' * 36}7", "5", "7"]),
        ("DECIMAL(38, 0)", ["99999999999999999999999999999999999999", "0"]),
        ("DECIMAL(38, 18)", ["0.000000000000000001", "98765432109876543210.000000000000000001"]),
        ("DECIMAL(38, 38)", [f"'0.{'0' * 37}1'", f"'0.{'0' * 37}2'", f"'0.{'9' * 38}'", "NULL"]),
        ("STRING", ["''", "'é'", "'Z'", "NULL", "'\\u0000'"]),
        ("BOOLEAN", ["true", "NULL"]),
        ("BINARY", ["X''", "X'00'", "X'FF00'", "NULL"]),
        ("DATE", ["'1500-03-01'", "'9999-12-31'", "NULL"]),
        ("DATE", ["'0001-01-01'"]),
        ("TIMESTAMP", ["'1900-01-01 00:00:00.000001'", "'2024-02-29 12:00:00'", "NULL"]),
        ("TIMESTAMP", ["'9999-12-31 23:59:59.999999'"]),
        ("TIMESTAMP_NTZ", ["'0001-01-01 00:00:00'", "'9999-12-31 23:59:59.999999'"]),
        ("TIMESTAMP_NTZ", ["'1900-01-01 00:00:00.000001'", "'2024-03-31 02:30:00'", "NULL"]),
    ],
)
@pytest.mark.usefixtures("few_or_many")
def test_every_key_of_a_load_is_near(spark, kind, values):
    assert near(spark, kind, values) == 0


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("kind", "values", "others"),
    [
        ("INT", ["1", "2", "1000"], ["NULL", "0", "500", "1001"]),
        ("STRING", ["'b'", "'d'"], ["NULL", "'a'", "'e'"]),
        ("DATE", ["'2024-01-01'", "'2024-12-31'"], ["'2024-06-01'", "'2023-12-31'", "NULL"]),
        ("DECIMAL(9, 2)", ["1.50", "9.00"], ["1.49", "5.00", "9.01"]),
        ("BOOLEAN", ["false"], ["true", "NULL"]),
    ],
)
@pytest.mark.usefixtures("few_or_many")
def test_what_lies_between_or_beyond_is_not(spark, kind, values, others):
    assert near(spark, kind, values, others=others) == 0


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", ["INT", "DECIMAL(38, 9)", "DATE", "STRING", "BINARY"])
def test_many_keys_are_near_in_a_few_ranges(spark, kind):
    days = "date_add(DATE '2024-01-01', CAST(id AS INT))"
    of_kind = {"DATE": days, "BINARY": "CAST(CAST(id AS STRING) AS BINARY)"}
    value = of_kind.get(kind, f"CAST(id AS {kind})")
    clusters = "id % 500 < 40"
    load = spark.sql(f"SELECT {value} AS k FROM range(2000) WHERE {clusters}").localCheckpoint()
    near = near_keys(load, [column("k", "int32", 1)])
    assert load.where(near).count() == 160
    if kind not in ("STRING", "BINARY"):
        others = spark.sql(f"SELECT {value} AS k FROM range(-99, 3000) WHERE NOT ({clusters})")
        assert others.where(near).count() == 0


def test_all_keys_of_several_count(spark):
    keys = [column("a", "int32", 1), column("b", "varchar", 2)]
    load = spark.sql("SELECT * FROM VALUES (1, 'x'), (9, 'z') AS v(a, b)").localCheckpoint()
    all_of_them = "(1, 'x'), (9, 'z'), (1, 'y'), (1, 'a'), (5, 'x'), (NULL, 'x'), (1, NULL)"
    table = spark.sql(f"SELECT * FROM VALUES {all_of_them} AS v(a, b)")
    found = table.where(near_keys(load, keys)).orderBy("a", "b")
    assert rows(found) == [(1, "x"), (1, "y"), (9, "z")]
    nulls = spark.sql("SELECT CAST(NULL AS INT) AS a, CAST(NULL AS STRING) AS b").localCheckpoint()
    assert table.where(near_keys(nulls, keys)).count() == 1


@pytest.fixture
def zone():
    """Set the time zone of this Python, which need not be that of the Spark session."""
    before = os.environ.get("TZ")

    def zone(name):
        os.environ["TZ"] = name
        time.tzset()

    yield zone
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("TIMESTAMP", "'2024-10-27 00:30:00Z'"),
        ("TIMESTAMP", "'2024-10-27 01:30:00Z'"),
        ("TIMESTAMP_NTZ", "'2024-06-30 12:30:00'"),
        ("TIMESTAMP_NTZ", "'2024-03-31 02:30:00'"),
    ],
)
def test_the_time_zone_of_python_is_no_matter(spark, zone, kind, key):
    zone("Europe/Berlin")

    assert near(spark, kind, [key]) == 0


@pytest.fixture
def scanned(monkeypatch):
    """The files that were not left out of each scan of a load, by their ids."""
    scans = []

    class Noting(Pruner):
        def __call__(self, group, filters):
            found = super().__call__(group, filters)
            scans.append({f.id for f in group.files} if found is None else found)
            return found

    monkeypatch.setattr(table_rows, "Pruner", Noting)
    return scans


def test_a_load_reads_only_the_files_whose_range_meets_it(copied, spark, scanned, monkeypatch):
    catalog, lake = copied
    table = lake.table("u")
    lake.set_option("data_inlining_row_limit", 0, table="u")
    with DuckDBOracle(f"sqlite:///{catalog}", None, {"DATA_INLINING_ROW_LIMIT": 0}) as duckdb:
        for part in range(12):
            many = f"range({part * 100}, {part * 100 + 100}) AS r(id)"
            duckdb.execute(f"INSERT INTO u SELECT id, 'a' || id, 0 FROM {many}")
    table.append(spark.sql("SELECT -1 AS k, 'a' AS s, 0 AS v"))
    files = {f.data_file_id: Path(f.file_path) for f in table.files().collect()}
    by_place = sorted(files)
    wanted = {by_place[2], by_place[9]}
    assert len(files) == 13
    load_rows = unique_keys.load_rows

    def without_the_others(*arguments, **options):
        hidden = [path for n, path in files.items() if n not in wanted]
        for path in hidden:
            path.rename(f"{path}.hidden")
        try:
            return load_rows(*arguments, **options)
        finally:
            for path in hidden:
                Path(f"{path}.hidden").rename(path)

    monkeypatch.setattr(unique_keys, "load_rows", without_the_others)
    scanned.clear()
    new = spark.sql("SELECT id AS k, 'a' || id AS s, 1 AS v FROM range(210, 290)")
    more = "SELECT * FROM VALUES (950, 'a950', 1), (951, 'a951', 1), (952, 'new', 1) AS v(k, s, v)"
    done = table.append(new.selectExpr("CAST(k AS INT) AS k", "s", "v").unionAll(spark.sql(more)))

    assert (done.inserted, done.updated) == (1, 82)
    assert scanned
    assert set().union(*scanned) == wanted
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.sql("SELECT count(*), sum(v), count(DISTINCT rowid) FROM u") == [
            (1202, 83, 1202)
        ]
