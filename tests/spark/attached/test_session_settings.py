"""A session is used as it is: its settings change no row, and no setting is left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import shelduck

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

_ZONE = "spark.sql.session.timeZone"
_MOMENT = "TIMESTAMP '2024-03-10 01:30:00Z'"


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    """A session of its own settings in the Spark application of the tests."""
    return spark.newSession()


@pytest.mark.parametrize("later", ["Asia/Kolkata", "America/New_York"])
@pytest.mark.parametrize("operator", ["=", "<=", ">="])
def test_instants_are_found_when_the_time_zone_changes_after_the_read(
    session: SparkSession, tmp_path: Path, later: str, operator: str
) -> None:
    lake = shelduck.connect(f"sqlite:///{tmp_path}/c.db", f"{tmp_path}/data/", session)
    table = lake.create_table("t", {"at": "timestamp"})
    table.append(session.sql(f"SELECT {_MOMENT} AS at"))
    session.conf.set(_ZONE, "UTC")
    rows = table.read()
    session.conf.set(_ZONE, later)
    assert rows.where(f"at {operator} {_MOMENT}").count() == 1
