"""Options of readers, writers, statements and addresses: honoured, or refused by name."""

from __future__ import annotations

import pytest
from pyarrow import parquet
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

import shelduck
from shelduck import InvalidRequest, NotFound
from tests.support.attaching import attached_lake
from tests.support.lakes import newest, rows
from tests.support.meanwhile import convert_first
from tests.support.no_bridge import without_bridge
from tests.support.oracle import DuckDBOracle

FIRST, SECOND, THIRD = (1, "a"), (2, "b"), (2, "c")


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("options")
    with attached_lake(
        spark,
        folder,
        "CREATE TABLE t (id INT, w STRING)",
        "INSERT INTO t VALUES (1, 'a')",
        "INSERT INTO t VALUES (2, 'b')",
        "UPDATE t SET w = 'c' WHERE id = 2",
    ) as found:
        yield found


@pytest.fixture(scope="module")
def frame(spark):
    return spark.sql("SELECT 9 AS id, 'z' AS w")


def table(reader):
    return sorted(rows(reader.table("lake.main.t")))


# Readers


@pytest.mark.slow
@pytest.mark.parametrize("name", ["versionAsOf", "VERSIONASOF", "snapshot-id"])
def test_a_reader_reads_a_snapshot_by_its_id(spark, lake, name):
    assert table(spark.read.option(name, 3)) == [FIRST, SECOND]
    assert table(spark.read.options(**{name: "2"})) == [FIRST]
    assert table(spark.read) == [FIRST, THIRD]


def test_a_reader_reads_the_snapshot_of_a_time(spark, lake):
    when = lake.snapshots()[3].time
    milliseconds = int(when.timestamp() * 1000) + 1
    assert table(spark.read.option("timestampAsOf", when.isoformat())) == [FIRST, SECOND]
    assert table(spark.read.option("as-of-timestamp", milliseconds)) == [FIRST, SECOND]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["readChangeFeed", "readChangeData"])
def test_a_reader_reads_the_change_feed(spark, lake, name):
    feed = spark.read.option(name, "true").option("startingVersion", 3)
    wanted = [
        (2, "b", "insert", 3),
        (2, "b", "update_preimage", 4),
        (2, "c", "update_postimage", 4),
    ]
    columns = ("id", "w", "_change_type", "_commit_version")
    assert sorted(rows(feed.table("lake.main.t").select(*columns)), key=str) == sorted(
        wanted, key=str
    )
    ended = feed.option("endingVersion", 3).table("lake.main.t").select(*columns)
    assert rows(ended) == wanted[:1]
    since = lake.snapshots()[4].time.isoformat()
    timed = spark.read.option(name, True).option("startingTimestamp", since).table("lake.main.t")
    assert timed.count() == 2


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            {"startingVersion": 3},
            'startingVersion applies only to a change feed; add .option("readChangeFeed',
        ),
        ({"readChangeFeed": True}, "a change feed needs startingVersion or startingTimestamp"),
        ({"readChangeFeed": "yes"}, "option readChangeFeed must be true or false, not 'yes'"),
        ({"versionAsOf": "x"}, "branch or tag 'x' of main.t does not exist"),
        (
            {"versionAsOf": 3, "snapshot-id": 3},
            "versionAsOf and snapshot-id cannot be used together",
        ),
        (
            {"versionAsOf": 3, "timestampAsOf": "2026-01-01"},
            "use either versionAsOf or timestampAsOf",
        ),
        (
            {"readChangeFeed": True, "startingVersion": 3, "versionAsOf": 3},
            "is read from startingVersion to endingVersion; leave out versionAsOf",
        ),
        ({"start-snapshot-id": 3}, 'use .option("readChangeFeed", "true")'),
        ({"branch": "x", "versionAsOf": 3}, "versionAsOf and branch cannot be used together"),
        ({"snapshot-id": "x"}, "option snapshot-id must be the id of a snapshot"),
    ],
)
def test_options_of_a_reader_that_say_nothing_clear_are_refused(spark, lake, options, told):
    with pytest.raises(InvalidRequest) as caught:
        spark.read.options(**options).table("lake.main.t")
    assert told in str(caught.value)


def test_tables_of_spark_keep_their_options(spark, lake, frame):
    frame.createOrReplaceTempView("of_session")
    assert rows(spark.read.option("nope", "1").table("of_session")) == [(9, "z")]
    assert rows(spark.sql("SELECT * FROM of_session WITH ('nope' = '1'), lake.main.t LIMIT 1"))


