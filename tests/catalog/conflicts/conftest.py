"""Two writers on copies of one lake: mine begins, another commits, mine commits."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from shelduck.catalog.read import read
from shelduck.errors import Conflict
from shelduck.model.changes.change import Change, Verb
from tests.catalog.conflicts.expected import BY_WRITER, MINE
from tests.catalog.conflicts.pairs import ON_POSTGRES, ON_SQLITE
from tests.support.contenders import OURS, THEIRS, compact_by_hand
from tests.support.contested import Effect, Reader, everything, make_contested
from tests.support.copies import SQLiteCopies, postgres_copies
from tests.support.lake import Lake

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.copies import Copies


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave to `make soak` the pairs whose turn it is not, or that say no more on PostgreSQL."""
    for item in items:
        given = getattr(getattr(item, "callspec", None), "params", {})
        if "copies" in given and "other" in given and "mine" in given:
            writer, name = given["other"]
            taken = ON_POSTGRES if given["copies"] == "postgres" else ON_SQLITE
            if (writer, name, given["mine"]) not in taken:
                item.add_marker(pytest.mark.soak)


@dataclass(frozen=True)
class Begun:
    """A lake, its newest snapshot, and all of mine, made on that."""

    url: str
    head: int
    mine: dict[str, list[Change]]


@dataclass(frozen=True)
class Other:
    """What another writer did, and the lake after that."""

    writer: str
    name: str
    url: str

    @property
    def effect(self) -> Effect:
        if self.writer == "us":
            return OURS[self.name].effect
        return THEIRS[self.name][2] if self.writer == "duckdb" else Effect()

    def excludes(self, mine: str) -> bool:
        return mine in BY_WRITER[self.writer][self.name][1].split("|")


class Duel:
    """Mine against the other's, again and again in one place."""

    def __init__(self, copies: Copies, begun: Begun) -> None:
        self.begun = begun
        self._copies = copies
        self._lake = Lake(copies.copy(begun.url), None)
        self._lake.store.close()
        self._reader = Reader(begun.url)
        self._holds: str | None = None

    def fight(self, mine: str, other: Other) -> None:
        lake = self._lake
        if self._holds != other.url:
            lake.store.close()
            self._copies.copy(other.url, to=lake.url)
        self._holds = None
        changes, contender = self.begun.mine[mine], OURS[mine]
        if other.excludes(mine):
            _assert_refused(lake, changes, self.begun.head, contender.says)
            self._holds = other.url
            return
        lake.commit(*changes, base=self.begun.head)
        lake.store.close()
        self._reader.looks_at(lake.url, self.begun.head, contender.effect, other.effect)

    def close(self) -> None:
        self._lake.store.close()
        self._reader.close()


def _assert_refused(lake: Lake, changes: list[Change], base: int, says: str) -> None:
    before = everything(lake)
    with pytest.raises(Conflict) as caught:
        lake.commit(*changes, base=base)
    assert everything(lake) == before
    message = str(caught.value)
    assert message.startswith(f"cannot {says}")
    by_matrix = re.search(rf": another writer committed \S+ in snapshot {base + 1};", message)
    assert by_matrix or "another commit " in message


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def copies(request: Any, tmp_path_factory: Any) -> Iterator[Copies]:
    if request.param == "sqlite":
        yield SQLiteCopies(tmp_path_factory.mktemp("catalogs"))
    else:
        with postgres_copies(request.getfixturevalue("postgres_server")) as made:
            yield made


@pytest.fixture(scope="module")
def begun(copies: Copies, tmp_path_factory: Any) -> Begun:
    """A lake, and all of mine begun on it."""
    url = copies.fresh()
    lake = make_contested(url, f"{tmp_path_factory.mktemp('data')}/")
    with closing(lake.store):
        return Begun(url, lake.head().id, {name: OURS[name].make(lake) for name in MINE})


@pytest.fixture(scope="module")
def duel(copies: Copies, begun: Begun) -> Iterator[Duel]:
    made = Duel(copies, begun)
    yield made
    made.close()


@pytest.fixture(scope="module")
def other(request: Any, copies: Copies, begun: Begun) -> Iterator[Other]:
    """One commit of another writer on a copy of the lake; the parameter is (writer, name)."""
    writer, name = request.param
    lake = Lake(copies.copy(begun.url), None)
    with closing(lake.store):
        if writer == "us":
            lake.commit(*OURS[name].make(lake))
        elif writer == "duckdb":
            statement, inline, _ = THEIRS[name]
            lake.tell(statement, inline=inline)
        else:
            compact_by_hand(lake)
        with lake.store.read() as connection:
            entries = read.entries_since(connection, begun.head, begun.head + 1)
    assert {e.verb for _, e in entries} == {Verb(v) for v in BY_WRITER[writer][name][0].split()}
    yield Other(writer, name, lake.url)
    copies.remove(lake.url)
