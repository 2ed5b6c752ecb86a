"""Whoever makes, merges or drops a branch is killed: the lake is as before, or as after.

Then `check` finds nothing, the same statement works, and DuckDB reads all sides.
"""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

import shelduck
from tests.concurrency.test_kills import files_below, run_victim
from tests.support.contested import everything
from tests.support.copies import SQLiteCopies, postgres_copies
from tests.support.lake import Lake
from tests.support.oracle import DuckDBOracle

pytestmark = pytest.mark.turns(2)

_SOURCE = [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 6)]
_NOW = [(2, 2), (3, 3), (4, 4), (5, 5), (6, 6), (8, 8)]
_BRANCH = [(1, 1, 0), (2, 2, 0), (3, 3, 0), (4, 40, 0), (5, 5, 0), (7, 7, 7)]
_MERGED = [(2, 2, 0), (3, 3, 0), (4, 40, 0), (5, 5, 0), (7, 7, 7), (8, 8, 0)]
_SIDES = {"main.gone": [(1,)], "main.t": _NOW, "b.t": _BRANCH, "b.made": [(9,)]}

# What each leaves of tables.
STATEMENTS = {
    "MERGE BRANCH b": {"main.t": _MERGED, "main.made": [(9,)], "b.t": _BRANCH, "b.made": [(9,)]},
    "CREATE BRANCH c": {**_SIDES, "c.gone": [(1,)], "c.t": _NOW},
    "CREATE BRANCH c FROM b": {**_SIDES, "c.t": _BRANCH, "c.made": [(9,)]},
    "DROP BRANCH b": {"main.gone": [(1,)], "main.t": _NOW},
}


def make(url, data):
    """A lake with a branch, on which both sides have changed other columns and rows."""
    with shelduck.connect(url, data) as lake:
        lake.set_option("data_inlining_row_limit", 0)
    with shelduck.connect(url) as lake, DuckDBOracle(url) as duck:
        duck.execute("CREATE TABLE gone (id INT); INSERT INTO gone VALUES (1)")
        duck.execute("CREATE TABLE t (id INT, v INT)")
        for first in (1, 3, 5):
            duck.execute(f"INSERT INTO t VALUES ({first}, {first}), ({first + 1}, {first + 1})")
        lake.create_branch("b")
        duck.execute("DELETE FROM t WHERE id = 1")
        duck.execute("INSERT INTO t VALUES (8, 8)")
        duck.execute("ALTER TABLE b.t ADD COLUMN w INT DEFAULT 0")
        duck.execute("INSERT INTO b.t VALUES (7, 7, 7)")
        duck.execute("UPDATE b.t SET v = 40 WHERE id = 4")
        duck.execute("DELETE FROM b.t WHERE id = 6")
        duck.execute("DROP TABLE b.gone")
        duck.execute("CREATE TABLE b.made (id INT); INSERT INTO b.made VALUES (9)")


def read(url):
    """The rows of all tables, as DuckDB reads them."""
    with DuckDBOracle(url) as duck:
        names = duck.sql(
            "SELECT schema_name || '.' || table_name FROM duckdb_tables()"
            " WHERE database_name = 'lake' AND NOT starts_with(schema_name, 'information')"
        )
        return {name: sorted(duck.sql(f"FROM {name}")) for (name,) in names}


class Killing:
    """A lake, of which each statement gets a copy."""

    def __init__(self, copies, data, victims):
        self._copies, self._victims = copies, victims
        self._url = copies.fresh()
        make(self._url, data)
        self.lake = Lake(copies.copy(self._url), None)
        self.before = everything(self.lake)
        self.lake.store.close()

    def kill(self, statement, at):
        """Whether whoever ran it was killed: a number of changes may be too high."""
        self._copies.copy(self._url, to=self.lake.url)
        order = {"url": self.lake.url, "statement": statement, "at": at}
        self._victims.stdin.write(json.dumps(order) + "\n")
        self._victims.stdin.flush()
        ended = json.loads(self._victims.stdout.readline())
        assert ended in (0, -signal.SIGKILL)
        return ended != 0

    def assert_nothing_is_there(self):
        assert everything(self.lake) == self.before
        self.lake.store.close()

    def assert_second_try_works(self, statement):
        with shelduck.connect(self.lake.url) as lake:
            lake.execute(statement)
        self.assert_all_is_there(statement)

    def assert_all_is_there(self, statement):
        assert read(self.lake.url) == STATEMENTS[statement]
        with shelduck.connect(self.lake.url) as lake:
            assert not lake.check().problems


