"""Rollups on branches: writes follow there, and a merge leaves those of the source right."""

from __future__ import annotations

import pytest

import shelduck
from shelduck import Conflict, TableName
from shelduck.lake.unit import UnitOfWork
from shelduck.rollups.following import is_fresh
from shelduck.rollups.rollup_tables import rollups_of
from tests.support.oracle import DuckDBOracle
from tests.support.rollups import bag

SUMS = "SELECT k, sum(n) AS n FROM {} GROUP BY k"


@pytest.fixture
def lake(spark, tmp_path):
    with shelduck.connect(f"sqlite:///{tmp_path}/lake.db", f"{tmp_path}/data", spark) as found:
        found.sql("CREATE TABLE t (k STRING, n BIGINT)")
        found.sql("INSERT INTO t VALUES ('a', 1), ('b', 2)")
        found.sql("CREATE MATERIALIZED VIEW sums AS SELECT k, sum(n) FROM t GROUP BY k")
        yield found


def told(lake, name, query=SUMS):
    """Whether queries may use the rollups of a table, whose rows DuckDB compares with its own."""
    schema, table = name.split(".")
    with DuckDBOracle(lake._state.store.where) as duck:
        wanted = bag(duck.sql(query.format(name)))
        held = bag(duck.sql(f'SELECT * FROM {schema}."{table}$sums"'))
    assert bag(lake.sql(query.format(name)).collect()) == wanted
    unit = UnitOfWork(lake._state)
    base = unit.workspace.table(TableName(schema, table))
    fresh = {is_fresh(unit, base, rollup) for rollup in rollups_of(unit, base)}
    assert (held == wanted) or fresh != {True}
    return sorted(wanted), fresh == {True}


@pytest.mark.parametrize("inlined", [0, 100], ids=["files", "inlined"])
def test_rollups_follow_on_a_branch_and_after_its_merge(lake, inlined):
    lake.execute(f"CALL set_option('data_inlining_row_limit', {inlined})")
    lake.sql("INSERT INTO t VALUES ('b', 3)")
    lake.create_branch("b")
    assert told(lake, "b.t") == ([("a", 1), ("b", 5)], True)
    lake.sql("INSERT INTO b.t VALUES ('a', 5)")
    lake.sql("DELETE FROM b.t WHERE n = 3")
    assert told(lake, "b.t") == ([("a", 6), ("b", 2)], True)
    assert told(lake, "main.t") == ([("a", 1), ("b", 5)], True)
    assert [(b.name, b.tables) for b in lake.branches()] == [("b", 1)]

    lake.merge_branch("b")
    assert told(lake, "main.t") == ([("a", 6), ("b", 2)], True)
    lake.sql("INSERT INTO t VALUES ('c', 1)")
    lake.sql("UPDATE b.t SET n = 7 WHERE k = 'b'")
    lake.merge_branch("b")
    assert told(lake, "main.t") == ([("a", 6), ("b", 7), ("c", 1)], True)
    lake.undo_merge("b")
    assert told(lake, "main.t") == ([("a", 6), ("b", 2), ("c", 1)], True)
    assert told(lake, "b.t") == ([("a", 6), ("b", 7)], True)
    assert not lake.check(rows=True).problems
    lake.drop_branch("b")
    assert told(lake, "main.t")[1]


def test_columns_of_a_table_with_rollups_merge(lake):
    lake.create_branch("b")
    lake.execute("ALTER TABLE b.t ADD COLUMN more INT DEFAULT 3")
    lake.execute("ALTER TABLE b.t RENAME COLUMN k TO kind")
    lake.sql("INSERT INTO b.t VALUES ('c', 7, 1)")
    lake.execute("ALTER TABLE t ADD COLUMN ours INT")
    lake.sql("INSERT INTO t VALUES ('a', 10, 1)")
    lake.merge_branch("b")
    query = "SELECT kind, sum(n) AS n FROM {} GROUP BY kind"
    assert told(lake, "main.t", query) == ([("a", 11), ("b", 2), ("c", 7)], True)
    assert lake.sql("SELECT * FROM t ORDER BY n").columns == ["kind", "n", "more", "ours"]
    lake.sql("INSERT INTO t VALUES ('b', 1, 1, 1)")
    assert told(lake, "main.t", query) == ([("a", 11), ("b", 3), ("c", 7)], True)
    assert not lake.check(rows=True).problems


