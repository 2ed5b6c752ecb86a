"""Maintenance through the API and SQL: what goes, what stays, what is only told."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import shelduck
from shelduck import Conflict, CorruptLake, InvalidRequest, NotFound
from shelduck.files import verb
from tests.support.jobs import jobs_of
from tests.support.lakes import newest, rows
from tests.support.oracle import DuckDBOracle

STATEMENTS = [
    "CREATE TABLE t (id BIGINT, v STRING)",
    *(
        f"INSERT INTO t SELECT id, concat('v', id) FROM range({n}, {n + 20}, 1, 1)"
        for n in (0, 20, 40)
    ),
]
IDS = [(n,) for n in range(60)]


@pytest.fixture
def lake(base, tmp_path):
    """A lake with its own files: tests here delete some."""
    with base.copy_with_files(tmp_path) as made:
        yield made


def found(lake, query="SELECT id FROM t ORDER BY id"):
    return rows(lake.sql(query))


def parquet(lake):
    """All data files below the lake's data path."""
    return {p for p in Path(lake.data_path).rglob("*.parquet") if p.is_file()}


def everything(lake):
    return set(Path(lake.data_path).rglob("*"))


def test_a_dry_run_tells_what_compaction_does_and_does_nothing(lake):
    before, files = newest(lake), everything(lake)

    planned = lake.table("t").compact(dry_run=True)

    assert (planned.files, planned.new_files, planned.snapshots) == (3, 1, ())
    assert planned.dry_run
    assert str(planned).startswith("main.t: 3 file(s) (")
    assert newest(lake) == before
    assert everything(lake) == files

    done = lake.table("t").compact()
    assert (done.files, done.new_files, done.bytes) == (3, 1, planned.bytes)
    assert found(lake) == IDS


@pytest.mark.slow
def test_compaction_takes_few_jobs_and_statements_whatever_the_number_of_files(lake, spark):
    for n in range(60, 160, 20):
        lake.sql(f"INSERT INTO t SELECT id, 'x' FROM range({n}, {n + 20}, 1, 1)")
    tracker = spark.sparkContext.statusTracker()
    jobs = len(tracker.getJobIdsForGroup())
    statements = lake._state.store.statements

    lake.table("t").compact()

    assert len(tracker.getJobIdsForGroup()) - jobs == 1
    assert lake._state.store.statements - statements <= 50


def test_compacting_twice_does_nothing_more(lake):
    lake.table("t").compact()
    before = newest(lake)

    again = lake.table("t").compact()

    assert (again.files, again.snapshots) == (0, ())
    assert newest(lake) == before


def test_only_files_that_hold_matching_rows_are_compacted(lake):
    [done] = lake.sql("OPTIMIZE t WHERE id < 25").collect()
    assert (done.table_name, done.files_processed, done.files_created) == ("t", 2, 1)
    assert done.snapshot == newest(lake)
    assert lake.table("t").compact(where="id = 1000").files == 0
    assert found(lake) == IDS


def test_sizes_and_limits_are_those_of_the_call_or_the_option(lake):
    table = lake.table("t")
    assert table.compact(target_file_size=10, dry_run=True).files == 0
    assert table.compact(target_file_size="1KB", dry_run=True).files == 0
    assert table.compact(max_files=2, dry_run=True).files == 2
    assert table.compact(min_files=4, dry_run=True).files == 0
    lake.set_option("target_file_size", 10, table="t")
    assert table.compact(dry_run=True).files == 0
    with pytest.raises(InvalidRequest, match="target_file_size does not accept 'large'"):
        table.compact(target_file_size="large")


def test_rows_are_sorted_by_the_tables_order_and_keep_their_ids(lake):
    lake.sql("ALTER TABLE t SET SORTED BY (id DESC)")
    lake.sql("CALL compact('t')")
    [path] = lake.table("t").read().inputFiles()
    stored = [tuple(r) for r in lake.spark.read.parquet(path).select("id").collect()]
    assert stored == IDS[::-1]
    ids = "SELECT id, _ducklake_internal_row_id FROM parquet.`{}`"
    assert rows(lake.spark.sql(ids.format(path)))[0] == (59, 59)


