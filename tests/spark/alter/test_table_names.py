"""Tables whose names are no plain words, dropped and found again by them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

import shelduck
from shelduck import NotFound
from tests.support.lakes import rows
from tests.support.oracle import DuckDBOracle

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> shelduck.Lake:
    """A fresh lake with one table, x."""
    made = shelduck.connect(f"sqlite:///{tmp_path}/c.db", f"{tmp_path}/data/", spark)
    made.create_table("x", {"a": "int"})
    return made


@pytest.mark.slow
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


def test_what_a_rename_leaves_that_lost_to_a_drop_takes_no_name(
    lake: shelduck.Lake, tmp_path: Path
) -> None:
    """A table without columns: DuckDB makes such a one, hides it, and uses its name again."""
    lake.sql("CREATE SCHEMA s; CREATE TABLE s.y (a INT); CREATE TABLE s.z (a INT)")
    for name in ("x", "s.y", "s.z"):
        lake.sql(f"DROP TABLE {name}")
    with closing(sqlite3.connect(tmp_path / "c.db")) as catalog, catalog:
        catalog.execute("UPDATE ducklake_table SET end_snapshot = NULL")
    assert lake.tables() == []
    with pytest.raises(NotFound, match="table 'x' does not exist"):
        lake.table("x").read()

    lake.sql("CREATE TABLE x AS SELECT 1 AS a")
    with DuckDBOracle(f"sqlite:///{tmp_path}/c.db") as duckdb:
        assert duckdb.rows("x") == [(1,)]
        duckdb.execute("CREATE TABLE lake.s.y (b INTEGER)")
        duckdb.execute("INSERT INTO lake.s.y VALUES (2)")
    assert rows(lake.sql("SELECT b FROM s.y")) == [(2,)]
    lake.sql("DROP TABLE s.y; DROP SCHEMA s")
    assert [str(name) for name in lake.tables()] == ["main.x"]
