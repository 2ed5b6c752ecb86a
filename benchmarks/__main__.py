"""Measure and print: `python -m benchmarks [names] [--quick]`."""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from benchmarks import (
    alter,
    append,
    attach,
    branches,
    carry,
    commits,
    compaction,
    inlined,
    jobs,
    keys,
    loads,
    long_session,
    materialized,
    moult,
    opening,
    processes,
    proven,
    refused,
    rows,
    scale,
    scan,
    sealed,
    statements,
    storage,
    storm,
    together,
    ui,
    undo,
    wide,
)
from benchmarks.harness import duration
from benchmarks.peers import measuring

BENCHMARKS = {
    "alter": alter.run,
    "statements": statements.run,
    "scan": scan.run,
    "sealed": sealed.run,
    "append": append.run,
    "open": opening.run,
    "attach": attach.run,
    "rows": rows.run,
    "compaction": compaction.run,
    "jobs": jobs.run,
    "moult": moult.run,
    "branches": branches.run,
    "carry": carry.run,
    "materialized": materialized.run,
    "undo": undo.run,
    "refused": refused.run,
    "proven": proven.run,
    "storage": storage.run,
    "keys": keys.run,
    "loads": loads.run,
    "commits": commits.run,
    "inlined": inlined.run,
    "together": together.run,
    "processes": processes.run,
    "storm": storm.run,
    "ui": ui.run,
    "wide": wide.run,
    "scale": scale.run,
    "long": long_session.run,
    "peers": measuring.run,
    "more": measuring.run_more,
}
# Of these the page has targets only.
BRIEF = (
    *("attach", "rows", "compaction", "refused", "proven", "storage", "keys", "loads", "inlined"),
    *("together", "processes", "sealed", "statements", "ui", "wide", "long", "branches", "carry"),
    "materialized",
)
# They need Spark 4.1 and JARs, so they run when they are named: `make bench-peers`.
NAMED = ("peers", "more")
RESULTS = Path(__file__).parents[1] / "docs" / "benchmarks.md"
_PACKAGES = ("pyspark", "duckdb", "duckdb-extension-ducklake", "sqlalchemy", "psycopg", "pyarrow")
_LEAD = """# Benchmarks

`make bench` writes this page, and `python -m benchmarks NAME --keep` one section of it. Ratios
hold; seconds are this machine's. What is compared runs in turns in the same process; a time is the
median of several runs after a warm-up. Other rows, and targets that are met, are printed.

Machine, unless a section names another: {machine}.
"""
_MACHINE = re.compile(r"^Machine, unless a section names another: (.+)\.$", re.MULTILINE)
_ALSO = "Also measured"
_ALSO_HEAD = """## Also measured

The first column names the benchmark to run.

| name | target | seen | met | measured |
| --- | --- | --- | --- | --- |
"""
_SECTION = re.compile(r"^## (.+?)\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def main() -> None:
    asked = _arguments()
    # The first section that is kept already changes the page.
    commit = asked.commit or _commit()
    usual = [name for name in BENCHMARKS if name not in NAMED]
    names = asked.names or usual
    if len(names) > 1:
        _apart(names, commit, quick=asked.quick, keep=asked.keep or names == usual)
        return
    for name in names:
        start, measured = time.perf_counter(), _measured(commit)
        found = BENCHMARKS[name](quick=asked.quick)
        took = f"({name} took {duration(time.perf_counter() - start)})\n"
        print(found.markdown(whole=True), measured, took, sep="\n", flush=True)
        if not asked.quick and asked.keep:
            if name in BRIEF:
                _keep_verdicts(name, found.verdicts(name, f"{_now():%Y-%m-%d}, {commit}"))
            else:
                _keep(found.title, f"{found.markdown()}\n{measured}")
            print(f"written to {RESULTS}")


def _apart(names: list[str], commit: str, *, quick: bool, keep: bool) -> None:
    """Measure each in a process of its own, so that none finds what another left in memory."""
    print(_LEAD.format(machine=_machine()), flush=True)
    flags = [*(["--quick"] if quick else []), *(["--keep"] if keep else [])]
    for name in names:
        asked = ["-W", "ignore", "-m", "benchmarks", name, "--commit", commit, *flags]
        subprocess.run([sys.executable, *asked], check=True)


def _keep(title: str, text: str) -> None:
    """Put a section into the page, in the place of the one that it has under that title."""
    page = _page()
    sections = {found[1]: found[0] for found in _SECTION.finditer(page)}
    sections[title] = text
    parts = [
        _LEAD.format(machine=_machine_of(page)),
        *(section.rstrip() + "\n" for section in sections.values()),
    ]
    RESULTS.write_text("\n".join(parts), encoding="utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    listed = f"of {', '.join(BENCHMARKS)}; without names all but {', '.join(NAMED)}"
    parser.add_argument("names", nargs="*", help=listed)
    parser.add_argument(
        "--quick", action="store_true", help="small sizes: whether it runs, not how fast"
    )
    parser.add_argument(
        "--keep", action="store_true", help="write what was measured into docs/benchmarks.md"
    )
    parser.add_argument(
        "--commit", help="the commit that the page names; git tells it if you do not"
    )
    asked = parser.parse_args()
    unknown = sorted(set(asked.names) - set(BENCHMARKS))
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    return asked


def _keep_verdicts(name: str, rows: list[str]) -> None:
    """Put rows into the table of the page, in the place of those of this name."""
    known = next((found[0] for found in _SECTION.finditer(_page()) if found[1] == _ALSO), "")
    lines = [line for line in known.removeprefix(_ALSO_HEAD).splitlines() if line]
    others = [line for line in lines if not line.startswith(f"| {name} |")]
    _keep(_ALSO, _ALSO_HEAD + "\n".join([*others, *rows]) + "\n")


def _page() -> str:
    return RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else ""


def _machine_of(page: str) -> str:
    """The machine that the head of the page names; that of a new page is this one."""
    found = _MACHINE.search(page)
    return found[1] if found else _machine()


def _measured(commit: str) -> str:
    """When a section was measured, and where, if that is not the machine of the page."""
    told = f"Measured {_now():%Y-%m-%d}, {commit}"
    return f"{told}.\n" if _machine() == _machine_of(_page()) else f"{told}; {_machine()}.\n"


def _now() -> datetime:
    return datetime.now(UTC)


def _machine() -> str:
    pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in _PACKAGES)
    cores = f"{os.cpu_count()} cores ({platform.machine()})"
    memory = f"{pages * page / 2**30:.0f} GB memory"
    where = f"{cores}, {memory}, {platform.system()}"
    return f"{where}; Python {platform.python_version()}, {versions}"


def _commit() -> str:
    asked = ["git", "-C", str(RESULTS.parent), "describe", "--always", "--dirty"]
    answer = subprocess.run(asked, capture_output=True, text=True, check=False)
    return answer.stdout.strip() or "unknown"


if __name__ == "__main__":
    main()
