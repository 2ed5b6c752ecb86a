"""Random events around heavy changes: loads by us and others, kills, cancels, upkeep, resumption.

A plain dictionary says what the table holds. After each event both engines read it, the job is in a
state that may follow the one before, and at the end every snapshot reads as it did.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import shelduck
from shelduck import AlreadyExists, InvalidRequest, JobState, change_type
from shelduck.jobs.job_record import JobRecord
from shelduck.jobs.lots import Lots
from shelduck.jobs.worker import JobWorker
from tests.properties.test_evolution import SETTINGS
from tests.support.ducklakepy_oracle import drawn_form, oracle_at
from tests.support.lengths import long

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from shelduck import SchemaChangeJob

EVENTS = 14
TEXTS = ["7", "-3", "40", None, "zz"]
_OPEN = {JobState.PENDING, JobState.WAITING_TXN, JobState.RUNNING}
AFTER = {
    JobState.PENDING: {*JobState},
    JobState.WAITING_TXN: {*JobState} - {JobState.PENDING},
    JobState.RUNNING: {JobState.RUNNING, JobState.FINISHED, JobState.CANCELLED},
    JobState.FINISHED: {JobState.FINISHED},
    JobState.CANCELLED: {JobState.CANCELLED},
}
DEATHS = [
    (JobRecord, "step"),
    (Lots, "_land"),
    (JobRecord, "commit"),
    (Lots, "_written"),
    (JobWorker, "_wait_for_writers"),
]


class Story:
    """One run: the lake, what its table should hold, and its jobs."""

    def __init__(
        self, data: st.DataObject, spark: SparkSession, url: str, folder: Path, **form: bool
    ) -> None:
        self._data = data
        self.url = url
        how = drawn_form(self.pick, **form)
        self.lake = shelduck.connect(url, str(folder / "data"), spark, progress=False, **how)
        self.rows: dict[int, str | None] = {}
        self.is_number = False
        self.versions: dict[int, list[tuple[Any, ...]]] = {}
        self.states: dict[int, JobState] = {}
        self.job: SchemaChangeJob | None = None
        self._next = 0
        self.lake.sql("CREATE TABLE t (id INT, v STRING)")
        self.lake.set_option("data_inlining_row_limit", 2)
        self.lake.set_option("target_file_size", 1)

    def pick(self, options: list[Any]) -> Any:
        return options[self._data.draw(st.integers(0, len(options) - 1))]

    def run(self) -> None:
        self.load()
        events = [self.load, self.load, self.change, self.duckdb, self.duckdb, self.kill, self.kill]
        events += [self.alter, self.alter, self.resume, self.cancel, self.upkeep]
        for _ in range(EVENTS):
            self.pick(events)()
            self.check()
        self.resume()
        self.check()
        self.check_versions()
        self.lake.close()

    def load(self) -> None:
        """Rows by us: files, or so few that the catalog keeps them."""
        new = {self._next + n: self.value() for n in range(self.pick([1, 2, 4]))}
        self._next += len(new)
        source = ", ".join(f"({k}, {self.literal(v)})" for k, v in new.items())
        self.write(f"INSERT INTO t VALUES {source}", self.rows | new)

    def change(self) -> None:
        number, value = self.pick([*self.rows, -1]), self.value()
        if self.pick([True, False]):
            rest = {k: v for k, v in self.rows.items() if k != number}
            self.write(f"DELETE FROM t WHERE id = {number}", rest)
        else:
            changed = {k: value if k == number else v for k, v in self.rows.items()}
            self.write(f"UPDATE t SET v = {self.literal(value)} WHERE id = {number}", changed)

    def write(self, statement: str, after: dict[int, str | None]) -> None:
        """A job to numbers fails what brings a text that is none, and only that."""
        note(statement)
        must_fail = self.is_open and not self.is_number and "'zz'" in statement
        try:
            self.lake.sql(statement)
        except InvalidRequest as error:
            if not must_fail or "a job is changing types" not in str(error):
                raise
        else:
            assert not must_fail or self.bad(after) == self.bad(self.rows)
            self.rows = after

    def duckdb(self) -> None:
        """Rows by DuckDB, which knows of no job."""
        number, value = self._next, self.value()
        kind, limit = self.pick(["INSERT", "DELETE", "UPDATE"]), self.pick([0, 5])
        with oracle_at(self.url, None, {"DATA_INLINING_ROW_LIMIT": limit}) as other:
            if kind == "INSERT":
                self._next += 1
                statement = f"INSERT INTO t VALUES ({number}, {self.literal(value)})"
                self.rows[number] = value
            else:
                number = self.pick([*self.rows, -1])
                statement = f"DELETE FROM t WHERE id = {number}"
                if kind == "UPDATE":
                    statement = f"UPDATE t SET v = {self.literal(value)} WHERE id = {number}"
                    self.rows.update({number: value} if number in self.rows else {})
                else:
                    self.rows.pop(number, None)
            note(f"duckdb: {statement}")
            other.execute(statement)

    def alter(self) -> None:
        note(f"alter to {'string' if self.is_number else 'int'}")
        change = change_type("v", "string" if self.is_number else "int")
        if self.is_open:
            with pytest.raises(AlreadyExists):
                self.lake.table("t").alter(change)
            return
        job = self.lake.table("t").alter(change)
        assert isinstance(job, shelduck.SchemaChangeJob)
        self.job = job

    def resume(self) -> None:
        note("resume")
        if self.is_open:
            self.work()
            assert not self.is_open

    def kill(self) -> None:
        """A worker that dies at the n-th time that it does something."""
        if not self.is_open:
            return
        (owner, name), left = self.pick(DEATHS), self.pick([0, 0, 1, 2, 3])
        note(f"kill at {name} {left}")
        real = getattr(owner, name)

        def dying(*arguments: Any, **more: Any) -> Any:
            nonlocal left
            if left == 0 and self.pick([True, False]):
                raise KeyboardInterrupt
            found = real(*arguments, **more)
            if left == 0:
                raise KeyboardInterrupt
            left -= 1
            return found

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(owner, name, dying)
            self.work()

    def work(self) -> None:
        assert self.job is not None
        could = self.is_number or not self.bad(self.rows)
        try:
            self.job.wait()
        except KeyboardInterrupt:
            pass
        except InvalidRequest:
            assert self.job.state is JobState.CANCELLED
        if self.job.state is JobState.FINISHED:
            assert could
            self.is_number = not self.is_number
        elif self.job.state is JobState.CANCELLED:
            assert not could

    def cancel(self) -> None:
        note("cancel")
        if self.is_open:
            self.lake.sql("CANCEL ALTER TABLE COLUMN FROM t")

    def upkeep(self) -> None:
        table = self.lake.table("t")
        verb = self.pick([table.compact, table.flush_inlined_data, table.rewrite])
        note(verb.__name__)
        verb()

    def check(self) -> None:
        expected = sorted((k, self.shown(v)) for k, v in self.rows.items())
        assert sorted(map(tuple, self.lake.sql("SELECT * FROM t").collect())) == expected
        with oracle_at(self.url) as oracle:
            assert sorted(oracle.sql("SELECT * FROM t")) == expected
            ids = "SELECT count(*), count(DISTINCT rowid) FROM t"
            assert oracle.sql(ids) == [(len(expected), len(expected))]
            self.versions[oracle.snapshot()] = expected
        for job in self.lake.jobs():
            state = job.state
            assert state in AFTER[self.states.get(job.id, JobState.PENDING)]
            self.states[job.id] = state
        assert sum(state in _OPEN for state in self.states.values()) <= 1

    def check_versions(self) -> None:
        with oracle_at(self.url) as oracle:
            for version, expected in self.versions.items():
                found = self.lake.sql(f"SELECT * FROM t VERSION AS OF {version}").collect()
                assert sorted(map(tuple, found)) == expected
                assert sorted(oracle.rows("t", version=version)) == expected

    @property
    def is_open(self) -> bool:
        return self.job is not None and self.job.look().is_open

    def value(self) -> str | None:
        return self.pick(TEXTS[:-1] * 3 + ([] if self.is_number else TEXTS[-1:]))

    def literal(self, value: str | None) -> str:
        if value is None:
            return "NULL"
        return value if self.is_number else f"'{value}'"

    def shown(self, value: str | None) -> Any:
        return int(value) if value is not None and self.is_number else value

    @staticmethod
    def bad(rows: dict[int, str | None]) -> int:
        return sum(value == "zz" for value in rows.values())


def tell(
    data: st.DataObject, spark: SparkSession, folder: Path, url: str = "", **form: bool
) -> None:
    Story(data, spark, url or f"sqlite:///{folder}/lake.db", folder, **form).run()
    shutil.rmtree(folder)


@settings(SETTINGS, max_examples=2, derandomize=True)
@given(st.data())
def test_a_few_stories_keep_to_the_states_and_the_rows(spark, tmp_path_factory, data):
    tell(data, spark, tmp_path_factory.mktemp("story"))


@pytest.mark.slow
@settings(SETTINGS, max_examples=long(8, 6))
@given(st.data())
def test_stories_keep_to_the_states_and_the_rows(spark, tmp_path_factory, data):
    tell(data, spark, tmp_path_factory.mktemp("story"))


@pytest.mark.slow
@settings(SETTINGS, max_examples=long(8, 2))
@given(st.data())
def test_stories_on_encrypted_lakes_on_postgresql(spark, postgres_server, tmp_path_factory, data):
    with postgres_server.fresh_database() as url:
        tell(data, spark, tmp_path_factory.mktemp("story"), url, encrypted=True)
