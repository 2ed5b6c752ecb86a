"""Law "Serial orders": two transactions leave what one leaves after the other, or are a Conflict.

A transaction begins, another one commits, and the first goes on. A plain DuckDB without a lake runs
both orders. If the first chose rows of a table, and the other added some, only the order of their
snapshots counts: the rows that came are among those from which it chose.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from itertools import product

import duckdb
import pytest

import shelduck
from shelduck import Conflict
from tests.support.lengths import turns
from tests.support.oracle import DuckDBOracle

MERGE = "MERGE INTO {t} USING s ON {t}.id = s.id WHEN "
CHOOSES = {
    "delete": "DELETE FROM {t} WHERE id = 7",
    "merge": MERGE + "MATCHED THEN UPDATE SET v = s.v",
    "replace by nothing": "INSERT INTO {t} REPLACE WHERE id = 7 SELECT id, v FROM s WHERE false",
    "truncate": "TRUNCATE TABLE {t}",
    "update": "UPDATE {t} SET v = v + 10 WHERE id = 7",
    "delete using": "DELETE FROM {t} USING s WHERE {t}.id = s.id",
    "update from": "UPDATE {t} SET v = s.v FROM s WHERE {t}.id = s.id",
    "merge away": MERGE + "MATCHED THEN DELETE",
    "overwrite by nothing": "INSERT OVERWRITE {t} (id, v) SELECT id, v FROM s WHERE false",
    "upsert": MERGE + "NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)",
    "replace": "INSERT INTO {t} (id, v) REPLACE WHERE id = 7 SELECT 7, 3",
    "overwrite": "INSERT OVERWRITE {t} (id, v) SELECT 7, 9",
    "delete a row": "DELETE FROM {t} WHERE id = 1",
    "update a row": "UPDATE {t} SET v = v * 2 WHERE id = 2",
}
ADDS = {
    "insert": "INSERT INTO {t} (id, v) VALUES (7, 1)",
    "insert of a query": "INSERT INTO {t} (id, v) SELECT id, 4 FROM s",
}
STATEMENTS = {**CHOOSES, **ADDS, "alter": "ALTER TABLE {t} ADD COLUMN w INT DEFAULT 5"}
IN_DUCKDB = {
    "replace by nothing": ["DELETE FROM {t} WHERE id = 7"],
    "truncate": ["DELETE FROM {t}"],
    "overwrite by nothing": ["DELETE FROM {t}"],
    "replace": ["DELETE FROM {t} WHERE id = 7", "INSERT INTO {t} (id, v) VALUES (7, 3)"],
    "overwrite": ["DELETE FROM {t}", "INSERT INTO {t} (id, v) VALUES (7, 9)"],
}
ADDING = {*ADDS, "upsert", "replace", "overwrite", "update a row"}
ROWS = "(1, 10), (2, 20)"
BEHIND = ((), ("insert",), ("update a row",))
PROGRAMS = [
    ((first, *behind), (other,))
    for behind, other, first in product(BEHIND, STATEMENTS, STATEMENTS)
    if not (first == "alter" and other == "alter")
]


def in_duckdb(name, table):
    return [text.format(t=table) for text in IN_DUCKDB.get(name, [STATEMENTS[name]])]


def serial(rows, *programs):
    """What the programs leave in a plain DuckDB, one after the other."""
    with closing(duckdb.connect()) as connection:
        connection.execute("CREATE TABLE s AS SELECT 7::INT AS id, 70::INT AS v")
        connection.execute("CREATE TABLE t (id INT, v INT)")
        if rows:
            connection.execute(f"INSERT INTO t VALUES {rows}")
        for name in (name for program in programs for name in program):
            for text in in_duckdb(name, "t"):
                connection.execute(text)
        return sorted(connection.execute("SELECT * FROM t").fetchall())


def begun(lake, rows):
    """The name of a new table with these rows."""
    table = f"t{len(lake.tables())}"
    lake.sql(f"CREATE TABLE {table} (id INT, v INT)")
    if rows:
        lake.sql(f"INSERT INTO {table} VALUES {rows}")
    return table


def outcome(lake, table, ours, other, theirs):
    """What both transactions leave and the first one's result, None if that is a Conflict."""
    with lake.transaction() as tx:
        tx.sql(STATEMENTS[ours[0]].format(t=table))
        other(table, theirs)
        try:
            for name in ours[1:]:
                tx.sql(STATEMENTS[name].format(t=table))
            done = tx.commit()
        except Conflict:
            tx.rollback()
            return None
    return sorted(tuple(row) for row in lake.sql(f"SELECT * FROM {table}").collect()), done


