"""Rows of ducklake_table_stats and ducklake_table_column_stats, also those that others wrote."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from ducklakepy import load_catalog
from sqlalchemy import select

import shelduck
from shelduck.catalog.read.table_facts import described
from shelduck.errors import InvalidRequest, NotFound
from shelduck.model.changes.change import AppendFiles
from shelduck.model.changes.schema_change import ChangeType
from shelduck.model.types.data_types import parse_type
from tests.support.files import write_file
from tests.support.lake import Lake
from tests.support.oracle import DuckDBOracle

_COLUMNS = """
    SELECT k.column_name, s.contains_null, s.min_value, s.max_value, s.min_is_exact, s.max_is_exact
    FROM ducklake_table_column_stats s JOIN ducklake_column k USING (table_id, column_id)
    WHERE k.end_snapshot IS NULL ORDER BY column_id
"""


@pytest.fixture
def place(tmp_path):
    return tmp_path / "c.db"


@pytest.fixture
def lake(place, data_path):
    with closing(shelduck.connect(f"sqlite:///{place}", data_path, ducklake_version="1.1")) as made:
        yield made


def ask(place, query, *values):
    with closing(sqlite3.connect(place)) as connection, connection:
        return connection.execute(query, values).fetchall()


def test_rows_in_the_catalog_bring_their_bounds_and_that_these_are_values(place, lake):
    lake.execute("CREATE TABLE t (a INT, s STRING, long STRING, d DATE, n INT)")
    lake.execute(f"INSERT INTO t VALUES (3, 'm', '{'z' * 300}', DATE'2024-02-01', NULL)")
    lake.execute("INSERT INTO t VALUES (1, NULL, 'a', DATE'2024-01-01', NULL)")
    lake.execute("ALTER TABLE t ADD COLUMNS (k STRING DEFAULT 'x', nul STRING)")

    assert ask(place, _COLUMNS) == [
        ("a", 0, "1", "3", 1, 1),
        ("s", 1, "m", "m", 1, 1),
        ("long", 0, "a", "z" * 255 + "{", 1, 0),
        ("d", 0, "2024-01-01", "2024-02-01", 1, 1),
        ("n", 1, None, None, None, None),
        ("k", 0, "x", "x", 1, 1),
        ("nul", 1, None, None, None, None),
    ]


def test_texts_of_a_lake_from_before_1_1_are_values_only_where_newer_ones_win(place, lake):
    lake.execute("CREATE TABLE t (a INT, s STRING)")
    lake.execute("INSERT INTO t VALUES (3, 'b'), (4, 'x')")
    ask(place, "UPDATE ducklake_table_column_stats SET min_is_exact = NULL, max_is_exact = NULL")

    lake.execute("INSERT INTO t VALUES (3, 'c'), (9, 'z')")
    assert ask(place, _COLUMNS) == [("a", 0, "3", "9", 1, 1), ("s", 0, "b", "z", 0, 1)]
    lake.execute("INSERT INTO t VALUES (3, 'b')")
    assert ask(place, _COLUMNS) == [("a", 0, "3", "9", 1, 1), ("s", 0, "b", "z", 0, 1)]


@pytest.mark.every_database
def test_bounds_and_flags_come_and_go_together_on_every_database(lake_url, data_path):
    shelduck.connect(lake_url, data_path, ducklake_version="1.1").close()
    lake = Lake(lake_url, data_path)
    lake.create("t", a="float", s="string")
    lake.append("t", [{"a": 1.5, "s": "b"}], {1: ("1.5", "1.5", 0), 2: ("b", "b", 0)})
    lake.append("t", [{"a": 2.5, "s": "a"}], {1: ("2.5", "2.5", 0), 2: ("a", "a", 0)})
    names = ("column_id", "min_value", "max_value", "min_is_exact", "max_is_exact")

    def known(name):
        with lake.store.read() as connection:
            found = lake.store.format.table(name).c
            rows = connection.execute(select(*(found[n] for n in names)).order_by("column_id"))
            return [tuple(row) for row in rows]

    assert known("ducklake_table_column_stats") == [
        (1, "1.5", "2.5", True, True),
        (2, "a", "b", False, False),
    ]
    lake.alter("t", ChangeType(("a",), parse_type("double")))
    assert known("ducklake_table_column_stats") == [(2, "a", "b", False, False)]
    assert {row[1:] for row in known("ducklake_file_column_stats") if row[0] == 1} == {(None,) * 4}
    lake.store.close()


@pytest.mark.parametrize(("version", "told"), [("1.0", None), ("1.1", True)])
def test_files_that_a_commit_writes_again_say_what_they_said(place, data_path, version, told):
    shelduck.connect(f"sqlite:///{place}", data_path, ducklake_version=version).close()
    lake = Lake(f"sqlite:///{place}", data_path)
    with closing(lake.store) as store:
        lake.create("t", s="string")
        file = write_file(lake.table("t"), [{"s": "b"}], {1: ("b", "b", 0)})
        [stats] = file.stats
        stats = stats._replace(min_is_exact=True, max_is_exact=True)
        file = replace(file, stats=(stats,), row_group_count=1)
        lake.commit(AppendFiles(lake.table("t").id, (file,)))

        with store.read() as connection:
            [again] = described(connection, lake.table("t").id, lake.files("t"), {})

    assert again.row_group_count == (told and 1)
    assert again.stats == (stats._replace(min_is_exact=told, max_is_exact=told),)


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_bounds_that_another_writer_does_not_know_are_not_set_by_later_rows(
    place, data_path, version
):
    with closing(
        shelduck.connect(f"sqlite:///{place}", data_path, ducklake_version=version)
    ) as lake:
        lake.execute("CREATE TABLE t (a INT, s STRING)")
        lake.execute("INSERT INTO t VALUES (3, 'b'), (4, 'x')")
        ask(place, "UPDATE ducklake_table_column_stats SET min_value = NULL, max_value = NULL")
        lake.execute("INSERT INTO t VALUES (5, 'k')")
        lake.execute("INSERT INTO t VALUES (6, 'l')")

    # No row means unknown to every reader.
    assert ask(place, "SELECT * FROM ducklake_table_column_stats") == []


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize(
    ("gone", "after"),
    [
        ("record_count = NULL", [(None, 3, 0)]),
        ("file_size_bytes = NULL", [(3, 3, None)]),
        ("record_count = NULL, file_size_bytes = NULL", [(None, 3, None)]),
    ],
)
def test_totals_that_another_writer_does_not_know_stay_unknown(
    place, data_path, version, gone, after
):
    with closing(
        shelduck.connect(f"sqlite:///{place}", data_path, ducklake_version=version)
    ) as lake:
        lake.execute("CREATE TABLE t (a INT)")
        lake.execute("INSERT INTO t VALUES (3), (4)")
        ask(place, f"UPDATE ducklake_table_stats SET {gone}")
        lake.execute("INSERT INTO t VALUES (5)")

        assert not lake.check().problems
    query = "SELECT record_count, next_row_id, file_size_bytes FROM ducklake_table_stats"
    assert ask(place, query) == after


def test_the_option_skip_stats_columns_is_set_by_names_and_stored_by_ids(place, lake):
    lake.execute("CREATE TABLE t (a INT, `x,y` STRING, s STRUCT<p: INT>, z INT)")
    lake.set_option("skip_stats_columns", "S, `x,y`", table="t")

    stored = "SELECT value, scope FROM ducklake_metadata WHERE key = 'skip_stats_columns'"
    assert ask(place, stored) == [("3,2", "table")]
    assert [option.value for option in lake.options()] == ["s, `x,y`"]
    lake.execute("ALTER TABLE t RENAME COLUMN s TO r")
    assert [option.value for option in lake.options()] == ["r, `x,y`"]
    lake.execute("INSERT INTO t VALUES (1, 'a', NULL, 2)")
    assert [row[0] for row in ask(place, _COLUMNS)] == ["a", "p", "z"]
    lake.execute("CALL set_option('skip_stats_columns', ARRAY('a', 'z'), table_name => 't')")
    assert ask(place, stored) == [("1,5", "table")]
    lake.set_option("skip_stats_columns", [], table="t")
    assert ask(place, stored) == [("", "table")]


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("CALL set_option('skip_stats_columns', 'z')", "applies to one table; give its name"),
        ("CALL set_option('skip_stats_columns', 7, table_name => 't')", "does not accept 7; give"),
        (
            "CALL set_option('skip_stats_columns', 'p', table_name => 't')",
            r"skip statistics of 'p' of main\.t: the table is partitioned by it; use ALTER TABLE",
        ),
        (
            "ALTER TABLE t SET PARTITIONED BY (k)",
            r"cannot partition main\.t by 'k': option skip_stats_columns names it; set the option",
        ),
        (
            "CALL set_option('skip_stats_columns', 'a b', table_name => 't')",
            "does not exist in main",
        ),
    ],
)
def test_a_column_without_bounds_exists_and_is_no_partition_key(lake, statement, told):
    lake.execute("CREATE TABLE t (k INT, p INT) PARTITIONED BY (p)")
    lake.set_option("skip_stats_columns", "k", table="t")

    with pytest.raises((InvalidRequest, NotFound), match=told):
        lake.execute(statement)


def test_files_get_no_bounds_of_columns_that_ducklakepy_lets_skip(place, data_path, lake):
    lake.execute("CREATE TABLE t (a INT, s STRUCT<p: INT, q: STRING>)")
    with closing(load_catalog(url=f"sqlite:///{place}", data_path=data_path)) as catalog:
        catalog.load_table("main.t").set_option("skip_stats_columns", ["s"])

    one = Lake(f"sqlite:///{place}", data_path)
    rows = [{"a": 1, "s": {"p": 1, "q": "x"}}]
    one.append("t", rows, {1: ("1", "1", 0), 3: ("1", "1", 0), 4: ("x", "x", 0)})
    one.store.close()

    found = "SELECT column_id, value_count, min_value FROM ducklake_file_column_stats ORDER BY 1"
    assert ask(place, found) == [(1, 1, "1"), (3, 1, None), (4, 1, None)]
    assert [row[0] for row in ask(place, _COLUMNS)] == ["a"]
    assert [option.value for option in lake.options()] == ["s"]


def test_duckdb_reads_and_writes_a_table_with_the_option(sqlite_url, data_path):
    lake = shelduck.connect(sqlite_url, data_path)
    lake.execute("CREATE TABLE t (a INT, s STRING)")
    lake.set_option("skip_stats_columns", "s", table="t")
    lake.execute("INSERT INTO t VALUES (1, 'k')")
    lake.close()

    with DuckDBOracle(sqlite_url) as duckdb:
        duckdb.execute("INSERT INTO t VALUES (2, 'a'), (3, 'z')")
        assert duckdb.sql("SELECT a FROM t WHERE s = 'a'") == [(2,)]
        assert duckdb.sql("SELECT min(s), max(s) FROM t") == [("a", "z")]
