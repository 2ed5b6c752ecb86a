"""One S3 server and one Spark session with the connector for it, for a process of their own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

import shelduck
from tests.support.jars import s3_settings
from tests.support.lakes import catalog_files
from tests.support.oracle import DuckDBOracle
from tests.support.s3 import BUCKET, running_s3
from tests.support.spark import local_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.s3 import S3Server


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """A server that the environment tells of, and nothing else."""
    with running_s3() as server:
        yield server


@pytest.fixture(scope="session")
def spark(s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session that has the connector and no settings for it."""
    with local_session(tmp_path_factory.mktemp("spark"), s3_settings()) as session:
        yield session


@pytest.fixture
def data_path() -> str:
    """Where a lake of one test may keep its files."""
    return f"s3://{BUCKET}/{uuid4().hex[:8]}/"


@pytest.fixture
def lake(sqlite_url: str, data_path: str, spark: SparkSession) -> Iterator[shelduck.Lake]:
    """A lake whose rows are all in files."""
    with shelduck.connect(sqlite_url, data_path, spark) as made:
        made.set_option("data_inlining_row_limit", 0)
        yield made


@dataclass(frozen=True)
class Objects:
    """The objects below the data path of a lake, by their keys."""

    s3: S3Server
    catalog: Path
    prefix: str

    def there(self) -> list[str]:
        return self.s3.keys(self.prefix)

    def named(self) -> list[str]:
        """Those that the newest snapshot needs."""
        return sorted(self.prefix + path for path in catalog_files(self.catalog, live=True))

    def put(self, name: str) -> str:
        """Make an object that is nobody's, and return its key."""
        self.s3.put(self.prefix + name, b"content")
        return self.prefix + name


@pytest.fixture
def objects(s3: S3Server, tmp_path: Path, data_path: str) -> Objects:
    return Objects(s3, tmp_path / "catalog.db", data_path.removeprefix(f"s3://{BUCKET}/"))


@pytest.fixture
def duckdb(s3: S3Server) -> Callable[..., DuckDBOracle]:
    """DuckDB with httpfs, which reads from the server."""
    return partial(DuckDBOracle, store=s3)