# Writers


def test_a_condition_of_a_writer_says_which_rows_are_replaced(spark, lake, frame):
    lake.sql("CREATE TABLE r AS SELECT CAST(id AS INT) AS id, 'a' AS w FROM range(3)")
    writer = frame.withColumn("id", F.lit(1)).write.mode("overwrite")
    writer.option("replaceWhere", "id = 1").saveAsTable("lake.main.r")
    assert sorted(rows(spark.table("lake.main.r"))) == [(0, "a"), (1, "z"), (2, "a")]


def test_overwritten_tables_get_the_columns_of_the_rows(spark, lake, frame):
    lake.sql("CREATE TABLE o (id INT)")
    writer = frame.write.mode("overwrite").option("overwriteSchema", "true")
    writer.saveAsTable("lake.main.o")
    assert rows(spark.table("lake.main.o")) == [(9, "z")]


# What nobody knows

T, NEW = "lake.main.t", "lake.main.new"


def v2(frame, name):
    return frame.writeTo(name).option("nope", "1")


def v1(frame, mode):
    return frame.write.mode(mode).option("nope", "1")


ENTRIES = {
    "read": lambda spark, lake, frame: spark.read.option("nope", "1").table(T),
    "read options": lambda spark, lake, frame: spark.read.options(nope=1).table(T),
    "append": lambda spark, lake, frame: v2(frame, T).append(),
    "append and merge": lambda spark, lake, frame: (
        v2(frame, T).option("mergeSchema", "true").append()
    ),
    "overwrite": lambda spark, lake, frame: v2(frame, T).overwrite(F.lit(True)),
    "overwritePartitions": lambda spark, lake, frame: v2(frame, T).overwritePartitions(),
    "create": lambda spark, lake, frame: v2(frame, NEW).create(),
    "replace": lambda spark, lake, frame: v2(frame, T).replace(),
    "createOrReplace": lambda spark, lake, frame: v2(frame, NEW).createOrReplace(),
    "saveAsTable append": lambda spark, lake, frame: v1(frame, "append").saveAsTable(T),
    "saveAsTable merge": lambda spark, lake, frame: (
        v1(frame, "append").option("mergeSchema", True).saveAsTable(T)
    ),
    "saveAsTable overwrite": lambda spark, lake, frame: v1(frame, "overwrite").saveAsTable(T),
    "saveAsTable where": lambda spark, lake, frame: (
        v1(frame, "overwrite").option("replaceWhere", "id = 1").saveAsTable(T)
    ),
    "saveAsTable new": lambda spark, lake, frame: v1(frame, "error").saveAsTable(NEW),
    "saveAsTable arguments": lambda spark, lake, frame: frame.write.saveAsTable(
        T, mode="append", nope="1"
    ),
    "insertInto": lambda spark, lake, frame: v1(frame, "append").insertInto(T),
    "insertInto overwrite": lambda spark, lake, frame: v1(frame, "append").insertInto(T, True),
    "createTable": lambda spark, lake, frame: spark.catalog.createTable(
        NEW, schema=frame.schema, nope="1"
    ),
    "SELECT": lambda spark, lake, frame: spark.sql(f"SELECT * FROM {T} WITH ('nope' = '1')"),
    "EXPLAIN": lambda spark, lake, frame: spark.sql(f"EXPLAIN TABLE {T} WITH (nope = 1)"),
    "SELECT of the lake": lambda spark, lake, frame: lake.sql(
        "SELECT * FROM t AS a, t WITH (nope=1)"
    ),
    "INSERT": lambda spark, lake, frame: spark.sql(
        f"INSERT INTO {T} WITH ('nope' = '1') SELECT 9, 'z'"
    ),
    "INSERT of the lake": lambda spark, lake, frame: lake.sql(
        "INSERT INTO t WITH ('nope' = '1') SELECT 9, 'z'"
    ),
    "INSERT from": lambda spark, lake, frame: spark.sql(
        f"INSERT INTO {T} SELECT * FROM {T} WITH ('nope' = '1')"
    ),
    "CREATE VIEW": lambda spark, lake, frame: lake.sql(
        "CREATE VIEW v AS SELECT * FROM t WITH ('nope' = '1')"
    ),
    "OPTIONS": lambda spark, lake, frame: spark.sql(
        f"CREATE TABLE {NEW} (id INT) OPTIONS ('nope' = '1')"
    ),
    "OPTIONS of a query": lambda spark, lake, frame: spark.sql(
        f"CREATE TABLE {NEW} USING parquet OPTIONS (nope 1) AS SELECT 1 AS id"
    ),
    "TBLPROPERTIES": lambda spark, lake, frame: spark.sql(
        f"CREATE TABLE {NEW} (id INT) TBLPROPERTIES ('shelduck.nope' = '1')"
    ),
    "SET TBLPROPERTIES": lambda spark, lake, frame: spark.sql(
        f"ALTER TABLE {T} SET TBLPROPERTIES ('shelduck.nope' = '1')"
    ),
    "PROPERTIES": lambda spark, lake, frame: lake.sql(
        "CREATE TABLE new (id INT) DUPLICATE KEY(id) PROPERTIES ('nope' = '1')"
    ),
    "PROPERTIES of a job": lambda spark, lake, frame: lake.sql(
        "ALTER TABLE t ALTER COLUMN id TYPE STRING PROPERTIES ('nope' = '1')"
    ),
    "CALL": lambda spark, lake, frame: spark.sql("CALL lake.system.compact('t', nope => 1)"),
    "CALL set_option": lambda spark, lake, frame: lake.sql("CALL set_option('nope', 1)"),
    "set_option": lambda spark, lake, frame: lake.set_option("nope", 1),
}


