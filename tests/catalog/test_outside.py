"""Files that a range of whole numbers rules out, asked of each database."""

from __future__ import annotations

import pytest

from shelduck.catalog.read import read

# Least and greatest id of each file, in the order of their ids.
BOUNDS = [("1", "9"), ("10", "19"), ("-5", "-1"), (None, None), ("1.5", "2.5"), ("", "")]


@pytest.mark.parametrize(
    ("span", "outside"),
    [
        ((10, 10), {0, 2}),
        ((None, 0), {0, 1}),
        ((20, None), {0, 1, 2}),
        ((-5, 9), {1}),
        ((None, None), set()),
        ((2**70, None), set()),
    ],
)
def test_only_files_whose_whole_numbers_lie_outside_are_ruled_out(lake, span, outside):
    lake.create("t", id="bigint")
    for low, high in BOUNDS:
        lake.append("t", [{"id": 1}], {1: (low, high, 0)})
    with lake.store.read() as connection:
        table = read.table(connection, read.snapshot(connection), "main", "t", lake.info)
        numbers = [f.id for f in read.data_files(connection, table)]
        found = read.files_outside(connection, table, {1: span})

    assert {numbers.index(number) for number in found} == outside
