"""``readStream.table`` of an attached lake and ``format("shelduck")``: each row arrives once."""

from __future__ import annotations

import threading

import pytest
from pyspark.errors import StreamingQueryException

import shelduck
from tests.support.attaching import attached_lake, duck, url_of
from tests.support.lakes import newest, rows

pytestmark = pytest.mark.every_spark


@pytest.fixture
def lake(spark, tmp_path):
    statements = (
        "CREATE TABLE t (id BIGINT, v STRING)",
        "CALL set_option('data_inlining_row_limit', 2)",
    )
    with attached_lake(spark, tmp_path, *statements) as found:
        yield found


@pytest.fixture
def put(spark):
    """Append the ids of a range in a file of their own."""

    def append(first, last, table="lake.main.t"):
        made = spark.range(first, last, numPartitions=1).selectExpr("id", "'v' || id AS v")
        made.writeTo(table).append()

    return append


class Arrivals:
    """What queries with one checkpoint have passed on, batch by batch."""

    def __init__(self, spark, checkpoint):
        self._spark = spark
        self.checkpoint = str(checkpoint)
        self.batches = []

    def reader(self, options):
        reader = self._spark.readStream
        for name, value in options.items():
            reader = reader.option(name, value)
        return reader.table("lake.main.t")

    def writer(self, *columns, **options):
        def keep(batch, _):
            self.batches.append(sorted(map(tuple, batch.collect()), key=str))

        found = self.reader(options)
        found = found.select(*columns) if columns else found
        return found.writeStream.foreachBatch(keep).option("checkpointLocation", self.checkpoint)

    def run(self, *columns, **options):
        """Run a query until it has read what there is, and return the new rows."""
        self.batches.clear()
        query = self.writer(*columns, **options).trigger(availableNow=True).start()
        query.awaitTermination()
        return self.rows

    @property
    def rows(self):
        """The rows of all batches since the last run."""
        return sorted((row for batch in self.batches for row in batch), key=str)


@pytest.fixture
def arrivals(spark, tmp_path):
    return Arrivals(spark, tmp_path / "checkpoint")


def ids(first, last):
    return sorted(((n,) for n in range(first, last)), key=str)


def test_a_query_gets_what_is_there_then_what_comes(spark, lake, put, arrivals):
    put(0, 20)
    assert arrivals.run("id") == ids(0, 20)
    assert arrivals.run("id") == []
    put(20, 30)
    spark.sql("INSERT INTO lake.main.t VALUES (30, 'in the catalog')")
    assert arrivals.run("id") == ids(20, 31)
    spark.sql("CREATE TABLE lake.main.other AS SELECT 1 AS x")
    assert arrivals.run("id") == []


def test_a_batch_has_as_many_files_as_asked(lake, put, arrivals):
    for n in range(3):
        put(10 * n, 10 * n + 10)
    assert arrivals.run("id", maxFilesPerTrigger="2") == ids(0, 30)
    assert [len(batch) for batch in arrivals.batches] == [20, 10]
    for n in range(3, 5):
        put(10 * n, 10 * n + 10)
    assert arrivals.run("id", maxFilesPerTrigger="1") == ids(30, 50)
    assert [len(batch) for batch in arrivals.batches] == [10, 10]


def test_compaction_between_batches_repeats_and_loses_nothing(spark, lake, put, arrivals):
    for n in range(4):
        put(10 * n, 10 * n + 10)
    halted = []

    def keep(batch, number):
        if number == 1:
            raise RuntimeError("the reader dies")
        halted.extend(map(tuple, batch.select("id").collect()))

    writer = arrivals.reader({"maxFilesPerTrigger": "1"}).writeStream.foreachBatch(keep)
    query = writer.option("checkpointLocation", arrivals.checkpoint).start()
    with pytest.raises(Exception, match="the reader dies"):
        query.awaitTermination()
    spark.sql("OPTIMIZE lake.main.t")
    assert len(rows(spark.sql("SELECT * FROM lake.main.t.files"))) == 1
    put(40, 50)
    spark.sql("OPTIMIZE lake.main.t")
    found = arrivals.run("id", maxFilesPerTrigger="1")
    assert sorted(halted + found, key=str) == ids(0, 50)


