"""The code of README.md and of the guides, executed as a reader would."""

from __future__ import annotations

import re
import shlex
import tomllib
from urllib.parse import unquote

import psycopg
import pytest

from tests.support.documents import DOCS, README, ROOT, Reader, outputs

TEAM = DOCS / "guides" / "team.md"
# It needs a store and Spark with its connector: tests/object_store.
STORES = DOCS / "guides" / "object-stores.md"
# It needs tools that .venv does not have: test_orchestration.py.
TOOLS = DOCS / "guides" / "orchestration.md"
# These take seconds, on lines that other tests reach.
SLOW = ("coming-from", "evolving-loads", "streaming", "take-back", "upkeep")
GUIDES = sorted({*(DOCS / "guides").glob("*.md")} - {TEAM, STORES, TOOLS})
PAGES = [README, DOCS / "index.md", *GUIDES]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.stem, marks=pytest.mark.slow if page.stem in SLOW else [])
        for page in PAGES
    ],
)
def test_the_code_of_a_page_runs_and_prints_what_the_page_shows(page, here):
    assert Reader(page).read() == outputs(page)


@pytest.fixture
def team_url(postgres_server):
    """The address of an empty database; the roles that the page makes are gone afterwards."""
    with postgres_server.fresh_database() as url:
        yield url
    roles = "olga, wim, rosa, lake_owner, lake_writer, lake_reader"
    with psycopg.connect(postgres_server.url("postgres"), autocommit=True) as connection:
        connection.execute(f"DROP ROLE IF EXISTS {roles}")


def test_three_roles_of_postgresql_may_do_what_the_page_says(here, team_url):
    def run(text):
        with psycopg.connect(team_url, autocommit=True) as connection:
            connection.execute(text)

    database, _, socket = team_url.partition("@/")[2].partition("?host=")
    server = {
        "@db.example/lake": f"@/{database}?host={socket}",
        "host=db.example dbname=lake": f"host={unquote(socket)} dbname={database}",
    }

    assert Reader(TEAM, places=server, postgres=run).read() == outputs(TEAM)


def test_packages_beside_a_foreign_spark_are_all_but_pyspark():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [name for name in project["dependencies"] if not name.startswith("pyspark")]
    page = (DOCS / "guides" / "where-it-runs.md").read_text()
    lines = [shlex.split(line) for line in re.findall(r"pip install (\"pandas.*)", page)]
    assert lines == [needed + project["optional-dependencies"]["postgres"]] * 2