def test_a_delete_of_others_meanwhile_leaves_only_its_own_bin_undone(lake, monkeypatch):
    lake.sql("ALTER TABLE t SET PARTITIONED BY (v)")
    for n in (100, 120):
        lake.sql(f"INSERT INTO t SELECT id, 'p' FROM range({n}, {n + 20}, 1, 1)")
    write = verb.write_bins

    def raced(*arguments, **more):
        done = write(*arguments, **more)
        lake.sql("DELETE FROM t WHERE id BETWEEN 100 AND 119")
        return done

    monkeypatch.setattr(verb, "write_bins", raced)
    files = parquet(lake)

    done = lake.table("t").compact()

    assert (done.files, done.skipped, done.new_files, len(done.snapshots)) == (3, 2, 1, 1)
    assert found(lake) == IDS + [(n,) for n in range(120, 140)]
    assert len(parquet(lake) - files) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO t SELECT id, 'new' FROM range(60, 80, 1, 1)",
        "ALTER TABLE t ADD COLUMN w INT DEFAULT 5",
        "ALTER TABLE t RENAME COLUMN v TO name",
        "ALTER TABLE t DROP COLUMN v",
    ],
)
def test_appends_and_alters_of_others_do_not_disturb_compaction(lake, monkeypatch, statement):
    write = verb.write_bins

    def raced(*arguments, **more):
        done = write(*arguments, **more)
        lake.sql(statement)
        return done

    monkeypatch.setattr(verb, "write_bins", raced)
    done = lake.table("t").compact()
    monkeypatch.undo()
    assert (done.files, done.skipped) == (3, 0)
    everything_read = sorted(rows(lake.table("t").read()))
    assert [r[:1] for r in everything_read][:60] == IDS
    if "ADD COLUMN" in statement:
        assert everything_read[0] == (0, "v0", 5)
    assert sorted(rows(lake.table("t").read(version=3)))[:2] == [(0, "v0"), (1, "v1")]


@pytest.mark.slow
def test_bounds_of_a_column_that_another_retyped_meanwhile_are_not_trusted(lake, monkeypatch):
    lake.sql("CREATE TABLE b (k FLOAT)")
    for _ in range(2):
        lake.sql("INSERT INTO b SELECT 1.1F FROM range(0, 20, 1, 1)")
    write = verb.write_bins

    def raced(*arguments, **more):
        done = write(*arguments, **more)
        lake.sql("ALTER TABLE b ALTER COLUMN k TYPE DOUBLE")
        return done

    monkeypatch.setattr(verb, "write_bins", raced)
    assert lake.table("b").compact().files == 2
    # As a double it is 1.100000023841858, which lies beyond the bound that says 1.1.
    assert found(lake, "SELECT count(*) FROM b WHERE k > 1.1D") == [(40,)]


def test_a_failed_write_leaves_nothing(lake, monkeypatch):
    files = everything(lake)

    def failing(*_arguments):
        raise InvalidRequest("no")

    monkeypatch.setattr(verb, "_commit", failing)
    with pytest.raises(InvalidRequest, match="no"):
        lake.table("t").compact()
    assert everything(lake) == files


def test_maintenance_is_no_part_of_a_transaction(lake):
    with lake.transaction() as tx:
        for act in (
            lambda: tx.table("t").compact(),
            lambda: tx.table("t").rewrite_deletes(),
            lambda: tx.sql("OPTIMIZE t"),
            lambda: tx.sql("CALL expire_snapshots(versions => [1])"),
            lambda: tx.sql("VACUUM"),
            lambda: tx.sql("CHECKPOINT"),
        ):
            with pytest.raises(InvalidRequest, match="outside of the transaction"):
                act()


def test_deleted_rows_are_rewritten_from_the_threshold_on(lake):
    lake.sql("DELETE FROM t WHERE id < 15")
    assert lake.table("t").rewrite_deletes().files == 0
    [done] = lake.sql("CALL rewrite_data_files('t', delete_threshold => 0.75)").collect()
    assert (done.files_processed, done.files_created) == (1, 1)
    assert found(lake) == IDS[15:]
    assert len(rows(lake.table("t").read(version=4))) == 60


def test_snapshots_expire_by_age_version_and_number(lake):
    last = newest(lake)
    assert lake.expire_snapshots(retain_last=2, dry_run=True).snapshots == tuple(range(last - 1))
    assert newest(lake) == last
    assert len(lake.snapshots()) == last + 1
    assert lake.expire_snapshots(versions=[2]).snapshots == (2,)
    with pytest.raises(NotFound, match="snapshot 2 does not exist or has already expired"):
        lake.expire_snapshots(versions=[2])
    with pytest.raises(InvalidRequest, match=f"snapshot {last} is the newest"):
        lake.expire_snapshots(versions=[last])
    with pytest.raises(InvalidRequest, match="cannot tell which snapshots to expire"):
        lake.expire_snapshots()
    assert lake.expire_snapshots(older_than="1 day").snapshots == ()
    expired = lake.expire_snapshots(older_than=timedelta(), retain_last=2)
    assert expired.snapshots == (0, 1)
    lake.sql(f"CALL expire_snapshots(older_than => '{datetime.now(UTC).isoformat()}')")
    assert [s.id for s in lake.snapshots()] == [last]
    assert found(lake) == IDS
    with pytest.raises(NotFound, match="does not exist"):
        lake.table("t").read(version=3)


