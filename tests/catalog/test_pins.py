"""Pinned views in the catalog: what commits write of them, in each kind of database."""

from __future__ import annotations

import pytest
from sqlalchemy import select

import shelduck
from shelduck.ducklake import tables
from shelduck.errors import NotFound
from shelduck.model.tables.view import STORED_PIN, Pin
from tests.support.oracle import DuckDBOracle

pytestmark = pytest.mark.every_database


@pytest.fixture
def lake(lake_url, data_path):
    with shelduck.connect(lake_url, data_path) as lake:
        lake.execute("CREATE TABLE t (id INT, name STRING DEFAULT 'n')")
        lake.execute("CREATE VIEW v AS SCHEMA VERSION 1 OF t")
        yield lake


def views(lake):
    """Begin, end and text of all versions of all views, and of Spark's texts."""
    v, t = tables.view.c, tables.tag.c
    with lake._state.store.read() as connection:
        texts = select(v.begin_snapshot, v.end_snapshot, v.sql).order_by(v.begin_snapshot)
        tags = select(t.begin_snapshot, t.end_snapshot, t.value).order_by(t.begin_snapshot)
        return [
            list(map(tuple, connection.execute(query)))
            for query in (texts, tags.where(t.key == "shelduck.spark_sql"))
        ]


def test_the_tag_has_the_table_and_the_snapshot():
    assert STORED_PIN.write(Pin(5, 7)) == '{"version":1,"table":5,"snapshot":7}'
    assert STORED_PIN.read('{"version":1,"table":5,"snapshot":7}', "view v") == Pin(5, 7)


def test_a_commit_that_changes_the_table_writes_the_view_again(lake, lake_url):
    first = 'SELECT pinned."id" AS "id", pinned."name" AS "name" FROM {}."main"."t" AS pinned'
    first = first.replace("{}", "{DUCKLAKE_CATALOG}")
    duckdb, spark = views(lake)
    assert duckdb == [(2, None, first)]
    assert spark == [
        (2, None, "SELECT pinned.`id` AS `id`, pinned.`name` AS `name` FROM `main`.`t` AS pinned")
    ]
    # Nothing that the view shows changes, so its rows stay.
    lake.execute("ALTER TABLE t ADD COLUMN more INT")
    lake.execute("COMMENT ON TABLE t IS 'x'")
    assert views(lake) == [duckdb, spark]
    lake.execute("INSERT INTO t VALUES (1, 'a', 2)")
    lake.execute("ALTER TABLE t RENAME COLUMN id TO n, DROP COLUMN name")
    second = first.replace('pinned."id"', 'pinned."n"')
    second = second.replace('pinned."name"', "CAST('n' AS VARCHAR)")
    assert views(lake)[0] == [(2, 6, first), (6, None, second)]
    assert [(begin, end) for begin, end, _ in views(lake)[1]] == [(2, 6), (6, None)]
    assert lake.snapshots()[-1].changes_made == "altered_table:1,altered_view:2"
    lake.close()
    with DuckDBOracle(lake_url) as oracle:
        assert oracle.sql("SELECT * FROM v") == [(1, "n")]
        assert oracle.sql("SELECT * FROM v AT (VERSION => 5)") == [(1, "a")]


def test_one_commit_that_pins_and_alters_writes_one_row(lake):
    with lake.transaction() as tx:
        tx.pin("t", 1, "w")
        tx.table("t").rename("u")
        tx.drop_table("u")
    duckdb, spark = views(lake)
    assert [(begin, end) for begin, end, _ in duckdb] == [(2, 3), (3, None), (3, None)]
    assert [(begin, end) for begin, end, _ in spark] == [(2, 3)]
    assert "pinned to a table that was dropped" in duckdb[-1][2]


def test_a_pin_that_meets_an_alter_fits_the_altered_table(lake):
    # The transaction begins before the other commit, and lands after it.
    with lake.transaction() as tx:
        tx.pin("t", 1, "w")
        lake.execute("ALTER TABLE t RENAME COLUMN id TO number")
    begin, end, text = views(lake)[0][-1]
    assert (begin, end) == (4, None)
    assert 'pinned."number" AS "id"' in text


def test_a_view_of_a_table_that_never_was_is_not_made(lake):
    with pytest.raises(NotFound, match=r"table main\.t did not exist at snapshot 0"):
        lake.pin("t", 0, "w")
    assert len(views(lake)[0]) == 1
