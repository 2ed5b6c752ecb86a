"""One table or view that cannot be read: lists have all others, and its name."""

from __future__ import annotations

import sqlite3
import warnings
from contextlib import closing

import pytest

import shelduck
from shelduck.web.application import make_app
from shelduck.web.guard import Guard

with warnings.catch_warnings():
    # Starlette prefers a client that is not installed.
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

STATEMENTS = [
    "CREATE TABLE good (fine INT)",
    "INSERT INTO good VALUES (1)",
    "CREATE TABLE bad (i INT, x INT)",
    "CREATE VIEW seen AS SELECT fine FROM good",
    "CREATE VIEW bad_view AS SELECT fine FROM good",
]
_BAD = "(SELECT table_id FROM ducklake_table WHERE table_name = 'bad')"
THINGS = {
    "an interval": f"UPDATE ducklake_column SET column_type = 'interval' WHERE table_id = {_BAD}",
    "a later type": f"UPDATE ducklake_column SET column_type = 'wide' WHERE table_id = {_BAD}",
    "a flag": f"UPDATE ducklake_column SET nulls_allowed = 7 WHERE table_id = {_BAD}",
    **{
        key: "INSERT INTO ducklake_tag SELECT table_id, begin_snapshot, NULL, 'shelduck."
        f"""{key}', '{{"version": 99}}' FROM ducklake_table WHERE table_name = 'bad'"""
        for key in ("keys", "constraints", "computed", "rollups")
    },
    "a view of a number": "UPDATE ducklake_view SET sql = 7 WHERE view_name = 'bad_view'",
    "a view of nothing": "UPDATE ducklake_view SET sql = 'SELECT (' WHERE view_name = 'bad_view'",
    "a pin": "INSERT INTO ducklake_tag SELECT view_id, begin_snapshot, NULL, 'shelduck.pinned', '{'"
    " FROM ducklake_view WHERE view_name = 'bad_view'",
}
LISTS = {
    "SHOW TABLES": {"good", "bad", "seen", "bad_view"},
    "SHOW VIEWS": {"seen", "bad_view"},
    "SELECT table_name FROM information_schema.tables": {"good", "bad", "seen", "bad_view"},
    "SELECT table_name FROM information_schema.views": {"seen", "bad_view"},
    "SELECT table_name FROM information_schema.columns": {"good", "bad"},
}


@pytest.mark.parametrize("thing", THINGS)
def test_what_cannot_be_read_hides_nothing_else(spark, copied, thing):
    catalog, lake = copied
    lake.close()
    with closing(sqlite3.connect(catalog)) as connection, connection:
        connection.execute(THINGS[thing])

    with shelduck.connect(f"sqlite:///{catalog}", spark=spark) as fresh:
        lists = {
            text: {value for row in fresh.sql(text).collect() for value in row if value in every}
            for text, every in LISTS.items()
        }
        checked = fresh.check()
        page = TestClient(make_app(fresh._state, Guard(8765, False, "token")))
        page.base_url, page.cookies = "http://127.0.0.1:8765", {"shelduck_ui_8765": "token"}
        shown = page.get("/").text

    assert lists == LISTS
    assert checked.tables == 2
    assert not {"main.good", "main.seen"} & {problem.table for problem in checked.problems}
    assert [name for name in ("good", "bad", "seen", "bad_view") if name not in shown] == []
