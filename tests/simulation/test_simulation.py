"""The simulation finds nothing in the product, and finds each fault that is put into it.

It runs in processes of its own, whose hashes do not depend on chance.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.put_back import FAULTS, MENDED
from tests.support.lengths import shown, turns

_ROOT = Path(__file__).parents[2]
_FIRST, _LAST = 26, 10_000
# Those that the fewest seeds find come first.
_FAULTS = sorted(FAULTS, key=lambda name: FAULTS[name].within)


def start(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.simulation", *map(str, arguments)],
        cwd=_ROOT,
        env=os.environ | {"PYTHONHASHSEED": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def result(process: subprocess.Popen[str]) -> str:
    out, error = process.communicate()
    assert process.returncode == 0, out + error
    return out


@pytest.mark.parametrize("last", [4, pytest.param(_FIRST - 1, marks=pytest.mark.slow)])
def test_seeds_keep_all_promises_and_one_is_replayed_step_by_step(last):
    both, again = start(7, ",", 1, last), start(7)

    trace, _, told = result(both).removesuffix("\n").rpartition("\n")
    assert f"{last} seeds, 0 failed" in told
    assert f"{trace}\n" == result(again)
    assert "BEGIN IMMEDIATE" in trace
    assert "THE END" in trace


@pytest.mark.slow
@pytest.mark.parametrize("seeds", turns(range(_FIRST, _LAST + 1), 60), ids=shown)
def test_ten_thousand_seeds_keep_all_promises(seeds):
    assert ", 0 failed, " in result(start(seeds[0], seeds[-1]))


@pytest.mark.slow
@pytest.mark.parametrize("seeds", turns(range(1, _LAST + 1), 60), ids=shown)
def test_seeds_with_branches_keep_all_promises(seeds):
    assert ", 0 failed, " in result(start("--branches", seeds[0], seeds[-1]))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", _FAULTS)
def test_a_fault_that_is_put_in_is_found(name):
    assert "found by seed" in result(start("--with", name, 1, FAULTS[name].within))


def test_faults_of_the_history_are_among_them():
    assert len(MENDED) >= 5
