"""Odd names from `CREATE` to DuckDB: any case, dots, spaces, quotes, other alphabets."""

from __future__ import annotations

import pytest

import shelduck
from tests.support.lakes import newest, rows
from tests.support.oracle import DuckDBOracle

# A schema, a table, a column and a struct's field for each kind of oddity.
ODD = [
    "with.dot",
    "with space",
    'say "hi"',
    "it's",
    "back`tick",
    "größe",
    "名前",
    "SELECT",
    "MixedCase",
    "1st",
    "a/b",
    "%20",
    "semi;colon--",
    "tab\there",
    "element",
]


def ticked(name):
    return "`" + name.replace("`", "``") + "`"


def doubled(name):
    return '"' + name.replace('"', '""') + '"'


@pytest.fixture
def lake(sqlite_url, data_path, spark):
    with shelduck.connect(sqlite_url, data_path, spark) as lake:
        yield lake


@pytest.mark.slow
def test_odd_columns_and_fields_live_a_whole_life(lake, sqlite_url):
    columns = ", ".join(f"{ticked(n)} STRUCT<{ticked(n)}: INT, x: INT>" for n in ODD)
    lake.sql(f"CREATE TABLE t (id INT, {columns})")
    lake.sql(
        "INSERT INTO t SELECT 1, "
        + ", ".join(
            f"CAST(named_struct('f', {n}, 'x', 0) AS STRUCT<{ticked(name)}: INT, x: INT>)"
            for n, name in enumerate(ODD)
        )
    )
    changes = [f"ADD COLUMN {ticked(n)}.{ticked(n + '2')} INT DEFAULT 5" for n in ODD]
    changes += [f"ALTER COLUMN {ticked(n)}.{ticked(n)} TYPE BIGINT" for n in ODD]
    changes += [f"DROP COLUMN {ticked(n)}.x" for n in ODD]
    lake.sql(f"ALTER TABLE t {', '.join(changes)}")
    assert newest(lake) == 3

    paths = [f"{ticked(n)}.{ticked(n)}" for n in ODD]
    added = [f"{ticked(n)}.{ticked(n + '2')}" for n in ODD]
    condition = " AND ".join(f"{p} = {n}" for n, p in enumerate(paths))
    found = lake.sql(f"SELECT {', '.join(paths + added)} FROM t WHERE {condition}")

    expected = (*range(len(ODD)), *[5] * len(ODD))
    assert rows(found) == [expected]
    assert lake.table("t").read().columns == ["id", *ODD]
    with DuckDBOracle(sqlite_url) as duckdb:
        told = [f"{doubled(n)}.{doubled(n)}" for n in ODD]
        more = [f"{doubled(n)}.{doubled(n + '2')}" for n in ODD]
        condition = " AND ".join(f"{p} = {n}" for n, p in enumerate(told))
        assert duckdb.sql(f"SELECT {', '.join(told + more)} FROM t WHERE {condition}") == [expected]


@pytest.mark.slow
def test_columns_called_like_what_spark_and_changes_know_of_rows_are_changed(lake, sqlite_url):
    names = ["_metadata", "_row_id", "_file_id", "_position", "_snapshot_id", "c0"]
    lake.sql("CALL set_option('data_inlining_row_limit', '0')")
    lake.sql(f"CREATE TABLE t (id INT, {', '.join(f'{n} STRING' for n in names)})")
    texts = ", ".join(["CAST(id AS STRING)"] * 6)
    lake.sql(f"INSERT INTO t SELECT CAST(id AS INT), {texts} FROM range(5)")
    for n in names:
        lake.sql(f"UPDATE t SET {n} = concat({n}, '!') WHERE {n} = '1'")
        lake.sql(
            f"MERGE INTO t USING (SELECT '2' AS {n}) s ON t.{n} = s.{n}"
            f" WHEN MATCHED THEN UPDATE SET {n} = concat(s.{n}, t.{n})"
        )
    lake.sql("DELETE FROM t WHERE _metadata = '3' AND _position = '3'")
    lake.table("t").rewrite_deletes(0)
    lake.table("t").compact(min_files=1)
    want = [(0, *["0"] * 6), (1, *["1!"] * 6), (2, *["22"] * 6), (4, *["4"] * 6)]
    assert rows(lake.table("t").read().orderBy("id")) == want
    with DuckDBOracle(sqlite_url) as duckdb:
        assert duckdb.sql("SELECT * FROM t ORDER BY id") == want
        assert duckdb.sql("SELECT rowid FROM t ORDER BY id") == [(0,), (1,), (2,), (4,)]


@pytest.mark.slow
def test_odd_schemas_and_tables_are_made_read_and_renamed(lake, sqlite_url):
    with lake.transaction() as tx:
        for name in ODD:
            tx.sql(f"CREATE SCHEMA {ticked(name)}")
            tx.sql(f"CREATE TABLE {ticked(name)}.{ticked(name)} (a INT)")
    for name in ODD[:5]:
        lake.sql(f"INSERT INTO {ticked(name.upper())}.{ticked(name.upper())} VALUES (1)")
    with lake.transaction() as tx:
        for name in ODD:
            tx.sql(f"ALTER TABLE {ticked(name)}.{ticked(name)} RENAME TO {ticked(name + ' new')}")

    # A dot in a name is not one between names.
    marked = {n: ticked(n) if set(n) & set('.`"') else n for n in ODD}
    assert {(t.schema, t.name) for t in lake.tables()} == {(marked[n], f"{n} new") for n in ODD}
    for name in ODD[:5]:
        assert rows(lake.sql(f"SELECT * FROM {ticked(name)}.{ticked(name + ' new')}")) == [(1,)]
    with DuckDBOracle(sqlite_url) as duckdb:
        for name in ODD:
            count = 1 if name in ODD[:5] else 0
            assert len(duckdb.rows(f"{doubled(name)}.{doubled(name + ' new')}")) == count


def test_duckdbs_own_odd_names_are_read_here(sqlite_url, data_path, spark):
    with DuckDBOracle(sqlite_url, data_path, {"DATA_INLINING_ROW_LIMIT": 0}) as duckdb:
        duckdb.execute('CREATE SCHEMA "a.b"')
        duckdb.execute('CREATE TABLE "a.b"."c ""d""" ("e`f" INT, "g.h" STRUCT("i j" INT))')
        duckdb.execute('INSERT INTO "a.b"."c ""d""" VALUES (1, {\'i j\': 2})')

    with shelduck.connect(sqlite_url, spark=spark) as lake:
        table = lake.table('`a.b`."c ""d"""')
        assert rows(table.read()) == [(1, (2,))]
        assert rows(lake.sql('SELECT `e``f`, `g.h`.`i j` FROM `a.b`.`c "d"` WHERE `e``f` = 1')) == [
            (1, 2)
        ]


@pytest.mark.parametrize("name", ["events", "EVENTS", "main.Events", "`MAIN`.`events`"])
def test_a_table_is_found_in_any_case(lake, name):
    lake.create_table("Events", {"Id": "int"})

    lake.table(name).alter(shelduck.rename_column("ID", "Key"))

    assert lake.table(name).read().select("KEY").columns == ["KEY"]
    assert str(lake.tables()[0]) == "main.Events"
