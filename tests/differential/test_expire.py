"""Snapshots expired by us and by DuckDB on copies of one catalog leave the same rows."""

from __future__ import annotations

import shutil
from math import inf

import pytest

from shelduck.catalog.databases.store import Store, open_store
from shelduck.catalog.schema.lake_schema import open_lake
from shelduck.catalog.upkeep import few_rows, sweep
from shelduck.catalog.upkeep.expire import ExpiryRequest
from shelduck.upkeep.lake_upkeep import expire_snapshots
from tests.support.ducklakepy_oracle import DuckLakePyOracle, oracle_at
from tests.support.oracle import DuckDBOracle

STORY = (
    "CREATE SCHEMA s2",
    "CREATE TABLE t(id INTEGER, v VARCHAR)",
    "INSERT INTO t SELECT i, 'a' || i FROM range(10) r(i)",
    "INSERT INTO t SELECT i, 'b' || i FROM range(10, 20) r(i)",
    "INSERT INTO t VALUES (100, 'inlined')",
    "DELETE FROM t WHERE id < 7",
    "DELETE FROM t WHERE id = 12",
    "UPDATE t SET v = 'z' WHERE id = 100",
    "DELETE FROM t WHERE id = 100",
    "ALTER TABLE t ADD COLUMN w INTEGER DEFAULT 3",
    "COMMENT ON TABLE t IS 'one'",
    "COMMENT ON TABLE t IS 'two'",
    "COMMENT ON COLUMN t.id IS 'one'",
    "COMMENT ON COLUMN t.id IS 'two'",
    "ALTER TABLE t DROP COLUMN v",
    "INSERT INTO t SELECT i, i FROM range(40, 60) r(i)",
    "DELETE FROM t WHERE id BETWEEN 40 AND 49",
    "DELETE FROM t WHERE id BETWEEN 50 AND 59",
    "ALTER TABLE t RENAME TO tt",
    "ALTER TABLE tt RENAME TO t",
    "CREATE TABLE s2.d(a INTEGER, b VARCHAR)",
    "ALTER TABLE s2.d SET PARTITIONED BY (a)",
    "ALTER TABLE s2.d SET SORTED BY (b)",
    "INSERT INTO s2.d SELECT i % 3, 'x' || i FROM range(60) r(i)",
    "INSERT INTO s2.d VALUES (1, 'inlined')",
    "COMMENT ON TABLE s2.d IS 'dropped later'",
    "COMMENT ON COLUMN s2.d.a IS 'dropped later'",
    "DELETE FROM s2.d WHERE b = 'x4'",
    "DELETE FROM s2.d WHERE b < 'x4'",
    "CREATE VIEW seen AS SELECT 1 AS a",
    "CREATE OR REPLACE VIEW seen AS SELECT 2 AS a",
    "CREATE MACRO m(x) AS x + 1",
    "CREATE OR REPLACE MACRO m(x) AS x + 2",
    "CREATE TABLE p(a INTEGER)",
    "ALTER TABLE p SET PARTITIONED BY (a)",
    "ALTER TABLE p RESET PARTITIONED BY",
    "ALTER TABLE p SET SORTED BY (a)",
    "ALTER TABLE p RESET SORTED BY",
    "INSERT INTO p SELECT * FROM range(10)",
    "DELETE FROM p",
    "CALL lake.set_option('target_file_size', '1MB', table_name => 'd', schema => 's2')",
    "DROP TABLE s2.d",
    "DROP SCHEMA s2",
    "INSERT INTO t SELECT i, i FROM range(60, 80) r(i)",
    "CALL ducklake_merge_adjacent_files('lake')",
    "CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0)",
)

LACKING = ("MACRO", "set_option", "COLUMN s2.d.a")


@pytest.fixture(scope="module")
def story(request, tmp_path_factory):
    """A lake of 1.0 by DuckDB, or of 1.1 by ducklakepy, which has fewer statements."""
    folder, version = tmp_path_factory.mktemp("story"), getattr(request, "param", "1.0")
    make, lacking = (DuckDBOracle, ()) if version == "1.0" else (DuckLakePyOracle, LACKING)
    options = {"DATA_INLINING_ROW_LIMIT": 5}
    with make(f"sqlite:///{folder}/lake.db", f"{folder}/data/", options) as oracle:
        for statement in STORY:
            if not any(words in statement for words in lacking):
                oracle.execute(statement)
        newest = oracle.snapshot()
    return folder, newest


def _expired(folder, name, act):
    catalog = folder / f"{name}.db"
    shutil.copy(folder / "lake.db", catalog)
    url = f"sqlite:///{catalog}"
    act(url)
    with oracle_at(url) as oracle:
        dump = oracle.dump_metadata()
    for row in dump["ducklake_files_scheduled_for_deletion"]:
        del row["schedule_start"]
    dump["ducklake_files_scheduled_for_deletion"].sort(key=str)
    # DuckDB forgets the deletes that it keeps for files that are gone; we do not.
    files = {row["data_file_id"] for row in dump["ducklake_data_file"]}
    for table, rows in dump.items():
        if table.startswith("ducklake_inlined_delete"):
            dump[table] = [row for row in rows if row["file_id"] in files]
    _leave_out_unseen_rows(dump)
    _leave_out_empty_tables(dump)
    return dump


