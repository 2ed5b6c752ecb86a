"""Which rewrites nobody can tell from one that happens now."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from shelduck.jobs.worker import postponable
from shelduck.model.changes.change import parse_entries
from shelduck.model.files.data_file import DataFile, DeleteFile
from shelduck.model.tables.schema import SnapshotId, TableId
from shelduck.model.tables.table_version import Snapshot

T = TableId(1)


def logged(*snapshots):
    """Snapshots by id, next file id, and what they did."""
    return [
        (Snapshot(SnapshotId(number), datetime.now(UTC), 1, 9, next_file), parse_entries(did))
        for number, next_file, did in snapshots
    ]


def live(number, begin, **more):
    return DataFile(number, f"{number}.parquet", 100, 10, None, begin)._replace(**more)


LOTS = logged((5, 3, "altered_table:1"), (6, 5, "rewrite_delete:1"), (7, 6, "rewrite_delete:1"))
RESULTS = [live(3, 6), live(4, 6), live(5, 7)]


def test_lots_of_which_all_files_are_as_they_were_written():
    assert postponable(T, LOTS, [live(0, 2), *RESULTS]) == {6: {3, 4}, 7: {5}}


@pytest.mark.parametrize(
    "touched",
    [
        {"delete_file": DeleteFile("d.parquet", "parquet", 1, 6)},
        {"inlined_deletes": (3,)},
        {"partial_max": 7},
        {"begin_snapshot": 4},
    ],
    ids=["deletes", "deletes in the catalog", "merged", "merged with older ones"],
)
def test_a_lot_stays_where_it_is_when_one_of_its_files_was_touched(touched):
    files = [RESULTS[0]._replace(**touched), *RESULTS[1:]]
    assert postponable(T, LOTS, files) == {7: {5}}


def test_a_lot_stays_where_it_is_when_one_of_its_files_is_gone():
    assert postponable(T, LOTS, RESULTS[1:]) == {7: {5}}


@pytest.mark.parametrize(
    "did",
    [
        "rewrite_delete:2",
        "rewrite_delete:1,rewrite_delete:2",
        "rewrite_delete:1,altered_table:1",
        "rewrite_delete:1,inserted_into_table:1",
        "merge_adjacent:1",
        "inserted_into_table:1",
        None,
    ],
)
def test_a_snapshot_that_did_anything_else_stays(did):
    snapshots = logged((5, 3, None), (6, 5, did), (7, 6, "rewrite_delete:1"))
    assert postponable(T, snapshots, RESULTS) == {7: {5}}


@pytest.mark.parametrize(
    "did", ["rewrite_delete:1,inline_flush:1", "inline_flush:1,rewrite_delete:1"]
)
def test_a_rewrite_may_say_that_it_is_a_flush_too(did):
    snapshots = logged((5, 3, None), (6, 5, did), (7, 6, "inline_flush:1"))
    assert postponable(T, snapshots, RESULTS) == {6: {3, 4}}


def test_the_snapshot_before_must_be_there():
    assert postponable(T, LOTS[1:], RESULTS) == {7: {5}}
    assert postponable(T, [LOTS[0], LOTS[2]], RESULTS) == {}
    assert postponable(T, [], RESULTS) == {}