def test_a_merge_makes_rollups_of_converted_columns_again(lake):
    lake.execute("ALTER TABLE t DROP ROLLUP sums")
    lake.create_branch("b")
    lake.execute("ALTER TABLE b.t ALTER COLUMN k TYPE STRING USING upper(k)")
    lake.sql("INSERT INTO b.t VALUES ('A', 4)")
    lake.sql("CREATE MATERIALIZED VIEW sums AS SELECT k, sum(n) FROM t GROUP BY k")
    lake.merge_branch("b")
    assert told(lake, "main.t") == ([("A", 5), ("B", 2)], True)
    assert not lake.check(rows=True).problems


def test_a_branch_that_converted_a_column_gets_new_rows_for_its_rollups_too(lake):
    lake.execute("ALTER TABLE t ADD ROLLUP plain (n, k)")
    lake.create_branch("b")
    lake.execute("ALTER TABLE b.t DROP ROLLUP sums")
    lake.execute("ALTER TABLE b.t ALTER COLUMN n TYPE STRING")
    lake.sql("INSERT INTO b.t VALUES ('c', '7')")
    lake.sql("INSERT INTO t VALUES ('d', 8)")
    lake.merge_branch("b")
    found = [("a", "1"), ("b", "2"), ("c", "7"), ("d", "8")]
    assert sorted(map(tuple, lake.sql("SELECT * FROM t").collect())) == found
    for name in ("main", "b"):
        with DuckDBOracle(lake._state.store.where) as duck:
            assert sorted(duck.sql(f'SELECT k, n FROM {name}."t$plain"')) == found
    assert not lake.check(rows=True).problems


def test_a_merge_drops_rollups_that_lose_a_column(lake):
    lake.create_branch("b")
    lake.execute("ALTER TABLE b.t DROP ROLLUP sums")
    lake.execute("ALTER TABLE b.t DROP COLUMN n")
    lake.merge_branch("b")
    assert [str(name) for name in lake.tables("main")] == ["main.t"]
    assert not lake.check(rows=True).problems


def test_what_duckdb_writes_on_a_branch_leaves_its_rollups_unused(lake):
    lake.create_branch("b")
    with DuckDBOracle(lake._state.store.where) as duck:
        duck.execute("INSERT INTO b.t VALUES ('z', 1)")
    assert told(lake, "b.t") == ([("a", 1), ("b", 2), ("z", 1)], False)
    at = lake.create_branch("c", "b").snapshot
    assert told(lake, "c.t") == ([("a", 1), ("b", 2), ("z", 1)], False)
    lake.merge_branch("b")
    assert told(lake, "main.t") == ([("a", 1), ("b", 2), ("z", 1)], True)
    lake.sql("INSERT INTO c.t VALUES ('z', 1)")
    assert told(lake, "c.t") == ([("a", 1), ("b", 2), ("z", 2)], True)
    assert at > 0


def test_tables_with_rollups_come_and_go_with_a_branch(lake):
    lake.execute("ALTER TABLE t CREATE BRANCH one")
    assert told(lake, "one.t")[1]
    lake.execute("ALTER TABLE t CREATE OR REPLACE BRANCH one")
    assert told(lake, "one.t")[1]
    lake.sql("CREATE TABLE one.new (k STRING, n BIGINT)")
    lake.sql("INSERT INTO one.new VALUES ('a', 1), ('a', 2)")
    lake.sql("CREATE MATERIALIZED VIEW sums AS SELECT k, sum(n) FROM one.new GROUP BY k")
    lake.merge_branch("one")
    assert told(lake, "main.new") == ([("a", 3)], True)
    lake.sql("INSERT INTO new VALUES ('b', 1)")
    assert told(lake, "main.new") == ([("a", 3), ("b", 1)], True)
    # Nothing happened on the branch since.
    assert lake.branch_diff("one").is_empty
    lake.execute("ALTER TABLE one.new RENAME TO newer")
    lake.sql("DROP TABLE one.t")
    lake.merge_branch("one")
    assert [str(name) for name in lake.tables("main")] == ["main.newer", "main.`newer$sums`"]
    assert told(lake, "main.newer")[1]
    lake.execute("CREATE TAG x")
    assert told(lake, "x.newer")[1]
    assert not lake.check(rows=True).problems


def made(lake, name, view, what="k, max(n)"):
    lake.sql(f"CREATE MATERIALIZED VIEW {view} AS SELECT {what} FROM {name} GROUP BY k")


