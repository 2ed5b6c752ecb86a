"""Whatever fails in Spark inside of a verb is one error of ours, and nothing is left half done."""

from __future__ import annotations

import inspect
import os
from contextlib import contextmanager
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

import shelduck
from shelduck import InvalidRequest, ShelduckError, SparkFailed
from shelduck.ducklake.checked import BrokenValue
from shelduck.engine.failures import telling_spark
from shelduck.engine.named_errors import first_line, told_to_java
from shelduck.jobs.jobs import SchemaChangeJob
from shelduck.objects.catalog_verbs import Table
from tests.support.oracle import DuckDBOracle

STATEMENTS = [
    "CALL set_option('data_inlining_row_limit', 0)",
    "CREATE TABLE t (id INT, v INT)",
    "INSERT INTO t SELECT id, id FROM range(0, 10)",
    "INSERT INTO t SELECT id, id FROM range(10, 20)",
    "DELETE FROM t WHERE id IN (3, 13)",
    "CREATE TABLE p (id INT, v INT) PARTITIONED BY (bucket(2, id))",
    "INSERT INTO p SELECT id, id FROM range(10)",
    "CREATE TABLE k (id INT, v INT) UNIQUE KEY (id)",
    "INSERT INTO k SELECT id, id FROM range(10)",
]
BIG = "spark.driver.maxResultSize"
TOLD = "is bigger than spark.driver.maxResultSize"


@contextmanager
def no_results(spark):
    """Every job fails in Spark itself, whatever its tasks do: no task may return a result."""
    conf = spark.sparkContext._jsc.sc().conf()
    before = conf.get(BIG, "1g")
    conf.set(BIG, "1")
    try:
        yield
    finally:
        conf.set(BIG, before)


def new_rows(spark):
    return spark.range(15, 4000, 1, 2).selectExpr("CAST(id AS INT) AS id", "CAST(id AS INT) AS v")


def merged(table, spark):
    table.merge(
        new_rows(spark),
        ["id"],
        shelduck.when_matched_update_all(),
        shelduck.when_not_matched_insert_all(),
    )


CALLS = {
    "append": lambda t, s: t.append(new_rows(s)),
    "delete": lambda t, _: t.delete("v % 3 = 1"),
    "update": lambda t, _: t.update({"v": "v + 1"}),
    "merge": merged,
    "overwrite": lambda t, s: t.overwrite(new_rows(s)),
    "overwrite_partitions": lambda t, s: t.overwrite_partitions(new_rows(s)),
    "compact": lambda t, _: t.compact(),
    "rewrite": lambda t, _: t.rewrite(),
    "rewrite_deletes": lambda t, _: t.rewrite_deletes(0),
}
STATEMENT = {
    "INSERT": "INSERT INTO t SELECT id, id FROM range(1000)",
    "DELETE": "DELETE FROM t WHERE v % 3 = 1",
    "UPDATE": "UPDATE t SET v = v + 1",
    "MERGE": "MERGE INTO t USING (SELECT id, id AS v FROM range(99)) AS s ON t.id = s.id"
    " WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *",
    "CREATE TABLE": "CREATE TABLE fresh AS SELECT id FROM range(1000)",
}


def state_of(catalog):
    """The snapshots and the rows, by DuckDB, and the files of the data directory."""
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        rows = {name: duckdb.sql(f"SELECT * FROM {name} ORDER BY ALL") for name in "tpk"}
        return rows, duckdb.sql("SELECT table_name FROM duckdb_tables() ORDER BY ALL")


def files_of(lake):
    found = Path(lake.data_path.removeprefix("file://")).rglob("*.parquet")
    return sorted(str(path) for path in found)


def fails(lake, catalog, act, *, leaves=False):
    """The error of an act that fails in Spark; nothing has changed.

    With `leaves`, tasks without a result may leave files in the directories of partitions.
    """
    before = state_of(catalog), leaves or files_of(lake), len(lake.snapshots())
    with no_results(lake.spark), pytest.raises(ShelduckError) as caught:
        act()
    assert (state_of(catalog), leaves or files_of(lake), len(lake.snapshots())) == before
    return caught.value