def _leave_out_unseen_rows(dump):
    # ducklakepy deletes rows in the catalog that no snapshot sees any more; DuckDB and we do not.
    left = [row["snapshot_id"] for row in dump["ducklake_snapshot"]]
    for table in dump.keys() - {"ducklake_inlined_data_tables"}:
        if table.startswith("ducklake_inlined_data_"):
            ends = [list(row.values())[1:3] for row in dump[table]]
            dump[table] = [
                row
                for row, (begin, end) in zip(dump[table], ends, strict=True)
                if end is None or any(begin <= snapshot < end for snapshot in left)
            ]


def _leave_out_empty_tables(dump):
    # DuckDB keeps empty tables for inlined rows that an ALTER has replaced; we do not.
    registered = dump["ducklake_inlined_data_tables"]
    newest = {}
    for row in registered:
        newest[row["table_id"]] = max(row["schema_version"], newest.get(row["table_id"], -1))
    for row in list(registered):
        if row["schema_version"] < newest[row["table_id"]] and not dump.get(row["table_name"]):
            registered.remove(row)
            dump.pop(row["table_name"], None)
    # One that we take off the list is dropped by a later cleanup.
    listed = {row["table_name"] for row in registered} | {"ducklake_inlined_data_tables"}
    for table in dump.keys() - listed:
        if table.startswith("ducklake_inlined_data_") and not dump[table]:
            del dump[table]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "story",
    [pytest.param("1.0", id=pytest.HIDDEN_PARAM), pytest.param("1.1", marks=pytest.mark.slow)],
    indirect=True,
)
@pytest.mark.parametrize("kept", [(), (6,), (24, 29), (18, 28, 40), (3, 11, 13, 32), (44,)])
def test_what_is_left_is_what_duckdb_leaves(story, kept):
    folder, newest = story
    versions = tuple(v for v in range(newest) if v not in kept)

    def ours(url):
        store = open_store(url)
        expire_snapshots(store, open_lake(store), ExpiryRequest(versions))
        store.close()

    def theirs(url):
        with oracle_at(url) as oracle:
            oracle.execute(f"CALL ducklake_expire_snapshots('lake', versions => {list(versions)})")

    assert _expired(folder, "ours", ours) == _expired(folder, "theirs", theirs)


class _Killed(Exception):
    """The process died after a commit."""


@pytest.fixture
def small_lots(monkeypatch):
    """Four snapshots, five rows of files, or about nine removed rows in a transaction."""
    for module, name, size in (
        *((few_rows, "ROWS", 9), (few_rows, "_LONG", inf)),
        *((sweep, "PAGE", 5), (sweep, "TABLES", 1)),
    ):
        monkeypatch.setattr(module, name, size)


def _killed_after(monkeypatch, commits):
    """Let the process die after so many commits; return a list that has an item for each."""
    real, done = Store._commit, []

    def commit(store, connection):
        real(store, connection)
        done.append(None)
        if len(done) == commits:
            raise _Killed

    monkeypatch.setattr(Store, "_commit", commit)
    return done


def _ours(folder, name, retain_last):
    def act(url):
        store = open_store(url)
        try:
            expire_snapshots(store, open_lake(store), ExpiryRequest(retain_last=retain_last))
        finally:
            store.close()

    return _expired(folder, name, act)


def _theirs(folder, newest, retain_last):
    versions = list(range(newest + 1 - retain_last))

    def act(url):
        with oracle_at(url) as oracle:
            oracle.execute(f"CALL ducklake_expire_snapshots('lake', versions => {versions})")

    return _expired(folder, "theirs", act)


def test_many_small_lots_leave_what_duckdb_leaves(story, small_lots, monkeypatch):
    folder, newest = story
    commits = _killed_after(monkeypatch, commits=0)
    assert _ours(folder, "ours", 2) == _theirs(folder, newest, 2)
    assert len(commits) == 25


@pytest.mark.sampled(1)
@pytest.mark.parametrize("commits", [14, 1, 10, 12, 16, 20, 23])
def test_after_any_lot_the_lake_is_read_and_the_next_call_continues(
    story, small_lots, monkeypatch, commits
):
    folder, newest = story

    def act(url):
        killed = url.replace("continued", "killed")
        with monkeypatch.context() as patched:
            _killed_after(patched, commits)
            store = open_store(url)
            with pytest.raises(_Killed):
                expire_snapshots(store, open_lake(store), ExpiryRequest(retain_last=2))
            store.close()
        shutil.copy(folder / "continued.db", folder / "killed.db")
        with DuckDBOracle(killed) as oracle:
            seen = [oracle.sql("SELECT * FROM t ORDER BY ALL"), oracle.sql("FROM seen")]
            left = oracle.sql("SELECT snapshot_id FROM lake.snapshots()")
            past = [oracle.sql(f"SELECT count(*) FROM t AT (VERSION => {n})") for [n] in left[-2:]]
        assert (len(seen[0]), seen[1]) == (32, [(2,)])
        assert past == [[(32,)], [(32,)]]
        store = open_store(url)
        expire_snapshots(store, open_lake(store), ExpiryRequest(retain_last=2))
        store.close()

    assert _expired(folder, "continued", act) == _theirs(folder, newest, 2)