def test_what_began_before_an_expired_snapshot_is_a_conflict(lake):
    tx = lake.transaction()
    tx.sql("UPDATE t SET v = 'mine' WHERE id = 1")
    lake.sql("CREATE TABLE other (id INT)")
    lake.sql("CREATE TABLE another (id INT)")
    lake.expire_snapshots(retain_last=1)
    with pytest.raises(Conflict, match="expired"):
        tx.commit()


def test_snapshots_that_expire_meanwhile_do_not_disturb_compaction(lake, monkeypatch):
    """Each lot was chosen in a snapshot after which the log has gaps, and its files are there."""
    lake.set_option("data_inlining_row_limit", 0)
    lake.sql("ALTER TABLE t SET PARTITIONED BY (v)")
    for n in range(6):
        lake.sql(f"INSERT INTO t SELECT id, 'p{n // 2}' FROM range({n}, {n + 2}, 1, 1)")
    before = found(lake)
    monkeypatch.setattr(verb, "batches", lambda bins: [[one] for one in bins])
    write = verb.write_bins

    def raced(*arguments, **more):
        done = write(*arguments, **more)
        lake.sql("CREATE TABLE IF NOT EXISTS other (id INT); INSERT INTO other VALUES (1)")
        assert lake.expire_snapshots(retain_last=1).snapshots
        lake.cleanup_old_files(cleanup_all=True)
        return done

    monkeypatch.setattr(verb, "write_bins", raced)
    done = lake.table("t").compact()

    assert (done.files, done.skipped, len(done.snapshots)) == (9, 0, 4)
    assert found(lake) == before
    assert lake.check().is_sound
    with DuckDBOracle(f"sqlite:///{Path(lake.data_path).parent}/lake.db") as duckdb:
        assert duckdb.sql("SELECT id FROM t ORDER BY id") == before


def test_a_table_that_is_dropped_and_forgotten_is_not_compacted(lake, monkeypatch):
    write = verb.write_bins

    def raced(*arguments, **more):
        done = write(*arguments, **more)
        lake.sql("DROP TABLE t; CREATE TABLE t (id BIGINT)")
        lake.expire_snapshots(retain_last=1)
        return done

    monkeypatch.setattr(verb, "write_bins", raced)
    done = lake.table("t").compact()

    assert (done.files, done.skipped, done.snapshots) == (0, 3, ())
    assert lake.check().is_sound
    assert found(lake) == []


def test_old_files_go_when_no_snapshot_needs_them_and_not_before(lake):
    sources = parquet(lake)
    lake.table("t").compact()
    assert lake.cleanup_old_files().files == ()
    planned = lake.cleanup_old_files(cleanup_all=True, dry_run=True)
    assert {Path(p) for p in planned.files} == sources
    assert sources < parquet(lake)

    done = lake.cleanup_old_files(older_than=timedelta())

    assert {Path(p) for p in done.files} == sources
    assert not sources & parquet(lake)
    # Nothing of the writes is left: no directory, no checksum.
    assert len(list(Path(lake.data_path, "main/t").iterdir())) == 1
    assert lake.cleanup_old_files(cleanup_all=True).files == ()
    assert found(lake) == IDS


@pytest.mark.slow
def test_cleaning_up_goes_on_where_it_was_interrupted(lake):
    lake.table("t").compact()
    [first, *_] = lake.cleanup_old_files(cleanup_all=True, dry_run=True).files
    Path(first).unlink()
    assert len(lake.cleanup_old_files(cleanup_all=True).files) == 3
    assert found(lake) == IDS


@pytest.mark.slow
def test_a_file_that_a_snapshot_names_is_never_deleted(lake):
    lake.table("t").compact()
    [live] = lake.table("t").read().inputFiles()
    inside = live.removeprefix("file://").removeprefix(lake.data_path)
    with lake._state.store.write() as connection:
        connection.exec_driver_sql(
            "INSERT INTO ducklake_files_scheduled_for_deletion VALUES"
            f" (999, '{inside}', 1, '2020-01-01 00:00:00+00')"
        )
    done = lake.cleanup_old_files(cleanup_all=True)
    assert done.kept == (lake.data_path + inside,)
    assert found(lake) == IDS


