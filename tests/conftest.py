"""Fixtures that every test may ask for; what they stand on is in tests/support."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.support.cover import left_out_tests
from tests.support.lengths import SOAKS, commits
from tests.support.postgres import PostgresServer, running_postgres
from tests.support.spark import local_session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

# How long an example takes says how busy the machine is. In CI, too, examples are new ones.
settings.register_profile("shelduck", settings.get_profile("default"), deadline=None)
settings.load_profile("shelduck")

CATALOGS = ("sqlite", "postgres", "duckdb")
# Seconds that a slow test may take, and one of `make soak`: other workers and JVMs run beside it.
SLOW_TIMEOUT, SOAK_TIMEOUT = 600, 7200


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one Spark session of this process: local[2], UTC, two shuffle partitions."""
    with local_session(tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture
def compiled(spark: SparkSession) -> Iterator[None]:
    """Spark compiles expressions: interpreted, they know no variants and make no Java objects."""
    # The settings of the active session count, which a test before may have changed.
    spark._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)
    spark.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
    yield
    spark.conf.unset("spark.sql.codegen.factoryMode")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A real PostgreSQL server, started when the first test asks for it."""
    with running_postgres() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The address of an empty PostgreSQL database."""
    with postgres_server.fresh_database() as url:
        yield url


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The address of a SQLite catalog that does not exist yet."""
    return f"sqlite:///{tmp_path}/catalog.db"


@pytest.fixture
def duckdb_url(tmp_path: Path) -> str:
    """The address of a DuckDB catalog that does not exist yet."""
    return f"duckdb:///{tmp_path}/catalog.ducklake"


@pytest.fixture
def lake_url(request: pytest.FixtureRequest) -> str:
    """The address of a fresh catalog, in each kind of database that the test is for."""
    return str(request.getfixturevalue(f"{request.param}_url"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give ``lake_url`` each database: SQLite alone in the fast set, but for `every_database`.

    A test that is for some databases only names them in `databases`.
    """
    if "lake_url" not in metafunc.fixturenames:
        return
    everywhere = metafunc.definition.get_closest_marker("every_database") is not None
    named = metafunc.definition.get_closest_marker("databases")
    kinds = [
        pytest.param(kind, marks=() if everywhere or kind == "sqlite" else pytest.mark.slow)
        for kind in (CATALOGS if named is None else named.args)
    ]
    metafunc.parametrize("lake_url", kinds, indirect=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark those slow that the fast set leaves out, and give slow tests their time."""
    # Whoever chooses the fast set looks at all tests again.
    left_out = set() if os.environ.get("SHELDUCK_COVER") else left_out_tests()
    counts: Counter[str] = Counter()
    for item in items:
        test = item.nodeid.partition("[")[0]
        if item.get_closest_marker("slow") is None:
            sampled = item.get_closest_marker("sampled")
            counts[test] += 1
            is_left_out = item.nodeid in left_out and item.get_closest_marker("guard") is None
            if is_left_out or (sampled and counts[test] > sampled.args[0]):
                item.add_marker(pytest.mark.slow)
        if SOAKS or item.get_closest_marker("soak") is not None:
            item.add_marker(pytest.mark.timeout(SOAK_TIMEOUT))
        elif item.get_closest_marker("slow") is not None:
            item.add_marker(pytest.mark.timeout(SLOW_TIMEOUT))


def pytest_report_header() -> str:
    """Whose turn it is: with the same number, the same seeds run again."""
    return f"seeds: those of SHELDUCK_TEST_COMMITS={commits()}"


@pytest.fixture
def data_path(tmp_path: Path) -> str:
    """Where a lake may keep its files; ends with a slash, as DuckLake stores it."""
    return f"{tmp_path}/data/"
