"""Positions of a streaming query: every row lies in one batch, wherever batches end."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shelduck.errors import CorruptLake
from shelduck.model.changes.stream import POSITION, StreamPart, StreamPosition, cut, parts_between
from shelduck.model.files.data_file import DataFile

START = StreamPosition("uuid", 5, whole=True, start=5, start_whole=True)


def file(begin, row_id):
    return DataFile(row_id, f"{row_id}.parquet", 1, 10, row_id, begin)


def holds(part, snapshot, row_id):
    """Whether a part has the row that ``snapshot`` added."""
    if part.whole:
        return snapshot <= part.first and part.low <= row_id < (part.high or 10**9)
    if not part.first <= snapshot <= part.last:
        return False
    return (snapshot > part.first or row_id >= part.low) and (
        snapshot < part.last or part.high is None or row_id < part.high
    )


@given(st.lists(st.integers(1, 12), max_size=30), st.integers(1, 5))
def test_batches_of_some_files_hold_each_row_once(begins, limit):
    files = [file(begin, 10 * n) for n, begin in enumerate(sorted(begins))]
    newest = 12
    positions = [START]
    while positions[-1].whole or positions[-1].snapshot <= newest:
        last = positions[-1]
        if last.whole:
            seen = [f for f in files if f.begin_snapshot <= 5]
            following = cut(seen, last, limit) or last.at(6)
        else:
            new = [f for f in files if f.begin_snapshot >= last.snapshot]
            following = cut(new, last, limit) or last.at(newest + 1)
        assert POSITION.read(POSITION.write(following), "a stream") == following
        positions.append(following)
    batches = [parts_between(*ends) for ends in itertools.pairwise(positions)]
    for found in files:
        for row_id in (found.row_id_start, found.row_id_start + 9):
            where = [b for b in batches if any(holds(p, found.begin_snapshot, row_id) for p in b)]
            assert len(where) == 1
    sizes = [
        sum(any(holds(p, f.begin_snapshot, f.row_id_start) for p in b) for f in files)
        for b in batches
    ]
    assert all(size <= limit for size in sizes)


def test_a_batch_may_end_the_table_of_the_start_and_go_on():
    assert parts_between(START, START.at(8)) == [StreamPart(5, 5, whole=True), StreamPart(6, 7)]
    assert parts_between(START.at(7, 30), START.at(9, 60)) == [StreamPart(7, 9, 30, 60)]
    assert parts_between(START.at(7), START.at(7)) == []
    assert START.at(9).beginning == START


def test_an_offset_of_something_else_is_refused():
    with pytest.raises(CorruptLake, match="cannot decode the offset of the stream"):
        POSITION.read('{"logOffset":3}', "the stream")
