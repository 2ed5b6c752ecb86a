"""The processes of a storm, what befalls them, and what must be left afterwards."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

import shelduck
from tests.concurrency.storm_log import LANDED, MARKERS, UNKNOWN, Story, landed_so_far, read_story
from tests.concurrency.storm_members import PLAIN, TABLES
from tests.support.ducklakepy_oracle import oracle_at
from tests.support.oracle import DuckDBOracle, at

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

STATEMENTS = (
    *(
        f"CREATE TABLE {name} (id BIGINT, owner BIGINT, v BIGINT, x STRING"
        + (")" if name == PLAIN else " DEFAULT '5')")
        for name in TABLES
    ),
    (
        "CREATE TABLE keyed (k BIGINT, g BIGINT, n BIGINT SUM) AGGREGATE KEY (k, g)"
        " ROLLUP (r (g, n))"
    ),
    "CREATE TABLE debit (id BIGINT, amount BIGINT)",
    "CREATE TABLE credit (id BIGINT, amount BIGINT)",
)
JVMS = ("spark-0", "spark-1")
_DUCKDB = "duckdb"
ROLES = (*JVMS, "insert", "alter", "upkeep", _DUCKDB)
_START, _END = 240.0, 240.0
_LONGEST_STOP = 6.0
# How much longer than it should a storm lasts on a slow machine.
_PATIENCE = 150.0


class Ship:
    """All processes: started, stopped for a while, killed, started again."""

    def __init__(self, url: str, folder: Path, roles: Sequence[str] = ROLES) -> None:
        self.url, self.folder, self.roles = url, folder, roles
        self.random = random.Random()
        self.crew: dict[str, subprocess.Popen[bytes]] = {}
        self.befell: Counter[str] = Counter()
        folder.mkdir(parents=True)

    def __enter__(self) -> Self:
        for role in self.roles:
            self._start(role)
        return self

    def __exit__(self, *_: object) -> None:
        for role in self.crew:
            self._kill(role)

    def sail(
        self,
        seconds: float,
        pause: float,
        events: Sequence[Callable[[], object]],
        due: Sequence[str],
        least: int,
    ) -> None:
        """Let all work for so long; kill or stop one after each pause, and let events happen.

        Then nobody is killed until all that is ``due`` has landed so often.
        """
        self.cast_off()
        begun = time.monotonic()
        left = [(seconds * (n + 1) / (len(events) + 1), act) for n, act in enumerate(events)]
        # A JVM takes long to start: those that have one are left alone more often.
        weights = [1 if role in JVMS else 4 for role in self.roles]
        while time.monotonic() < begun + seconds:
            time.sleep(self.random.uniform(0, 2 * pause))
            if left and time.monotonic() > begun + left[0][0]:
                left.pop(0)[1]()
                self.befell["restart of the database"] += 1
            self._befall(*self.random.choices(self.roles, weights))
        self.await_landed(due, least)
        self.come_in()

    def cast_off(self) -> None:
        """Wait until all are ready, and let them begin."""
        ready = [self.folder / f"ready-{role}" for role in self.roles]
        self._until(lambda: all(file.exists() for file in ready), _START)
        (self.folder / "go").touch()

    def come_in(self) -> None:
        """Let all end what they are doing."""
        (self.folder / "stop").touch()
        self._until(lambda: all(p.poll() is not None for p in self.crew.values()), _END)

    def await_landed(self, verbs: Sequence[str], least: int) -> None:
        """Wait until each verb has landed so often, or the machine is too slow for that."""
        end = time.monotonic() + _PATIENCE

        def is_over() -> bool:
            done = landed_so_far(self.folder)
            return all(done[v] >= least for v in verbs) or time.monotonic() > end

        self._until(is_over, _PATIENCE + _END)

    def kill(self, role: str) -> None:
        """Kill one and start it again."""
        self._kill(role)
        self._start(role)
        self.befell[f"SIGKILL of {role}"] += 1

    def _befall(self, role: str) -> None:
        self._revive_duckdb()
        assert self.crew[role].poll() is None, self._output(role)
        if self.random.random() < 0.5:
            self.kill(role)
            return
        os.killpg(self.crew[role].pid, signal.SIGSTOP)
        time.sleep(self.random.uniform(0.5, _LONGEST_STOP))
        os.killpg(self.crew[role].pid, signal.SIGCONT)
        self.befell[f"SIGSTOP of {role}"] += 1

    def _revive_duckdb(self) -> None:
        """Start DuckDB again if it aborted: its ROLLBACK fails when PostgreSQL restarts."""
        process = self.crew.get(_DUCKDB)
        if process is not None and process.poll() == -signal.SIGABRT:
            self._start(_DUCKDB)
            self.befell[f"abort of {_DUCKDB}"] += 1

    def _start(self, role: str) -> None:
        with (self.folder / f"{role}.out").open("ab") as output:
            self.crew[role] = subprocess.Popen(
                [sys.executable, "-m", "tests.concurrency.storm_crew", role, self.url, self.folder],
                cwd=Path(__file__).parents[2],
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _kill(self, role: str) -> None:
        """Nobody gets a chance to tidy up: neither the process nor its JVM."""
        with suppress(ProcessLookupError):
            os.killpg(self.crew[role].pid, signal.SIGKILL)
        self.crew[role].wait()

    def _until(self, is_so: Callable[[], bool], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not is_so():
            self._revive_duckdb()
            for role, process in self.crew.items():
                assert not process.poll(), self._output(role)
            assert time.monotonic() < deadline, "\n".join(map(self._output, self.roles))
            time.sleep(0.2)

    def _output(self, role: str) -> str:
        text = (self.folder / f"{role}.out").read_text(errors="replace")
        return f"--- {role}, which returned {self.crew[role].poll()}\n{text[-3000:]}"

    def stories(self) -> list[Story]:
        """What all writers noted."""
        return [read_story(log) for log in sorted(self.folder.glob("*.jsonl"))]


def landed(stories: Sequence[Story]) -> Counter[str]:
    """How many acts of each verb landed."""
    found: Counter[str] = Counter()
    for story in stories:
        for (verb, what), count in story.counts.items():
            found[verb] += count if what == LANDED else 0
    return found


def report(ship: Ship, stories: Sequence[Story]) -> str:
    """What landed by verb, what did not, and what befell whom."""
    ended: Counter[tuple[str, str]] = Counter()
    refusals: Counter[str] = Counter()
    for story in stories:
        ended += story.counts
        refusals += story.refusals
    lines = [f"{len(stories)} writers"]
    for verb in sorted({verb for verb, _ in ended}):
        parts = [f"{what} {n}" for (v, what), n in sorted(ended.items()) if v == verb]
        lines.append(f"  {verb}: {', '.join(parts)}")
    lines.append("refused:")
    lines += [f"  {told}: {count}" for told, count in refusals.most_common(30)]
    lines += [f"{what}: {count}" for what, count in sorted(ship.befell.items())]
    return "\n".join(lines)


def check(url: str, stories: Sequence[Story]) -> None:
    """Compare what DuckDB finds with the notes; raise AssertionError for what does not agree."""
    failures = [told for story in stories for told in story.failures]
    assert not failures, "\n".join(failures[:5])
    with oracle_at(url) as duckdb:
        for name in TABLES:
            _check_rows(duckdb, name, stories)
        check_loads(duckdb, stories)
        _check_moves(duckdb, stories)
        _check_files(duckdb)
    with shelduck.connect(url, progress=False) as lake:
        found = lake.check()
        # A worker may be killed too near the end for another to take over its job.
        assert [each for each in found.problems if each.kind != "job"] == [], str(found)


def _check_rows(duckdb: DuckDBOracle, name: str, stories: Sequence[Story]) -> None:
    """Each writer has the rows that it noted, once."""
    found: dict[int, dict[int, int]] = {}
    for owner, key, v in duckdb.sql(f"SELECT owner, id, v FROM {name}"):
        mine = found.setdefault(owner, {})
        assert key not in mine, (name, owner, key)
        mine[key] = v
    [(rows, ids)] = duckdb.sql(f"SELECT count(*), count(DISTINCT rowid) FROM {name}")
    assert rows == ids, (name, rows, ids)
    for story in stories:
        may_be = [state.get(name, {}) for state in (story.held, story.perhaps) if state is not None]
        has = found.pop(story.owner, {})
        assert has in may_be, (name, story.owner, has, may_be)
    assert not found, (name, list(found))


def check_loads(duckdb: DuckDBOracle, stories: Sequence[Story]) -> None:
    """A load is there once or not at all; each key has one row, with the sum of these loads."""
    [(rows, keys)] = duckdb.sql("SELECT count(*), count(DISTINCT k) FROM keyed")
    assert rows == keys
    held = dict(duckdb.sql("SELECT k, CAST(n AS BIGINT) FROM keyed"))
    wanted: Counter[int] = Counter()
    for story in stories:
        for marker, sums, what in story.loads:
            is_there = held.pop(marker, None)
            assert is_there in {LANDED: (1,), UNKNOWN: (1, None)}.get(what, (None,)), (marker, what)
            wanted.update(sums if is_there else {})
    assert held == dict(wanted)
    assert max(held, default=0) < MARKERS
    groups = "SELECT g, CAST(sum(n) AS BIGINT) FROM {} GROUP BY g ORDER BY g"
    assert duckdb.sql(groups.format("keyed")) == duckdb.sql(groups.format('"keyed$r"'))
    assert duckdb.sql('SELECT count(*) - count(DISTINCT g) FROM "keyed$r"') == [(0,)]


def _check_moves(duckdb: DuckDBOracle, stories: Sequence[Story]) -> None:
    """Each snapshot that is left has both halves of a transfer, or none."""
    credit = duckdb.sql("SELECT id, amount FROM credit")
    held = dict(credit)
    assert len(held) == len(credit)
    assert {(k, -n) for k, n in duckdb.sql("SELECT id, amount FROM debit")} == {*held.items()}
    for story in stories:
        for number, amount, what in story.moves:
            may_be = {LANDED: (amount,), UNKNOWN: (amount, None)}.get(what, (None,))
            assert held.pop(number, None) in may_be, (number, what)
    assert not held
    versions = duckdb.sql("SELECT snapshot_id FROM lake.snapshots() ORDER BY 1")
    # Each of the statements is a snapshot, and the last one makes the last of these tables.
    for version in [v for (v,) in versions if v >= len(STATEMENTS)][-200:]:
        both = f"SELECT amount FROM {at('debit', version)} UNION ALL FROM"
        query = f"SELECT sum(amount) FROM ({both} (SELECT amount FROM {at('credit', version)}))"
        assert duckdb.sql(query)[0][0] in (None, 0), version


def _check_files(duckdb: DuckDBOracle) -> None:
    """Every file that any snapshot names exists."""
    meta = "__ducklake_metadata_lake"
    for source in ("ducklake_data_file", "ducklake_delete_file"):
        missing = [
            path
            for (path,) in duckdb.sql(
                f"SELECT DISTINCT d.value || s.path || t.path || f.path FROM {meta}.{source} f"
                f" JOIN {meta}.ducklake_table t USING (table_id)"
                f" JOIN {meta}.ducklake_schema s USING (schema_id)"
                f" JOIN {meta}.ducklake_metadata d ON d.key = 'data_path' WHERE f.path_is_relative"
            )
            if not Path(path).exists()
        ]
        assert not missing, missing[:5]
