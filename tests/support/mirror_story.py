"""The driver of the mirror story: tells clients what to do, alone or two at once, and checks.

After every step DuckDB reads what the mirror says; every ten steps Shelduck does too, at the newest
snapshot and at some that were remembered. On DuckLake 1.1, ducklakepy reads, and a third process of
Shelduck gets the statements that DuckDB gets otherwise.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from typing import TYPE_CHECKING, Self

import psycopg

import shelduck
from tests.support.ducklakepy_oracle import oracle_at
from tests.support.mirror import Column, Mirror, in_order
from tests.support.mirror_acts import Act, Author
from tests.support.mirror_client import TRANSLATING, Client
from tests.support.mirror_looks import ColumnIds, by_duckdb
from tests.support.mirror_races import LOST, WORKERS, Races, engine
from tests.support.oracle import at
from tests.support.time_limit import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.mirror import Cell

_CHECK_ALL = 10
_REMEMBER = 12
_MOST_REMEMBERED = 4
_TOLD_ON_FAILURE = 15
# Not 0: an ALTER of DuckDB 1.5.5 makes no table for inlined rows then, and a session of it that
# inlines again puts rows into the table of the columns before.
_FEWEST_INLINED = 1
_SNAPSHOTS = "SELECT snapshot_id FROM ducklake_snapshots('lake') ORDER BY 1"
_ENDED = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND pid <> pg_backend_pid() AND state IN ('active', 'idle in transaction')"
)


class Story:
    """One run of the story; `told` are its last steps."""

    def __init__(self, seed: int, url: str, folder: Path, version: str = "1.0") -> None:
        self.seed, self.url, self.folder, self.version = seed, url, folder, version
        self.dice = random.Random(seed)
        self.author = Author(self.dice)
        self.races = Races(self.author)
        self.steps = 0
        self.told: list[str] = []
        self.counts: Counter[str] = Counter()
        self._past: dict[int, tuple[list[tuple[str, str]], list[tuple[Cell, ...]]]] = {}
        self._job: tuple[int, Act] | None = None
        self._started = 0
        self._begin()
        self._clients = {name: self._start("shelduck") for name in WORKERS}
        self._clients["duckdb"] = self._start("duckdb")
        self._oracle = oracle_at(url)
        self._ids = ColumnIds()

    @property
    def mirror(self) -> Mirror:
        return self.author.mirror

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients.values():
            client.kill()
        self._oracle.close()

    def run(self, steps: int, rows: float = 76) -> None:
        """So many steps, of 100 about so many on rows alone, and a last look at everything."""
        kinds: list[tuple[Callable[[], None], float]] = [
            (self.rows, rows),
            (self.alter, 5),
            (self.race, 7),
            (self.crossing, 2),
            (self.heavy, 1.5),
            (self.upkeep, 5),
            (self.kill, 1),
            (self.restart, 0.5),
            (self.option, 2),
        ]
        acts, weights = zip(*kinds, strict=True)
        try:
            while self.steps < steps:
                self.steps += 1
                [act] = self.dice.choices(acts, weights)
                self.counts[act.__name__] += 1
                act()
                self.check()
            self.finish()
        except Exception as error:
            last = "\n".join(self.told[-_TOLD_ON_FAILURE:])
            raise AssertionError(
                f"seed {self.seed}, step {self.steps} of {steps}: {error}\nthe last steps:\n{last}"
            ) from error

    # Steps.

    def rows(self) -> None:
        name = self._any()
        self._carry_out(name, self.author.rows(engine(name)))

    def alter(self) -> None:
        name = self._any()
        self._carry_out(name, self.author.alter(engine(name)))

    def option(self) -> None:
        value = self.dice.choice([_FEWEST_INLINED, 50])
        command = {"do": "option", "name": "data_inlining_row_limit", "value": value}
        self._carry_out(self.races.worker(), Act(command, []))

    def heavy(self) -> None:
        """A job that is waited for, or that somebody else works on some steps later."""
        if self._job is not None:
            self._finish_job(self.races.worker())
            return
        act = self.author.heavy()
        if act is None:
            return
        name = self.races.worker()
        if act.error is None and self.dice.random() < 0.5:
            command = act.command | {"wait": False}
            self._note(name, Act(command, []))
            number = self._clients[name].ask(command)
            self._open(number, act)
        else:
            self._carry_out(name, act)

    def upkeep(self) -> None:
        name = self._any()
        form = self.dice.choice(["tend", "tend", "tend", "expire", "orphans"])
        if form == "expire":
            self._expire(name)
        elif form == "orphans":
            self._carry_out(self.races.worker(), Act({"do": "remove_orphans"}, []))
        else:
            self._carry_out(name, self.races.upkeep(name))

    def restart(self) -> None:
        """DuckDB's process ends, and another one comes that inlines as it likes."""
        self._note("duckdb", None, "restart")
        self._clients["duckdb"].close()
        limits = self.dice.choice([[], [], [str(_FEWEST_INLINED)], ["50"]])
        self._clients["duckdb"] = self._start("duckdb", *limits)

    def race(self) -> None:
        """Two acts at once. Each is done, or nothing of it has happened; either may be first."""
        what, acts = self.races.draw()
        for name, (act, _) in acts.items():
            self._note(name, act, f"at once, {what}:")
        for name, (act, _) in acts.items():
            time.sleep(self.dice.choice([0, 0.05, 0.2, 0.5]))
            self._clients[name].send(act.command)
        for name, (act, allowed) in acts.items():
            answer = self._clients[name].answer()
            outcome = answer.get("error", "done")
            self.told[-1] += f"\n   {name}: {outcome}"
            self.counts[f"{what}, {engine(name)}: {outcome}"] += 1
            if "done" in answer:
                act.apply(self.mirror)
            else:
                assert outcome in allowed, f"{name} must not fail so: {answer['text']}"
                assert outcome != LOST or "conflict" in answer["text"].lower(), answer["text"]

    def crossing(self) -> None:
        """An append is held back, planned and not written, while others change the table."""
        append, (one, other) = self.author.append(), self.races.both()
        planned, go = self.folder / f"planned-{self.steps}", self.folder / f"go-{self.steps}"
        held = append.command | {"planned": str(planned), "go": str(go)}
        self._note(one, Act(held, []))
        self._clients[one].send(held)
        self._wait_for(planned.exists)
        for _ in range(self.dice.choice([1, 1, 2, 3])):
            name = self.dice.choice([other, "duckdb"])
            self._carry_out(name, self.races.meanwhile(name))
        go.touch()
        answer = self._clients[one].answer()
        is_fit = all(self.mirror.has(identity) for identity in append.names)
        self.counts[f"crossing: {answer.get('error', 'done')}"] += 1
        if "done" in answer:
            assert is_fit, "an append landed whose column was dropped"
            append.apply(self.mirror)
        else:
            assert (answer["error"], is_fit) == ("Conflict", False), answer["text"]

    def kill(self) -> None:
        """A process dies in the middle of a step, which has happened as a whole or not at all."""
        victim, heir = self.races.both()
        draws: list[Callable[[], Act | None]] = [
            *[self.author.append, lambda: self.author.rows("shelduck")] * 2,
            lambda: self.author.alter("shelduck"),
            lambda: Act({"do": "tend", "verb": "rewrite"}, []),
            *[lambda: self.author.heavy(must_work=True)] * 2,
        ]
        act = self.dice.choice(draws)()
        if act is None or (act.command["do"] == "heavy" and self._job is not None):
            return
        self._note(victim, act, "killed in the middle of")
        before, jobs = self._newest(), self._clients[heir].ask({"do": "jobs"})
        self._clients[victim].send(act.command)
        time.sleep(self.dice.choice([0, 0.02, 0.1, 0.3, 0.6, 1.0, 2.0]))
        self._clients[victim].kill()
        self._wait_for(self._is_quiet)
        self._clients[victim] = self._start("shelduck")
        if act.command["do"] == "heavy":
            self._after_killed_job(heir, act, jobs)
            return
        landed = self._newest() > before
        self.told[-1] += f": {'landed' if landed else 'nothing happened'}"
        self.counts[f"kill {act.command['do']}: {'landed' if landed else 'nothing'}"] += 1
        if landed:
            act.apply(self.mirror)

    # Looking.

    def check(self) -> None:
        """What the step did is what DuckDB reads; now and then everything else."""
        self._compare("DuckDB", *by_duckdb(self._oracle, "t"))
        expected = len(self.mirror.rows)
        assert self._oracle.sql("SELECT count(*) FROM t") == [(expected,)], "DuckDB's count"
        self._ids.check(self._oracle, self.mirror)
        if self.steps % _REMEMBER == 0:
            self._past[self._newest()] = (self.mirror.shape(), self.mirror.expected())
            if len(self._past) > _MOST_REMEMBERED:
                del self._past[self.dice.choice(sorted(self._past))]
        if self.steps % _CHECK_ALL == 0:
            # Shelduck's processes are the slow ones: of the past one snapshot each time, in turn.
            turn = self.steps // _CHECK_ALL % max(1, len(self._past))
            self._check_all(sorted(self._past)[turn : turn + 1])

    def finish(self) -> None:
        """The job that is open is done, all is read, and nothing lies about that nobody needs."""
        if self._job is not None:
            self._finish_job("one")
        self.check()
        self._check_all(list(self._past))
        self._clients["one"].ask({"do": "clean_up"})
        self._clients["one"].ask({"do": "remove_orphans"})
        self._check_all(list(self._past))
        dump = self._oracle.dump_metadata()
        known = {row["path"] for t in ("data", "delete") for row in dump[f"ducklake_{t}_file"]}
        there = {
            str(p.relative_to(self.folder / "data/main/t"))
            for p in (self.folder / "data").rglob("*")
            if p.is_file() and p.suffix != ".crc"
        }
        assert there == known, "files on the disk, and files that the catalog knows"

    def _check_all(self, past: list[int]) -> None:
        """Row ids, Shelduck now and at snapshots of the past, DuckDB at all that are remembered."""
        ids = self._oracle.sql("SELECT count(DISTINCT rowid) FROM t")
        assert ids == [(len(self.mirror.rows),)], "row ids"
        name = self.races.worker()
        versions = [None, *past]
        found = self._clients[name].ask({"do": "read", "versions": versions})
        for version, (shape, rows) in zip(versions, found, strict=True):
            shape_then = [(name, kind) for name, kind in shape]
            self._compare("Shelduck", shape_then, in_order(rows), version)
        for version in self._past:
            self._compare("DuckDB", *by_duckdb(self._oracle, at("t", version)), version)

    def _compare(
        self,
        reader: str,
        shape: list[tuple[str, str]],
        rows: list[tuple[Cell, ...]],
        version: int | None = None,
    ) -> None:
        wanted = (self.mirror.shape(), self.mirror.expected())
        wanted = wanted if version is None else self._past[version]
        where = "now" if version is None else f"at snapshot {version}"
        assert shape == wanted[0], f"{reader} {where} has columns {shape}, not {wanted[0]}"
        if rows != wanted[1]:
            more = [row for row in rows if row not in wanted[1]]
            less = [row for row in wanted[1] if row not in rows]
            raise AssertionError(
                f"{reader} {where} reads {len(rows)} rows, not {len(wanted[1])}:"
                f"\n {more} too much\n {less} are missing\n columns {shape}"
            )

    # How it is done.

    def _begin(self) -> None:
        key = Column("id", "bigint", "key")
        others = [("a", "int", "whole"), ("b", "string", "word"), ("c", "double", "fraction")]
        self.mirror.columns = [key, *(Column(*other) for other in others)]
        with shelduck.connect(
            self.url, f"{self.folder}/data/", ducklake_version=self.version
        ) as lake:
            table = lake.create_table("t", dict(self.mirror.shape()))
            table.alter(shelduck.set_properties({"delta.enableTypeWidening": "true"}))

    def _start(self, kind: str, *options: str) -> Client:
        self._started += 1
        if kind == "duckdb" and self.version != "1.0":
            kind = TRANSLATING
        return Client(kind, self.url, self.folder / f"{self._started}-{kind}", *options)

    def _any(self) -> str:
        return self.dice.choice(["one", "other", "duckdb", "duckdb", "duckdb"])

    def _note(self, name: str, act: Act | None, how: str = "") -> None:
        self.told.append(f"{self.steps}. {name} {how} {act or ''}")

    def _carry_out(self, name: str, act: Act) -> None:
        """One act that nothing stands in the way of."""
        self._note(name, act)
        self._clients[name].send(act.command)
        answer = self._clients[name].answer()
        if act.error is None:
            assert "done" in answer, answer["text"]
            act.apply(self.mirror)
        else:
            assert answer.get("error") == act.error, answer

    def _expire(self, name: str) -> None:
        every = [number for (number,) in self._oracle.sql(_SNAPSHOTS)]
        gone = sorted(self.dice.sample(every[:-1], self.dice.randrange(len(every))))
        if not gone:
            return
        text = f"CALL ducklake_expire_snapshots('lake', versions => {gone})"
        is_theirs = engine(name) == "duckdb"
        command = (
            {"do": "sql", "texts": [text]} if is_theirs else {"do": "expire", "versions": gone}
        )
        self._carry_out(name, Act(command, []))
        assert self._oracle.sql(_SNAPSHOTS) == [(n,) for n in every if n not in gone]
        self._past = {n: then for n, then in self._past.items() if n not in gone}

    def _open(self, number: int, act: Act) -> None:
        """A job waits for somebody to work on it."""
        [identity] = act.names
        self._job = (number, act)
        self.author.locked = (identity, act.command["kind"])

    def _finish_job(self, name: str) -> None:
        assert self._job is not None
        number, act = self._job
        command = self.dice.choice([{"do": "run_jobs"}, {"do": "work", "number": number}])
        self._carry_out(name, Act(command, act.effects))
        assert self._clients[name].ask({"do": "jobs"})[str(number)] == "FINISHED"
        self._job = self.author.locked = None

    def _after_killed_job(self, heir: str, act: Act, before: dict[str, str]) -> None:
        """Nobody had heard of it, or it is done, or another one goes on with it."""
        found = self._clients[heir].ask({"do": "jobs"})
        new = {number: state for number, state in found.items() if number not in before}
        self.told[-1] += f": {new}"
        self.counts[f"kill heavy: {list(new.values())}"] += 1
        for number, state in new.items():
            if state == "FINISHED":
                act.apply(self.mirror)
                continue
            assert state != "CANCELLED", "a job was cancelled that could be done"
            self._open(int(number), act)
            if self.dice.random() < 0.5:
                self._finish_job(heir)

    def _newest(self) -> int:
        return self._oracle.snapshot()

    def _is_quiet(self) -> bool:
        """Nothing of what the dead one said is still being done."""
        with psycopg.connect(self.url) as connection:
            return connection.execute(_ENDED).fetchone() == (0,)

    def _wait_for(self, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not is_so():
            assert time.monotonic() < deadline
            time.sleep(0.02)
