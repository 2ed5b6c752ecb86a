"""What a change feed reads: decided from the catalog's rows alone."""

from __future__ import annotations

import pytest

from shelduck.errors import Unsupported
from shelduck.model.changes.change import parse_entries
from shelduck.model.changes.feed_plan import (
    FeedDeletes,
    FeedFile,
    FeedSnapshots,
    Span,
    classify,
    plan_changes,
)
from shelduck.model.files.data_file import (
    SNAPSHOT_FIELD,
    DataFile,
    DeleteFile,
    Layout,
    PhysicalField,
)
from shelduck.model.tables.schema import TableId
from shelduck.model.types.data_types import Primitive

PLAIN = Layout((PhysicalField("a", 1, Primitive("int32")),))
MERGED = Layout((*PLAIN.fields, PhysicalField("s", SNAPSHOT_FIELD, Primitive("int64"))))
NEW = 100  # the first file id of the range


def data_file(number=NEW, begin=5, *, layout=PLAIN, partial_max=None):
    return DataFile(number, f"/d/{number}", 1, 1, 0, begin, partial_max=partial_max, layout=layout)


def deletes(begin, number=NEW + 1):
    return FeedDeletes(DeleteFile(f"/d/{number}-delete", "parquet", 1, number), begin)


def planned(file, snapshots=FeedSnapshots()):  # noqa: B008
    plan = plan_changes(Span(4, 8, NEW), snapshots, [file])
    found = {
        "born": plan.born,
        "born_partly": plan.born_partly,
        "ended": plan.ended,
        "thinned": plan.thinned,
    }
    return {name for name, files in found.items() if files}


@pytest.mark.parametrize(
    ("file", "read"),
    [
        (FeedFile(data_file(begin=5)), {"born"}),
        (FeedFile(data_file(begin=3)), set()),
        (FeedFile(data_file(begin=5), end_snapshot=7), {"born", "ended"}),
        (FeedFile(data_file(begin=2), end_snapshot=4), {"ended"}),
        (FeedFile(data_file(begin=2), end_snapshot=9), set()),
        (FeedFile(data_file(begin=2), deletes=(deletes(6),)), {"thinned"}),
        (FeedFile(data_file(begin=2), deletes=(deletes(2, NEW - 1),)), set()),
        (FeedFile(data_file(begin=2), deletes=(deletes(2, NEW),)), {"thinned"}),
        (FeedFile(data_file(begin=2), positions=((7, 3),)), set()),
        (FeedFile(data_file(begin=2), positions=((7, 3), (9, 8))), {"thinned"}),
        (FeedFile(data_file(begin=5), deletes=(deletes(6),)), {"born", "thinned"}),
        (FeedFile(data_file(begin=5), deletes=(deletes(5),)), {"born_partly", "thinned"}),
        (FeedFile(data_file(begin=5), positions=((0, 5),)), {"born_partly", "thinned"}),
        (FeedFile(data_file(begin=2, layout=MERGED)), {"born"}),
        (FeedFile(data_file(begin=2, layout=MERGED, partial_max=3)), set()),
        (FeedFile(data_file(begin=2, layout=MERGED, partial_max=4)), {"born"}),
        (
            FeedFile(data_file(begin=2, layout=MERGED), deletes=(deletes(3),)),
            {"born_partly", "thinned"},
        ),
    ],
)
def test_each_file_is_read_for_what_happened_in_it(file, read):
    assert planned(file) == read


def test_compacted_files_say_nothing_where_they_begin_and_end():
    snapshots = FeedSnapshots(rewritten=frozenset({5, 7}))

    assert planned(FeedFile(data_file(begin=5)), snapshots) == set()
    assert planned(FeedFile(data_file(begin=2), end_snapshot=7), snapshots) == set()
    assert planned(FeedFile(data_file(begin=5), end_snapshot=6), snapshots) == {"ended"}


def test_a_file_that_ended_is_read_as_the_snapshot_before_saw_it():
    file = FeedFile(
        data_file(begin=1),
        end_snapshot=7,
        deletes=(deletes(2, 50), deletes(6, NEW)),
        positions=((3, 6), (4, 7)),
    )

    plan = plan_changes(Span(4, 8, NEW), FeedSnapshots(), [file])

    [(seen, end)] = plan.ended
    assert end == 7
    assert seen.delete_file is not None
    assert (seen.delete_file.id, seen.inlined_deletes) == (NEW, (3,))


@pytest.mark.parametrize(
    ("text", "moved", "rewritten", "mixed"),
    [
        ("inserted_into_table:1", False, False, False),
        ("inserted_into_table:1,deleted_from_table:1", False, False, True),
        ("inserted_into_table:1,inlined_delete:1", False, False, True),
        ("inserted_into_table:1,deleted_from_table:2", False, False, False),
        ("merge_adjacent:1", True, False, False),
        ("rewrite_delete:1", True, True, False),
        ("compacted_table:1", True, True, False),
        ("rewrite_delete:2,inserted_into_table:1", False, False, False),
        ("deleted_from_table:1,inline_flush:1", True, False, False),
        ("inline_flush:1,inserted_into_table:1", False, False, False),
        (None, False, False, True),
    ],
)
def test_what_a_snapshot_logged_tells_changes_from_moves(text, moved, rewritten, mixed):
    found = classify([(9, parse_entries(text))], TableId(1))

    assert (bool(found.moved), bool(found.rewritten), bool(found.mixed)) == (
        moved,
        rewritten,
        mixed,
    )


def test_a_snapshot_that_compacts_and_changes_rows_is_refused():
    entries = parse_entries("inserted_into_table:1,rewrite_delete:1")

    with pytest.raises(Unsupported, match="snapshot 9"):
        classify([(9, entries)], TableId(1))
