"""What fails in the middle leaves no half of itself, and right after the commit loses nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest

from shelduck import AlreadyExists, InvalidRequest, NotFound
from shelduck.lake import unit
from shelduck.lake.workspace import Workspace
from tests.support.lakes import rows
from tests.support.meanwhile import once_after
from tests.support.oracle import DuckDBOracle

STATEMENTS = [
    "CALL set_option('data_inlining_row_limit', 0)",
    "CREATE TABLE t (id INT NOT NULL, name STRING DEFAULT '??')",
    "INSERT INTO t VALUES (1, 'one')",
    "CREATE TABLE u (id INT)",
]


def everything_of(lake):
    return {str(t): rows(lake.sql(f"SELECT * FROM {t} ORDER BY 1")) for t in lake.tables()}


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE OR REPLACE TABLE t (b INT, c INT) ROLLUP (r (nix))",
        "ALTER TABLE k RENAME TO other",
        "DROP SCHEMA s CASCADE",
    ],
)
def test_a_statement_that_fails_inside_is_not_there_by_half(copied, monkeypatch, statement):
    catalog, lake = copied
    lake.sql("CREATE TABLE k (a INT, b INT) DUPLICATE KEY (a) ROLLUP (r (b))")
    lake.sql("CREATE TABLE other (a INT); CREATE SCHEMA s; CREATE TABLE s.one (a INT)")
    lake.sql("INSERT INTO k VALUES (1, 2)")
    before, real = everything_of(lake), Workspace.drop_schema

    def late(*arguments, **options):
        real(*arguments, **options)
        raise InvalidRequest("and then something went wrong")

    monkeypatch.setattr(Workspace, "drop_schema", late)
    with lake.transaction() as tx:
        tx.sql("INSERT INTO u VALUES (7)")
        with pytest.raises((NotFound, AlreadyExists, InvalidRequest)):
            tx.sql(statement)

    assert everything_of(lake) == before | {"main.u": [(7,)]}
    lake.sql("INSERT INTO k VALUES (3, 4)")
    assert rows(lake.sql("SELECT * FROM `k$r` ORDER BY b")) == [(2,), (4,)]
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.rows("t") == [(1, "one")]
        assert duckdb.rows("u") == [(7,)]


def test_the_schema_that_use_has_chosen_is_given_up_with_the_transaction(lake):
    def fails():
        with lake.transaction() as tx:
            tx.sql("CREATE SCHEMA fresh; USE fresh")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert rows(lake.sql("SELECT * FROM t")) == [(1, "one")]

    with lake.transaction() as tx:
        tx.sql("CREATE SCHEMA fresh; USE fresh; CREATE TABLE t AS SELECT 5 AS id")
    assert rows(lake.sql("SELECT * FROM t")) == [(5,)]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("where", ["append", "statement", "transaction", "compaction"])
def test_an_interrupt_right_after_the_commit_costs_no_rows(copied, spark, monkeypatch, where):
    """Ctrl-C comes when it likes; whoever meets it does not know that the commit landed."""
    catalog, lake = copied
    lake.sql("INSERT INTO t VALUES (2, 'two')")
    table, three = lake.table("t"), spark.sql("SELECT 3 AS id, 'three' AS name")

    def in_a_transaction():
        with lake.transaction() as tx:
            tx.table("t").append(three)

    act = {
        "append": lambda: table.append(three),
        "statement": lambda: table.update({"id": "3", "name": "'three'"}, where="id = 2"),
        "transaction": in_a_transaction,
        "compaction": table.compact,
    }[where]

    def interrupt():
        raise KeyboardInterrupt

    once_after(monkeypatch, unit, "commit", interrupt)
    with pytest.raises(KeyboardInterrupt):
        act()

    expected = [(1, "one"), (2, "two"), (3, "three")]
    if where in ("statement", "compaction"):
        del expected[1 if where == "statement" else 2]
    assert sorted(rows(table.read())) == expected
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert sorted(duckdb.rows("t")) == expected
    lake.remove_orphans(older_than=timedelta(0))
    assert sorted(rows(table.read())) == expected