def rollups(lake, name):
    return sorted(r.RollupName for r in lake.sql(f"SHOW ROLLUPS FROM {name}").collect())


def test_rollups_that_a_branch_makes_and_drops_come_with_its_merge(lake):
    made(lake, "t", "most")
    lake.create_branch("b")
    made(lake, "b.t", "least", "k, min(n)")
    lake.execute("ALTER TABLE b.t DROP ROLLUP most")
    [only] = lake.sql("MERGE BRANCH b DRY RUN").collect()
    assert (only.table, only.change, only.sql.split("; ")) == (
        "main.t",
        "changed",
        [
            "ALTER TABLE main.t DROP ROLLUP most",
            "CREATE MATERIALIZED VIEW least AS SELECT k, MIN(n) AS min_n FROM main.t GROUP BY k",
        ],
    )
    assert "  ALTER TABLE main.t DROP ROLLUP most\n" in str(lake.branch_diff("b"))
    lake.sql("INSERT INTO t VALUES ('a', 9)")
    lake.sql("ALTER TABLE t RENAME COLUMN n TO m")
    assert [(c.kind, c.item) for c in lake.merge_conflicts("b")] == []
    lake.merge_branch("b")

    assert sorted(map(str, lake.tables("main"))) == [*("main.`t$least`", "main.`t$sums`", "main.t")]
    with DuckDBOracle(lake._state.store.where) as duck:
        assert sorted(duck.sql('SELECT * FROM "t$least"')) == [("a", 1), ("b", 2)]
        assert sorted(duck.sql('SELECT * FROM "t$sums"')) == [("a", 10), ("b", 2)]
    lake.sql("INSERT INTO t VALUES ('b', 0)")
    assert lake.check(rows=True).problems == ()
    # Both sides have them now.
    lake.merge_branch("b")
    lake.undo_merge("b")
    assert sorted(map(str, lake.tables("main"))) == [*("main.`t$most`", "main.`t$sums`", "main.t")]
    with DuckDBOracle(lake._state.store.where) as duck:
        assert sorted(duck.sql('SELECT * FROM "t$most"')) == [("a", 9), ("b", 2)]
    assert lake.check(rows=True).problems == ()


def test_two_rollups_of_one_name_are_a_conflict(lake):
    lake.create_branch("b")
    made(lake, "b.t", "r", "k, min(n)")
    made(lake, "t", "r", "k, max(n)")
    made(lake, "b.t", "same")
    made(lake, "t", "same")
    assert [(c.kind, c.item) for c in lake.merge_conflicts("b")] == [("rollup", "r")]
    with pytest.raises(Conflict, match="rollup r"):
        lake.merge_branch("b")
    lake.execute("MERGE BRANCH b RESOLVE t USING THEIRS")
    with DuckDBOracle(lake._state.store.where) as duck:
        assert sorted(duck.sql('SELECT * FROM "t$r"')) == [("a", 1), ("b", 2)]
    lake.sql("INSERT INTO t VALUES ('a', 0)")
    assert lake.check(rows=True).problems == ()


def test_a_rollup_of_a_column_that_main_dropped_is_not_made(lake):
    lake.execute("ALTER TABLE t ADD COLUMN x INT")
    lake.create_branch("b")
    made(lake, "b.t", "r", "k, max(x)")
    lake.execute("ALTER TABLE t DROP COLUMN x")
    lake.merge_branch("b")
    assert sorted(map(str, lake.tables("main"))) == ["main.`t$sums`", "main.t"]
    assert lake.check(rows=True).problems == ()


def test_the_first_rollup_of_a_table_has_rows_after_a_merge_and_the_last_one_after_an_undo(lake):
    lake.execute("ALTER TABLE t DROP ROLLUP sums")
    lake.create_branch("b")
    lake.sql("CREATE MATERIALIZED VIEW sums AS SELECT k, sum(n) FROM b.t GROUP BY k")
    lake.merge_branch("b")
    assert told(lake, "main.t") == ([("a", 1), ("b", 2)], True)
    lake.execute("ALTER TABLE b.t DROP ROLLUP sums")
    lake.merge_branch("b")
    assert [str(name) for name in lake.tables("main")] == ["main.t"]
    lake.undo_merge("b")
    assert told(lake, "main.t") == ([("a", 1), ("b", 2)], True)