@pytest.fixture(scope="module")
def victims():
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.concurrency.victims"],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        yield process
        process.stdin.close()


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def killing(request, tmp_path_factory, victims):
    data = f"{tmp_path_factory.mktemp('data')}/"
    if request.param == "sqlite":
        copies = SQLiteCopies(tmp_path_factory.mktemp("catalogs"))
        yield Killing(copies, data, victims)
        return
    with postgres_copies(request.getfixturevalue("postgres_server")) as copies:
        yield Killing(copies, data, victims)


@pytest.mark.slow
@pytest.mark.parametrize("statement", STATEMENTS)
def test_killed_at_any_change_it_did_nothing(statement, killing):
    for number in itertools.count(1):
        if not killing.kill(statement, number):
            break
        killing.assert_nothing_is_there()
        if number == 1:
            killing.assert_second_try_works(statement)
    assert number > 8
    killing.assert_all_is_there(statement)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("statement", STATEMENTS)
def test_killed_around_its_commit_it_did_nothing_or_all(statement, killing):
    assert killing.kill(statement, "before")
    killing.assert_nothing_is_there()
    killing.assert_second_try_works(statement)
    assert killing.kill(statement, "after")
    killing.assert_all_is_there(statement)


_FLUSHED = "shelduck.write.parquet.write.write_files"
_DELETED = "shelduck.write.deletes.delete_files.write_delete_files"
# Who puts rows of the catalog into files registers first; the third commit is that of the branch.
CREATE_POINTS = ["job", "before 1", "after 1", "before 2", "after 2", "before 3", "after 3"]
MERGE_POINTS = ["job", _DELETED, "before 1", "after 1", "before 2", "after 2"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "point"),
    [
        *(("CREATE BRANCH c", point) for point in CREATE_POINTS),
        *(("MERGE BRANCH b", point) for point in MERGE_POINTS),
    ],
)
def test_a_killed_spark_process_leaves_all_sides_as_before_or_as_after(
    statement, point, sqlite_url, data_path, spark
):
    is_merge = statement.startswith("MERGE")
    with shelduck.connect(sqlite_url, data_path, spark) as lake:
        lake.set_option("data_inlining_row_limit", 0)
        lake.sql("CREATE TABLE t (id INT, v INT)")
        lake.sql("INSERT INTO t SELECT id, id FROM range(0, 6, 1, 1)")
        lake.create_branch("b")
        if is_merge:
            # Both have changed the only file: Spark compares rows, and writes a delete file.
            lake.sql("DELETE FROM t WHERE id = 0")
            lake.sql("UPDATE b.t SET v = 50 WHERE id = 5")
        else:
            lake.set_option("data_inlining_row_limit", 10)
            lake.sql("INSERT INTO t VALUES (6, 6)")
    before, known = read(sqlite_url), files_below(data_path)

    run_victim(sqlite_url, data_path, statement, point)

    with closing(shelduck.connect(sqlite_url, spark=spark)) as lake:
        now = read(sqlite_url)
        has_landed = now != before
        if is_merge:
            after = before | {"main.t": [(1, 1), (2, 2), (3, 3), (4, 4), (5, 50)]}
        else:
            after = before | {"c.t": before["main.t"]}
        assert now in (before, after)
        assert not lake.check(rows=True).problems
        if not has_landed:
            lake.sql(statement)
        assert read(sqlite_url) == after
        lake.remove_orphans(older_than=timedelta(0))
        lake.cleanup_old_files(cleanup_all=True)
        assert read(sqlite_url) == after
        assert not lake.check(rows=True).problems
    with DuckDBOracle(sqlite_url) as duck:
        dump = duck.dump_metadata()
    named = [*dump["ducklake_data_file"], *dump["ducklake_delete_file"]]
    assert {Path(p).name for p in files_below(data_path)} == {Path(f["path"]).name for f in named}
    assert known <= files_below(data_path)
