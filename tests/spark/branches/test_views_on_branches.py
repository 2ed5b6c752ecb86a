"""Views that Spark and DuckDB read on branches, with a text for each."""

from __future__ import annotations

import pytest

import shelduck
from shelduck import Conflict, NotFound
from tests.support.oracle import DuckDBOracle


@pytest.fixture
def lake(spark, tmp_path):
    with shelduck.connect(f"sqlite:///{tmp_path}/lake.db", f"{tmp_path}/data", spark) as found:
        found.execute("CREATE TABLE t (id INT, v STRING)")
        found.sql("INSERT INTO t VALUES (1, 'one')")
        yield found


def told(lake, name):
    """What Spark reads, after DuckDB has read the same."""
    found = sorted(map(tuple, lake.sql(f"SELECT * FROM {name}").collect()))
    with DuckDBOracle(lake._state.store.where) as duck:
        assert sorted(duck.sql(f"FROM {name}")) == found
    return found


@pytest.mark.every_spark
def test_views_go_to_a_branch_and_come_back(lake):
    lake.execute("CREATE VIEW large AS SELECT id, v FROM t WHERE id > (SELECT min(id) FROM main.t)")
    lake.execute("CREATE VIEW all_of_it (number) COMMENT 'c' AS SELECT id FROM main.t")
    lake.execute("CREATE VIEW of_view AS SELECT number FROM all_of_it")
    lake.create_branch("b")
    audit = lake.branch("b")
    audit.sql("INSERT INTO t VALUES (2, 'two'), (3, 'three')")
    assert told(lake, "b.large") == [(2, "two"), (3, "three")]
    assert told(lake, "b.of_view") == [(1,), (2,), (3,)]
    assert told(lake, "large") == []

    audit.execute("CREATE OR REPLACE VIEW large AS SELECT id FROM t WHERE id > 2")
    audit.execute("ALTER VIEW all_of_it RENAME TO numbers")
    audit.execute("ALTER VIEW of_view AS SELECT number + 1 AS next FROM numbers")
    lake.merge_branch("b")
    assert told(lake, "main.large") == [(3,)]
    assert told(lake, "main.of_view") == told(lake, "b.of_view") == [(2,), (3,), (4,)]
    assert [row.viewName for row in lake.sql("SHOW VIEWS").collect()] == [
        "large",
        "numbers",
        "of_view",
    ]
    lake.drop_branch("b")
    assert told(lake, "of_view") == [(2,), (3,), (4,)]
    assert not lake.check().problems


def test_what_is_of_one_snapshot_stays_with_the_source(lake):
    lake.execute("ALTER TABLE t RENAME COLUMN v TO word")
    at = 2
    lake.execute(f"CREATE VIEW old AS SELECT * FROM t VERSION AS OF {at}")
    lake.execute(f"CREATE VIEW pinned AS SCHEMA VERSION {at} OF t")
    lake.execute("CREATE VIEW of_pinned AS SELECT v FROM pinned")
    lake.create_branch("b")
    lake.sql("INSERT INTO b.t VALUES (2, 'two')")
    lake.sql("INSERT INTO t VALUES (7, 'seven')")
    assert told(lake, "b.of_pinned") == [("one",), ("seven",)]
    assert told(lake, "b.old") == [(1, "one")]
    with pytest.raises(NotFound):
        lake.sql("SELECT * FROM b.pinned")
    lake.execute(f"CREATE VIEW b.pinned AS SCHEMA VERSION {lake.branches()[0].base + 1} OF b.t")
    lake.execute("ALTER TABLE b.t RENAME COLUMN word TO said")
    assert lake.sql("SELECT word FROM b.pinned WHERE id = 2").collect() == [("two",)]
    lake.merge_branch("b")
    assert told(lake, "pinned") == [(1, "one"), (2, "two"), (7, "seven")]


def test_a_macro_of_a_branch_reads_its_tables(lake):
    lake.execute("CREATE MACRO most() AS (SELECT max(id) FROM t)")
    lake.execute("CREATE MACRO above(n) AS TABLE SELECT id FROM t WHERE id > n")
    lake.create_branch("b")
    audit = lake.branch("b")
    audit.sql("INSERT INTO t VALUES (2, 'two')")
    assert audit.sql("SELECT most() AS n").collect() == [(2,)]
    assert lake.sql("SELECT most() AS n, b.most() AS m").collect() == [(1, 2)]
    assert audit.sql("SELECT * FROM above(1)").collect() == [(2,)]
    audit.execute("CREATE OR REPLACE MACRO most() AS (SELECT 1 + max(id) FROM t)")
    lake.merge_branch("b")
    assert lake.sql("SELECT most() AS n").collect() == [(3,)]
    with DuckDBOracle(lake._state.store.where) as duck:
        assert duck.sql("SELECT most(), b.most(), count(*) FROM above(1)") == [(3, 3, 1)]


def test_views_follow_the_names_of_both_sides(lake):
    lake.execute("CREATE VIEW shown AS SELECT id, v FROM t WHERE id > 0")
    lake.execute("CREATE VIEW above AS SELECT v FROM shown")
    lake.create_branch("b")
    lake.execute("ALTER TABLE t RENAME COLUMN id TO number")
    lake.execute("ALTER TABLE b.t RENAME COLUMN v TO word")
    lake.sql("INSERT INTO b.t VALUES (2, 'two')")
    assert told(lake, "b.shown") == [(1, "one"), (2, "two")]
    assert lake.merge_conflicts("b") == []
    lake.merge_branch("b")
    assert lake.table("t").columns.names == ["number", "word"]
    for view in ("shown", "b.shown"):
        assert lake.sql(f"SELECT * FROM {view}").columns == ["id", "v"]
        assert told(lake, view) == [(1, "one"), (2, "two")]
    with DuckDBOracle(lake._state.store.where) as duck:
        assert duck.sql("SELECT id, v FROM shown ORDER BY id") == [(1, "one"), (2, "two")]
        assert duck.sql("SELECT v FROM above ORDER BY v") == [("one",), ("two",)]
    lake.execute("UNDO MERGE BRANCH b")
    assert lake.table("t").columns.names == ["number", "v"]
    assert told(lake, "shown") == [(1, "one")]


def test_a_view_of_a_branch_gets_the_names_of_its_source(lake):
    lake.create_branch("b")
    lake.execute("CREATE VIEW b.mine AS SELECT v, id AS n FROM b.t ORDER BY id")
    lake.execute("CREATE MACRO b.most() AS (SELECT max(id) FROM b.t)")
    lake.execute("ALTER TABLE t RENAME COLUMN id TO number")
    lake.execute("ALTER TABLE t RENAME TO things")
    lake.merge_branch("b")
    assert told(lake, "mine") == [("one", 1)]
    assert lake.sql("SELECT most() AS n").collect() == [(1,)]
    with DuckDBOracle(lake._state.store.where) as duck:
        assert duck.sql("SELECT v, n FROM mine") == [("one", 1)]

    lake.execute("CREATE VIEW b.second AS SELECT id FROM b.t")
    lake.execute("DROP VIEW mine")
    lake.execute("DROP MACRO most")
    lake.execute("ALTER TABLE things DROP COLUMN number")
    with pytest.raises(Conflict, match=r"view main\.second: it reads id; change it on the branch"):
        lake.merge_branch("b")