@pytest.mark.parametrize("verb", CALLS)
def test_a_verb_tells_what_failed_in_spark(copied, spark, verb):
    catalog, lake = copied

    name = "p" if verb == "overwrite_partitions" else "t"

    def act():
        CALLS[verb](lake.table(name), spark)

    error = fails(lake, catalog, act, leaves=name == "p")

    assert isinstance(error, SparkFailed)
    assert str(error).startswith(f"{verb}() of main.{name} failed in Spark: ")
    assert TOLD in str(error)
    assert "; " in str(error).split(TOLD)[1]
    assert "\n" not in str(error)
    assert ".scala:" not in str(error)
    assert isinstance(error.__cause__, Py4JJavaError)
    act()


@pytest.mark.parametrize("operation", STATEMENT)
@pytest.mark.parametrize("door", ["lake", "transaction"])
def test_a_statement_tells_what_failed_in_spark(copied, operation, door):
    catalog, lake = copied

    def in_transaction():
        with lake.transaction() as tx:
            tx.sql(STATEMENT[operation])

    act = {"lake": lambda: lake.sql(STATEMENT[operation]), "transaction": in_transaction}[door]
    error = fails(lake, catalog, act)

    assert isinstance(error, SparkFailed)
    name = "fresh" if operation == "CREATE TABLE" else "t"
    assert name in str(error).split(" failed in Spark: ")[0]
    assert "nothing was committed" in str(error)
    act()


def test_writers_and_statements_of_spark_itself_tell_it(copied, spark):
    catalog, lake = copied
    shelduck.attach(spark, "own", f"sqlite:///{catalog}")
    try:
        for act in (
            lambda: new_rows(spark).writeTo("own.main.t").append(),
            lambda: spark.sql("DELETE FROM own.main.t WHERE v % 3 = 1"),
        ):
            error = fails(lake, catalog, act)
            assert isinstance(error, SparkFailed)
            assert "main.t failed in Spark: " in str(error)
    finally:
        shelduck.detach(spark, "own")


def test_a_load_by_key_tells_it(copied, spark):
    catalog, lake = copied
    rows = spark.range(5000).selectExpr("CAST(id AS INT) AS id", "CAST(id AS INT) AS v")

    error = fails(lake, catalog, lambda: lake.table("k").append(rows))

    assert str(error).startswith("append() of main.k failed in Spark: ")


def test_the_work_on_a_lake_tells_it(copied):
    catalog, lake = copied

    for act in (lake.compact, lambda: lake.check(rows=True)):
        error = fails(lake, catalog, act)
        assert TOLD in str(error)


def test_a_job_that_is_cancelled_for_it_tells_it_and_leaves_the_table(copied):
    catalog, lake = copied
    rows = state_of(catalog)
    lake.execute("ALTER TABLE t ALTER COLUMN v TYPE STRING PROPERTIES ('wait' = 'false')")
    files = files_of(lake)

    with no_results(lake.spark), pytest.raises(SparkFailed) as caught:
        lake.jobs()[0].wait()

    assert "was cancelled: it failed 3 times: " in str(caught.value)
    assert TOLD in str(caught.value)
    assert "An error occurred" not in lake.jobs()[0].look().message
    assert caught.value.__cause__ is not None
    assert state_of(catalog) == rows
    assert files_of(lake) == files
    lake.sql("ALTER TABLE t ALTER COLUMN v TYPE STRING")


