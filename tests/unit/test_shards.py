"""Shares of the slow tests: together they are all tests, and each takes about as long."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tomllib
from contextlib import nullcontext
from itertools import chain
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.conftest import PLAIN
from tests.support import cover, lengths, shards
from tests.support.cover import ROOT


@pytest.mark.parametrize("minutes", [0, 30, 75, 400])
def test_shares_have_each_group_once_and_the_whole_line_of_main_tests(minutes):
    found = shards.shares(8, minutes)

    names = [group.name for share in found for group in share.groups]
    due = (group for group in shards.GROUPS if shards.is_due(0, group.rounds))
    assert sorted(names) == sorted(group.name for group in due)
    assert [share.end for share in found[:-1]] == [share.begin for share in found[1:]]
    assert (found[0].begin, found[-1].end) == (0.0, 1.0)


def test_shares_take_about_as_long():
    taken = [
        shards.minutes_of(share.groups) + 75 * (share.end - share.begin)
        for share in shards.shares(8, 75)
    ]

    assert max(taken) - min(taken) < 0.01


def test_every_test_is_in_one_stretch(monkeypatch):
    monkeypatch.setattr(shards, "seconds", lambda: {"tests/a.py": {"test_1": 7.0, "<base>": 3.0}})
    ids = ["tests/a.py::test_1", *(f"tests/b.py::test_2[{n}]" for n in range(9))]
    config = SimpleNamespace(hook=SimpleNamespace(pytest_deselected=lambda items: None))
    taken = []
    for share in shards.shares(8, 75):
        items = [SimpleNamespace(nodeid=n, get_closest_marker=lambda _: None) for n in ids]
        stretch = shards.Stretch(share.begin, share.end)
        stretch.pytest_collection_modifyitems(config, items)
        taken += [item.nodeid for item in items]

    assert taken == ids


def test_rounds_take_the_tests_of_a_module_in_turns(monkeypatch):
    mark = SimpleNamespace(args=(2,))
    ids = [f"tests/a.py::test_1[{n}]" for n in range(5)]
    config = SimpleNamespace(hook=SimpleNamespace(pytest_deselected=lambda items: None))
    taken = []
    for commits in (12, 24, 35):
        monkeypatch.setattr(lengths, "commits", lambda commits=commits: commits)
        items = [SimpleNamespace(nodeid=n, get_closest_marker=lambda _: mark) for n in ids]
        shards.Stretch(0, 1).pytest_collection_modifyitems(config, items)
        taken.append([item.nodeid for item in items])

    assert taken == [ids[1::2], ids[::2], ids[::2]]
    names = [g.name for share in shards.shares(8, 75) for g in share.groups]
    assert "oldest" in names
    monkeypatch.setattr(lengths, "commits", lambda: 12)
    assert "oldest" not in [g.name for share in shards.shares(8, 75) for g in share.groups]


@pytest.mark.parametrize(
    ("place", "marks", "runs"),
    [
        ("tests/stories/test_a.py::test_1", "slow connect", True),
        ("tests/stories/test_a.py::test_1", "connect", True),
        ("tests/spark/test_a.py::test_1", "slow connect", False),
        ("tests/object_store/test_a.py::test_1", "slow s3", True),
        ("tests/spark/test_a.py::test_1", "slow s3", False),
        ("tests/object_store/test_a.py::test_1", "slow s3 soak", True),
        ("tests/object_store/test_a.py::test_1", "slow readers s3", True),
    ],
)
def test_a_slow_test_that_no_share_runs_is_refused(place, marks, runs):
    marked = [SimpleNamespace(name=name) for name in marks.split()]
    item = SimpleNamespace(nodeid=place, iter_markers=lambda: marked)

    with nullcontext() if runs else pytest.raises(pytest.UsageError, match=place):
        shards.Stretch(0, 1).pytest_deselected([item])


@pytest.mark.parametrize("size", [1, 7, 30, 100])
def test_all_seeds_run_in_turns_of_as_many_commits_as_there_are_shares(monkeypatch, size):
    monkeypatch.setattr(lengths, "SOAKS", False)
    rounds = -(-30 // size)
    seen = []
    for commits in range(rounds * lengths.SHARES):
        monkeypatch.setattr(lengths, "commits", lambda commits=commits: commits)
        [taken] = lengths.turns(range(60, 90), size)
        seen.append([*taken])

    for share in range(lengths.SHARES):
        assert [*chain(*seen[share :: lengths.SHARES])] == [*range(60, 90)]


def test_a_soak_takes_all_seeds_at_once(monkeypatch):
    monkeypatch.setattr(lengths, "SOAKS", True)

    assert lengths.turns(range(10), 4) == [range(4), range(4, 8), range(8, 10)]
    assert [lengths.shown(seeds) for seeds in lengths.turns(range(10), 4)] == ["0-3", "4-7", "8-9"]


def test_a_number_of_commits_brings_seeds_back(monkeypatch):
    monkeypatch.setenv("SHELDUCK_TEST_COMMITS", "961")
    lengths.commits.cache_clear()
    told = lengths.commits()
    lengths.commits.cache_clear()

    assert told == 961


def test_a_soak_runs_every_test_of_many_seeds():
    told = subprocess.check_output(["make", "-n", "soak"], cwd=ROOT, text=True)
    places = re.findall(r"tests/[\w/.]+", told)

    using = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("test_*.py")
        if "from tests.support.lengths import" in path.read_text() and path != Path(__file__)
    ]
    assert [path for path in using if not path.startswith(tuple(places))] == []
    assert len(using) > 10


def test_make_test_runs_each_fast_test_either_with_the_jvms_or_beside_them():
    makefile = (ROOT / "Makefile").read_text()
    pytest_ = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]

    assert f"\nFAST := {pytest_['addopts'][-1]}\n" in makefile
    folders = " ".join(folder.split("/")[1] for folder in PLAIN)
    assert f"\nPLAIN := $(addprefix tests/,{folders})\n" in makefile
    assert re.findall(r'-m "\$\(FAST\) and (.*)"', makefile) == ["not plain", "plain"]


def test_seconds_of_cases_and_of_what_a_module_shares_are_written(tmp_path, monkeypatch):
    told = tmp_path / "seconds.json"
    told.write_text('{"tests/a.py": {"test_1": 9.0, "test_2": 1.0}, "tests/b.py": {"test_1": 3.0}}')
    times = {
        "tests/a.py::test_1[x]": 2.0,
        "tests/a.py::test_1[y]": 4.0,
        "tests/a.py::test_1[x]::<other>": 7.0,
        "tests/a.py::<base>": 1.5,
        "::<spark>": 8.0,
        "between": 5.0,
    }
    recorded = tmp_path / "recorded"
    recorded.mkdir()
    (recorded / "only-1.json").write_text(json.dumps({"costs": {}, "times": times, "guards": []}))
    monkeypatch.setattr(cover, "SECONDS", told)
    monkeypatch.setattr(cover, "LEFT_OUT", tmp_path / "left_out.txt")

    cover.main(str(recorded))

    assert json.loads(told.read_text()) == {
        "tests/a.py": {"test_1": 3.0, "test_2": 1.0, "<base>": 1.5},
        "tests/b.py": {"test_1": 3.0},
    }
    assert not (tmp_path / "left_out.txt").exists()


def ci(folder, make, **environment):
    """The output of `.ci/run` in a folder outside of git, with a stand-in for `make`."""
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", folder / ".ci")
    stand_in = folder / "bin" / "make"
    stand_in.parent.mkdir()
    stand_in.write_text(f"#!/bin/sh\n{make}\n")
    stand_in.chmod(0o755)
    path = {"PATH": f"{stand_in.parent}:{os.environ['PATH']}", "GIT_CEILING_DIRECTORIES": "/"}
    told = {k: v for k, v in os.environ.items() if k != "SHELDUCK_TEST_COMMITS"}
    return subprocess.run(
        ["bash", ".ci/run"],
        cwd=folder,
        env=told | path | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_ci_takes_the_share_whose_turn_it_is_and_adds_up_what_passed(tmp_path):
    done = ci(
        tmp_path,
        'echo "make $* of $SHELDUCK_TEST_COMMITS"; echo "== 4 passed, 1 skipped in 2.0s =="',
        SHELDUCK_TEST_COMMITS="967",
    )

    lines = [line for line in done.stdout.splitlines() if "==" not in line]
    assert lines[0].startswith(
        "share 8/12 of the slow tests; again: make test-shard N=8/12 SHELDUCK_TEST_COMMITS=967"
    )
    assert [*map(str.split, lines[1:4])] == [
        ["make", "check", "of", "967"],
        ["make", "test", "of", "967"],
        ["make", "test-shard", "N=8/12", "of", "967"],
    ]
    assert lines[-1].startswith("8 passed, 0 failed, 2 skipped in ")
    assert done.returncode == 0


def test_ci_without_a_history_takes_the_first_share(tmp_path):
    done = ci(tmp_path, 'echo "1 failed, 2 passed in 1.0s"; [ "$1" != test ]')

    assert done.stdout.startswith("share 1/12 of the slow tests")
    assert done.stdout.splitlines()[-1].startswith("4 passed, 2 failed, 0 skipped in ")
    assert done.returncode == 1


def test_ci_in_a_shallow_checkout_takes_a_share_by_the_name_of_the_commit(tmp_path):
    whole, checkout = tmp_path / "whole", tmp_path / "checkout"
    me = ("-c", "user.name=me", "-c", "user.email=me@example.com")
    subprocess.run(["git", "init", "-q", whole], check=True)
    for message in ("one", "two"):
        made = ["git", *me, "commit", "-q", "--allow-empty", "-m", message]
        subprocess.run(made, cwd=whole, check=True)
    subprocess.run(["git", "clone", "-q", "--depth=1", f"file://{whole}", checkout], check=True)
    name = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=checkout, text=True)

    done = ci(checkout, "echo 1 passed in 1.0s")

    assert done.stdout.startswith(f"share {int(name[:6], 16) % 12 + 1}/12 of the slow tests")
