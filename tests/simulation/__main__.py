"""Run seeds: ``SEED`` with its trace, ``FIRST LAST``, or ``--with FAULT FIRST LAST``.

``--branches`` before one of the first two adds a client who branches and merges.
Several such commands may follow each other, with a comma between them.
"""

from __future__ import annotations

import os
import re
import sys
import time
import traceback
import warnings
from collections import Counter
from contextlib import ExitStack
from itertools import groupby

from tests.simulation.put_back import FAULTS
from tests.simulation.run import Bench, bench


def main(arguments: list[str]) -> int:
    """Run all commands; return 1 if a seed fails, or if a fault is not found."""
    # A rollup that a fault leaves stale is a warning.
    warnings.simplefilter("ignore")
    commands = groupby(arguments, lambda argument: argument == ",")
    return max([_do([*command]) for is_comma, command in commands if not is_comma])


def _do(arguments: list[str]) -> int:
    with bench() as runs:
        if arguments[0] == "--branches":
            runs.branches, arguments = True, arguments[1:]
        if arguments[0] == "--with":
            names = FAULTS if arguments[1] == "all" else [arguments[1]]
            seeds = range(int(arguments[2]), int(arguments[3]) + 1)
            return max(_find(runs, name, seeds) for name in names)
        if len(arguments) == 1:
            return _show(runs, int(arguments[0]))
        return _run(runs, range(int(arguments[0]), int(arguments[1]) + 1))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _show(runs: Bench, seed: int) -> int:
    """Print the trace of a seed."""
    try:
        runs.run(seed)
    except BaseException as error:  # noqa: BLE001 - whatever it is, the seed has failed
        traceback.print_exception(error)
        failed = 1
    else:
        failed = 0
    for line in runs.current().world.trace:
        _say(line.replace("\n", " ").replace(str(runs.folder), ""))
    return failed


def _run(runs: Bench, seeds: range) -> int:
    """Run seeds and print those that fail."""
    failed, steps, began = 0, 0, time.process_time()
    struck: Counter[str] = Counter()
    for seed in seeds:
        try:
            runs.run(seed)
        except Exception as error:  # noqa: BLE001 - whatever it is, the seed has failed
            failed += 1
            _say(f"seed {seed}: {type(error).__name__}: {error}")
        steps += runs.current().world.steps
        struck.update(runs.current().faults.struck)
    spent = time.process_time() - began
    told = ", ".join(f"{n} {what}" for what, n in sorted(struck.items()))
    _say(f"{len(seeds)} seeds, {failed} failed, {steps} steps, {spent:.1f} s of CPU; {told}")
    return min(1, failed)


def _find(runs: Bench, name: str, seeds: range) -> int:
    """Run seeds with a fault until one of them finds it."""
    fault = FAULTS[name]
    # How soon a fault is found was counted without migrations.
    runs.migrates = False
    others = []
    with ExitStack() as stack:
        stack.enter_context(fault.present())
        for seed in seeds:
            try:
                runs.run(seed)
            except Exception as error:  # noqa: BLE001 - whatever it is, the seed has failed
                if re.search(fault.found_as, str(error)):
                    _say(f"{name}: {fault.what}: found by seed {seed}: {error}")
                    return 0
                others.append(f"seed {seed}: {type(error).__name__}: {error}")
    _say(f"{name}: {fault.what}: not found in {len(seeds)} seeds, but {others[:3]}")
    return 1


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of sets of texts must be the same in every run.
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]])
    sys.exit(main(sys.argv[1:]))
