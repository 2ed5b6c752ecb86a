"""Rows that were written for older columns of a table: what fits, and what needs values."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shelduck.catalog.commit.rebase import moved
from shelduck.doors.sql.parse import parse
from shelduck.errors import Conflict
from shelduck.lake.evolution.plan import plan_alter
from shelduck.model.changes.change import altered
from shelduck.model.files.data_file import ColumnStats, Layout, NewDataFile
from shelduck.model.files.fitted import InlinedBatch
from shelduck.model.tables.keys import KEYS
from shelduck.model.tables.rollup import ROLLUPS
from shelduck.model.tables.schema import Default
from tests.support.scans import column, table

T = table(
    column("id", "int32", 1),
    column("a", "int32", 2),
    column("f", "float32", 3),
    column("s", "struct", 4, column("x", "int32", 5), column("y", "int32", 6)),
)
ROW = ("1", "10", "1.5", {"x": "1", "y": "2"})


def after(*clauses, of=T):
    """The table after each of these statements."""
    for clause in clauses:
        [statement] = parse(f"ALTER TABLE t {clause}")
        change = plan_alter(of, statement.changes).change
        assert change is not None
        of = altered(of, change)
    return replace(of, snapshot=replace(of.snapshot, id=11))


def stats(number, nulls=0):
    return ColumnStats(number, 10, 5, nulls, "1", "5")


def file(*columns):
    return NewDataFile("f.parquet", 5, 100, 10, columns, Layout(()))


def problems(now, **more):
    seen = moved(T, now, **more)
    with pytest.raises(Conflict) as caught:
        seen.refuse()
    return [line[4:] for line in str(caught.value).splitlines() if line.startswith("  - ")]


@pytest.mark.parametrize(
    "clauses",
    [
        ["RENAME COLUMN a TO b"],
        ["RENAME COLUMN a TO t1, RENAME COLUMN id TO a, RENAME COLUMN t1 TO id"],
        ["ADD COLUMN c INT"],
        ["ADD COLUMN c INT DEFAULT 7 FIRST"],
        ["ADD COLUMN c INT NOT NULL DEFAULT 7"],
        ["ALTER COLUMN a TYPE BIGINT"],
        ["RENAME COLUMN s.x TO z, ADD COLUMN s.n INT DEFAULT 3"],
        ["ALTER COLUMN a SET DEFAULT 5"],
    ],
)
def test_what_only_metadata_tells_fits(clauses):
    seen = moved(T, after(*clauses))
    seen.refuse()
    assert seen.outdated == []
    assert seen.files([file(stats(2))]) == (file(stats(2)),)


@pytest.mark.parametrize(
    ("clauses", "told"),
    [
        (["DROP COLUMN a"], ["column a was dropped"]),
        (["DROP COLUMN a", "ADD COLUMN a INT"], ["column a was dropped"]),
        (["DROP COLUMN s.x, DROP COLUMN f"], ["column f was dropped", "column s.x was dropped"]),
        (["DROP COLUMN s"], ["column s was dropped"]),
        (
            ["ADD COLUMN c INT NOT NULL DEFAULT 1", "ALTER COLUMN c DROP DEFAULT"],
            ["column c was added as NOT NULL without a default"],
        ),
    ],
)
def test_what_no_file_can_be_fitted_to_is_told(clauses, told):
    assert problems(after(*clauses)) == told


def test_a_type_that_is_no_promotion_is_told():
    now = replace(T, columns=T.columns.replace(("a",), column("a", "varchar", 2)))
    assert problems(now) == ["the type of a changed from int32 to varchar"]
    now = replace(T, columns=T.columns.replace(("s",), column("s", "int32", 4)))
    assert "the type of s changed from struct<x: int32, y: int32> to int32" in problems(now)


def test_rows_of_a_wider_type_are_computed_and_checked_again():
    now = replace(T, columns=T.columns.replace(("a",), column("a", "int16", 2)))
    seen = moved(T, now)
    seen.refuse()
    assert seen.must_repeat
    with pytest.raises(Conflict, match="the type of a changed from int32 to int16"):
        seen.files([file(stats(2))])
    with pytest.raises(Conflict, match="the type of a changed from int32 to int16"):
        seen.batch(InlinedBatch(T.columns, (ROW,)))


@pytest.mark.parametrize(("name", "what"), [(KEYS, "keys"), (ROLLUPS, "rollups")])
def test_other_keys_and_rollups_need_the_rows_again(name, what):
    seen = moved(T, replace(T, properties={name: "x"}))
    seen.refuse()
    assert seen.must_repeat
    with pytest.raises(Conflict, match=f"the {what} of the table changed"):
        seen.files([file()])


def test_a_column_that_a_job_replaced_needs_the_rows_again():
    other = column("a", "varchar", 9)
    now = replace(T, columns=T.columns.replace(("a",), other))
    assert problems(now) == ["column a was dropped"]
    seen = moved(T, now, replaced={2: 9})
    seen.refuse()
    assert (seen.must_repeat, seen.outdated) == (True, ["column a was converted"])
    assert not moved(T, now, given={1}, replaced={2: 9}).must_repeat
    assert problems(now, replaced={2: 8}) == ["column a was dropped"]


def test_rows_that_do_not_fit_are_not_repeated():
    gone = replace(after("DROP COLUMN a"), properties={KEYS: "x"})
    assert problems(gone) == ["column a was dropped"]
    assert not moved(T, gone).must_repeat


def test_nobody_misses_what_was_not_given():
    now = after("DROP COLUMN a")
    moved(T, now, given={1, 3, 4}).refuse()
    assert problems(now, given={1, 2}) == ["column a was dropped"]


@pytest.mark.parametrize(
    ("clauses", "path"),
    [
        (["ADD COLUMN c INT DEFAULT 7", "ALTER COLUMN c SET DEFAULT 8"], "c"),
        (["ADD COLUMN c INT DEFAULT 7", "ALTER COLUMN c DROP DEFAULT"], "c"),
        (["ADD COLUMN c INT", "ALTER COLUMN c SET DEFAULT 8"], "c"),
        (["ADD COLUMN s.n INT", "ALTER COLUMN s.n SET DEFAULT 8"], "s.n"),
    ],
)
def test_a_default_that_files_do_not_read_needs_values(clauses, path):
    seen = moved(T, after(*clauses))
    seen.refuse()
    assert seen.must_repeat
    with pytest.raises(Conflict, match=f"column {path} was added, and its default changed"):
        seen.files([file()])


def test_an_expression_needs_values_whatever_its_text():
    now = after("ADD COLUMN c VARCHAR(9) DEFAULT 'now()'")
    expression = replace(now.columns.get(("c",)), default=Default("now()", literal=False))
    assert not moved(T, after(of=now)).must_repeat
    changed = replace(now, columns=now.columns.replace(("c",), expression))
    assert moved(T, changed).outdated == ["column c was added, and its default changed"]


def test_nulls_are_looked_for_in_the_statistics_of_files():
    now = after("ALTER COLUMN a SET NOT NULL")
    seen = moved(T, now)
    assert seen.files([file(stats(2))]) == (file(stats(2)),)
    for unknown in (file(stats(2, nulls=1)), file()):
        with pytest.raises(Conflict, match="column a is NOT NULL now"):
            seen.files([file(stats(2)), unknown])


def test_bounds_that_lost_their_meaning_are_left_out():
    wide = after("SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    now = after("ALTER COLUMN f TYPE DOUBLE", of=wide)
    [found] = moved(T, now).files([file(stats(2), stats(3))])
    assert found.stats == (stats(2), stats(3)._replace(min_value=None, max_value=None))


def test_rows_for_the_catalog_take_their_new_places():
    batch = InlinedBatch(T.columns, (ROW,))
    now = after("RENAME COLUMN a TO b, ADD COLUMN c INT, ALTER COLUMN f FIRST")
    found = moved(T, now).batch(batch)
    assert found.columns == now.columns
    assert found.columns.names == ["f", "id", "b", "s", "c"]
    assert found.rows == (("1.5", "1", "10", {"x": "1", "y": "2"}, None),)


@pytest.mark.parametrize(
    ("clause", "row"),
    [
        ("ADD COLUMN c INT DEFAULT 7", (*ROW, "7")),
        ("ALTER COLUMN a TYPE BIGINT", ROW),
        ("RENAME COLUMN s.x TO z", (*ROW[:3], {"z": "1", "y": "2"})),
    ],
)
def test_rows_for_the_catalog_follow_the_columns_as_files_do(clause, row):
    assert moved(T, after(clause)).batch(InlinedBatch(T.columns, (ROW,))).rows == (row,)


def test_rows_for_the_catalog_of_a_dropped_column_are_repeated():
    with pytest.raises(Conflict, match="column a was dropped"):
        moved(T, after("DROP COLUMN a")).batch(InlinedBatch(T.columns, (ROW,)))


def test_nulls_are_looked_for_in_rows_for_the_catalog():
    seen = moved(T, after("ALTER COLUMN a SET NOT NULL"))
    assert seen.batch(InlinedBatch(T.columns, (ROW,))).rows == (ROW,)
    with pytest.raises(Conflict, match="column a is NOT NULL now"):
        seen.batch(InlinedBatch(T.columns, ((1, None, None, None),)))
