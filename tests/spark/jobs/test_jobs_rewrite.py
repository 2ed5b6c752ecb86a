"""Files that exist follow the table: sort order, partitions and newest columns, written by jobs."""

from __future__ import annotations

import sqlite3

import pytest

from shelduck import (
    JobState,
    SchemaChangeJob,
    Unsupported,
    add_column,
    change_type,
    rewrite_files,
    set_partitioning,
    set_sorting,
)
from tests.support.lakes import newest, rows
from tests.support.oracle import DuckDBOracle

STATEMENTS = [
    "CALL set_option('data_inlining_row_limit', 0)",
    "CREATE TABLE t (id INT, k STRING, gone INT, v INT)",
    *(
        f"INSERT INTO t SELECT id, concat('k', id % 3), 0, (id * 7) % 11"
        f" FROM (SELECT CAST(id AS INT) AS id FROM range({n}, {n + 20}, 1, 1))"
        for n in (0, 20, 40)
    ),
    "DELETE FROM t WHERE id = 5",
]
OLD = [(n, f"k{n % 3}", 0, n * 7 % 11) for n in range(60) if n != 5]


def everything(lake, at=""):
    return rows(lake.sql(f"SELECT * FROM t{at} ORDER BY id"))


def files(lake):
    return lake.table("t").files().collect()


def ids(lake):
    return {f.data_file_id for f in files(lake)}


def row_ids(catalog):
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        return duckdb.sql("SELECT id, rowid FROM t ORDER BY id")


def assert_same_rows(catalog, lake, before, expected):
    assert everything(lake) == expected
    assert everything(lake, f" VERSION AS OF {before}") == OLD
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.rows("t") == expected
        assert duckdb.rows("t", version=before) == OLD


@pytest.mark.slow
def test_files_follow_new_partitions(copied):
    catalog, lake = copied
    before, old, known = newest(lake), ids(lake), row_ids(catalog)
    job = lake.table("t").alter(set_partitioning("k"), rewrite_files())
    assert isinstance(job, SchemaChangeJob)
    # The new keys count for writers at once, before a file is written anew.
    lake.sql("INSERT INTO t SELECT 60, 'k9', 0, 0")
    assert {f.partition["k"] for f in files(lake) if f.data_file_id not in old} == {"k9"}
    job.wait()

    assert job.state is JobState.FINISHED
    assert not old & ids(lake)
    assert {f.partition["k"] for f in files(lake)} == {"k0", "k1", "k2", "k9"}
    assert_same_rows(catalog, lake, before, [*OLD, (60, "k9", 0, 0)])
    assert row_ids(catalog)[:59] == known
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.sql("SELECT count(*) FROM t WHERE k = 'k1'") == [(20,)]
        duckdb.execute("INSERT INTO t VALUES (61, 'k1', 0, 0)")
    assert len(everything(lake)) == 61


@pytest.mark.slow
def test_files_follow_a_new_sort_order(copied):
    catalog, lake = copied
    before, old, known = newest(lake), ids(lake), row_ids(catalog)
    lake.sql("ALTER TABLE t SET SORTED BY (v DESC, id) REWRITE")

    assert not old & ids(lake)
    [path] = [f.file_path for f in files(lake)]
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        found = duckdb.sql(f"SELECT v, id FROM read_parquet('{path}')")
    assert found == sorted(found, key=lambda r: (-r[0], r[1]))
    assert_same_rows(catalog, lake, before, OLD)
    assert row_ids(catalog) == known


@pytest.mark.slow
def test_files_follow_the_newest_columns(copied):
    catalog, lake = copied
    lake.sql("ALTER TABLE t DROP COLUMN gone, ADD COLUMN n INT DEFAULT 7, ALTER COLUMN v TYPE LONG")
    before, old = newest(lake), everything(lake)
    lake.sql("ALTER TABLE t REWRITE")

    [path] = [f.file_path for f in files(lake)]
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        names = duckdb.sql(f"SELECT name, type FROM parquet_schema('{path}')")
        assert ("n", "INT32") in names
        assert ("v", "INT64") in names
        assert "gone" not in dict(names)
        assert duckdb.rows("t") == old
    assert everything(lake) == everything(lake, f" VERSION AS OF {before}") == old
    assert lake.table("t").pending_type_rewrites().files == ()
    # Nothing is older than the second job but the file of the first, which it writes anew again.
    lake.sql("ALTER TABLE t REWRITE")
    assert everything(lake) == old


