"""Files that a range of whole numbers rules out, asked of each database."""

from __future__ import annotations

import pytest
from sqlalchemy import delete, event, text

from shelduck.catalog.read import read
from shelduck.catalog.read.files.outside import (
    files_inside,
    files_outside,
    files_without_statistics,
)
from shelduck.ducklake import tables

# Least and greatest id of each file, in the order of their ids.
BOUNDS = [("1", "9"), ("10", "19"), ("-5", "-1"), (None, None), ("1.5", "2.5"), ("", "")]


SPANS = [
    ((10, 10), {0, 2}),
    ((None, 0), {0, 1}),
    ((20, None), {0, 1, 2}),
    ((-5, 9), {1}),
    ((None, None), set()),
    ((2**70, None), set()),
    ((None, -(2**63) + 1), {0, 1, 2}),
    ((2**63 - 1, None), {0, 1, 2}),
]


@pytest.fixture
def files(lake):
    lake.create("t", id="bigint")
    for low, high in BOUNDS:
        lake.append("t", [{"id": 1}], {1: (low, high, 0)})
    with lake.store.read() as connection:
        table = read.table(connection, read.snapshot(connection), "main", "t", lake.info)
        numbers = [f.id for f in read.data_files(connection, table)]
    return table, numbers


@pytest.mark.parametrize(("span", "outside"), SPANS)
def test_only_files_whose_whole_numbers_lie_outside_are_ruled_out(lake, files, span, outside):
    table, numbers = files
    with lake.store.read() as connection:
        found = files_outside(connection, table, {1: span})

    assert {numbers.index(number) for number in found} == outside


@pytest.mark.parametrize(("span", "outside"), [pair for pair in SPANS if pair[1]])
def test_all_others_are_inside(lake, files, span, outside):
    table, numbers = files
    with lake.store.read() as connection:
        found = files_inside(connection, table, 1, span, len(BOUNDS))
        fewer = files_inside(connection, table, 1, span, len(found) - 1)

    assert {*map(numbers.index, found)} == {*range(len(BOUNDS))} - outside
    assert fewer is None


@pytest.mark.databases("sqlite")
def test_sqlite_finds_them_in_an_index(lake, files):
    table, _ = files
    asked = []
    with lake.store.read() as connection:
        event.listen(connection, "before_cursor_execute", lambda *a: asked.append(a[2]))
        files_inside(connection, table, 1, (5, 5), 10)
        plan = connection.execute(text(f"EXPLAIN QUERY PLAN {asked[0]}")).all()

    assert "USING INDEX shelduck_ix_column_bounds" in plan[0][-1]
    assert "<expr>>" in plan[0][-1]


@pytest.mark.parametrize("gone", [(), (2,), (0, 5)])
def test_files_without_statistics_are_told(lake, files, gone):
    table, numbers = files
    lost = [numbers[place] for place in gone]
    known = tables.file_column_stats
    with lake.store.write() as writing:
        writing.execute(delete(known).where(known.c.data_file_id.in_(lost)))
    with lake.store.read() as later:
        found = files_without_statistics(later, table, 1, len(BOUNDS))

    assert sorted(found) == lost
