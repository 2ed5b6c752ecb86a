"""Branches are made, merged and dropped while others commit: at fixed steps, and in threads."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

import shelduck
from shelduck.branches.merge import BranchMerge
from shelduck.errors import Conflict, NotFound
from shelduck.lake.unit import UnitOfWork
from tests.support.meanwhile import once_before
from tests.support.oracle import DuckDBOracle

pytestmark = pytest.mark.databases("sqlite", "postgres")

_OWN = [(1,), (2,)]
_MERGED = [*_OWN, (7,)]
_DDL = ("ALTER TABLE {} ADD COLUMN x INT", "DROP TABLE {}")


@pytest.fixture
def lake(lake_url, data_path):
    """A lake with two branches of `t`, each with a row."""
    with shelduck.connect(lake_url, data_path) as made:
        made.set_option("data_inlining_row_limit", 0)
        with DuckDBOracle(lake_url) as duck:
            duck.execute("CREATE TABLE t (id INT)")
            duck.execute("INSERT INTO t VALUES (1), (2)")
            for name, row in (("b", 7), ("c", 8)):
                made.create_branch(name)
                duck.execute(f"INSERT INTO {name}.t VALUES ({row})")
        yield made


@pytest.fixture
def other(lake, lake_url):
    """Another user of the lake."""
    with shelduck.connect(lake_url) as found:
        yield found


@pytest.fixture
def duck(lake, lake_url):
    with DuckDBOracle(lake_url) as oracle:
        yield oracle


def ids(duck, name="t"):
    return sorted(duck.sql(f"SELECT id FROM {name}"))


# What another user does in the middle of a merge of `b`, and the rows of `t` then.
BESIDE_MERGES = {
    "MERGE BRANCH b": _MERGED,
    "MERGE BRANCH c": [*_MERGED, (8,)],
    "CREATE BRANCH d": _MERGED,
    "CREATE BRANCH d FROM b": _MERGED,
    "DROP BRANCH c": _MERGED,
    "CREATE TABLE clone SHALLOW CLONE t": _MERGED,
    "ALTER TABLE t ADD COLUMN x INT": _MERGED,
    "ALTER TABLE b.t ADD COLUMN x INT": _MERGED,
    "COMMENT ON TABLE t IS 'seen'": _MERGED,
    "CREATE TABLE b.more (id INT)": _MERGED,
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("statement", BESIDE_MERGES)
def test_a_merge_goes_on_beside_others(lake, other, duck, statement, monkeypatch):
    once_before(monkeypatch, UnitOfWork, "commit", partial(other.execute, statement))
    lake.merge_branch("b")
    assert ids(duck) == BESIDE_MERGES[statement]
    lake.merge_branch("b")
    assert ids(duck) == BESIDE_MERGES[statement]
    assert not lake.check().problems


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("DROP BRANCH b", "branch 'b' does not exist"),
        ("DROP TABLE t", "main.t"),
        ("CREATE OR REPLACE TABLE t (id INT)", "main.t"),
    ],
)
def test_a_merge_of_what_goes_meanwhile_changes_nothing(lake, duck, statement, told, monkeypatch):
    with shelduck.connect(lake._state.store.where) as other:
        _merge_beside(lake, partial(other.execute, statement), told, monkeypatch)
    assert duck.snapshot() == 7
    assert not lake.check().problems


def _merge_beside(lake, act, told, monkeypatch):
    found = once_before(monkeypatch, UnitOfWork, "commit", act)
    with pytest.raises((Conflict, NotFound), match=told):
        lake.merge_branch("b")
    assert len(found) == 1


# What DuckDB does in the middle of CREATE BRANCH d, and the rows of `d.t` and `t` then.
BESIDE_BRANCHES = {
    "INSERT INTO t VALUES (9)": [*_OWN, (9,)],
    "DELETE FROM t WHERE id = 2": [(1,)],
    "ALTER TABLE t ALTER id TYPE BIGINT": _OWN,
    "ALTER TABLE t ADD COLUMN x INT": _OWN,
    "CALL ducklake_merge_adjacent_files('lake')": _OWN,
    "DROP SCHEMA c CASCADE": _OWN,
    "INSERT INTO c.t VALUES (9)": _OWN,
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("statement", BESIDE_BRANCHES)
def test_a_branch_is_made_beside_writers(lake, duck, statement, monkeypatch):
    once_before(monkeypatch, UnitOfWork, "commit", partial(duck.execute, statement))
    lake.create_branch("d")
    # It is as of the snapshot that it names, and a merge takes nothing back.
    [base] = [branch.base for branch in lake.branches() if branch.name == "d"]
    assert duck.rows("d.t") == duck.rows("t", version=base)
    assert duck.columns("d.t") == duck.columns("t", version=base)
    before = duck.snapshot()
    lake.merge_branch("d")
    assert duck.snapshot() == before
    assert ids(duck) == BESIDE_BRANCHES[statement]
    assert not lake.check().problems


@pytest.mark.sampled(1)
@pytest.mark.parametrize("change", ["INSERT INTO {} VALUES (9)", *_DDL])
def test_a_branch_is_dropped_beside_writers(lake, duck, change, monkeypatch):
    once_before(monkeypatch, UnitOfWork, "commit", partial(duck.execute, change.format("b.t")))
    try:
        lake.drop_branch("b")
    except Conflict:
        assert "b" in lake.schemas()
        lake.drop_branch("b")
    assert lake.schemas() == ["main", "c"]
    assert ids(duck) == _OWN
    assert not lake.check().problems


def test_a_branch_with_a_new_table_is_not_dropped_unseen(lake, duck, monkeypatch):
    once_before(
        monkeypatch, UnitOfWork, "commit", partial(duck.execute, "CREATE TABLE b.more (id INT)")
    )
    lake.drop_branch("b")
    assert lake.schemas() == ["main", "c"]
    assert not lake.check().problems


def test_branches_are_merged_by_many_at_once(lake, duck, lake_url):
    names = ["b", "c", "d", "e"]
    for number, name in enumerate(names[2:], 9):
        lake.create_branch(name)
        duck.execute(f"INSERT INTO {name}.t VALUES ({number})")
        duck.execute(f"ALTER TABLE {name}.t ADD COLUMN {name} INT")

    def merge(name):
        with shelduck.connect(lake_url) as own:
            return own.merge_branch(name).snapshot

    with ThreadPoolExecutor(8) as pool:
        found = [*pool.map(merge, 2 * names)]
    assert len({*found}) == 4
    assert ids(duck) == [(1,), (2,), (7,), (8,), (9,), (10,)]
    assert not lake.check().problems


_MERGE = """
import sys, shelduck
with shelduck.connect(sys.argv[1]) as lake:
    for name in sys.argv[2:]:
        lake.merge_branch(name)
"""


@pytest.mark.slow
def test_branches_are_merged_by_processes_at_once(lake, duck, lake_url):
    orders = [("b", "c"), ("c", "b"), ("b", "b"), ("c", "c")]
    for turn in range(3):
        for name in ("b", "c"):
            duck.execute(f"INSERT INTO {name}.t VALUES ({100 + turn})")
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", _MERGE, lake_url, *names], cwd=Path(__file__).parents[2]
            )
            for names in orders
        ]
        assert [process.wait(timeout=300) for process in processes] == [0] * 4
    added = sorted([(100 + turn,) for turn in range(3)] * 2)
    assert ids(duck) == [*_MERGED, (8,), *added]
    assert not lake.check().problems


def test_a_merge_looks_again_at_what_it_staged(lake, other, duck, monkeypatch):
    """The other merge of the same branch is between look and stage."""
    once_before(monkeypatch, BranchMerge, "stage", partial(other.merge_branch, "b"))
    lake.merge_branch("b")
    assert ids(duck) == _MERGED
    assert not lake.check().problems
