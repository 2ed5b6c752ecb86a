"""Spark's CHANGES of a table of a lake, in statements, readers and streams."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrameReader
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck import InvalidRequest, NotFound, Unsupported
from shelduck.errors import ShelduckError
from tests.support.attaching import attached_lake
from tests.support.lakes import newest, rows

pytestmark = pytest.mark.every_spark
knows_changes = pytest.mark.skipif(
    not hasattr(DataFrameReader, "changes"), reason="Spark 4.0 and 4.1 have no such reader"
)

STATEMENTS = (
    "CREATE TABLE t (id INT, v STRING)",
    "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    "UPDATE t SET v = 'B' WHERE id = 2",
    "DELETE FROM t WHERE id = 3",
    "ALTER TABLE t RENAME COLUMN v TO w, ADD COLUMN n INT DEFAULT 7",
    "INSERT INTO t SELECT id, 'f', 0 FROM range(4, 6)",
    "DELETE FROM t WHERE id = 4",
)
BEGUN = [(2, "insert", 1, "a", 7), (2, "insert", 2, "b", 7), (2, "insert", 3, "c", 7)]
UPDATED = [(3, "delete", 2, "b", 7), (3, "insert", 2, "B", 7)]
IMAGES = [(3, "update_postimage", 2, "B", 7), (3, "update_preimage", 2, "b", 7)]
LATER = [
    (4, "delete", 3, "c", 7),
    (6, "insert", 4, "f", 0),
    (6, "insert", 5, "f", 0),
    (7, "delete", 4, "f", 0),
]


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("changes")
    with attached_lake(spark, folder, *STATEMENTS) as found:
        yield found


@pytest.fixture(params=["lake", "spark"])
def run(request, spark, lake):
    """Run a statement about the table ``{}``, in the lake or in the session."""
    if request.param == "lake":
        return lambda text: lake.sql(text.format("t"))
    return lambda text: spark.sql(text.format("lake.main.t"))


def told(frame):
    """Version and kind of each change, then the table's columns."""
    return sorted(rows(frame.select("_commit_version", "_change_type", *frame.columns[:-3])))


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("VERSION 1", BEGUN + UPDATED + LATER),
        ("VERSION 1 WITH (computeUpdates = true)", BEGUN + IMAGES + LATER),
        ("VERSION 3 TO VERSION 6 WITH (deduplicationMode = 'none')", UPDATED + LATER[:3]),
        ("VERSION 3 EXCLUSIVE TO VERSION 7 EXCLUSIVE", LATER[:3]),
        ("VERSION 7 EXCLUSIVE", []),
        ("VERSION 6 EXCLUSIVE TO VERSION 7 EXCLUSIVE", []),
        ("VERSION 1 WITH (deduplicationMode = 'netChanges')", [BEGUN[0], UPDATED[1], LATER[2]]),
        (
            "VERSION 3 TO VERSION 6 WITH (deduplicationMode = 'NETCHANGES', computeUpdates = true)",
            IMAGES + LATER[:3],
        ),
    ],
)
def test_a_query_reads_the_changes_of_a_range(run, clause, expected):
    assert told(run(f"SELECT * FROM {{}} CHANGES FROM {clause}")) == expected


def test_columns_are_those_of_the_end(run):
    found = run("SELECT * FROM {} CHANGES FROM VERSION 2 TO VERSION 3")
    assert found.columns == ["id", "v", "_change_type", "_commit_version", "_commit_timestamp"]
    assert told(found) == [c[:4] for c in BEGUN + UPDATED]
    assert run("SELECT * FROM {} CHANGES FROM VERSION 7 EXCLUSIVE").schema == (
        run("SELECT * FROM {} CHANGES FROM VERSION 7").schema
    )


def test_the_ends_may_be_times(run, lake):
    at = {s.id: s.time.isoformat() for s in lake.snapshots()}

    def since(clause):
        return told(run(f"SELECT * FROM {{}} CHANGES FROM {clause}"))

    assert since(f"TIMESTAMP '{at[3]}' TO TIMESTAMP '{at[6]}'") == UPDATED + LATER[:3]
    assert since(f"TIMESTAMP '{at[3]}' EXCLUSIVE TO TIMESTAMP '{at[7]}' EXCLUSIVE") == LATER[:3]
    assert since(f"SYSTEM_TIME TIMESTAMP'{at[7]}'") == LATER[3:]
    assert since(f"TIMESTAMP '{at[7]}' EXCLUSIVE") == []
    assert since("TIMESTAMP '2999-01-01'") == []


def test_changes_stand_where_a_table_can(run):
    joined = run(
        "WITH late AS (SELECT * FROM {0} CHANGES FROM VERSION 6)"
        " SELECT {0}.w, late._change_type FROM late JOIN {0} ON {0}.id = late.id"
        " WHERE EXISTS (SELECT 1 FROM {0} CHANGES FROM VERSION 7 AS c WHERE c.id < late.id)"
    )
    assert rows(joined) == [("f", "insert")]


