"""Compaction and rewrites of ours beside DuckDB: every snapshot, row id and count stays."""

from __future__ import annotations

import pytest

import shelduck
from tests.support.ducklakepy_oracle import oracle_at
from tests.support.lakes import rows
from tests.support.normal import duckdb_rows, in_order, spark_rows
from tests.support.oracle import DuckDBOracle, at

pytestmark = pytest.mark.usefixtures("ducklake_version")

NO_INLINING = {"DATA_INLINING_ROW_LIMIT": 0}
# What a reader of any snapshot can ask: rows, their ids, and how many there are.
ROWS = "rowid, *"


@pytest.fixture
def story(sqlite_url, data_path, one_file):
    """A table that DuckDB wrote in many small files, with updates and deletes."""
    with oracle_at(sqlite_url, data_path, NO_INLINING) as oracle:
        for statement in (
            "CREATE TABLE t(id BIGINT, v VARCHAR, n INTEGER)",
            "INSERT INTO t SELECT i, 'a' || i, i FROM range(30) r(i)",
            "INSERT INTO t SELECT i, 'b' || i, i FROM range(30, 60) r(i)",
            "INSERT INTO t SELECT i, 'c' || i, i FROM range(60, 90) r(i)",
            "UPDATE t SET v = 'updated' WHERE id IN (3, 33)",
            "INSERT INTO t SELECT i, 'd' || i, i FROM range(90, 120) r(i)",
            "DELETE FROM t WHERE id BETWEEN 95 AND 118",
            "INSERT INTO t SELECT i, 'e' || i, i FROM range(120, 150) r(i)",
        ):
            oracle.execute(statement)
    return sqlite_url


def states(url):
    """What DuckDB reads of every snapshot that is left, and its counts."""
    with oracle_at(url, None, NO_INLINING) as oracle:
        ids = [v for (v,) in oracle.sql("SELECT snapshot_id FROM ducklake_snapshots('lake')")]
        found = {}
        for version in (v for v in ids if v > 1):
            source = at("t", version)
            [(count,)] = oracle.sql(f"SELECT count(*) FROM {source}")
            found[version] = (count, duckdb_rows(oracle, source, ROWS))
            assert count == len(found[version][1])
        [(known,)] = oracle.sql("SELECT (count(*), min(id), max(id), min(n), max(n)) FROM t")
        counted = oracle.sql(
            "WITH r AS MATERIALIZED (SELECT * FROM t)"
            " SELECT (count(*), min(id), max(id), min(n), max(n)) FROM r"
        )
        assert [(known,)] == counted
    return found


def snapshots_of_rows(url):
    """Which snapshot DuckDB says that each row came with."""
    with oracle_at(url, None, NO_INLINING) as oracle:
        # ducklakepy shows it in its change feed alone.
        asked = "rowid, snapshot_id" if isinstance(oracle, DuckDBOracle) else "rowid, NULL"
        return oracle.sql(f"SELECT {asked} FROM t ORDER BY ALL")


def changes(url, first, last):
    """DuckDB's change feed."""
    with oracle_at(url, None, NO_INLINING) as oracle:
        return oracle.sql(
            f"SELECT snapshot_id, change_type, rowid, id FROM lake.table_changes('t', {first},"
            f" {last}) ORDER BY ALL"
        )


def files(url):
    """The live data files: how many, and how many of them have deletes."""
    with oracle_at(url, None, NO_INLINING) as oracle:
        if not isinstance(oracle, DuckDBOracle):
            found = [(f, f.delete_file_path) for f in oracle.table("t").scan().plan_files()]
        else:
            found = oracle.sql(
                "SELECT data_file, delete_file FROM ducklake_list_files('lake', 't')"
            )
    return len(found), sum(1 for _, deleted in found if deleted is not None)


def ours(url, spark, act):
    with shelduck.connect(url, spark=spark) as lake:
        return act(lake)


def same_in_spark(url, spark, expected):
    with shelduck.connect(url, spark=spark) as lake:
        for version, (_, found) in expected.items():
            assert spark_rows(lake.table("t").read(version=version)) == in_order(
                row[1:] for row in found
            )


@pytest.mark.slow
def test_compaction_changes_no_snapshot_no_row_id_and_no_feed(story, one_file):
    before, rows, feed = states(story), snapshots_of_rows(story), changes(story, 2, 8)
    newest = max(before)

    done = ours(story, one_file, lambda lake: lake.table("t").compact())

    # Four files have deletes: the sources of the update, and the one that was deleted from.
    assert (done.files, done.new_files, done.snapshots) == (3, 1, (newest + 1,))
    after = states(story)
    assert after == before | {newest + 1: before[newest]}
    assert snapshots_of_rows(story) == rows
    assert changes(story, 2, 8) == feed
    assert changes(story, newest + 1, newest + 1) == []
    same_in_spark(story, one_file, after)
    assert files(story) == (4, 3)


