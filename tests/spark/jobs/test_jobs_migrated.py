"""A lake is migrated to DuckLake 1.1 under jobs, streams, transactions and sessions of 1.0."""

from __future__ import annotations

import pytest

import shelduck
from shelduck import Conflict, JobState, change_type
from tests.support.attaching import attached_lake, url_of
from tests.support.lakes import rows

STATEMENTS = (
    "CREATE TABLE t (id BIGINT, v STRING)",
    "INSERT INTO t VALUES (1, '1'), (2, '2')",
    "CREATE TABLE u (id BIGINT)",
    "CREATE TABLE k (k BIGINT, g BIGINT, n BIGINT SUM) AGGREGATE KEY (k, g) ROLLUP (r (g, n))",
    "INSERT INTO k VALUES (1, 0, 1)",
)


@pytest.fixture
def attached(spark, tmp_path):
    with attached_lake(spark, tmp_path, *STATEMENTS) as found:
        yield found


@pytest.fixture
def lake(spark, tmp_path, attached):
    """The same lake, which somebody else has open."""
    with shelduck.connect(url_of(tmp_path), spark=spark, progress=False) as found:
        yield found


def ids(frame):
    return sorted(row[0] for row in frame.select("id").collect())


@pytest.mark.slow
def test_whoever_came_before_a_migration_goes_on_after_it(spark, lake, attached, tmp_path):
    table = lake.table("t")
    done = table.alter(change_type("v", "int"))
    done.wait()
    frame, shown = table.read(), spark.sql("SELECT * FROM lake.main.t")
    assert frame.count() == shown.count() == 2
    (tmp_path / "source").mkdir()

    def stream(number):
        (tmp_path / "source" / f"{number}.json").write_text(f'{{"id": {number}, "v": 0}}')
        read = spark.readStream.schema("id BIGINT, v INT").json(f"{tmp_path}/source")
        writer = read.writeStream.foreachBatch(table.sink())
        writer = writer.option("checkpointLocation", f"{tmp_path}/checkpoint")
        writer.trigger(availableNow=True).start().awaitTermination()

    def follow():
        came = []
        table.follow(lambda changes, _: came.extend(ids(changes)), f"{tmp_path}/follow")
        return sorted(came)

    stream(10)
    assert follow() == [1, 2, 10]

    spark.sql("CALL lake.migrate('1.1')")

    assert [job.state for job in lake.jobs()] == [JobState.FINISHED]
    assert lake.job(done.id).look().table_name == "main.t"
    # A frame that was planned before still reads its own snapshot.
    assert ids(frame) == ids(shown) == [1, 2]
    table.append(spark.sql("SELECT 3L AS id, 3 AS v"))
    spark.sql("INSERT INTO lake.main.t VALUES (4, 4)")
    stream(11)
    assert follow() == [3, 4, 11]
    lake.sql("UPDATE t SET v = 7 WHERE id = 1")
    assert ids(lake.sql("SELECT * FROM t VERSION AS OF 2")) == [1, 2]
    assert lake.table("u").alter(change_type("id", "string")).wait()
    lake.sql("INSERT INTO k VALUES (1, 0, 2), (2, 0, 5)")
    assert rows(lake.sql("SELECT * FROM k ORDER BY k")) == [(1, 0, 3), (2, 0, 5)]
    assert rows(lake.sql("SELECT * FROM `k$r`")) == [(0, 8)]
    assert ids(spark.table("lake.main.t")) == [1, 2, 3, 4, 10, 11]
    assert attached.check().is_sound


@pytest.mark.slow
def test_an_open_job_and_an_open_transaction_stop_a_migration(spark, lake, attached):
    job = attached.table("u").alter(change_type("id", "string"))
    lake.sql("BEGIN")
    lake.sql("INSERT INTO t VALUES (3, '3')")

    plan = attached.migrate("1.1", plan=True)
    refused = {step.object.split()[0]: step.told for step in plan.steps if step.action == "refuse"}
    assert refused == {
        "writer": "it writes to main.t; wait until it ends",
        "job": "it changes main.u; wait for it, or cancel it",
    }
    with pytest.raises(Conflict, match=r"writer .*: it writes to main\.t; wait until it ends"):
        attached.migrate("1.1")
    lake.sql("COMMIT")
    with pytest.raises(
        Conflict, match=rf"job {job.id}: it changes main\.u; wait for it, or cancel"
    ):
        spark.sql("CALL lake.migrate('1.1')")
    job.wait()

    attached.migrate("1.1")
    assert (job.state, lake.job(job.id).state) == (JobState.FINISHED, JobState.FINISHED)
    again = lake.table("u").alter(change_type("id", "bigint"))
    assert again.wait().snapshot
    lake.sql("BEGIN")
    lake.sql("INSERT INTO t VALUES (4, '4')")
    lake.sql("UPDATE t SET v = 'x' WHERE id = 1")
    lake.sql("COMMIT")
    assert rows(attached.sql("SELECT id, v FROM t ORDER BY id")) == [
        *((1, "x"), (2, "2"), (3, "3"), (4, "4"))
    ]
    assert attached.check().is_sound
