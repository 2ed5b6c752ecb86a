"""A lake, and a client that asks its page without a server."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

import shelduck
from shelduck.lake.state import LakeState
from shelduck.web.application import make_app
from shelduck.web.guard import Guard
from tests.support.html import tree
from tests.support.lake import Lake

with warnings.catch_warnings():
    # Starlette prefers a client that is not installed.
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

PORT = 8765
BASE = f"http://127.0.0.1:{PORT}"
TOKEN = "the-token"


@dataclass
class Page:
    """The page of a lake."""

    lake: Lake
    client: TestClient

    def text(self, path: str, status: int = 200) -> str:
        found = self.client.get(path)
        assert found.status_code == status, found.text.partition("<main")[2]
        return found.text

    def tree(self, path: str, status: int = 200) -> Element:
        return tree(self.text(path, status))

    def id_of(self, name: str) -> int:
        return self.lake.table(name).id


def served(lake: Lake, *, allow_changes: bool = False, rows: bool = False) -> TestClient:
    guard = Guard(PORT, allow_changes, TOKEN)
    app = make_app(LakeState(lake.store, lake.info), guard, lake.url if rows else None)
    return TestClient(app, base_url=BASE)


@pytest.fixture
def lake(lake_url, data_path):
    made = Lake(lake_url, data_path)
    yield made
    made.store.close()


@pytest.fixture
def page(lake):
    with served(lake) as client:
        yield Page(lake, client)


@pytest.fixture
def sql(lake):
    """Runs statements that need no Spark."""
    with shelduck.connect(lake.url) as connected:

        def run(*statements: str) -> None:
            for statement in statements:
                connected.execute(statement)

        yield run


@pytest.fixture(autouse=True)
def _no_java(monkeypatch):
    """No page may start Java."""

    def refuse(*_: object) -> None:
        raise AssertionError("a page asked for a Spark session")

    monkeypatch.setattr("shelduck.lake.state.session_for", refuse)
