"""A stream of JSON files whose columns drift: the table follows, and every row lands once."""

from __future__ import annotations

import json

import pytest
from pyspark.errors import StreamingQueryException

from shelduck import InvalidRequest
from tests.support.lakes import newest, rows
from tests.support.oracle import DuckDBOracle

STATEMENTS = ["CREATE TABLE t (id INT, s STRUCT<a: INT>, tags ARRAY<STRUCT<k: STRING>>)"]

TAGS = "tags ARRAY<STRUCT<k: STRING>>"
WIDER = (
    "s STRUCT<a: INT, b: STRUCT<c: DOUBLE>>, tags ARRAY<STRUCT<k: STRING, v: BIGINT>>, city STRING"
)


@pytest.fixture
def land(spark, tmp_path):
    """Put a file of objects into the source, and run the query over it with these columns."""
    folder = tmp_path / "source"
    folder.mkdir()

    def put_and_run(function, columns, *objects):
        if objects:
            name = str(len(list(folder.iterdir())))
            (folder / f".{name}").write_text("\n".join(map(json.dumps, objects)))
            (folder / f".{name}").rename(folder / f"{name}.json")
        query = (
            spark.readStream.schema(columns)
            .json(str(folder))
            .writeStream.foreachBatch(function)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    return put_and_run


def test_a_drifting_stream_ends_in_a_table_that_every_reader_reads(copied, land):
    catalog, lake = copied
    table = lake.table("t")
    sink = table.sink(evolve="all", rescue="_rescued")
    before = newest(lake)

    land(sink, f"id INT, s STRUCT<a: INT>, {TAGS}", {"id": 1, "s": {"a": 1}, "tags": [{"k": "x"}]})
    second = {"id": 2, "s": {"b": {"c": 0.5}}, "tags": [{"k": "y", "v": 7}, {}], "city": "Bern"}
    land(sink, f"id INT, {WIDER}", second)

    def crash(batch, number):
        sink(batch, number)
        raise RuntimeError("the driver dies after the commit")

    third = {"id": 5_000_000_000, "s": {"a": 3}, "city": None}
    with pytest.raises(StreamingQueryException, match="the driver dies"):
        land(crash, f"id BIGINT, {WIDER}", third)
    # The batch has landed; the query that starts again does not write it a second time.
    land(sink, f"id BIGINT, {WIDER}")
    # Identifiers become texts: those that are numbers still fit.
    late = "id STRING, s STRUCT<a: STRING, z: INT>, tags STRING, city INT"
    land(
        sink,
        late,
        {"id": "x6", "s": {"a": "six", "z": 6}, "tags": "none", "city": 8000},
        {"id": "7", "s": {"a": "7"}},
    )

    assert newest(lake) == before + 4
    assert str(table.columns) == (
        "id int64\n"
        "s struct<a: int32, b: struct<c: float64>, z: int32>\n"
        "tags array<struct<k: varchar, v: int64>>\n"
        "_rescued varchar\n"
        "city varchar"
    )
    expected = [
        (1, (1, None, None), [("x", None)], None, None),
        (2, (None, (0.5,), None), [("y", 7), (None, None)], None, "Bern"),
        (7, (7, None, None), None, None, None),
        (5_000_000_000, (3, None, None), None, None, None),
        (None, (None, None, 6), None, '{"id":"x6","s":{"a":"six"},"tags":"none"}', "8000"),
    ]
    assert sorted(rows(table.read()), key=str) == sorted(expected, key=str)
    with DuckDBOracle(f"sqlite:///{catalog}") as oracle:
        found = oracle.sql(
            "SELECT id, row(s.a, CASE WHEN s.b IS NOT NULL THEN row(s.b.c) END, s.z),"
            " [row(e.k, e.v) FOR e IN tags], _rescued, city FROM t"
        )
    assert sorted(found, key=str) == sorted(expected, key=str)


def test_a_sink_that_evolves_has_no_function_of_its_own(lake):
    with pytest.raises(InvalidRequest, match=r"pass evolve, rescue and expect to"):
        lake.table("t").sink(write=lambda table, batch: table.append(batch), evolve="add")