def test_a_stream_may_begin_at_a_snapshot_or_a_time(spark, lake, put, arrivals, tmp_path):
    put(0, 10)
    put(10, 20)
    second = newest(lake)
    put(20, 30)
    when = str(lake.snapshots()[-1].time)
    assert arrivals.run("id", startingVersion=str(second)) == ids(10, 30)
    timed = Arrivals(spark, tmp_path / "timed")
    assert timed.run("id", startingTimestamp=when) == ids(20, 30)
    late = Arrivals(spark, tmp_path / "late")
    assert late.run("id", startingVersion="latest") == []
    put(30, 50)
    assert late.run("id", startingVersion="latest") == ids(30, 50)


def test_changed_rows_stop_it_unless_it_is_told_what_to_do(spark, lake, put, arrivals, tmp_path):
    put(0, 10)
    arrivals.run()
    put(10, 20)
    spark.sql("DELETE FROM lake.main.t WHERE id < 3")
    with pytest.raises(Exception, match=r"changed or deleted rows of main.t.*readChangeFeed"):
        arrivals.run("id")
    # What came before the change has arrived all the same.
    assert arrivals.rows == ids(10, 20)
    assert arrivals.run("id", ignoreDeletes="true") == []
    spark.sql("UPDATE lake.main.t SET v = 'new' WHERE id = 5")
    put(20, 30)
    with pytest.raises(Exception, match="changed or deleted rows"):
        arrivals.run("id", ignoreDeletes="true")
    assert arrivals.run("id", skipChangeCommits="true") == ids(20, 30)
    merged = Arrivals(spark, tmp_path / "feed")
    feed = merged.run("id", "v", "_change_type", readChangeFeed="true")
    assert {kind for _, _, kind in feed} == {"insert"}
    spark.sql("UPDATE lake.main.t SET v = 'newer' WHERE id = 5")
    assert merged.run("id", "v", "_change_type", readChangeFeed="true") == [
        (5, "new", "update_preimage"),
        (5, "newer", "update_postimage"),
    ]


def test_compaction_and_flush_are_no_changes(spark, lake, put, arrivals):
    put(0, 10)
    spark.sql("INSERT INTO lake.main.t VALUES (10, 'x')")
    arrivals.run()
    spark.sql("CALL lake.flush_inlined_data('main.t')")
    put(11, 20)
    spark.sql("OPTIMIZE lake.main.t")
    assert arrivals.run("id") == ids(11, 20)


def test_new_columns_stop_it_and_come_with_the_next_start(spark, lake, put, arrivals):
    put(0, 10)
    arrivals.run()
    arrivals.batches.clear()
    query = arrivals.writer().start()
    put(10, 12)
    query.processAllAvailable()
    spark.sql("ALTER TABLE lake.main.t ADD COLUMN w INT DEFAULT 7")
    spark.sql("INSERT INTO lake.main.t VALUES (12, 'v12', 1)")
    with pytest.raises(Exception, match=r"changed the columns of main.t.*onSchemaChange"):
        query.awaitTermination()
    assert arrivals.rows == [(10, "v10"), (11, "v11")]
    assert arrivals.run() == [(12, "v12", 1)]


