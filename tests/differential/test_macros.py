"""Macros of DuckDB here, and ours in DuckDB."""

from __future__ import annotations

import pytest

import shelduck
from shelduck.errors import AlreadyExists, Conflict, InvalidRequest, NotFound, Unsupported
from tests.support.oracle import DuckDBOracle

SETUP = ("CREATE TABLE t (a INT, s VARCHAR)", "INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, 'x')")
CALLS = (
    "SELECT add(1), add(1, 2), add(1, 2, 3), add(1, b := 7)",
    "SELECT a, label(a) FROM t ORDER BY add(a)",
    "SELECT below(2), below(x.a) FROM t x ORDER BY x.a",
    "SELECT * FROM of_kind('x') AS k ORDER BY k.a",
    "SELECT main.add(s.a) FROM of_kind(k := 'y') s",
    "SELECT d(), d(DATE '2020-02-29')",
)
MADE = (
    "CREATE MACRO add(a, b := 5) AS a + b, (a, b, c) AS a + b * c",
    "CREATE MACRO label(n) AS CASE WHEN n > 1 THEN 'many' ELSE 'one' END",
    "CREATE MACRO below(n) AS (SELECT count(*) FROM t AS u WHERE u.a < n)",
    "CREATE MACRO of_kind(k := 'x') AS TABLE SELECT t.a, add(t.a) AS n FROM t WHERE t.s = k",
    "CREATE MACRO d(x := DATE '2024-01-31') AS x",
)


def _rows(frame):
    return [tuple(row) for row in frame]


@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
@pytest.mark.parametrize("maker", ["duckdb", "us"])
def test_a_macro_means_the_same_in_both(maker, database, request, spark, data_path):
    url = request.getfixturevalue(f"{database}_url")
    with shelduck.connect(url, data_path, spark) as lake, DuckDBOracle(url) as oracle:
        for text in SETUP:
            lake.sql(text)
        for text in MADE:
            (oracle.execute if maker == "duckdb" else lake.sql)(text)
        for text in CALLS:
            assert _rows(lake.sql(text).collect()) == _rows(oracle.sql(text)), text
        lake.sql("CREATE OR REPLACE MACRO label(n) AS n * 2")
        lake.sql("DROP MACRO TABLE of_kind")
        lake.sql("DROP MACRO IF EXISTS gone")
        left = "SELECT function_name FROM duckdb_functions() WHERE database_name = 'lake'"
        assert {name for (name,) in oracle.sql(left)} == {"add", "label", "below", "d"}
        assert oracle.sql("SELECT label(4)") == [(8,)]
        oracle.execute("DROP MACRO add")
        assert [r.macroName for r in lake.sql("SHOW MACROS LIKE 'a*|l*'").collect()] == ["label"]


def test_a_macro_that_duckdb_cannot_run_fails_there(spark, sqlite_url, data_path):
    with shelduck.connect(sqlite_url, data_path, spark) as lake, DuckDBOracle(sqlite_url) as oracle:
        lake.sql("CREATE MACRO clean(s) AS regexp_replace(trim(s), ' +', ' ')")
        lake.sql("CREATE MACRO halves(n) AS TABLE SELECT explode(sequence(1, n)) AS i")
        assert lake.sql("SELECT clean('  a   b ')").collect() == [("a b",)]
        assert len(lake.sql("SELECT i FROM halves(3)").collect()) == 3
        for call in ("SELECT clean('x')", "SELECT * FROM halves(3)"):
            with pytest.raises(Exception, match="is written for Spark"):
                oracle.sql(call)
        oracle.execute("CREATE MACRO pad(s) AS lpad(s, 5, '-')")
        with pytest.raises(Unsupported, match=r"main.pad\(s\): .* may have different meanings"):
            lake.sql("SELECT pad('x')")


def test_bad_macros_are_refused(spark, sqlite_url, data_path):
    with shelduck.connect(sqlite_url, data_path, spark) as lake:
        for text in (*SETUP, *MADE):
            lake.sql(text)
        before = len(lake.snapshots())
        for text, kind, said in (
            ("CREATE MACRO add(x) AS 1", AlreadyExists, "macro main.add already exists"),
            ("CREATE MACRO upper(x) AS 1", AlreadyExists, "Spark has a function 'upper'"),
            ("CREATE MACRO m(x) AS nosuch", InvalidRequest, "`nosuch` cannot be resolved"),
            ("CREATE MACRO m(x) AS TABLE FROM nosuch", NotFound, "table 'nosuch' does not exist"),
            ("CREATE MACRO m(x) AS nosuch(x)", InvalidRequest, "Cannot resolve routine `nosuch`"),
            ("CREATE MACRO m(x) AS 1 +", InvalidRequest, "Syntax error"),
            ("CREATE OR REPLACE MACRO add(x) AS add(x)", InvalidRequest, "calls itself"),
            ("DROP MACRO of_kind", InvalidRequest, "is a table macro; use DROP MACRO TABLE"),
            ("DROP MACRO ad", NotFound, "did you mean 'add'"),
            ("SELECT add()", InvalidRequest, "its parameters are"),
            ("SELECT below(a) FROM t", InvalidRequest, "may take the column a"),
            ("SELECT of_kind('x')", InvalidRequest, "Cannot resolve routine `of_kind`"),
            ("UPDATE t SET a = nosuch(a)", InvalidRequest, "Cannot resolve routine `nosuch`"),
        ):
            with pytest.raises(kind, match=said):
                lake.sql(text)
        assert len(lake.snapshots()) == before


def test_transactions_and_schemas_hold_macros(spark, sqlite_url, data_path):
    with shelduck.connect(sqlite_url, data_path, spark) as lake, DuckDBOracle(sqlite_url) as oracle:
        for text in (*SETUP, *MADE):
            lake.sql(text)
        lake.sql("BEGIN; CREATE SCHEMA s; CREATE MACRO s.one() AS 1; DROP MACRO d")
        assert lake.sql("SELECT s.one()").collect() == [(1,)]
        with pytest.raises(InvalidRequest, match="Cannot resolve routine `d`"):
            lake.sql("SELECT d()")
        lake.sql("ROLLBACK")
        assert len(lake.sql("SELECT d()").collect()) == 1
        lake.sql("BEGIN; CREATE SCHEMA s; CREATE MACRO s.one() AS 1; COMMIT")
        assert oracle.sql("SELECT s.one()") == [(1,)]
        with pytest.raises(InvalidRequest, match=r"contains 1 macro\(s\), such as 'one'"):
            lake.sql("DROP SCHEMA s")
        lake.sql("DROP SCHEMA s CASCADE")
        with pytest.raises(Exception, match="one"):
            oracle.sql("SELECT s.one()")
        lake.sql("BEGIN; DROP MACRO d")
        oracle.execute("DROP MACRO d")
        with pytest.raises(Conflict, match=r"drop macro main\.d"):
            lake.sql("COMMIT")