@pytest.mark.slow
def test_a_rewrite_of_deletes_keeps_row_ids_and_older_snapshots(story, one_file):
    before = states(story)
    newest = max(before)

    done = ours(story, one_file, lambda lake: lake.table("t").rewrite_deletes(0))

    assert (done.files, done.new_files) == (3, 1)
    after = states(story)
    assert after == before | {newest + 1: before[newest]}
    same_in_spark(story, one_file, after)
    assert files(story) == (4, 0)


DUCKDB_MAINTAINS = (
    "CALL ducklake_merge_adjacent_files('lake')",
    "CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0)",
    "CALL ducklake_merge_adjacent_files('lake')",
    "CALL ducklake_cleanup_old_files('lake', cleanup_all => true)",
)


@pytest.mark.slow
def test_duckdb_maintains_on_top_of_ours_and_we_on_top_of_duckdb(story, one_file):
    before = states(story)
    for act in (
        lambda lake: lake.table("t").compact(),
        lambda lake: lake.table("t").rewrite_deletes(0),
        lambda lake: lake.cleanup_old_files(cleanup_all=True),
    ):
        ours(story, one_file, act)
    for statement in (
        "INSERT INTO t SELECT i, 'f' || i, i FROM range(150, 180) r(i)",
        "DELETE FROM t WHERE id % 10 = 0",
        *DUCKDB_MAINTAINS,
    ):
        with oracle_at(story, None, NO_INLINING) as oracle:
            oracle.execute(statement)
    after = states(story)
    assert {v: after[v] for v in before} == before
    same_in_spark(story, one_file, after)

    for act in (
        lambda lake: lake.sql("INSERT INTO t SELECT id, 'g', 1 FROM range(180, 210)"),
        lambda lake: lake.compact(),
        lambda lake: lake.rewrite_deletes(0),
        lambda lake: lake.cleanup_old_files(cleanup_all=True),
    ):
        expected = states(story)
        ours(story, one_file, act)
        after = states(story)
        assert {v: after[v] for v in expected} == expected
    same_in_spark(story, one_file, after)


@pytest.mark.slow
def test_compaction_writes_the_newest_columns_and_older_snapshots_keep_theirs(story, one_file):
    with shelduck.connect(story, spark=one_file) as lake:
        for statement in (
            "ALTER TABLE t ADD COLUMN w INT DEFAULT 7",
            "ALTER TABLE t ALTER COLUMN n TYPE BIGINT",
            "ALTER TABLE t DROP COLUMN v",
            "INSERT INTO t SELECT id, id, 9 FROM range(150, 180)",
            "INSERT INTO t SELECT id, id, 9 FROM range(180, 210)",
        ):
            lake.sql(statement)
    before, rows = states(story), snapshots_of_rows(story)
    newest = max(before)

    done = ours(story, one_file, lambda lake: lake.table("t").compact())

    # The two newest files can stand for themselves everywhere, the three oldest cannot.
    assert (done.files, done.new_files, done.snapshots) == (5, 2, (newest + 1, newest + 2))
    after = states(story)
    assert {v: after[v] for v in before} == before
    assert after[newest + 2] == before[newest]
    same_in_spark(story, one_file, after)
    assert dict(rows).keys() == dict(snapshots_of_rows(story)).keys()

    # Once the deleted rows are gone too, and nobody sees the old columns, nothing is left of them.
    with shelduck.connect(story, spark=one_file) as lake:
        lake.rewrite_deletes(0)
        lake.expire_snapshots(retain_last=1)
        lake.cleanup_old_files(cleanup_all=True)
        paths = lake.table("t").read().inputFiles()
        held = {name for path in paths for name in one_file.read.parquet(path).columns}
    assert held == {"id", "n", "w", "_ducklake_internal_row_id", "_ducklake_internal_snapshot_id"}
    assert states(story) == {newest + 3: before[newest]}


@pytest.mark.slow
@pytest.mark.versions("1.0")
@pytest.mark.parametrize("expires", [False, True])
def test_duckdb_rewrites_what_was_compacted_across_a_new_column(
    sqlite_url, data_path, one_file, expires
):
    """It writes with the columns of the snapshot in which the file begins."""
    with oracle_at(sqlite_url, data_path, NO_INLINING) as oracle:
        for statement in (
            "CREATE TABLE t(a INTEGER, f FLOAT)",
            "INSERT INTO t VALUES (0, 0.5), (1, 0.5)",
            "ALTER TABLE t ADD COLUMN c INTEGER",
            *(["ALTER TABLE t ALTER f TYPE DOUBLE"] if expires else []),
            "INSERT INTO t VALUES (2, 0.1, 30), (3, 16777217, 40)",
        ):
            oracle.execute(statement)
        kept = [row for row in oracle.rows("t") if row[0]]

    def compact(lake):
        if expires:
            lake.expire_snapshots(retain_last=1)
        return lake.table("t").compact()

    assert ours(sqlite_url, one_file, compact).new_files == 1
    with oracle_at(sqlite_url, None, NO_INLINING) as oracle:
        oracle.execute("DELETE FROM t WHERE a = 0")
        assert oracle.sql(DUCKDB_MAINTAINS[1])
        assert oracle.rows("t") == kept
    with shelduck.connect(sqlite_url, spark=one_file) as lake:
        assert sorted(rows(lake.table("t").read())) == kept
