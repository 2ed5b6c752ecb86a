"""Comments on columns of views, which DuckLake 1.1 keeps by the names in the view's query."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from ducklakepy import load_catalog

import shelduck
from shelduck.catalog.read.views_and_macros import view
from shelduck.errors import Conflict, Unsupported
from shelduck.model.changes.change import CreateView, DropView, RenameView
from shelduck.model.changes.definition import CommentViewColumns
from shelduck.model.tables.view import ViewDefinition
from tests.support.lake import Lake

# ducklakepy calls it.
pytestmark = pytest.mark.filterwarnings("ignore:The Result.tuples:DeprecationWarning")
QUERY = "SELECT 1 AS x, 2 AS y"


@pytest.fixture
def lake(lake_url, data_path):
    shelduck.connect(lake_url, data_path, ducklake_version="1.1").close()
    made = Lake(lake_url, None)
    yield made
    made.store.close()


def create(lake, *comments, name="v"):
    definition = ViewDefinition(QUERY, ("a", "b"), None, column_comments=comments)
    return CreateView(-5, lake.schema(), name, "14d3e0d8-32bf-44f7-8bac-81910ffda602", definition)


def found(lake, name="v", at=None):
    with lake.store.read() as connection:
        return view(connection, at or lake.head(), "main", name, lake.info)


def comments(lake, name="v", at=None):
    return dict(found(lake, name, at).definition.column_comments)


def comment(lake, **texts):
    return CommentViewColumns(found(lake), tuple(texts.items()))


def tags(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(
            "SELECT view_id, column_name, begin_snapshot, end_snapshot, key, value"
            " FROM ducklake_view_column_tag ORDER BY begin_snapshot, column_name"
        ).fetchall()


def log_of(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(
            "SELECT s.snapshot_id, schema_version, changes_made FROM ducklake_snapshot AS s"
            " JOIN ducklake_snapshot_changes AS c ON s.snapshot_id = c.snapshot_id ORDER BY 1"
        ).fetchall()


@pytest.mark.every_database
def test_each_snapshot_has_its_comments(lake):
    lake.commit(create(lake, ("x", "first")))
    made = lake.head()
    lake.commit(comment(lake, y="second", X="again"))
    commented = lake.head()
    lake.commit(comment(lake, y=None))

    assert comments(lake, at=made) == {"x": "first"}
    assert comments(lake, at=commented) == {"X": "again", "y": "second"}
    assert comments(lake) == {"X": "again"}
    assert found(lake).definition.comments_of(["x", "y"]) == ["again", None]
    assert (commented.changes_made, commented.schema_version) == ("altered_view:1", 2)


def test_the_rows_are_those_of_ducklakepy(tmp_path, data_path):
    theirs = load_catalog(url=f"sqlite:///{tmp_path}/theirs.db", data_path=f"{tmp_path}/theirs/")
    theirs.initialize()
    theirs.create_view("main.v", QUERY, column_aliases=("a", "b"))
    theirs.load_view("main.v").set_comment("one", column="x")
    theirs.load_view("main.v").set_comment("two", column="y")
    theirs.load_view("main.v").set_comment("three", column="x")
    theirs.rename_view("main.v", "w")
    theirs.drop_view("main.w")
    theirs.close()
    shelduck.connect(f"sqlite:///{tmp_path}/c.db", data_path, ducklake_version="1.1").close()
    ours = Lake(f"sqlite:///{tmp_path}/c.db", None)

    ours.commit(create(ours))
    ours.commit(comment(ours, x="one"))
    ours.commit(comment(ours, y="two"))
    ours.commit(comment(ours, x="three"))
    ours.commit(RenameView(found(ours), "w"))
    ours.commit(DropView(found(ours, "w")))

    assert tags(tmp_path / "c.db") == tags(tmp_path / "theirs.db")
    assert log_of(tmp_path / "c.db") == log_of(tmp_path / "theirs.db")
    ours.store.close()


def test_ducklakepy_reads_ours_and_ours_reads_its(tmp_path, data_path):
    shelduck.connect(f"sqlite:///{tmp_path}/c.db", data_path, ducklake_version="1.1").close()
    ours = Lake(f"sqlite:///{tmp_path}/c.db", None)
    ours.commit(create(ours, ("x", "ours")))

    catalog = load_catalog(url=f"sqlite:///{tmp_path}/c.db", data_path=data_path)
    assert catalog.load_view("main.v").column_comment("x") == "ours"
    catalog.load_view("main.v").set_comment("theirs", column="x")
    catalog.close()
    assert comments(ours) == {"x": "theirs"}
    ours.store.close()


def test_a_rename_keeps_comments_and_a_new_view_has_none(lake):
    lake.commit(create(lake, ("x", "first")))
    lake.commit(RenameView(found(lake), "w"))
    renamed = comments(lake, "w")
    lake.commit(DropView(found(lake, "w")), create(lake, name="w"))

    assert (renamed, comments(lake, "w")) == ({"x": "first"}, {})


@pytest.mark.parametrize(
    ("other", "is_refused"),
    [
        (lambda lake: [DropView(found(lake))], True),
        (lambda lake: [DropView(found(lake)), create(lake)], True),
        (lambda lake: [RenameView(found(lake), "w")], True),
        (lambda lake: [comment(lake, y="theirs")], True),
        (lambda lake: [create(lake, name="other")], False),
    ],
)
def test_what_others_did_to_the_view(lake, other, is_refused):
    lake.commit(create(lake))
    mine, base = comment(lake, x="mine"), lake.head().id
    lake.commit(*other(lake))

    if is_refused:
        with pytest.raises(Conflict, match=r"^cannot comment on columns of view main\.v \(id 1\)"):
            lake.commit(mine, base=base)
    else:
        lake.commit(mine, base=base)
        assert comments(lake) == {"x": "mine"}


def test_a_lake_of_1_0_keeps_none(sqlite_lake):
    with pytest.raises(Unsupported, match=r"^DuckLake 1\.0 does not support comments on columns"):
        sqlite_lake.commit(create(sqlite_lake, ("x", "first")))


def test_expiry_forgets_the_comments_of_views_that_are_gone(tmp_path, data_path):
    url = f"sqlite:///{tmp_path}/c.db"
    shelduck.connect(url, data_path, ducklake_version="1.1").close()
    ours = Lake(url, None)
    ours.commit(create(ours, ("x", "first")))
    ours.commit(comment(ours, x="second"))
    ours.commit(DropView(found(ours)))
    ours.store.close()
    lake = shelduck.connect(url)
    problems = lake.check().problems
    lake.execute("CALL expire_snapshots(versions => ARRAY(0, 1, 2))")

    assert (tags(tmp_path / "c.db"), problems, lake.check().problems) == ([], (), ())