def test_code_of_a_user_is_told_in_its_own_words(copied, spark):
    _, lake = copied
    table = lake.table("t")

    @F.udf("int")
    def broken(number):
        raise ValueError(f"no room for {number}")

    rows = new_rows(spark)
    with pytest.raises(SparkFailed, match=r"ValueError: no room for \d+; ") as caught:
        table.append(rows.withColumn("v", broken("id")))
    # For Spark's users it stays one of Spark's.
    assert isinstance(caught.value, PySparkException)
    with pytest.raises(InvalidRequest, match="never so large"):
        table.append(rows.where("assert_true(id < 3, 'never so large') IS NULL"))
    with pytest.raises(InvalidRequest, match="DIVIDE_BY_ZERO"):
        table.update({"v": "CAST(v / (id - id) AS INT)"})
    assert table.read().count() == 18


def test_a_worker_of_python_that_dies_is_told(copied, spark):
    _, lake = copied

    @F.udf("int")
    def dies(_):
        os._exit(7)

    with pytest.raises(SparkFailed, match=r"^append\(\) of main\.t failed.*Python worker"):
        lake.table("t").append(new_rows(spark).withColumn("v", dies("id")))
    assert lake.table("t").read().count() == 18


@pytest.mark.parametrize("kind", [shelduck.Lake, shelduck.Transaction, Table, SchemaChangeJob])
def test_each_verb_tells(kind):
    verbs = {n: v for n, v in inspect.getmembers(kind, inspect.isroutine) if n[0] != "_"}
    assert verbs
    assert [name for name, verb in verbs.items() if not hasattr(verb, "__wrapped__")] == []


LOST = (
    "An error occurred while calling o66.save.\n: org.apache.spark.SparkException: Job aborted due"
    " to stage failure: Task 0 in stage 3.0 failed 1 times, most recent failure: Lost task 0.0 in"
    " stage 3.0 (TID 5) (127.0.0.1 executor 1): ExecutorLostFailure (executor 1 exited caused by"
    " one of the running tasks) Reason: Command exited with code 137\nDriver stacktrace:\n\tat"
    " org.apache.spark.scheduler.DAGScheduler.x(DAGScheduler.scala:1)\n"
)
MEMORY = (
    ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0"
    " failed 1 times, most recent failure: Lost task 0.0 in stage 3.0 (TID 5) (host(1) executor 1):"
    " java.lang.OutOfMemoryError: Java heap space\n\tat java.util.Arrays.copyOf(Arrays.java:1)\n"
)
WRITING = (
    ": org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed. SQLSTATE: 58030\n"
    "\tat x.y(z.scala:1)\nCaused by: java.lang.IllegalStateException: boom\n\t... 3 more"
)
NO_BLOCK = "[CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND] Checkpoint block rdd_17_0 not found!"
STOPPED = "Job 7 cancelled because SparkContext was shut down"
EXITED = "ExecutorLostFailure (executor 1 exited caused by one of the running tasks) Reason:"


@pytest.mark.parametrize(
    ("text", "said", "advice"),
    [
        (LOST, f"{EXITED} Command exited with code 137", "spark.executor.memory"),
        (MEMORY, "OutOfMemoryError: Java heap space", "spark.executor.memory"),
        (f": org.apache.spark.SparkException: {NO_BLOCK}", NO_BLOCK, "spark.executor.memory"),
        (f": org.apache.spark.SparkException: {STOPPED}", STOPPED, "start a Spark session"),
        (WRITING, "[TASK_WRITE_FAILED] Task failed: IllegalStateException: boom", "fix the cause"),
    ],
)
def test_the_sentence_is_what_spark_says_about_the_task(text, said, advice):
    error = PySparkException(text)
    assert first_line(error) == said
    with pytest.raises(SparkFailed) as caught, telling_spark(lambda: "append() of main.t"):
        raise error
    assert str(caught.value).startswith(f"append() of main.t failed in Spark: {said}; ")
    assert advice in str(caught.value)
    assert caught.value.__cause__ is error


def test_java_hears_of_a_class_that_callers_know():
    wrong = BrokenValue(("ducklake_table", "table_id"), "x", "an integer")

    assert told_to_java(wrong).startswith("CorruptLake: ducklake_table.table_id is 'x', expected")
    assert told_to_java(KeyError("x")) == "KeyError: 'x'"