@pytest.mark.sampled(30)
@pytest.mark.parametrize("entry", ENTRIES)
def test_an_option_that_nobody_knows_is_refused_by_its_name(spark, lake, frame, entry):
    before = newest(lake)
    with pytest.raises((shelduck.ShelduckError, Exception), match="nope") as caught:
        ENTRIES[entry](spark, lake, frame)
    assert "PARSE_SYNTAX_ERROR" not in str(caught.value)
    assert newest(lake) == before


def test_an_unknown_option_of_overwritten_partitions_is_refused(spark, lake):
    lake.execute("CREATE TABLE parts (id INT, k INT) PARTITIONED BY (k)")
    before = newest(lake)
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        with pytest.raises(InvalidRequest, match="does not support the option 'nope'"):
            spark.sql("INSERT OVERWRITE lake.parts WITH ('nope' = '1') SELECT 1, 2")
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert newest(lake) == before


def test_an_unknown_option_of_a_stream_is_refused(spark, lake, frame, tmp_path):
    frame.write.json(f"{tmp_path}/source")
    stream = spark.readStream.schema(frame.schema).json(f"{tmp_path}/source").writeStream
    with pytest.raises(
        InvalidRequest, match=r"a stream into .* does not support the option 'nope'"
    ):
        stream.option("checkpointLocation", f"{tmp_path}/c").toTable(T, nope="1")


@pytest.mark.parametrize(
    "address", ["sqlite:////{}/a.db", "duckdb:////{}/a.db", "postgresql://h/d"]
)
def test_an_unknown_option_of_an_address_is_refused(tmp_path, address):
    with pytest.raises(InvalidRequest, match="nope") as caught:
        shelduck.connect(address.format(tmp_path) + "?nope=1", f"{tmp_path}/data")
    assert "sqlalche" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("compression", "set_option('parquet_compression', …)"),
        ("maxRecordsPerFile", "set_option('target_file_size', …)"),
        ("replaceWhere", "overwrite(condition)"),
        ("txnAppId", "lake.transaction(once="),
        ("userMetadata", "lake.transaction(message="),
    ],
)
def test_a_refusal_says_what_to_do_instead(spark, lake, frame, name, told):
    with pytest.raises(Exception, match=name) as caught:
        frame.writeTo(T).option(name, "1").append()
    assert told in str(caught.value)


# Options of the lake


def test_options_of_the_whole_lake_are_refused_for_less(lake):
    for name in ("expire_older_than", "delete_older_than"):
        for owner in ({"table": "t"}, {"schema": "main"}):
            with pytest.raises(InvalidRequest, match=f"option {name} applies to the whole lake"):
                lake.set_option(name, "1 day", **owner)
    assert lake.options() == []


