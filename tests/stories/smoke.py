"""One lake's life in a minute: made, filled, reshaped while it fills, read now and as it was.

Every place that Shelduck runs in tells the same story: a local session, a cluster, Spark Connect.
What it expects is written out; at the end DuckDB's own extension must read the same rows.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import shelduck
from tests.support.oracle import DuckDBOracle

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

TRIPS = {
    "id": "bigint NOT NULL",
    "city": "string",
    "amount": "int",
    "stop": "struct<name: string, at: timestamp_ntz>",
    "tags": "array<string>",
    "scores": "map<string, int>",
}
COUNTRIES = {"code": "string", "label": "string", "rate": "decimal(9, 2)"}

EIGHT = datetime.fromisoformat("2026-01-01 08:00")
SNAPSHOT_OF_FIRST_ROWS = 2
SNAPSHOT_OF_SECOND_ROWS = 3


def run_story(
    lake_url: str,
    data_path: str,
    spark: SparkSession,
    duckdb: Callable[[str], DuckDBOracle] = DuckDBOracle,
) -> None:
    """Tells the story on a new lake; fails where what is read is not what is written here."""
    with shelduck.connect(lake_url, data_path, spark) as lake:
        _first_rows(lake, spark)
        _reshape(lake)
        _rows_in_the_new_shape(lake, spark)
        _drop_and_add_again(lake)
        _another_table_and_a_query(lake)
        _the_lake_as_it_was(lake)
        _rows_change(lake, spark)
    with duckdb(lake_url) as oracle:
        _duckdb_agrees(oracle)


def _first_rows(lake: shelduck.Lake, spark: SparkSession) -> None:
    trips = lake.create_table("trips", TRIPS)
    committed = trips.append(
        spark.sql(
            "SELECT 1L AS id, 'Oslo' AS city, 10 AS amount,"
            " named_struct('name', 'pier', 'at', timestamp_ntz'2026-01-01 08:00:00') AS stop,"
            " array('slow', NULL) AS tags, map('view', 9) AS scores"
            " UNION ALL SELECT 2L, 'Rome', 20, NULL, array(), NULL"
        )
    )
    assert isinstance(committed, shelduck.Committed)
    assert (committed.snapshot, committed.rows) == (SNAPSHOT_OF_FIRST_ROWS, 2)
    # Columns go by name: any order, and those that are missing are NULL.
    committed = trips.append(spark.sql("SELECT 'Lima' AS city, 3L AS id"))
    assert isinstance(committed, shelduck.Committed)
    assert (committed.snapshot, committed.rows) == (SNAPSHOT_OF_SECOND_ROWS, 1)
    assert _rows(trips.read()) == [
        (1, "Oslo", 10, ("pier", EIGHT), ["slow", None], {"view": 9}),
        (2, "Rome", 20, None, [], None),
        (3, "Lima", None, None, None, None),
    ]


def _reshape(lake: shelduck.Lake) -> None:
    trips = lake.table("trips")
    files = {path.rsplit("/", 1)[-1] for path in trips.read().inputFiles()}
    changed = trips.alter(
        shelduck.add_column("country", "string", default="NO"),
        shelduck.rename_column("amount", "cents"),
        shelduck.change_type("cents", "bigint"),
        shelduck.add_column("stop.zone", "int"),
    )
    assert isinstance(changed, shelduck.Committed)
    assert (changed.snapshot, changed.files) == (4, 0)
    assert {path.rsplit("/", 1)[-1] for path in trips.read().inputFiles()} == files
    assert trips.read().columns == ["id", "city", "cents", "stop", "tags", "scores", "country"]


def _rows_in_the_new_shape(lake: shelduck.Lake, spark: SparkSession) -> None:
    trips = lake.table("trips")
    trips.append(
        spark.sql(
            "SELECT 4L AS id, 'Bonn' AS city, 3000000000L AS cents,"
            " named_struct('zone', 7, 'name', 'dock', 'at', NULL) AS stop, 'DE' AS country"
        )
    )
    read = trips.read()
    assert _rows(read.select("id", "city", "cents", "stop", "country")) == [
        (1, "Oslo", 10, ("pier", EIGHT, None), "NO"),
        (2, "Rome", 20, None, "NO"),
        (3, "Lima", None, None, "NO"),
        (4, "Bonn", 3000000000, ("dock", None, 7), "DE"),
    ]
    # Filters on what changed: a default that no file holds, a widened value, a field added later.
    assert _ids(read.where("country = 'NO'")) == [1, 2, 3]
    assert _ids(read.where("country <> 'NO'")) == [4]
    assert _ids(read.where("cents > 15")) == [2, 4]
    assert _ids(read.where("cents = 3000000000")) == [4]
    assert _ids(read.where("cents IS NULL")) == [3]
    assert _ids(read.where("stop.zone = 7")) == [4]
    assert _ids(read.where("stop.zone IS NULL")) == [1, 2, 3]
    assert _ids(read.where("id BETWEEN 2 AND 3 AND city LIKE '%i%'")) == [3]


def _drop_and_add_again(lake: shelduck.Lake) -> None:
    trips = lake.table("trips")
    trips.alter(shelduck.drop_column("city"))
    lake.sql("ALTER TABLE trips ADD COLUMN city VARCHAR DEFAULT 'unknown'")
    # The new column has the old one's name and none of its data.
    assert _ids(trips.read().where("city = 'Oslo'")) == []
    lake.sql("INSERT INTO trips (id, city, country) VALUES (5, 'Oslo', 'NO')")
    read = trips.read().select("id", "city")
    assert _rows(read.where("city = 'Oslo'")) == [(5, "Oslo")]
    assert _rows(read.where("city = 'unknown'")) == [(n, "unknown") for n in (1, 2, 3, 4)]


def _another_table_and_a_query(lake: shelduck.Lake) -> None:
    lake.create_table("countries", COUNTRIES)
    lake.sql("INSERT INTO countries VALUES ('NO', 'Norway', 1.25), ('DE', 'Germany', 1)")
    joined = lake.sql(
        "SELECT c.label, count(*) AS trips, sum(t.cents * c.rate) AS paid"
        " FROM trips t JOIN countries c ON c.code = t.country GROUP BY c.label ORDER BY c.label"
    )
    assert [tuple(row) for row in joined.collect()] == [
        ("Germany", 1, Decimal("3000000000.00")),
        ("Norway", 4, Decimal("37.50")),
    ]
    then_and_now = lake.sql(
        "SELECT old.id, old.city AS was, now.city AS is"
        f" FROM trips AT (VERSION => {SNAPSHOT_OF_FIRST_ROWS}) old"
        " JOIN trips now ON now.id = old.id WHERE old.amount > 5 ORDER BY old.id"
    )
    assert [tuple(row) for row in then_and_now.collect()] == [
        (1, "Oslo", "unknown"),
        (2, "Rome", "unknown"),
    ]


def _the_lake_as_it_was(lake: shelduck.Lake) -> None:
    trips = lake.table("trips")
    first = trips.read(version=SNAPSHOT_OF_FIRST_ROWS)
    assert first.columns == ["id", "city", "amount", "stop", "tags", "scores"]
    assert _rows(first.select("id", "city", "amount")) == [(1, "Oslo", 10), (2, "Rome", 20)]
    second = trips.read(version=SNAPSHOT_OF_SECOND_ROWS)
    assert _ids(second.where("city <> 'Oslo'")) == [2, 3]
    assert [snapshot.id for snapshot in lake.snapshots()] == list(range(11))
    assert [str(name) for name in lake.tables()] == ["main.countries", "main.trips"]


def _rows_change(lake: shelduck.Lake, spark: SparkSession) -> None:
    lake.sql("CREATE TABLE visits (id bigint, city string, tags array<string>)")
    lake.sql("ALTER TABLE visits SET PARTITIONED BY (city), SET SORTED BY (id DESC)")
    visits = lake.table("visits")
    rows = (
        "SELECT id, IF(id % 2 = 0, 'Oslo', NULL) AS city, array('a', NULL) AS tags FROM range(40)"
    )
    assert visits.append(spark.sql(rows)).rows == len(range(40))
    lake.sql("DELETE FROM visits WHERE id % 4 = 1")
    lake.sql("UPDATE visits SET city = 'Rome', tags = NULL WHERE id IN (0, 3)")
    merged = visits.merge(
        spark.sql("SELECT id, 'Bonn' AS city FROM range(2, 60, 20)"),
        ["id"],
        shelduck.when_matched_update({"city": "s.city"}),
        shelduck.when_not_matched_insert({"id": "s.id", "city": "s.city"}),
    )
    assert (merged.updated, merged.inserted) == (2, 1)
    lake.sql("DELETE FROM visits WHERE id BETWEEN 4 AND 39 AND id % 3 > 0")
    expected = _visits()
    assert _rows(visits.read()) == expected
    visits.compact()
    assert _rows(visits.read()) == expected
    # Old snapshots and the changes since then stay what they were.
    seen = visits.changes(13).groupBy("_change_type").count().collect()
    assert {row["_change_type"]: row["count"] for row in seen} == {
        "insert": 41,
        "delete": 28,
        "update_preimage": 4,
        "update_postimage": 4,
    }


def _visits() -> list[tuple[object, ...]]:
    rows: dict[int, tuple[object, ...]] = {
        n: (n, "Oslo" if n % 2 == 0 else None, ["a", None]) for n in range(40) if n % 4 != 1
    }
    rows |= {n: (n, "Rome", None) for n in (0, 3)}
    rows |= {n: (n, "Bonn", ["a", None]) for n in (2, 22)} | {42: (42, "Bonn", None)}
    return [row for n, row in sorted(rows.items()) if not (4 <= n <= 39 and n % 3 > 0)]


def _duckdb_agrees(duckdb: DuckDBOracle) -> None:
    assert duckdb.rows("trips") == [
        (
            1,
            10,
            {"name": "pier", "at": EIGHT, "zone": None},
            ["slow", None],
            {"view": 9},
            "NO",
            "unknown",
        ),
        (2, 20, None, [], None, "NO", "unknown"),
        (3, None, None, None, None, "NO", "unknown"),
        (4, 3000000000, {"name": "dock", "at": None, "zone": 7}, None, None, "DE", "unknown"),
        (5, None, None, None, None, "NO", "Oslo"),
    ]
    assert duckdb.rows("trips", version=SNAPSHOT_OF_FIRST_ROWS, columns="id, city") == [
        (1, "Oslo"),
        (2, "Rome"),
    ]
    assert sorted(duckdb.sql("SELECT * FROM visits")) == sorted(_visits(), key=lambda r: r[0])
    assert duckdb.sql("SELECT count(*) FROM visits") == [(len(_visits()),)]
    assert duckdb.rows("countries", columns="code, rate") == [
        ("DE", Decimal("1.00")),
        ("NO", Decimal("1.25")),
    ]


def _ids(rows: DataFrame) -> list[int]:
    return sorted(row.id for row in rows.select("id").collect())


def _rows(rows: DataFrame) -> Sequence[tuple[object, ...]]:
    return [tuple(row) for row in rows.orderBy("id").collect()]