def test_adopted_files_stay_where_they_are_unless_asked(lake, tmp_path):
    outside = tmp_path / "mine"
    lake.spark.range(60, 80, 1, 1).selectExpr("id", "'adopted' AS v").write.parquet(str(outside))
    [file] = outside.glob("*.parquet")
    lake.table("t").add_files(str(file))
    lake.table("t").compact()
    assert [r[0] for r in found(lake)] == list(range(80))

    assert len(lake.cleanup_old_files(cleanup_all=True).files) == 3
    assert lake.cleanup_old_files(cleanup_all=True).kept == (str(file),)
    assert file.exists()
    done = lake.cleanup_old_files(cleanup_all=True, include_adopted=True)
    assert done.files == (str(file),)
    assert not file.exists()
    assert [r[0] for r in found(lake)] == list(range(80))


def lost_write(lake, table="t", *, age=timedelta(days=4)):
    """A directory as a killed write leaves it, last changed some time ago."""
    uuid = lake.table(table)._version().uuid
    place = Path(lake.table(table)._version().path)
    directory = place / shelduck.model.text.names.write_directory(uuid, 1, 2)
    (directory / "_temporary/0").mkdir(parents=True)
    file = directory / "part-0.parquet"
    file.write_bytes(b"lost")
    then = time.time() - age.total_seconds()
    for path in (file, directory / "_temporary/0", directory / "_temporary", directory):
        os.utime(path, (then, then))
    return directory


def test_writes_that_never_landed_are_removed_and_nothing_else(lake, tmp_path, spark):
    lost, young = lost_write(lake), None
    with shelduck.connect(f"sqlite:///{tmp_path}/two.db", lake.data_path, spark) as other:
        other.sql(STATEMENTS[0])
        other.sql(STATEMENTS[1])
        theirs = lost_write(other)
        before = everything(lake)

        planned = lake.remove_orphans(dry_run=True)
        assert planned.files == (str(lost / "part-0.parquet"),)
        assert planned.bytes == 4
        assert everything(lake) == before
        assert lake.remove_orphans().files == planned.files
        assert before - everything(lake) == {
            lost,
            lost / "part-0.parquet",
            lost / "_temporary",
            lost / "_temporary/0",
        }
        assert theirs.exists()
        assert rows(other.sql("SELECT count(*) FROM t")) == [(20,)]
        assert other.remove_orphans().files == (str(theirs / "part-0.parquet"),)
    young = lost_write(lake, age=timedelta(hours=1))
    assert lake.remove_orphans().files == ()
    assert rows(lake.sql("VACUUM t RETAIN 0 HOURS")) == [(str(young / "part-0.parquet"),)]
    assert found(lake) == IDS


@pytest.mark.slow
def test_an_open_write_is_no_orphan(lake):
    with lake.transaction() as tx:
        tx.sql("INSERT INTO t SELECT id, 'open' FROM range(60, 80, 1, 1)")
        assert lake.remove_orphans().files == ()
    assert len(found(lake)) == 80


def test_a_registered_writer_keeps_its_files_however_young_orphans_may_be(lake):
    lost = lost_write(lake)
    with lake.transaction() as tx:
        tx.sql("INSERT INTO t SELECT id, 'open' FROM range(60, 80, 1, 1)")
        tx.sql("DELETE FROM t WHERE id < 10 OR id >= 70")
        done = lake.remove_orphans(older_than=timedelta())
        assert done.files == (str(lost / "part-0.parquet"),)
    assert found(lake) == [(n,) for n in range(10, 70)]


def test_a_write_whose_files_were_removed_does_not_land(lake, tmp_path):
    before = newest(lake)
    tx = lake.transaction()
    tx.sql("INSERT INTO t SELECT id, 'open' FROM range(60, 80, 1, 1)")
    # As for a process that was suspended for longer than its lease.
    with closing(sqlite3.connect(tmp_path / "lake.db")) as catalog:
        catalog.execute("UPDATE shelduck_writer SET expires = '2020-01-01 00:00:00+00'")
        catalog.commit()
    assert len(lake.remove_orphans(older_than=timedelta()).files) == 1
    with pytest.raises(
        CorruptLake, match=r"files are missing or have changed since they were written.* is missing"
    ):
        tx.commit()
    assert newest(lake) == before
    assert found(lake) == IDS