def test_a_query_may_keep_the_columns_of_its_start(spark, lake, put, arrivals):
    put(0, 10)
    arrivals.run()
    spark.sql("ALTER TABLE lake.main.t SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    query = arrivals.writer(onSchemaChange="follow").start()
    spark.sql("ALTER TABLE lake.main.t RENAME COLUMN v TO name")
    spark.sql("ALTER TABLE lake.main.t ADD COLUMN w INT")
    spark.sql("INSERT INTO lake.main.t VALUES (10, 'ten', 1)")
    query.processAllAvailable()
    assert arrivals.batches[-1] == [(10, "ten")]
    spark.sql("ALTER TABLE lake.main.t ALTER COLUMN id TYPE DECIMAL(30, 0)")
    with pytest.raises(Exception, match=r"changed the type of column 'id'.*same checkpoint"):
        query.awaitTermination()


def test_no_stream_reads_across_a_conversion(spark, lake, put, arrivals, tmp_path):
    put(0, 2)
    assert arrivals.run("id") == ids(0, 2)
    put(2, 3)
    following = Arrivals(spark, tmp_path / "following")
    query = following.writer("id", onSchemaChange="follow").start()
    query.processAllAvailable()
    spark.sql("ALTER TABLE lake.main.t ALTER COLUMN id TYPE STRING")
    with pytest.raises(Exception, match=r"job 1 converted columns of main.t.*make the frame again"):
        query.awaitTermination()
    assert following.rows == ids(0, 3)
    behind = r"job 1 converted columns of main.t .* new checkpoint at startingVersion \d+ for later"
    with pytest.raises(Exception, match=behind):
        arrivals.run("id")
    assert arrivals.rows == []


def test_batches_enter_a_table_of_another_lake_once(spark, lake, put, tmp_path):
    other = f"sqlite:///{tmp_path}/other.db"
    shelduck.attach(spark, "two", other, f"{tmp_path}/other/")
    try:
        for n in range(3):
            put(10 * n, 10 * n + 10)
        copied = spark.readStream.option("maxFilesPerTrigger", 1).table("lake.main.t")
        writer = copied.where("id % 2 = 0").writeStream.option(
            "checkpointLocation", f"{tmp_path}/c"
        )
        writer.trigger(availableNow=True).toTable("two.main.copy").awaitTermination()
        assert duck(other, "SELECT count(*), sum(id), min(v) FROM copy") == [(15, 210, "v0")]
    finally:
        shelduck.detach(spark, "two")


UNFIT = {
    "id BIGINT": "the rows do not fit main.kept:\n  - the table has no column v",
    "id BIGINT NOT NULL, v STRING, CONSTRAINT c CHECK (id > 0)": (
        "CHECK constraint c (id > 0) of main.kept is not satisfied by the row (id = 0, v = v0);"
        " correct the row, or drop the constraint"
    ),
}


@pytest.mark.parametrize("columns", UNFIT)
def test_a_batch_that_does_not_land_is_told_without_calls(spark, lake, put, tmp_path, columns):
    spark.sql(f"CREATE TABLE lake.main.kept ({columns})")
    put(0, 1)
    writer = spark.readStream.table("lake.main.t").writeStream
    writer = writer.option("checkpointLocation", f"{tmp_path}/c").trigger(availableNow=True)
    query = writer.toTable("lake.main.kept")
    with pytest.raises(StreamingQueryException) as caught:
        query.awaitTermination()
    assert [str(caught.value), str(query.exception())] == [UNFIT[columns]] * 2


def test_a_stream_by_format_joins_and_counts(spark, lake, put, tmp_path):
    put(0, 20)
    reader = spark.readStream.format("shelduck").option("catalog", url_of(tmp_path))
    counted = reader.load("main.t").groupBy("v")
    writer = counted.count().writeStream.outputMode("complete").format("memory").queryName("counts")
    query = writer.start()
    try:
        query.processAllAvailable()
        put(0, 5)
        query.processAllAvailable()
        found = spark.sql("SELECT sum(count), max(count) FROM counts")
        assert rows(found) == [(25, 2)]
    finally:
        query.stop()


def test_a_query_ends_with_its_table(spark, lake, put, arrivals):
    put(0, 3)
    query = arrivals.writer("id").start()
    query.processAllAvailable()
    put(3, 5)
    spark.sql("DROP TABLE lake.main.t")
    with pytest.raises(Exception, match=r"table main.t was dropped in snapshot"):
        query.awaitTermination()
    assert arrivals.rows == ids(0, 5)


def test_a_renamed_table_goes_on(spark, lake, put, arrivals):
    put(0, 3)
    query = arrivals.writer("id").start()
    query.processAllAvailable()
    spark.sql("ALTER TABLE lake.main.t RENAME TO lake.main.u")
    put(3, 5, "lake.main.u")
    query.processAllAvailable()
    query.stop()
    assert arrivals.rows == ids(0, 5)


def test_a_query_does_not_wait_in_front_of_what_stops_it(spark, lake, put, arrivals):
    put(0, 10)
    arrivals.run()
    # Snapshots of others stand between its last batch and the one that it cannot deliver.
    lake.execute("CREATE TABLE other (id INT); INSERT INTO other VALUES (1)")
    spark.sql("DELETE FROM lake.main.t WHERE id < 3")
    with pytest.raises(Exception, match=r"changed or deleted rows of main\.t"):
        arrivals.run("id")


def test_a_checkpoint_belongs_to_one_table(spark, lake, put, arrivals):
    put(0, 3)
    arrivals.run()
    spark.sql("DROP TABLE lake.main.t")
    spark.sql("CREATE TABLE lake.main.t (id BIGINT, v STRING)")
    with pytest.raises(Exception, match=r"the checkpoint belongs to another table than main.t"):
        arrivals.run()


def test_writers_beside_a_running_query(spark, lake, put, arrivals):
    query = arrivals.writer("id", maxFilesPerTrigger="3").start()
    threads = [
        threading.Thread(target=lambda n=n: [put(100 * n + k, 100 * n + k + 1) for k in range(4)])
        for n in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    query.processAllAvailable()
    query.stop()
    found = sorted(row for batch in arrivals.batches for row in batch)
    assert found == [(100 * n + k,) for n in range(3) for k in range(4)]


OPTIONS = {
    "foo": ("1", "does not support the option 'foo'"),
    "maxFilesPerTrigger": ("0", "must be at least 1"),
    "startingVersion": ("first", "must be the id of a snapshot"),
    "onSchemaChange": ("ask", "must be 'fail' or 'follow'"),
    "skipChangeCommits": ("yes", "must be true or false"),
    "startingTimestamp": ("soon", "is not a timestamp"),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_wrong_options_are_refused(spark, lake, arrivals, name):
    value, message = OPTIONS[name]
    with pytest.raises(Exception, match=message):
        arrivals.run(**{name: value})


# Reading by format


def test_a_table_is_read_by_format(spark, lake, put, tmp_path):
    put(0, 20)
    first = newest(lake)
    put(20, 30)
    spark.sql("ALTER TABLE lake.main.t RENAME COLUMN v TO `a.b`")
    spark.sql("DELETE FROM lake.main.t WHERE id = 29")
    found = spark.read.format("shelduck").options(catalog="lake", table="t").load()
    assert found.columns == ["id", "a.b"]
    assert rows(found.where("id > 26").select("`a.b`", "id")) == [("v27", 27), ("v28", 28)]
    assert found.count() == 29
    reader = spark.read.format("shelduck").option("catalog", url_of(tmp_path))
    assert reader.option("versionAsOf", first).load("main.t").count() == 20
    since = {"catalog": url_of(tmp_path), "readChangeFeed": "true", "startingVersion": first + 3}
    feed = spark.read.format("shelduck").options(**since).load("t")
    assert dict(map(tuple, feed.groupBy("_change_type").count().collect())) == {"delete": 1}
    joined = found.join(spark.range(28, 40), "id")
    assert rows(joined.select("id")) == [(28,)]


def test_a_view_may_read_it_in_sql(spark, lake, put):
    put(0, 3)
    spark.sql("CREATE TEMPORARY VIEW seen USING shelduck OPTIONS (catalog 'lake', table 'main.t')")
    try:
        assert rows(spark.sql("SELECT max(v), count(*) FROM seen WHERE id < 2")) == [("v1", 2)]
    finally:
        spark.catalog.dropTempView("seen")


READS = {
    "no lake": ({"table": "t"}, "needs the lake"),
    "no table": ({"catalog": "lake"}, "needs the name of one table"),
    "an unknown lake": ({"catalog": "pond", "table": "t"}, "catalog 'pond' does not exist"),
    "an unknown table": ({"catalog": "lake", "table": "nope"}, "table 'nope' does not exist"),
    "an unknown option": ({"catalog": "lake", "table": "t", "x": "1"}, "option 'x'"),
}


@pytest.mark.parametrize("case", READS)
def test_what_is_missing_is_named(spark, lake, case):
    options, message = READS[case]
    with pytest.raises(Exception, match=message):
        spark.read.format("shelduck").options(**options).load()


def test_a_session_without_a_lake_registers_it(spark, lake, put, tmp_path):
    put(0, 3)
    shelduck.detach(spark, "lake")
    shelduck.register(spark)
    shelduck.register(spark)
    reader = spark.read.format("shelduck").option("catalog", url_of(tmp_path))
    assert reader.load("main.t").count() == 3
    with pytest.raises(Exception, match="there is no lake"):
        reader.option("catalog", f"sqlite:///{tmp_path}/none.db").load("main.t")
