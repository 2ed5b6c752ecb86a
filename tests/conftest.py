"""Fixtures that every test may ask for; what they stand on is in tests/support."""

from __future__ import annotations

import os
import re
from collections import Counter
from functools import cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from pyspark import SparkContext

from shelduck.ducklake.format import FORMATS
from tests.support.compiled import share_compiled_statements
from tests.support.cover import left_out_tests
from tests.support.lengths import SOAKS, commits
from tests.support.postgres import PostgresServer, running_postgres
from tests.support.spark import has_quick_jvm, local_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

# How long an example takes says how busy the machine is. In CI, too, examples are new ones.
settings.register_profile("shelduck", settings.get_profile("default"), deadline=None)
settings.load_profile("shelduck")
share_compiled_statements()

CATALOGS = ("sqlite", "postgres", "duckdb")
VERSIONS = ("1.0", "1.1")
# Seconds after which a slow test hangs, and one of `make soak`: a machine may be slow and busy.
SLOW_TIMEOUT, SOAK_TIMEOUT = 1800, 7200
# A signal in the middle of a call breaks the way into the JVM for all tests after it. A worker ends
# instead, and another one takes its place.
TIMEOUT_METHOD = "thread" if "PYTEST_XDIST_WORKER" in os.environ else "signal"
# `make test` runs what needs no JVM in these folders beside the workers that have one.
PLAIN = ("tests/catalog/", "tests/simulation/", "tests/unit/", "tests/web/")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one Spark session of this process: local[2], UTC, two shuffle partitions."""
    with local_session(tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture(autouse=True)
def spark_is_asked_for(request: pytest.FixtureRequest) -> Iterator[None]:
    """A fast test that starts Spark in this process asks for `spark`.

    There is one JVM in a process. Started by the way, it has a user's settings, and compiles every
    query of all tests after it.
    """
    had_one = SparkContext._gateway is not None
    yield
    by_the_way = SparkContext._gateway is not None and not has_quick_jvm()
    if by_the_way and not had_one and request.node.get_closest_marker("slow") is None:
        pytest.fail("this test started Spark by the way; give it the fixture `spark`")


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


@pytest.fixture
def ducklake_version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The version of DuckLake of every lake that the test makes without naming one."""
    monkeypatch.setattr("shelduck.catalog.schema.lake_schema.DEFAULT", FORMATS[request.param])
    return str(request.param)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give ``lake_url`` each database, and ``ducklake_version`` each version of DuckLake.

    SQLite alone is in the fast set, but for `every_database`; 1.0 alone, but for `every_version`.
    Of the others, a round of all shares has every second one.
    A test that is for some databases only names them in `databases`, and one that asks for what an
    oracle of one version alone has names the version in `versions`.
    """
    mark = metafunc.definition.get_closest_marker
    names = [n for n in ("lake_url", "ducklake_version") if n in metafunc.fixturenames]
    if not names:
        return
    named = mark("databases")
    kinds = list(CATALOGS if named is None else named.args) if "lake_url" in names else [""]
    told = mark("versions")
    versions = (
        list(VERSIONS if told is None else told.args) if "ducklake_version" in names else [""]
    )
    given = []
    for kind, version in product(kinds, versions):
        # The oracle of 1.1 opens no DuckDB files.
        if version == "1.1" and kind == "duckdb":
            continue
        is_fast = (kind in ("", "sqlite") or mark("every_database") is not None) and (
            version in ("", "1.0") or mark("every_version") is not None
        )
        shown = "-".join(part for part in (kind, version) if part not in ("", "1.0"))
        given.append(
            pytest.param(
                *(part for part in (kind, version) if part),
                marks=() if is_fast else (pytest.mark.slow, pytest.mark.turns(2)),
                id=shown or pytest.HIDDEN_PARAM,
            )
        )
    metafunc.parametrize(names, given, indirect=True)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Whoever runs what needs a JVM does not even import modules that do not speak of Spark."""
    test = collection_path.is_relative_to(config.rootpath) and collection_path.name
    if not test or not test.startswith("test_") or "not plain" not in config.option.markexpr:
        return None
    place = collection_path.relative_to(config.rootpath).as_posix()
    return (place.startswith(PLAIN) and not speaks_of_spark(collection_path)) or None


@cache
def speaks_of_spark(module: Path) -> bool:
    """Whether the text of a module has the word `spark`."""
    return re.search(r"\bspark\b", module.read_text()) is not None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark those slow that the fast set leaves out, and those plain that start no JVM.

    Slow tests get their time.
    """
    # Whoever chooses the fast set looks at all tests again.
    left_out = set() if os.environ.get("SHELDUCK_COVER") else left_out_tests()
    counts: Counter[str] = Counter()
    for item in items:
        test = item.nodeid.partition("[")[0]
        if item.nodeid.startswith(PLAIN):
            if "spark" not in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.plain)
            elif not speaks_of_spark(item.path):
                raise pytest.UsageError(f"{item.nodeid} takes spark by the way; name it there")
        if item.get_closest_marker("slow") is None:
            sampled = item.get_closest_marker("sampled")
            counts[test] += 1
            is_left_out = item.nodeid in left_out and item.get_closest_marker("guard") is None
            if is_left_out or (sampled and counts[test] > sampled.args[0]):
                item.add_marker(pytest.mark.slow)
        if SOAKS or item.get_closest_marker("soak") is not None:
            item.add_marker(pytest.mark.timeout(SOAK_TIMEOUT, method=TIMEOUT_METHOD))
        elif item.get_closest_marker("slow") is not None:
            item.add_marker(pytest.mark.timeout(SLOW_TIMEOUT, method=TIMEOUT_METHOD))


def pytest_report_header() -> str:
    """Whose turn it is: with the same number, the same seeds run again."""
    return f"seeds: those of SHELDUCK_TEST_COMMITS={commits()}"


@pytest.fixture
def data_path(tmp_path: Path) -> str:
    """Where a lake may keep its files; ends with a slash, as DuckLake stores it."""
    return f"{tmp_path}/data/"
