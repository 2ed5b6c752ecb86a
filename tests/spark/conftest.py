"""Lakes to change, the bridge of the session, and both ways of reading."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from shelduck.catalog.upkeep import known_files
from shelduck.engine.bridge import engine_for
from shelduck.engine.bridge.classic import ClassicEngine
from shelduck.read.plan.scan import plan_scan
from shelduck.read.scan.scan_frames import read_rows
from tests.support.lakes import Base
from tests.support.no_bridge import without_bridge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def in_batches(spark, compiled):
    """Spark reads batches only for generated code."""
    spark.conf.set("spark.sql.codegen.wholeStage", "true")
    yield
    for name in ("codegen.wholeStage", "columnVector.offheap.enabled"):
        spark.conf.unset(f"spark.sql.{name}")


@pytest.fixture(scope="module")
def base(request, spark, tmp_path_factory):
    """The lake that the module's STATEMENTS make."""
    return Base(tmp_path_factory.mktemp("base"), spark, request.module.STATEMENTS)


@pytest.fixture
def copied(base):
    """A copy of the base's catalog, and the lake in it."""
    catalog, lake = base.copy()
    yield catalog, lake
    lake.close()


@pytest.fixture
def lake(copied):
    """A lake like the base, for this test alone."""
    return copied[1]


@pytest.fixture
def bridge(spark: SparkSession) -> ClassicEngine:
    made = engine_for(spark)
    assert isinstance(made, ClassicEngine)
    return made


@pytest.fixture(params=["bridge", "public"])
def path_of_reading(request, monkeypatch):
    """Both ways into Spark: through the JVM, and by the public API as over Spark Connect."""
    if request.param == "public":
        without_bridge(monkeypatch)
    return request.param


@pytest.fixture
def rows(spark, path_of_reading):
    """The rows of a table over files, filtered, as plain tuples."""

    def rows_of(version, files, where="true", mappings=None, *, columns=None, **more):
        plan = plan_scan(version, files, mappings or {}, columns)
        return sorted(map(tuple, read_rows(spark, plan, **more).where(where).collect()), key=str)

    return rows_of


@pytest.fixture
def paths_read(monkeypatch):
    """The paths of the rows that a search for files reads in the catalog."""
    read, real = [], known_files.resolve

    def resolve(*arguments):
        read.append(arguments[1])
        return real(*arguments)

    monkeypatch.setattr(known_files, "resolve", resolve)
    return read
