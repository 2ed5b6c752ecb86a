"""Tables whose names are no plain words, dropped and found again by them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import shelduck

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> shelduck.Lake:
    """A fresh lake with one table, x."""
    made = shelduck.connect(f"sqlite:///{tmp_path}/c.db", f"{tmp_path}/data/", spark)
    made.create_table("x", {"a": "int"})
    return made


@pytest.mark.parametrize("quoted", ["`a.b`", "```x```", '`"x"`', "`main.x`", "` x`", "`'`"])
def test_drop_table_drops_the_table_of_that_very_name(lake: shelduck.Lake, quoted: str) -> None:
    lake.sql(f"CREATE TABLE {quoted} (a INT)")
    lake.sql(f"DROP TABLE {quoted}")
    assert [t.name for t in lake.tables()] == ["x"]


def test_the_names_that_a_lake_lists_name_its_tables(lake: shelduck.Lake) -> None:
    lake.sql("CREATE SCHEMA `s.t`")
    lake.sql("CREATE TABLE `s.t`.`a.``b` (a INT)")
    names = [str(name) for name in lake.tables()]
    assert names == ["main.x", "`s.t`.`a.``b`"]
    assert [lake.table(name).name.name for name in names] == ["x", "a.`b"]