@pytest.mark.slow
def test_files_that_wait_for_deletion_are_no_orphans(lake):
    lake.table("t").compact()
    assert lake.remove_orphans(older_than=timedelta()).files == ()
    assert len(lake.cleanup_old_files(cleanup_all=True).files) == 3


def test_a_checkpoint_does_all_that_the_options_ask_for(lake):
    lake.sql("INSERT INTO t VALUES (60, 'inlined')")
    lake.sql("CREATE TABLE u AS SELECT id FROM range(0, 20, 1, 1)")
    lake.sql("INSERT INTO u SELECT id FROM range(0, 20, 1, 1)")
    lake.set_option("auto_compact", False, table="u")
    lake.set_option("delete_older_than", "0 seconds")

    planned = lake.checkpoint(dry_run=True)
    assert [(c.table.name, c.files) for c in planned.compacted] == [("t", 3)]
    assert planned.expired is None

    done = lake.checkpoint()
    assert [n.name for n in done.flushed] == ["t"]
    assert [(c.table.name, c.files, c.new_files) for c in done.compacted] == [("t", 4, 1)]
    assert len(done.cleaned.files) == 4
    assert done.orphans.files == ()
    lake.set_option("expire_older_than", "0 seconds")
    lines = [line for (line,) in rows(lake.sql("CHECKPOINT"))]
    assert lines[0].endswith("snapshot(s) expired; 0 file(s) to delete")
    assert len(lake.snapshots()) == 1
    assert found(lake) == [*IDS, (60,)]


@pytest.mark.parametrize(
    ("maintain", "files"),
    [
        (lambda lake: lake.checkpoint(), 1),
        (lambda lake: lake.sql("CHECKPOINT"), 1),
        (lambda lake: lake.flush_inlined_data(), 4),
        (lambda lake: lake.sql("CALL flush_inlined_data()"), 4),
    ],
    ids=["checkpoint", "CHECKPOINT", "flush", "CALL"],
)
def test_a_table_that_cannot_be_maintained_keeps_nothing_from_the_others(
    lake, tmp_path, maintain, files
):
    with DuckDBOracle(f"sqlite:///{tmp_path}/lake.db") as duckdb:
        duckdb.execute("CREATE TABLE a (i INTERVAL)")
        duckdb.execute("INSERT INTO a VALUES (INTERVAL 1 DAY)")
    lake.sql("INSERT INTO t VALUES (60, 'inlined')")
    maintain(lake)

    with DuckDBOracle(f"sqlite:///{tmp_path}/lake.db") as duckdb:
        assert duckdb.sql("SELECT count(i) FROM a") == [(1,)]
    assert len(lake.table("t").read().inputFiles()) == files
    assert found(lake) == [*IDS, (60,)]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("CALL compct('t')", "procedure 'compct' does not exist; did you mean 'compact'"),
        ("CALL compact('t', size => 1)", r"got an unexpected keyword argument 'size'; it takes"),
        ("CALL compact('t', dry_run => 1)", "argument dry_run must be true or false, not 1"),
        ("CALL rewrite_data_files('t', delete_threshold => 2)", "a number from 0 to 1, not"),
        ("CALL compact('nothing')", "table 'nothing' does not exist"),
        ("CALL expire_snapshots(versions => 'x')", "argument versions must be a whole number"),
    ],
)
def test_what_call_cannot_do_is_told(lake, statement, message):
    with pytest.raises(InvalidRequest, match=message):
        lake.sql(statement)


@pytest.mark.slow
def test_one_spark_job_writes_all_bins_each_into_a_file_of_its_own(lake):
    lake.sql("CREATE TABLE w (k INT, v INT)")
    for n in range(6):
        lake.sql(f"INSERT INTO w SELECT {n}, id FROM range(50, 90, 1, 1)")
    size = max(path.stat().st_size for path in parquet(lake))
    done = []
    compact = lake.table("w").compact
    jobs = jobs_of(lake.spark, lambda: done.append(compact(target_file_size=int(size * 2.5))))
    [done] = done
    assert (done.files, done.new_files) == (6, 3)
    keys = [
        {row.k for row in lake.spark.read.parquet(path).select("k").distinct().collect()}
        for path in lake.table("w").read().inputFiles()
    ]
    assert sorted(map(sorted, keys)) == [[0, 1], [2, 3], [4, 5]]
    assert jobs == 1
