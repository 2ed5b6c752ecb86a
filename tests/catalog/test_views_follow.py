"""Views that DuckDB wrote follow renames of Shelduck, in each database, two commits at once too."""

from __future__ import annotations

import threading

import duckdb
import pytest

import shelduck
from shelduck import InvalidRequest
from tests.support.oracle import DuckDBOracle


@pytest.fixture
def lake(lake_url, data_path):
    with DuckDBOracle(lake_url, data_path=data_path) as oracle:
        oracle.execute("CREATE TABLE t (id INTEGER, a INTEGER)")
        oracle.execute("INSERT INTO t VALUES (1, 10), (2, 20)")
        oracle.execute("CREATE VIEW v AS SELECT a, a + 1 FROM t WHERE id > 0 ORDER BY a")
        oracle.execute("CREATE VIEW w AS SELECT * FROM v")
    with shelduck.connect(lake_url, data_path) as found:
        yield found


def shown(url):
    with DuckDBOracle(url) as oracle:
        return oracle.columns("w"), oracle.sql("SELECT * FROM w")


def test_a_view_follows_in_the_snapshot_of_the_rename(lake, lake_url):
    first = shown(lake_url)
    lake.execute("ALTER TABLE t RENAME COLUMN a TO b")
    assert lake.snapshots()[-1].changes_made == "altered_table:1,altered_view:2"
    lake.execute("ALTER TABLE t RENAME TO u")
    lake.execute("ALTER VIEW v RENAME TO x")
    assert shown(lake_url) == first
    with pytest.raises(InvalidRequest, match=r"view main\.x: it reads b\)"):
        lake.execute("ALTER TABLE u DROP COLUMN b")
    lake.execute("ALTER TABLE u DROP COLUMN b CASCADE")
    with DuckDBOracle(lake_url) as oracle:
        assert oracle.sql("SELECT view_name FROM duckdb_views() WHERE NOT internal") == []


def test_a_macro_that_nobody_can_read_is_not_asked(lake, lake_url):
    first = shown(lake_url)
    with DuckDBOracle(lake_url) as oracle:
        oracle.execute("CREATE MACRO odd() AS '${a}'")
    lake.execute("ALTER TABLE t RENAME COLUMN a TO b")
    assert shown(lake_url) == first


def test_macros_follow_and_go_too(lake, lake_url):
    with DuckDBOracle(lake_url) as oracle:
        oracle.execute("CREATE MACRO most(x) AS (SELECT max(a) + x FROM t)")
        oracle.execute("CREATE MACRO few(n) AS TABLE SELECT a FROM t ORDER BY a LIMIT n")
        oracle.execute("CREATE MACRO plain(n) AS n + 1")
    lake.execute("ALTER TABLE t RENAME COLUMN a TO b")
    with DuckDBOracle(lake_url) as oracle:
        assert oracle.sql("SELECT most(5), plain(1)") == [(25, 2)]
        assert oracle.columns("few(1)") == [("a", "INTEGER")]
        assert oracle.sql("SELECT * FROM few(1)") == [(10,)]
    with pytest.raises(InvalidRequest, match=r"macro main\.most: it reads b; macro main\.few"):
        lake.execute("ALTER TABLE t DROP COLUMN b")
    lake.execute("ALTER TABLE t DROP COLUMN b CASCADE")
    with DuckDBOracle(lake_url) as oracle:
        assert oracle.sql("SELECT plain(1)") == [(2,)]
        with pytest.raises(duckdb.Error, match="most does not exist"):
            oracle.sql("SELECT most(5)")


def test_renames_at_once_leave_a_view_that_reads_both(lake, lake_url):
    first = shown(lake_url)
    changes = ["RENAME COLUMN a TO b", "ADD COLUMN c INT", "RENAME COLUMN id TO number"]
    runs = [
        threading.Thread(target=lake.execute, args=(f"ALTER TABLE t {change}",))
        for change in changes
    ]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert lake.table("t").columns.names == ["number", "b", "c"]
    assert shown(lake_url) == first
