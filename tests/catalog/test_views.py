"""Views in the catalog, and two commits that meet at one."""

from __future__ import annotations

import pytest

from shelduck.catalog.read.views_and_macros import view, view_names
from shelduck.ducklake.descriptions import column_names, column_names_text
from shelduck.errors import AlreadyExists, Conflict, CorruptLake, InvalidRequest
from shelduck.model.changes.change import (
    CreateView,
    DropSchema,
    DropTable,
    DropView,
    RenameTable,
    RenameView,
)
from shelduck.model.tables.view import ViewDefinition
from tests.support.lake import Lake, created, new_schema_info

ONE = ViewDefinition("SELECT 1 AS one", (), "select 1 as one")


@pytest.fixture
def lake(lake_url, data_path):
    lake = Lake(lake_url, data_path)
    lake.create("t", a="int")
    lake.commit(new(lake, "v"))
    yield lake
    lake.store.close()


def new(lake, name, definition=ONE, schema=None):
    unique = "14d3e0d8-32bf-44f7-8bac-81910ffda602"
    return CreateView(-5, schema or lake.schema(), name, unique, definition)


def found(lake, name="v", at=None):
    with lake.store.read() as connection:
        return view(connection, at or lake.head(), "MAIN", name, lake.info)


def names(lake):
    with lake.store.read() as connection:
        return view_names(connection, lake.head(), lake.schema())


def test_a_view_is_found_by_its_name_in_any_case(lake):
    made = found(lake, "V")

    assert (made.id, made.full_name, made.dialect) == (2, "main.v", "duckdb")
    assert made.definition == ONE
    assert lake.head().changes_made == 'created_view:"main"."v"'
    assert names(lake) == ["v"]


def test_columns_and_comment_are_kept(lake):
    said = ViewDefinition("SELECT 1, 2", ("x", 'say "y", z'), None, "it's said")
    lake.commit(new(lake, "w", said))

    assert found(lake, "w").definition == said
    assert lake.ask("SELECT column_name FROM duckdb_columns() WHERE table_name = 'w'") == [
        ("x",),
        ('say "y", z',),
    ]


def test_a_view_that_is_replaced_gets_another_id_and_older_snapshots_the_old_one(lake):
    before, old = lake.head(), found(lake)
    lake.commit(DropView(old), new(lake, "v", ViewDefinition("SELECT 2 AS two")))

    assert found(lake).definition == ViewDefinition("SELECT 2 AS two")
    assert found(lake, at=before).definition == ONE
    assert lake.head().changes_made == 'dropped_view:2,created_view:"main"."v"'
    assert lake.ask("FROM v") == [(2,)]


def test_a_view_that_is_renamed_keeps_its_id_and_text(lake):
    old = found(lake)
    lake.commit(RenameView(old, "w"))

    assert (found(lake, "w").id, found(lake, "w").definition) == (old.id, ONE)
    assert found(lake) is None
    assert lake.head().changes_made == 'created_view:"main"."w"'
    assert lake.ask("FROM w") == [(1,)]


def test_changes_of_views_make_readers_look_at_the_schema_again(lake):
    before = lake.head().schema_version
    lake.commit(DropView(found(lake)))

    assert (lake.head().schema_version, lake.head().changes_made) == (before + 1, "dropped_view:2")
    assert names(lake) == []


def test_views_and_tables_share_their_names(lake):
    with pytest.raises(AlreadyExists, match="table 't' already exists"):
        lake.commit(new(lake, "T"))
    with pytest.raises(AlreadyExists, match="view 'v' already exists"):
        lake.create("V", a="int")
    with pytest.raises(AlreadyExists, match="view 'v' already exists"):
        lake.commit(RenameTable(lake.table("t"), "v"))
    with pytest.raises(AlreadyExists, match="table 't' already exists"):
        lake.commit(RenameView(found(lake), "t"))
    with pytest.raises(AlreadyExists, match="gives the name 'w' to 2 tables or views"):
        lake.commit(new(lake, "w"), created(lake.schema(), "W", a="int"))


def test_a_name_that_the_commit_frees_may_be_given_again(lake):
    lake.commit(DropTable(lake.table("t")), RenameView(found(lake), "t"))
    lake.commit(DropView(found(lake, "t")), created(lake.schema(), "t", a="int"))

    assert (names(lake), lake.ask("FROM t")) == ([], [])


def test_a_schema_ends_with_its_views_or_not_at_all(lake):
    lake.commit(new_schema_info(lake, "s"))
    lake.commit(new(lake, "w", schema=lake.schema("s")))
    with pytest.raises(InvalidRequest, match="while view 'w' is in it"):
        lake.commit(DropSchema(lake.schema("s")))
    with lake.store.read() as connection:
        inside = view(connection, lake.head(), "s", "w", lake.info)
    lake.commit(DropView(inside), DropSchema(lake.schema("s")))

    assert lake.head().changes_made == "dropped_schema:3,dropped_view:4"


MINE = {
    "drop": lambda lake: [DropView(found(lake))],
    "rename": lambda lake: [RenameView(found(lake), "mine")],
    "replace": lambda lake: [DropView(found(lake)), new(lake, "v")],
    "create": lambda lake: [new(lake, "w")],
}
OTHERS = {
    "drops": lambda lake: [DropView(found(lake))],
    "renames": lambda lake: [RenameView(found(lake), "other")],
    "renames to mine": lambda lake: [RenameView(found(lake), "w")],
    "replaces": lambda lake: [DropView(found(lake)), new(lake, "v")],
    "creates a view": lambda lake: [new(lake, "W")],
    "creates a table": lambda lake: [created(lake.schema(), "W", a="int")],
}
EXCLUDED = {
    ("drop", "drops"),
    ("drop", "renames"),
    ("drop", "renames to mine"),
    ("drop", "replaces"),
    ("rename", "drops"),
    ("rename", "renames"),
    ("rename", "renames to mine"),
    ("rename", "replaces"),
    ("replace", "drops"),
    ("replace", "renames"),
    ("replace", "renames to mine"),
    ("replace", "replaces"),
    ("create", "renames to mine"),
    ("create", "creates a view"),
    ("create", "creates a table"),
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("mine", MINE)
def test_two_that_change_one_view_or_give_one_name_exclude_each_other(lake, mine, other):
    base, changes = lake.head().id, MINE[mine](lake)
    lake.commit(*OTHERS[other](lake))
    if (mine, other) in EXCLUDED:
        with pytest.raises(Conflict):
            lake.commit(*changes, base=base)
        assert lake.head().id == base + 1
    else:
        lake.commit(*changes, base=base)
        assert lake.head().id == base + 2


def test_duckdb_replaces_a_view_under_ours(lake):
    base, change = lake.head().id, DropView(found(lake))
    lake.tell("CREATE OR REPLACE VIEW v AS SELECT 2 AS two")

    with pytest.raises(Conflict, match="dropped_view:2"):
        lake.commit(change, base=base)
    assert found(lake).definition.sql == "SELECT 2 AS two"


def test_names_of_columns_that_cannot_be_read_are_a_broken_catalog():
    assert column_names('"x","say ""y"""') == ("x", 'say "y"')
    assert column_names_text(("x", 'say "y"')) == '"x","say ""y"""'
    assert column_names("") == column_names(None) == ()
    with pytest.raises(CorruptLake, match="column_aliases of a view"):
        column_names("x,y")