def test_what_others_write_meanwhile_stays_where_it_is(copied):
    catalog, lake = copied
    job = lake.table("t").alter(rewrite_files())
    job.wait()
    again = lake.table("t").alter(set_sorting("id"), rewrite_files())
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        duckdb.execute("DELETE FROM t WHERE id = 6")
        duckdb.execute("INSERT INTO t VALUES (70, 'k1', 0, 0)")
    again.wait()

    expected = [*(r for r in OLD if r[0] != 6), (70, "k1", 0, 0)]
    assert everything(lake) == expected
    assert [j.state for j in lake.jobs()] == [JobState.FINISHED] * 2
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.rows("t") == expected


def test_a_table_without_files_has_nothing_to_rewrite(lake):
    lake.sql("CREATE TABLE e (a INT)")
    before = newest(lake)
    lake.sql("ALTER TABLE e REWRITE")

    assert newest(lake) == before
    assert lake.jobs()[0].look().published == before


def test_a_rewrite_is_told_before_it_is_done(lake):
    plan = lake.table("t").plan_alter(set_sorting("id"), rewrite_files())

    assert [s.weight for s in plan.steps] == ["light", "heavy"]
    assert (plan.steps[1].files_to_rewrite, plan.steps[1].rows_to_rewrite) == (3, 59)
    assert "  estimate: 0 s on " in str(plan)
    assert str(plan).endswith("core(s), a guess before any job")


def test_estimates_come_from_earlier_jobs(copied):
    catalog, lake = copied
    change = change_type("v", "string")
    size = max(s.bytes_to_rewrite for s in lake.table("t").plan_alter(change).steps)
    lake.table("t").alter(set_sorting("id"), rewrite_files()).wait()
    with sqlite3.connect(catalog) as connection:
        [(job, done, spent, cores)] = connection.execute("SELECT * FROM shelduck_job_speed")
        assert (job, done) == (1, size)
        assert spent > 0
        assert cores >= 1
        # As if the two jobs had converted 3,000 bytes per second and core.
        told = "bytes = 10000, milliseconds = 2000, cores = 2"
        connection.execute(f"UPDATE shelduck_job_speed SET {told}")
        connection.execute("INSERT INTO shelduck_job_speed VALUES (7, 2000, 0, 1)")
    plan = lake.table("t").plan_alter(change)

    assert plan.speed.bytes_per_second == pytest.approx(3000)
    assert str(plan).endswith("core(s), as fast as 2 earlier job(s)")
    now = max(s.bytes_to_rewrite for s in plan.steps)
    assert plan.estimated_seconds * plan.cores == pytest.approx(now / 3000)


@pytest.mark.parametrize("change", [change_type("v", "string"), add_column("x", "int")])
def test_a_rewrite_goes_with_layouts_only(lake, change):
    with pytest.raises(
        Unsupported, match="REWRITE can be combined only with SET PARTITIONED BY, SET SORTED BY"
    ):
        lake.table("t").alter(change, rewrite_files())


def test_light_changes_are_shown_beside_jobs(copied):
    catalog, lake = copied
    lake.sql("ALTER TABLE t ADD COLUMN n INT")
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        duckdb.execute("ALTER TABLE t RENAME COLUMN n TO m")
    lake.sql("ALTER TABLE t ALTER COLUMN v TYPE STRING")
    lake.sql("CREATE SCHEMA s")
    lake.create_table("s.u", {"a": "int"}).alter(add_column("b", "int"))
    found = lake.sql("SHOW ALTER TABLE COLUMN").collect()

    told = [(r.JobId, r.TableName, r.State, r.Timeout, r.IndexId == r.OriginIndexId) for r in found]
    assert told == [
        *[(None, "u", "FINISHED", 1, True), (1, "t", "FINISHED", 86400, True)],
        *[(None, "t", "FINISHED", 1, True), (None, "t", "FINISHED", 1, True)],
    ]
    versions = [r.SchemaVersion.split(":") for r in found]
    assert [number for number, _ in versions] == ["2", "4", "3", "2"]
    # The columns of each version of t are others, so the hashes are too.
    assert len({shape for _, shape in versions[1:]}) == 3
    assert [r.TransactionId for r in found] == sorted(
        (r.TransactionId for r in found), reverse=True
    )
    assert all(r.CreateTime == r.FinishTime for r in found if r.JobId is None)
    [one] = lake.sql("SHOW ALTER TABLE COLUMN FROM s").collect()
    assert one.TableName == "u"
    newest_of_t = "SHOW ALTER TABLE COLUMN WHERE TableName = 't' ORDER BY CreateTime DESC LIMIT 1"
    assert lake.sql(newest_of_t).first().JobId == 1