@contextmanager
def writers(url, data_path, spark, limit):
    """A lake whose small writes have this limit, and a function for each of two other writers."""
    with (
        shelduck.connect(url, data_path, spark, progress=False) as lake,
        shelduck.connect(url, data_path, spark, progress=False) as second,
    ):
        lake.sql(f"CALL set_option('data_inlining_row_limit', '{limit}')")
        lake.sql("CREATE TABLE s AS SELECT 7 AS id, 70 AS v")

        def by_shelduck(table, program):
            with second.transaction() as tx:
                for name in program:
                    tx.sql(STATEMENTS[name].format(t=table))

        def by_duckdb(table, program):
            with DuckDBOracle(url, options={"DATA_INLINING_ROW_LIMIT": limit}) as connection:
                for text in (text for name in program for text in in_duckdb(name, table)):
                    connection.execute(text)

        yield lake, by_shelduck, by_duckdb


@pytest.fixture(scope="module")
def inline(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("inline")
    with writers(f"sqlite:///{folder}/lake.db", f"{folder}/data/", spark, 10) as made:
        yield made


@pytest.mark.guard
@pytest.mark.sampled(4)
@pytest.mark.parametrize("first", CHOOSES)
def test_a_statement_that_found_no_row_has_looked_for_it(inline, first):
    lake, by_shelduck, by_duckdb = inline
    for other in (by_shelduck, by_duckdb):
        table = begun(lake, "" if first in ("truncate", "overwrite by nothing") else ROWS)
        assert outcome(lake, table, (first, "insert"), other, ("insert",)) is None
        assert lake.sql(f"SELECT count(*) FROM {table} WHERE id = 7").first()[0] == 1


def test_a_transaction_that_only_looked_is_no_snapshot_and_no_conflict(inline):
    lake, by_shelduck, _ = inline
    table = begun(lake, ROWS)
    tx = lake.transaction()
    tx.sql(STATEMENTS["delete"].format(t=table))
    by_shelduck(table, ("insert",))
    newest = lake.snapshots()[-1].id
    assert isinstance(tx.commit(), shelduck.Unchanged)
    assert lake.snapshots()[-1].id == newest


@pytest.mark.slow
@pytest.mark.databases("sqlite", "postgres")
@pytest.mark.parametrize("limit", [0, 10])
@pytest.mark.parametrize("programs", turns(PROGRAMS, 20))
def test_two_transactions_leave_what_one_leaves_after_the_other(
    lake_url, data_path, spark, limit, programs
):
    with writers(lake_url, data_path, spark, limit) as (lake, *others):
        for (ours, theirs), other in product(programs, others):
            found = outcome(lake, begun(lake, ROWS), ours, other, theirs)
            told = f"{ours} beside {theirs} by {other.__name__}"
            chose = not CHOOSES.keys().isdisjoint(ours)
            if found is None:
                assert chose or "alter" in ours or theirs[0] not in {*ADDS, "alter"}, told
                continue
            left, done = found
            orders = [serial(ROWS, theirs, ours)]
            # One that only looked has changed nothing that the other could have seen.
            is_unchanged = isinstance(done, shelduck.Unchanged)
            if is_unchanged or not (chose and theirs[0] in ADDING):
                orders.append(serial(ROWS, ours, theirs))
            assert left in orders, told
