"""The walks of docs/architecture.md: a call enters the files that the page lists, in that order."""

from __future__ import annotations

import re
import sys
import threading
from pathlib import Path

import pytest

import shelduck
from shelduck.engine.bridge.codec import Listing
from tests.support.budgets import within

pytestmark = pytest.mark.guard

STATEMENTS = [
    statement
    for name in ("t", "warm_up")
    for statement in (
        f"CREATE TABLE {name} (id INT, v INT)",
        f"INSERT INTO {name} SELECT id, id FROM range(100)",
    )
]
PAGE = Path(__file__).parents[3] / "docs" / "architecture.md"
SOURCE = f"{Path(shelduck.__file__).parent}/"

# Folders and files of subjects, which a table without their feature does not enter.
SUBJECTS = (
    *("keys/", "rollups/", "branches/"),
    *("catalog/commit/kinds/shared_files.py", "catalog/read/twins.py", "model/tables/twin.py"),
)

# What each walk does to a table; budgets.toml says how many files and functions it may enter.
WALKS = {
    "ADD COLUMN": lambda lake, table, _: lake.execute(f"ALTER TABLE {table.name} ADD COLUMN c INT"),
    "append": lambda _, table, rows: table.append(rows),
    "read": lambda _, table, __: table.read().where("id > 3").collect(),
    "DELETE": lambda _, table, __: table.delete("id = 7"),
    "a heavy change": lambda lake, table, _: convert(lake, table),
}


# Asked before its turn, too: which columns it can compare at all.
EARLY = "read/plan/prune.py"


def convert(lake, table):
    lake.execute(f"ALTER TABLE {table.name} ALTER COLUMN v TYPE STRING")
    lake.run_jobs()


def stations(walk):
    """The files that the page lists for a walk."""
    part = PAGE.read_text().split(f"\n### Walk: {walk}\n")[1].split("\n#")[0]
    return re.findall(r"^\d+\. `([\w/]+\.py)`", part, re.MULTILINE)


def entered(act, monkeypatch):
    """The files of the package whose functions are called, each with them, in order."""
    files = {}

    def look(frame, event, _):
        code = frame.f_code
        name = code.co_filename
        # What has no name, such as a comprehension, is part of who calls it.
        if event == "call" and name.startswith(SOURCE) and not code.co_name.startswith("<"):
            files.setdefault(name.removeprefix(SOURCE), set()).add(code)

    def answer(self, filters):
        # Spark may ask in a thread that is older than the profile.
        before = sys.getprofile()
        sys.setprofile(look)
        try:
            return apply(self, filters)
        finally:
            sys.setprofile(before)

    apply = Listing.apply
    monkeypatch.setattr(Listing, "apply", answer)
    threading.setprofile(look)
    sys.setprofile(look)
    try:
        act()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return files


@pytest.mark.parametrize("walk", WALKS)
def test_a_walk_is_as_the_page_says(walk, lake, spark, monkeypatch):
    listed = stations(walk)
    rows = spark.range(100).selectExpr("CAST(id AS INT) AS id", "CAST(id AS INT) AS v")
    # What the process and the lake keep is there then, whatever ran before.
    WALKS[walk](lake, lake.table("warm_up"), rows)
    table = lake.table("t")

    files = entered(lambda: WALKS[walk](lake, table, rows), monkeypatch)

    assert 5 <= len(listed) <= 12
    # A subject costs nothing where there is none of it.
    assert [name for name in files if name.startswith(SUBJECTS)] == []
    assert [name for name in listed if name not in files] == []
    seen = [name for name in files if name in listed and name != EARLY]
    assert seen == [name for name in listed if name != EARLY]
    within(f"files_entered.{walk}", len(files))
    within(f"functions_entered.{walk}", sum(map(len, files.values())))


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE u (id INT) PARTITIONED BY (id)",
        "UPDATE t SET v = 0 WHERE id = 7",
        "INSERT OVERWRITE t SELECT id, id FROM range(3)",
        "MERGE INTO t USING (SELECT 1 AS id) AS s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "INSERT INTO t BY NAME SELECT 1 AS id, 2 AS v",
        "ALTER TABLE t RENAME COLUMN v TO w, ALTER COLUMN id TYPE BIGINT",
    ],
)
def test_a_statement_enters_no_subject_that_its_table_does_not_have(lake, statement, monkeypatch):
    files = entered(lambda: lake.execute(statement), monkeypatch)

    assert [name for name in files if name.startswith(SUBJECTS)] == []
