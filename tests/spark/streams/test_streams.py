"""Streams into a table and out of it: every row once, whatever fails in between."""

from __future__ import annotations

import json

import pytest
from pyspark.errors import StreamingQueryException

from shelduck import Conflict, CorruptLake, InvalidRequest, NotFound, Unchanged, Unsupported
from tests.support.lakes import everything, newest, rows
from tests.support.oracle import DuckDBOracle

STATEMENTS = ["CREATE TABLE t (id BIGINT, v STRING)", "CREATE TABLE u (id BIGINT)"]


@pytest.fixture
def source(tmp_path):
    """A directory of JSON files that a streaming query reads, one file in each batch."""
    folder = tmp_path / "source"
    folder.mkdir()

    def put(name, *ids):
        lines = [json.dumps({"id": i, "v": name}) for i in ids]
        (folder / f".{name}").write_text("\n".join(lines))
        (folder / f".{name}").rename(folder / f"{name}.json")

    put.folder = folder
    return put


@pytest.fixture
def run(spark, source, tmp_path):
    """Run a query over all files that are there, to its end."""

    def to_the_end(function, checkpoint="checkpoint"):
        stream = (
            spark.readStream.schema("id BIGINT, v STRING")
            .option("maxFilesPerTrigger", 1)
            .json(str(source.folder))
        )
        query = (
            stream.writeStream.foreachBatch(function)
            .option("checkpointLocation", str(tmp_path / checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    return to_the_end


def ids(table):
    return sorted(r[0] for r in rows(table.read().select("id")))


@pytest.mark.slow
def test_each_batch_is_one_snapshot(copied, source, run):
    catalog, lake = copied
    table = lake.table("t")
    source("a", 1, 2)
    source("b", 3)
    run(table.sink())
    source("c", 4)
    run(table.sink())

    assert ids(table) == [1, 2, 3, 4]
    assert newest(lake) == 2 + 3
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert [r[0] for r in duckdb.rows("t")] == [1, 2, 3, 4]


@pytest.mark.slow
def test_a_batch_that_landed_before_a_crash_does_not_land_again(lake, source, run):
    table = lake.table("t")
    sink = table.sink()
    source("a", 1, 2)

    def crash(batch, number):
        sink(batch, number)
        raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(StreamingQueryException):
            run(crash)
    source("b", 3)
    run(sink)

    assert ids(table) == [1, 2, 3]
    assert newest(lake) == 2 + 2


@pytest.mark.slow
def test_a_new_checkpoint_is_a_new_query(lake, source, run):
    table = lake.table("t")
    source("a", 1)
    run(table.sink(), "one")
    run(table.sink(), "two")

    assert ids(table) == [1, 1]


@pytest.mark.slow
def test_a_name_of_its_own_needs_the_same_checkpoint(lake, source, run):
    table = lake.table("t")
    source("a", 1)
    source("b", 2)
    run(table.sink("mine"), "one")

    with pytest.raises(StreamingQueryException, match="batch numbers must increase"):
        run(table.sink("mine"), "two")
    assert ids(table) == [1, 2]


@pytest.mark.slow
def test_a_batch_can_be_written_in_other_ways(lake, source, run):
    table = lake.table("t")
    source("a", 1, 2)
    source("b", 2, 3)

    def replace(target, batch):
        target.delete("id = 2")
        target.append(batch.selectExpr("id", "upper(v) AS v"))

    run(table.sink(write=replace))

    assert sorted(rows(table.read())) == [(1, "A"), (2, "B"), (3, "B")]
    assert newest(lake) == 2 + 2


def test_two_tables_of_one_query_count_for_themselves(lake, spark):
    batch = spark.range(3).selectExpr("id", "'x' AS v")
    lake.table("t").sink("q")(batch, 0)
    lake.table("u").sink("q")(batch.select("id"), 0)
    lake.table("t").sink("q")(batch, 0)

    assert (ids(lake.table("t")), ids(lake.table("u"))) == ([0, 1, 2], [0, 1, 2])


@pytest.mark.slow
def test_a_conflict_is_tried_again(lake, spark):
    table = lake.table("t")
    lake.sql("INSERT INTO t SELECT id, 'x' FROM range(10)")
    tries = []

    def replace(target, batch):
        target.delete("id < 5")
        if not tries:
            lake.table("t").delete("id = 4")
        tries.append(1)
        target.append(batch)

    table.sink("q", replace)(spark.sql("SELECT 100L AS id, 'new' AS v"), 0)

    assert len(tries) == 2
    assert ids(table) == [5, 6, 7, 8, 9, 100]


def test_outside_of_a_query_a_sink_needs_a_name(lake, spark):
    with pytest.raises(InvalidRequest, match="needs a query id"):
        lake.table("u").sink()(spark.range(1), 0)
    with lake.transaction() as tx, pytest.raises(InvalidRequest, match="its own transactions"):
        tx.table("u").sink("q")


def test_a_transaction_lands_once(copied, base, spark):
    catalog, lake = copied
    batch = spark.range(3)

    def work(tx):
        tx.table("u").append(batch)
        tx.table("t").append(batch.selectExpr("id", "'x' AS v"))

    with lake.transaction(once=("job", 7)) as tx:
        assert not tx.has_landed
        work(tx)
    assert tx.result.snapshot == 3
    before = everything(catalog, base.folder / "data")

    with lake.transaction(once=("job", 7)) as tx:
        assert tx.has_landed
        work(tx)

    assert tx.result == Unchanged(3)
    assert everything(catalog, base.folder / "data") == before
    with lake.transaction(once=("job", 8)) as tx:
        work(tx)
    assert ids(lake.table("u")) == [0, 0, 1, 1, 2, 2]
    with pytest.raises(
        InvalidRequest, match=r"cannot commit batch 7 of 'job': batch 8 has already"
    ) as found:
        lake.transaction(once=("job", 7))
    assert "checkpoint" not in str(found.value)
    assert "pass a larger number, or another series, to once=(series, number)" in str(found.value)


def test_of_two_that_do_the_same_work_one_lands(lake, spark):
    first, second = (lake.transaction(once=("job", 1)) for _ in range(2))
    with second:
        with first:
            first.table("u").append(spark.range(2))
        second.table("u").append(spark.range(2))

    assert (first.result.snapshot, second.result) == (3, Unchanged(3))
    assert ids(lake.table("u")) == [0, 1]


def test_work_that_has_landed_is_known_although_its_log_has_expired(lake, spark):
    first, second = (lake.transaction(once=("job", 1)) for _ in range(2))
    with second:
        second.table("u").append(spark.range(2))
        with first:
            first.table("u").append(spark.range(2))
        lake.table("t").append(spark.sql("SELECT 5L AS id, 'x' AS v"))
        lake.expire_snapshots(retain_last=1)

    assert second.result == Unchanged(4)
    assert ids(lake.table("u")) == [0, 1]


def test_a_failed_transaction_has_not_landed(lake, spark):
    tx = lake.transaction(once=("job", 1))
    tx.sql("INSERT INTO t VALUES (5, 'x'); ALTER TABLE t ADD COLUMN c INT")
    lake.sql("ALTER TABLE t ADD COLUMN d INT")
    with pytest.raises(Conflict):
        tx.commit()
    with lake.transaction(once=("job", 1)) as tx:
        assert not tx.has_landed
        tx.table("u").append(spark.range(1))

    assert ids(lake.table("u")) == [0]


@pytest.mark.slow
def test_a_follower_gets_every_change_in_order(lake, tmp_path):
    place, table = str(tmp_path / "cursor"), lake.table("t")
    seen = []

    def handle(changes, number):
        told = changes.select("_commit_version", "_change_type", "id")
        seen.append((number, sorted(rows(told))))

    assert table.follow(handle, place) is None
    lake.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    assert table.follow(handle, place) == 3
    lake.sql("INSERT INTO u VALUES (9)")
    lake.sql("DELETE FROM t WHERE id = 1")
    assert table.follow(handle, place) == 5
    assert table.follow(handle, place) == 5
    lake.sql("INSERT INTO u VALUES (10)")
    lake.sql("INSERT INTO t VALUES (3, 'c')")
    assert table.follow(handle, place) == 7

    assert seen == [
        (0, [(3, "insert", 1), (3, "insert", 2)]),
        (1, [(5, "delete", 1)]),
        (2, [(7, "insert", 3)]),
    ]


@pytest.mark.slow
def test_a_batch_that_was_begun_comes_again_as_it_was(lake, tmp_path):
    place, table = str(tmp_path / "cursor"), lake.table("t")
    lake.sql("INSERT INTO t VALUES (1, 'a')")
    copy = lake.create_table("copy", {"id": "bigint", "v": "string"})
    sink = copy.sink("copy", lambda into, changes: into.append(changes.select("id", "v")))

    def crash(changes, number):
        sink(changes, number)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        table.follow(crash, place)
    lake.sql("INSERT INTO t VALUES (2, 'b')")
    again = []
    table.follow(lambda changes, number: again.append((number, sink(changes, number))), place)

    assert again == [(0, None), (1, None)]
    assert sorted(rows(copy.read())) == [(1, "a"), (2, "b")]


def test_a_checkpoint_belongs_to_one_table(lake, tmp_path):
    lake.sql("INSERT INTO t VALUES (1, 'a')")
    lake.table("t").follow(lambda *_: None, str(tmp_path / "cursor"))

    with pytest.raises(InvalidRequest, match="checkpoint of another table"):
        lake.table("u").follow(lambda *_: None, str(tmp_path / "cursor"))
    (tmp_path / "cursor" / "0.json").write_text("[")
    with pytest.raises(CorruptLake, match="cannot decode the"):
        lake.table("t").follow(lambda *_: None, str(tmp_path / "cursor"))


def handed_to(seen):
    """A handler that keeps what it gets, but for the order."""
    return lambda changes, _: seen.append(sorted(rows(changes.select("_change_type", "id"))))


def test_a_follower_stays_with_its_table_whatever_its_name(lake, tmp_path):
    place, seen = str(tmp_path / "cursor"), []
    lake.sql("INSERT INTO t VALUES (1, 'a')")

    def crash(*_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        lake.table("t").follow(crash, place)
    lake.sql("ALTER TABLE t RENAME TO moved; CREATE TABLE t (id BIGINT, v STRING)")
    lake.sql("INSERT INTO t VALUES (9, 'other'); INSERT INTO moved VALUES (2, 'b')")
    lake.table("moved").follow(handed_to(seen), place)

    assert seen == [[("insert", 1)], [("insert", 2)]]
    with pytest.raises(InvalidRequest, match="checkpoint of another table"):
        lake.table("t").follow(handed_to(seen), place)


def test_a_follower_is_told_when_its_table_is_dropped(lake, tmp_path):
    lake.sql("INSERT INTO t VALUES (1, 'a')")
    seen = []

    def handle(changes, number):
        handed_to(seen)(changes, number)
        if number == 0:
            lake.sql("INSERT INTO t VALUES (2, 'b'); DROP TABLE t")
            lake.sql("CREATE TABLE t (id BIGINT, v STRING); INSERT INTO t VALUES (9, 'other')")

    with pytest.raises(
        NotFound, match=r"table main\.t was dropped in snapshot 5; all changes before"
    ):
        lake.table("t").follow(handle, str(tmp_path / "cursor"), interval=0.01)
    assert seen == [[("insert", 1)], [("insert", 2)]]


def test_snapshots_that_were_passed_over_may_expire(lake, tmp_path):
    place, table, seen = str(tmp_path / "cursor"), lake.table("t"), []
    lake.sql("INSERT INTO t VALUES (1, 'a')")
    assert table.follow(handed_to(seen), place) == 3
    for n in range(3):
        lake.sql(f"INSERT INTO u VALUES ({n})")
    assert table.follow(handed_to(seen), place) == 3
    lake.expire_snapshots(retain_last=1)
    assert table.follow(handed_to(seen), place) == 3
    lake.sql("INSERT INTO t VALUES (2, 'b')")
    assert table.follow(handed_to(seen), place) == 7
    assert seen == [[("insert", 1)], [("insert", 2)]]


def test_a_follower_may_begin_behind_what_has_expired(lake, tmp_path):
    place, table, seen = str(tmp_path / "cursor"), lake.table("t"), []
    lake.sql("INSERT INTO t VALUES (1, 'a')")
    lake.sql("INSERT INTO t VALUES (2, 'b')")
    lake.expire_snapshots(retain_last=1)
    with pytest.raises(NotFound, match=r"expired|does not exist"):
        table.follow(handed_to(seen), place)
    assert table.follow(handed_to(seen), place, start=4) == 4
    assert seen == [[("insert", 2)]]


def test_a_batch_ends_where_a_job_converts_columns(lake, tmp_path):
    """What came before has the values of the old column, and would be NULL in the new one."""
    lake.sql("CREATE TABLE v (id INT, v STRING); CREATE TABLE w (id INT, v STRING)")
    lake.sql("INSERT INTO v VALUES (1, '1'), (2, '2')")
    first = newest(lake)
    lake.sql("ALTER TABLE v ALTER COLUMN v TYPE INT")
    published = lake.jobs()[0].look().published
    lake.sql("INSERT INTO v VALUES (3, 3); DELETE FROM v WHERE id = 1")
    told = []

    def handle(changes, number):
        kind = changes.schema["v"].dataType.simpleString()
        found = changes.select("_change_type", "id", "v").orderBy("_commit_version", "id")
        told.append((number, kind, rows(found)))

    last = lake.table("v").follow(handle, str(tmp_path / "place"), start=first)
    assert last == newest(lake)
    assert told == [
        (0, "string", [("insert", 1, "1"), ("insert", 2, "2")]),
        (1, "int", [("insert", 3, 3), ("delete", 1, 1)]),
    ]
    message = (
        rf"job 1 converted columns of main.v in snapshot {published}, and changes from snapshot"
        rf" {first} on have the old columns; end at {published - 1}, and begin at {published} for"
    )
    with pytest.raises(Unsupported, match=message):
        lake.table("v").changes(first)
    assert lake.table("v").changes(published).count() == 2


def test_a_second_sink_of_a_query_for_one_table_is_refused(lake, source, run):
    table = lake.table("t")
    source("a", 1, 2)

    def twice(first, second):
        def bring(batch, number):
            first(batch.where("id = 1"), number)
            second(batch.where("id = 2"), number)

        return bring

    told = "has already been written to main.t by another sink"
    with pytest.raises(StreamingQueryException, match=told):
        run(twice(table.sink(), table.sink()), "one")
    sink = table.sink("mine")
    with pytest.raises(StreamingQueryException, match=told):
        run(twice(sink, sink), "two")
    assert ids(table) == [1, 1]

    run(twice(table.sink("first"), table.sink("second")), "three")
    assert ids(table) == [1, 1, 1, 2]