@pytest.mark.parametrize(
    ("clause", "error", "message"),
    [
        ("VERSION 4 TO VERSION 2", InvalidRequest, "cannot begin at snapshot 4 and end at 2"),
        ("VERSION 90 EXCLUSIVE", NotFound, "snapshot 90 does not exist"),
        ("VERSION 2 TO VERSION 99", NotFound, "snapshot 99 does not exist"),
        ("TIMESTAMP '1998-01-01' TO TIMESTAMP '1999-01-01'", NotFound, "no snapshot as old as"),
        ("VERSION 1 WITH (deduplicationMode = 'all')", InvalidRequest, "none, dropCarryovers, net"),
        ("VERSION 1 WITH (computeUpdates = 'so')", InvalidRequest, "must be true or false"),
        ("VERSION 1 WITH (startingVersion = 2)", InvalidRequest, "option 'startingVersion'"),
    ],
)
def test_what_is_no_range_is_refused(run, clause, error, message):
    with pytest.raises(ShelduckError, match=message) as caught:
        run(f"SELECT * FROM {{}} CHANGES FROM {clause}")
    assert isinstance(caught.value, error)


def test_a_view_of_the_lake_cannot_read_them(lake):
    with pytest.raises(Unsupported, match=r"cannot read changes\(...\); read it in a query"):
        lake.sql("CREATE VIEW w AS SELECT * FROM t CHANGES FROM VERSION 1")


@knows_changes
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"startingVersion": 1}, BEGUN + UPDATED + LATER),
        ({"startingVersion": 3, "endingVersion": 6, "computeUpdates": True}, IMAGES + LATER[:3]),
        (
            {
                "startingVersion": 2,
                "startingBoundInclusive": False,
                "endingVersion": 7,
                "endingBoundInclusive": False,
            },
            UPDATED + LATER[:3],
        ),
        (
            {"STARTINGVERSION": "1", "deduplicationMode": "netChanges"},
            [BEGUN[0], UPDATED[1], LATER[2]],
        ),
    ],
)
def test_a_reader_reads_the_same(spark, lake, options, expected):
    assert told(spark.read.options(**options).changes("lake.main.t")) == expected


@knows_changes
def test_a_reader_reads_between_times(spark, lake):
    at = {s.id: s.time.isoformat() for s in lake.snapshots()}
    reader = spark.read.option("startingTimestamp", at[3]).option("endingTimestamp", at[7])
    found = reader.option("endingBoundInclusive", "false").changes("lake.main.t")
    assert told(found) == UPDATED + LATER[:3]
    assert told(found.where(F.col("id") == 5).alias("c").where("c.n = 0")) == [LATER[2]]


@knows_changes
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs startingVersion or startingTimestamp"),
        ({"startingVersion": 1, "versionAsOf": 1}, "does not support the option 'versionAsOf'"),
        ({"startingVersion": 99}, "snapshot 99 does not exist"),
        ({"startingVersion": "b"}, "must be the id of a snapshot, not 'b'"),
        ({"startingVersion": 1, "endingTimestamp": "2026-01-01"}, "both version and timestamp"),
    ],
)
def test_a_reader_with_other_options_is_refused(spark, lake, options, message):
    with pytest.raises(Exception, match=message):
        spark.read.options(**options).changes("lake.main.t")


@knows_changes
def test_what_spark_runs_reads_them_too(spark, lake):
    spark.sql("CREATE TEMPORARY VIEW seen AS SELECT * FROM lake.main.t CHANGES FROM VERSION 6")
    try:
        assert told(spark.table("seen")) == LATER[1:]
    finally:
        spark.catalog.dropTempView("seen")
    with pytest.raises(AnalysisException, match="does not support Change Data Capture"):
        spark.sql("SELECT * FROM range(3) a JOIN nowhere CHANGES FROM VERSION 1")


@pytest.fixture
def arrive(spark, lake, tmp_path):
    """Read a stream of changes up to now; a second run goes on."""

    def run(table="lake.main.t", **options):
        found = []
        stream = spark.readStream.options(**options).changes(table).writeStream
        query = stream.foreachBatch(lambda batch, _: found.extend(told(batch)))
        query.option("checkpointLocation", f"{tmp_path}/c").trigger(
            availableNow=True
        ).start().awaitTermination()
        return sorted(found)

    return run


@knows_changes
def test_a_stream_passes_on_the_changes_of_each_snapshot(spark, lake, arrive):
    lake.sql("CREATE TABLE s (id INT, v STRING)")
    lake.sql("INSERT INTO s VALUES (1, 'a')")
    first = newest(lake)
    assert arrive("lake.main.s", startingVersion=first) == [(first, "insert", 1, "a")]
    lake.sql("UPDATE s SET v = 'b'")
    assert arrive("lake.main.s", startingVersion=first) == [
        (first + 1, "delete", 1, "a"),
        (first + 1, "insert", 1, "b"),
    ]
    assert arrive("lake.main.s", startingVersion=first) == []


@knows_changes
@pytest.mark.parametrize("computes", [True, False])
def test_a_stream_begins_behind_a_snapshot_or_a_time(lake, arrive, computes):
    at = lake.snapshots()[4].time.isoformat()
    behind = {"startingBoundInclusive": False}
    if computes:
        found = arrive(startingVersion=2, computeUpdates=True, maxFilesPerTrigger=1, **behind)
        assert found == IMAGES + LATER
    else:
        assert arrive(startingTimestamp=at, **behind) == LATER[1:]


@knows_changes
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"startingVersion": 1, "endingVersion": 3}, "has no end; leave out endingVersion"),
        ({"startingVersion": 1, "deduplicationMode": "netChanges"}, "leave out deduplicationMode"),
        ({"startingVersion": 1, "unknown": 1}, "does not support the option 'unknown'"),
    ],
)
def test_a_stream_has_every_change(arrive, options, message):
    with pytest.raises(Exception, match=message):
        arrive(**options)
