"""A writer is killed within its commit, at every statement: all of it is there, or nothing is."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from shelduck.catalog.schema.lake_schema import open_lake
from tests.concurrency.victims import MIGRATE
from tests.support.contenders import OURS
from tests.support.contested import Reader, everything, left_by, make_contested
from tests.support.copies import DuckDBCopies, SQLiteCopies, postgres_copies
from tests.support.lake import Lake

pytestmark = pytest.mark.turns(2)

FAST = ("append", "update", "merge files")
SLOW = (
    *("create schema", "drop schema side", "create table", "drop table", "rename table"),
    *("add column", "partition", "sort", "inline", "delete from C", "delete position of D"),
    *("delete inlined", "end A", "rewrite C", "flush", "create view", "replace view"),
)
CHANGES = [*FAST, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]


class Killing:
    """Changes of a lake whose writer is killed, each on a copy of its own."""

    def __init__(self, copies, url, victims):
        self._copies = copies
        self._url = url
        self._victims = victims
        self.lake = Lake(copies.copy(url), None)
        self.before = everything(self.lake)
        self.base = self.lake.head().id
        self.lake.store.close()
        self.reader = Reader(url)

    def kill(self, name, at, **how):
        """Whether the writer was killed: a number of statements may be too high."""
        self._copies.copy(self._url, to=self.lake.url)
        order = {"url": self.lake.url, "name": name, "at": at, **how}
        self._victims.stdin.write(json.dumps(order) + "\n")
        self._victims.stdin.flush()
        ended = json.loads(self._victims.stdout.readline())
        assert ended in (0, -signal.SIGKILL)
        return ended != 0

    @property
    def version(self):
        """The DuckLake that the lake has now."""
        found = open_lake(self.lake.store).version
        self.lake.store.close()
        return found

    def assert_nothing_is_there(self, *, goes_on=True):
        assert everything(self.lake) == self.before
        if goes_on:
            self._go_on()

    def assert_all_is_there(self, name):
        assert self.lake.head().id == self.base + 1
        self._go_on(OURS[name].effect)

    def _go_on(self, *effects):
        """Commit the next thing, and let DuckDB read."""
        has_t = "main.t" in left_by(*effects)[0]
        after = OURS["append another" if has_t else "create schema"]
        self.lake.commit(*after.make(self.lake))
        self.lake.store.close()
        self.reader.looks_at(self.lake.url, self.base, *effects, after.effect)

    def close(self):
        self.lake.store.close()
        self.reader.close()


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
    yield from _killing_in(request.param, request, tmp_path_factory, victims)


def _killing_in(kind, request, tmp_path_factory, victims):
    data = f"{tmp_path_factory.mktemp('data')}/"
    if kind == "sqlite":
        yield from _killing(SQLiteCopies(tmp_path_factory.mktemp("catalogs")), data, victims)
    else:
        with postgres_copies(request.getfixturevalue("postgres_server")) as copies:
            yield from _killing(copies, data, victims)


@pytest.fixture(scope="module", params=["sqlite", "postgres", "duckdb"])
def killing_a_migration(request, tmp_path_factory, victims):
    if request.param != "duckdb":
        yield from _killing_in(request.param, request, tmp_path_factory, victims)
        return
    data = f"{tmp_path_factory.mktemp('data')}/"
    yield from _killing(DuckDBCopies(tmp_path_factory.mktemp("catalogs")), data, victims)


def _killing(copies, data, victims):
    url = copies.fresh()
    make_contested(url, data).store.close()
    with closing(Killing(copies, url, victims)) as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("name", CHANGES)
def test_killed_before_the_end_of_its_commit_it_did_nothing(name, killing):
    survived = None
    for number in itertools.count(1):
        if not killing.kill(name, number):
            survived = number
            break
        # After the first kill and the last somebody goes on; the catalog is the same after each.
        killing.assert_nothing_is_there(goes_on=number == 1)

    # It reads, writes, and records its snapshot: five statements or more.
    assert survived > 5
    killing.assert_all_is_there(name)
    assert killing.kill(name, "before")
    killing.assert_nothing_is_there()


@pytest.mark.parametrize("name", CHANGES)
def test_killed_right_after_its_commit_it_did_everything(name, killing):
    assert killing.kill(name, "after")
    killing.assert_all_is_there(name)


@pytest.mark.parametrize("killing", ["sqlite"], indirect=True)
@pytest.mark.parametrize("opened_by", ["us", "DuckDB"])
def test_pages_that_a_killed_writer_left_in_the_file_are_rolled_back(opened_by, killing):
    """The journal that SQLite rolls back lies beside the file."""
    journal = Path(urlsplit(killing.lake.url).path.removeprefix("/") + "-journal")

    assert killing.kill("update", "before", spills=True)
    assert journal.stat().st_size > 0
    if opened_by == "DuckDB":
        killing.reader.looks_at(killing.lake.url, killing.base)
    killing.assert_nothing_is_there()
    assert not journal.exists()


@pytest.mark.slow
def test_a_lake_whose_migration_is_killed_is_of_one_version(killing_a_migration):
    killing = killing_a_migration
    for at in itertools.count(1):
        if not killing.kill(MIGRATE, at):
            break
        assert killing.version == "1.0"
        killing.assert_nothing_is_there(goes_on=at == 1)

    # Three names of each table of inlined rows, eight additions, the version.
    assert at > 15
    assert killing.version == "1.1"
    assert killing.kill(MIGRATE, "before")
    assert killing.version == "1.0"
    assert killing.kill(MIGRATE, "after")
    assert killing.version == "1.1"
