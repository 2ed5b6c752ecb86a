"""The change feed: DuckDB's own where that is right, and facts written out where it is not."""

from __future__ import annotations

from itertools import pairwise

import pytest

import shelduck
from tests.support.ducklakepy_oracle import oracle_at
from tests.support.normal import duckdb_rows, in_order, spark_rows

pytestmark = pytest.mark.usefixtures("ducklake_version")

FEED = "snapshot_id, rowid, change_type"


def feed(lake, start, end=None, *columns):
    found = lake.table("t").changes(start, end)
    listed = columns or found.columns[:-4]
    return spark_rows(found.select("_commit_version", "_row_id", "_change_type", *listed))


def theirs(oracle, start, end, columns="*"):
    source = f"lake.table_changes('t', {start}, {end})"
    return duckdb_rows(oracle, f"(SELECT {FEED}, * EXCLUDE ({FEED}) FROM {source})", columns)


AGREED = {
    "files": [
        "CREATE TABLE t (a INTEGER, b VARCHAR)",
        "INSERT INTO t SELECT i, 'v' || i FROM range(100) r(i)",
        "DELETE FROM t WHERE a < 5",
        "UPDATE t SET b = 'new' WHERE a BETWEEN 50 AND 60",
        "INSERT INTO t SELECT i, 'w' FROM range(200, 250) r(i)",
        "DELETE FROM t WHERE a >= 200",
        "ALTER TABLE t ADD COLUMN c INTEGER DEFAULT 7",
        "INSERT INTO t SELECT i, 'x', NULL FROM range(300, 320) r(i)",
        "ALTER TABLE t RENAME COLUMN b TO bb",
        "ALTER TABLE t ALTER a TYPE BIGINT",
        "TRUNCATE t",
    ],
    "inlined rows": [
        "CREATE TABLE t (a INTEGER, b VARCHAR)",
        "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        "UPDATE t SET b = 'z' WHERE a = 2",
        "DELETE FROM t WHERE a = 1",
        "ALTER TABLE t DROP COLUMN b",
        "INSERT INTO t VALUES (4)",
        "ALTER TABLE t ADD COLUMN b INTEGER DEFAULT 9",
        "UPDATE t SET b = 10 WHERE a >= 3",
    ],
    "inlined deletes of a file": [
        "CREATE TABLE t (a INTEGER)",
        "INSERT INTO t SELECT i FROM range(50) r(i)",
        "DELETE FROM t WHERE a = 10",
        "DELETE FROM t WHERE a = 11",
        "UPDATE t SET a = 100 WHERE a = 12",
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("story", AGREED)
def test_the_feed_of_what_duckdb_did_is_duckdbs_own(story, sqlite_url, data_path, spark):
    with oracle_at(sqlite_url, data_path) as oracle:
        for statement in AGREED[story]:
            oracle.execute(statement)
        last = oracle.snapshot()
        expected = {n: theirs(oracle, n, last) for n in (1, last // 2, last)}
    with shelduck.connect(sqlite_url, spark=spark) as lake:
        assert {n: feed(lake, n, last) for n in expected} == expected


CAME = ("insert", "update_postimage")
MODES = [("dropCarryovers", False), ("none", True), ("netChanges", False), ("netChanges", True)]


def netted(changes):
    """What the changes of each row, by its id, did in all: what it was, and what it is."""
    by_row, found = {}, []
    for change in sorted(changes, key=lambda c: (c[0], c[2] in CAME)):
        by_row.setdefault(change[1], []).append(change)
    for first, *_, last in ([*each, each[-1]] for each in by_row.values()):
        was, stays = first[2] not in CAME, last[2] in CAME
        before = (first[0], first[1], "update_preimage" if stays else "delete", *first[3:])
        after = (last[0], last[1], "update_postimage" if was else "insert", *last[3:])
        found += [before] * was + [after] * stays
    return found


def as_sparks(changes, mode, updates):
    """A feed with row ids as Spark's CHANGES shows it."""
    plain = {"update_preimage": "delete", "update_postimage": "insert"}
    kept = netted(changes) if mode == "netChanges" else changes
    return in_order(
        [(n, kind if updates else plain.get(kind, kind), *rest) for n, _, kind, *rest in kept]
    )


def changes(lake, start, end, mode, updates):
    found = lake.sql(
        f"SELECT * FROM t CHANGES FROM VERSION {start} TO VERSION {end} WITH (deduplicationMode ="
        f" '{mode}', computeUpdates = {updates})"
    )
    return spark_rows(found.select("_commit_version", "_change_type", *found.columns[:-3]))


@pytest.mark.slow
@pytest.mark.parametrize("story", AGREED)
def test_sparks_changes_are_those_of_duckdbs_feed(story, sqlite_url, data_path, spark):
    with oracle_at(sqlite_url, data_path) as oracle:
        for statement in AGREED[story]:
            oracle.execute(statement)
        last = oracle.snapshot()
        feeds = {n: theirs(oracle, n, last) for n in (1, last // 2)}
    expected = {(n, *m): as_sparks(feed, *m) for n, feed in feeds.items() for m in MODES}
    with shelduck.connect(sqlite_url, spark=spark) as lake:
        assert {(n, *m): changes(lake, n, last, *m) for n, *m in expected} == expected


# DuckDB's feed is wrong after these; what it showed at each snapshot before is the truth.
MOVED = {
    "deletes again and again": [
        "INSERT INTO t SELECT i, 'v' FROM range(100) r(i)",
        "DELETE FROM t WHERE a < 5",
        "DELETE FROM t WHERE a < 10",
        "INSERT INTO t SELECT i, 'w' FROM range(100, 110) r(i)",
        "DELETE FROM t WHERE a % 10 = 0",
        "DELETE FROM t WHERE a < 100",
    ],
    "a flush": [
        "CALL lake.set_option('data_inlining_row_limit', 10)",
        "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        "UPDATE t SET b = 'z' WHERE a = 2",
        "INSERT INTO t SELECT i, 'file' FROM range(100, 120) r(i)",
        "UPDATE t SET b = 'y' WHERE a <= 2",
        "DELETE FROM t WHERE a = 1 OR a = 105",
        "DELETE FROM t WHERE a = 110",
        "CALL ducklake_flush_inlined_data('lake')",
        "DELETE FROM t WHERE a = 3 OR a = 106",
        "CALL ducklake_flush_inlined_data('lake')",
    ],
    "a merge": [
        "INSERT INTO t SELECT i, 'v' FROM range(20) r(i)",
        "INSERT INTO t SELECT i, 'w' FROM range(20, 40) r(i)",
        "INSERT INTO t SELECT i, 'x' FROM range(40, 60) r(i)",
        "CALL ducklake_merge_adjacent_files('lake')",
        "DELETE FROM t WHERE a % 2 = 0",
        "INSERT INTO t SELECT i, 'x' FROM range(60, 70) r(i)",
        "CALL ducklake_merge_adjacent_files('lake')",
    ],
    "a rewrite": [
        "INSERT INTO t SELECT i, 'v' FROM range(20) r(i)",
        "DELETE FROM t WHERE a < 15",
        "CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0)",
        "DELETE FROM t WHERE a = 16",
        "UPDATE t SET b = 'u' WHERE a = 17",
        "CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0)",
        "TRUNCATE t",
    ],
    "deletion vectors": [
        "CALL lake.set_option('write_deletion_vectors', true)",
        "INSERT INTO t SELECT i, 'v' FROM range(20) r(i)",
        "INSERT INTO t SELECT i, 'w' FROM range(20, 40) r(i)",
        "DELETE FROM t WHERE a < 15",
        "DELETE FROM t WHERE a > 30",
    ],
    "rows that a transaction inserted and deleted": [
        "INSERT INTO t SELECT i, 'v' FROM range(20) r(i)",
        "BEGIN",
        "INSERT INTO t SELECT i, 'w' FROM range(100, 120) r(i)",
        "DELETE FROM t WHERE a % 10 = 0",
        "COMMIT",
        "DELETE FROM t WHERE a % 5 = 0",
    ],
}


def states_of(statements, url, data_path):
    """What DuckDB shows at each snapshot when it is made: row id, then the columns."""
    with oracle_at(url, data_path, {"DATA_INLINING_ROW_LIMIT": 0}) as oracle:
        oracle.execute("CREATE TABLE t (a INTEGER, b VARCHAR)")
        states = {oracle.snapshot(): []}
        for statement in statements:
            oracle.execute(statement)
            # Inside a transaction this is the snapshot before it, whose state stays.
            states.setdefault(oracle.snapshot(), oracle.sql("SELECT rowid, * FROM t"))
    return states


def differences(states):
    """What happened between one state and the next, in the order of `in_order`."""
    found = []
    for before, after in pairwise(sorted(states)):
        old, new = set(states[before]), set(states[after])
        gone, came = {r[0] for r in old - new}, {r[0] for r in new - old}
        for rows, plain, updated in (
            (old - new, "delete", "update_preimage"),
            (new - old, "insert", "update_postimage"),
        ):
            found += [
                (after, r[0], updated if r[0] in gone & came else plain, *r[1:]) for r in rows
            ]
    return in_order(found)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("story", MOVED)
def test_the_feed_is_what_changed_from_one_snapshot_to_the_next(
    story, sqlite_url, data_path, spark
):
    states = states_of(MOVED[story], sqlite_url, data_path)
    expected = differences(states)
    assert expected

    with shelduck.connect(sqlite_url, spark=spark) as lake:
        last = max(states)
        found = {n: feed(lake, n, last) for n in (1, last // 2 + 1)}
        alone = feed(lake, last - 1, last - 1)
        shown = {m: changes(lake, 1, last, *m) for m in MODES}
    assert found == {n: [e for e in expected if e[0] >= n] for n in found}
    assert alone == [e for e in expected if e[0] == last - 1]
    assert shown == {m: as_sparks(expected, *m) for m in MODES}
