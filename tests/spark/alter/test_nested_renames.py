"""Filters on fields of structs whose names other fields had in older files."""

from __future__ import annotations

from functools import reduce

import pytest
from pyspark.sql import DataFrame

from shelduck.read.pruning import Pruner
from tests.support.lakes import rows
from tests.support.oracle import DuckDBOracle

# DuckDB writes the rows, one file each time.
STATEMENTS = [
    "CREATE TABLE t (id INT, s STRUCT<x: INT, y: INT>, p STRUCT<mail: STRING, n: INT>)",
    "CREATE TABLE plain (id INT, s STRUCT<a: INT, b: INT, deep: STRUCT<a: INT>>)",
]
RENAMED = (
    "ALTER TABLE t RENAME COLUMN s.x TO z, RENAME COLUMN s.y TO x, RENAME COLUMN s.z TO y,"
    " RENAME COLUMN p.mail TO old_mail, ADD COLUMN p.mail STRING"
)


def duckdb(catalog):
    return DuckDBOracle(f"sqlite:///{catalog}", None, {"DATA_INLINING_ROW_LIMIT": 0})


@pytest.fixture
def renamed(copied):
    """Since two rows fields x and y have each other's name, and ``mail`` is another field."""
    catalog, lake = copied
    lake.set_option("data_inlining_row_limit", 0)
    with duckdb(catalog) as oracle:
        oracle.execute(
            "INSERT INTO t VALUES (1, ROW(1, 100), ROW('p', 1)), (2, ROW(2, 200), ROW('q', 2))"
        )
    lake.sql(RENAMED)
    with duckdb(catalog) as oracle:
        oracle.execute("INSERT INTO t VALUES (3, ROW(3, 300), ROW('zz', 3, 'new'))")
    return catalog, lake


CONDITIONS = [
    "s.x = 100",
    "s.x > 150",
    "s.y <= 2",
    "s.x IN (200, 300)",
    "p.mail = 'new'",
    "p.mail IS NULL",
    "p.old_mail = 'q'",
    "p.mail = 'p'",
    "s.x + 0 = 100 AND s.y = 1",
]


@pytest.mark.slow
def test_rows_are_found_as_duckdb_finds_them(renamed):
    catalog, lake = renamed
    table = lake.table("t").read()
    # One query for all of them: each is a scan of its own, with its own filter.
    found = [table.where(c).selectExpr(f"{n} AS n", "id") for n, c in enumerate(CONDITIONS)]
    text = " UNION ALL ".join(
        f"SELECT {n} AS n, id FROM t WHERE {c}" for n, c in enumerate(CONDITIONS)
    )
    with duckdb(catalog) as oracle:
        assert sorted(rows(reduce(DataFrame.unionAll, found))) == sorted(oracle.sql(text))


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("statement", "ids"),
    [
        ("DELETE FROM t WHERE s.x = 100", [2, 3]),
        ("DELETE FROM t WHERE p.mail = 'new'", [1, 2]),
        ("UPDATE t SET id = 20 WHERE s.x = 200", [1, 3, 20]),
        (
            (
                "MERGE INTO t USING (SELECT 200 AS x) AS n ON t.s.x = n.x AND t.s.x > 150"
                " WHEN MATCHED THEN UPDATE SET id = 20 WHEN NOT MATCHED THEN INSERT (id) VALUES (9)"
            ),
            [1, 3, 20],
        ),
    ],
)
def test_rows_to_change_are_found(renamed, statement, ids):
    catalog, lake = renamed
    lake.sql(statement)
    with duckdb(catalog) as oracle:
        assert oracle.sql("SELECT id FROM t ORDER BY id") == [(n,) for n in ids]


def test_files_are_left_out_by_fields_of_structs(copied, monkeypatch):
    catalog, lake = copied
    lake.set_option("data_inlining_row_limit", 0)
    kept = []
    ask = Pruner.__call__

    def noted(pruner, group, filters):
        found = ask(pruner, group, filters)
        kept.append(len(group.files) if found is None else len(found))
        return found

    def files_of(condition):
        kept.clear()
        assert rows(lake.table("plain").read().where(condition).select("id")) == [(1,)]
        return kept

    with duckdb(catalog) as oracle:
        oracle.execute("INSERT INTO plain VALUES (1, ROW(1, 100, ROW(5)))")
        oracle.execute("INSERT INTO plain VALUES (2, ROW(2, 200, ROW(6)))")
    monkeypatch.setattr(Pruner, "__call__", noted)
    assert files_of("s.a = 1") == [1]
    assert files_of("s.deep.a = 5") == [1]

    lake.sql("ALTER TABLE plain RENAME COLUMN s.a TO c, RENAME COLUMN s.deep.a TO d")
    assert files_of("s.b = 100") == [1]
    assert files_of("s.c = 1") == [1]
    assert files_of("s.deep.d = 5") == [1]