def test_the_timeout_of_jobs_is_an_option(spark, sqlite_url, data_path):
    with shelduck.connect(sqlite_url, data_path, spark) as own:
        own.sql("CREATE TABLE t (a INT)")
        own.sql("CREATE TABLE u (a INT)")
        own.sql("CALL set_option('alter_table_timeout_second', 3600)")
        own.set_option("alter_table_timeout_second", 60, table="u")
        for name in ("t", "u"):
            own.sql(f'ALTER TABLE {name} ALTER a TYPE STRING PROPERTIES ("wait" = "false")')
        found = own.sql("SHOW ALTER TABLE COLUMN").collect()
        assert {row.TableName: row.Timeout for row in found} == {"t": 3600, "u": 60}
    with DuckDBOracle(sqlite_url) as oracle:
        # An option that DuckDB does not know is none of its business.
        oracle.execute("INSERT INTO t VALUES (1)")
        assert oracle.sql("FROM t") == [(1,)]


def test_a_job_has_no_more_tasks_at_once_than_its_option_says(
    spark, sqlite_url, data_path, monkeypatch
):
    convert_first(monkeypatch)
    commits = {}
    with shelduck.connect(sqlite_url, data_path, spark) as own:
        own.sql("CALL set_option('data_inlining_row_limit', 0)")
        # Small files would share a bin, which is a task.
        own.sql("CALL set_option('target_file_size', 1)")
        for name, most in (("t", None), ("u", 1), ("v", 3)):
            own.sql(f"CREATE TABLE {name} (a INT)")
            for value in range(4):
                own.sql(f"INSERT INTO {name} VALUES ({value})")
            if most is not None:
                own.set_option("alter_tablet_worker_count", most, table=name)
            before = len(own.snapshots())
            own.sql(f"ALTER TABLE {name} ALTER a SET TYPE STRING")
            commits[name] = len(own.snapshots()) - before
            assert sorted(own.table(name).read().collect()) == [("0",), ("1",), ("2",), ("3",)]
    # Each commit holds what ran together.
    assert (commits["u"] - commits["t"], commits["v"] - commits["t"]) == (3, 1)


def test_deletion_vectors_are_not_promised(lake):
    with pytest.raises(shelduck.Unsupported, match="write_deletion_vectors"):
        lake.set_option("write_deletion_vectors", True)
    with pytest.raises(NotFound, match="option 'write_deletion_vector' does not exist"):
        lake.set_option("write_deletion_vector", True)


@pytest.mark.parametrize("size", [None, pytest.param(1 << 27, marks=pytest.mark.slow)])
def test_without_options_a_row_group_has_a_million_rows(spark, lake, size):
    name = f"large_{size or 0}"
    lake.create_table(name, {"id": "int"})
    if size is not None:
        lake.set_option("parquet_row_group_size_bytes", size, table=name)
    lake.table(name).append(spark.range(0, 1_100_000, 1, 1).selectExpr("CAST(id AS INT) AS id"))

    [row] = lake.sql(f"SELECT file_path FROM {name}.files").collect()
    found = parquet.ParquetFile(row.file_path).metadata
    groups = [found.row_group(n).num_rows for n in range(found.num_row_groups)]
    assert groups == ([1 << 20, 1_100_000 - (1 << 20)] if size is None else [1_100_000])
    assert rows(lake.sql(f"SELECT count(*), sum(id) FROM {name}")) == [(1_100_000, 604999450000)]


@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("way", ["bridge", "public"])
def test_files_are_encoded_as_the_options_say(spark, lake, monkeypatch, way, repeated):
    if way == "public":
        without_bridge(monkeypatch)
    name = f"e_{way}_{repeated}".lower()
    lake.create_table(name, {"id": "int", "a": "array<int>" if repeated else "int"})
    settings = {
        "parquet_compression": "zstd",
        "parquet_compression_level": 7,
        "parquet_version": 2,
        "parquet_row_group_size": 100,
    }
    for option, value in settings.items():
        lake.set_option(option, value, table=name)
    column = "array(1)" if repeated else "1"
    text = f"SELECT CAST(id AS INT) AS id, {column} AS a FROM range(0, 1000, 1, 1)"
    lake.table(name).append(spark.sql(text))

    [row] = lake.sql(f"SELECT file_path FROM {name}.files").collect()
    found = parquet.ParquetFile(row.file_path).metadata
    assert [found.row_group(n).num_rows for n in range(found.num_row_groups)] == [100] * 10
    chunk = found.row_group(0).column(0)
    assert chunk.compression == "ZSTD"
    assert lake.table(name).read().count() == 1000
    with DuckDBOracle(str(lake._state.store.where).replace("+pysqlite", "")) as oracle:
        assert oracle.sql(f"SELECT sum(id) FROM {name}") == [(499500,)]
