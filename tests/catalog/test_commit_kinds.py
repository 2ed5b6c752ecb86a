"""A commit enters the modules of its own kinds of changes, and no others."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import get_args

import pytest

from shelduck.catalog.commit import adoptions, kinds, own_rows, settled
from shelduck.catalog.commit.commit import KINDS, kinds_of
from shelduck.catalog.commit.kinds import flush, rewrites
from shelduck.model.changes.change import (
    AppendFiles,
    Change,
    CreateView,
    DeleteRows,
    DropSchema,
    DropTable,
    FileDeletes,
    FlushInlined,
    InlineRows,
    RenameTable,
    RewriteFiles,
    RewrittenFile,
)
from shelduck.model.changes.schema_change import (
    AddColumn,
    ChangeType,
    DropColumn,
    RenameColumn,
    SetComment,
    SetNullable,
)
from shelduck.model.files.data_file import deletes_seen
from shelduck.model.files.fitted import InlinedBatch
from shelduck.model.tables.view import ViewDefinition
from shelduck.model.types.data_types import parse_type
from tests.support.files import write_file
from tests.support.lake import altered, created, new_schema_info

HEAVY = {module.__name__ for module in (adoptions, flush, own_rows, rewrites, settled)}


@pytest.fixture
def lake(sqlite_lake):
    lake = sqlite_lake
    lake.create(a="int", b="int")
    lake.append("t", [{"a": 1, "b": 2}], {1: ("1", "1", 0)})
    table = lake.table("t")
    lake.commit(InlineRows(table.id, InlinedBatch(table.columns, (("3", "4"),))))
    return lake


def entered(run):
    """The modules that a call enters."""
    found = set()
    before = sys.getprofile()
    sys.setprofile(lambda frame, *_: found.add(frame.f_globals.get("__name__")))
    try:
        run()
    finally:
        sys.setprofile(before)
    # Generated code has no module.
    return found - {None}


@pytest.mark.parametrize("kind", get_args(Change), ids=lambda kind: kind.__name__)
def test_every_change_is_taken_by_one_kind(kind):
    assert [kind in each.takes for each in KINDS].count(True) == 1


def test_kinds_take_nothing_but_changes():
    assert {each for kind in KINDS for each in kind.takes} == set(get_args(Change))


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param([RenameColumn(("a",), "z")], id="rename"),
        pytest.param([ChangeType(("a",), parse_type("bigint"))], id="widen"),
        pytest.param([AddColumn(("new",), parse_type("int"))], id="add"),
        pytest.param([DropColumn(("b",))], id="drop"),
        pytest.param([SetNullable(("a",), nullable=False)], id="not null"),
        pytest.param([SetComment((), "text"), SetComment(("a",), "text")], id="comment"),
    ],
)
def test_a_light_alter_enters_nothing_that_is_about_files(lake, changes):
    change = altered(lake.table("t"), *changes)

    assert entered(lambda: lake.commit(change)).isdisjoint(HEAVY)


def test_a_light_alter_behind_others_enters_nothing_that_is_about_files(lake):
    table = lake.table("t")
    change = altered(table, RenameColumn(("a",), "z"))
    change = replace(change, sort=("z ASC NULLS LAST",), properties={"k": "v"})
    lake.append("t", [{"a": 5, "b": 6}])

    found = entered(lambda: lake.commit(change, base=table.snapshot.id))

    assert found.isdisjoint(HEAVY)


def a_file(lake):
    return (write_file(lake.table("t"), [{"a": 1, "b": 2}]),)


def rewriting(lake):
    [source] = lake.files("t")
    sources = (RewrittenFile(source.id, deletes_seen(source)),)
    return RewriteFiles(lake.table("t"), sources, a_file(lake), keeps_history=False)


def deleting(lake):
    [file] = lake.files("t")
    return DeleteRows(lake.table("t"), (FileDeletes(file.id, deletes_seen(file)),))


CASES = {
    "create schema": (lambda lake: [new_schema_info(lake, "s")], {"definitions"}),
    "create table": (lambda lake: [created(lake.schema(), "u", a="int")], {"make_tables"}),
    "rename table": (lambda lake: [RenameTable(lake.table("t"), "u")], {"make_tables"}),
    "drop table": (lambda lake: [DropTable(lake.table("t"))], {"make_tables"}),
    "alter": (lambda lake: [altered(lake.table("t"), RenameColumn(("a",), "z"))], {"alter_tables"}),
    "view": (
        lambda lake: [CreateView(-5, lake.schema(), "v", "018f", ViewDefinition("SELECT 1", ()))],
        {"definitions"},
    ),
    "append": (lambda lake: [AppendFiles(lake.table("t").id, a_file(lake))], {"appends"}),
    "delete": (lambda lake: [deleting(lake)], {"deletes"}),
    "rewrite": (lambda lake: [rewriting(lake)], {"rewrites"}),
    "flush": (lambda lake: [FlushInlined(lake.table("t"), (), (), ())], {"flush"}),
    "two": (
        lambda lake: [
            altered(lake.table("t"), RenameColumn(("a",), "z")),
            created(lake.schema(), "u", a="int"),
        ],
        {"alter_tables", "make_tables"},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_commit_enters_its_own_kinds_and_no_others(lake, case):
    make, expected = CASES[case]
    changes = make(lake)
    package = f"{kinds.__name__}."

    found = {name for name in entered(lambda: lake.commit(*changes)) if name.startswith(package)}

    assert found == {package + name for name in expected}


def test_kinds_are_walked_in_the_order_of_writing_whatever_that_of_the_changes_is(lake):
    drop = DropSchema(lake.schema())
    changes = [AppendFiles(lake.table("t").id, ()), DropTable(lake.table("t")), drop]

    assert [kind.takes[0].__name__ for kind in kinds_of(changes)] == [
        "CreateSchema",
        "CreateTable",
        "AppendFiles",
    ]
