"""Which files are written together, and which older snapshots could not do without them."""

from __future__ import annotations

import pytest

from shelduck.model.files.compaction import (
    Bin,
    ColumnVersion,
    History,
    Partition,
    SmallFiles,
    batches,
    dead_row_bins,
    small_file_bins,
)
from shelduck.model.files.data_file import (
    DataFile,
    DeleteFile,
    Layout,
    MappedName,
    NameMapping,
    PhysicalField,
)
from shelduck.model.text.names import is_write_directory, write_directory
from shelduck.model.types.data_types import ducklake_type

NO_CHANGES = History([ColumnVersion(1, "int32", None, None, 1, None)], [0, 1, 2, 3])


def file(number, size=10, *, begin=1, columns=(1,), rows=10, **more):
    layout = Layout(tuple(PhysicalField(f"c{i}", i, ducklake_type("int32")) for i in columns))
    found = DataFile(number, f"/t/{number}", size, rows, 0, begin, layout=layout)
    return found._replace(**more)


def ids(bins):
    return [[f.id for f in one.files] for one in bins]


def small(files, target=100, partitions=None, history=NO_CHANGES, **more):
    return small_file_bins(files, partitions or {}, history, SmallFiles(target, **more))


def test_small_neighbours_go_into_one_bin_in_their_order():
    assert ids(small([file(3), file(1), file(2)])) == [[1, 2, 3]]


def test_a_file_of_three_quarters_of_the_target_is_large_enough():
    assert ids(small([file(1, 74), file(2, 75), file(3, 10)])) == [[1, 3]]


def test_one_file_alone_is_left_as_it_is():
    assert small([file(1), file(2, 90)]) == []


def test_bins_stay_within_the_target_and_are_even():
    assert ids(small([file(n, 20) for n in range(1, 13)])) == [
        [1, 2, 3, 4],
        [5, 6, 7, 8],
        [9, 10, 11, 12],
    ]


def test_what_does_not_divide_evenly_stays_within_the_target():
    bins = small([file(n, 60) for n in range(1, 6)])
    assert bins == []
    assert [b.bytes for b in small([file(n, 60) for n in range(1, 6)], target=120)] == [120, 120]


def test_fewer_files_than_asked_for_are_left_alone():
    assert small([file(1), file(2)], min_files=3) == []


def test_no_more_files_than_allowed_are_taken():
    found = small([file(n, 20) for n in range(1, 13)], max_files=6)
    assert ids(found) == [[1, 2, 3, 4], [5, 6]]


def test_partitions_are_never_mixed_nor_their_specs():
    places = {1: Partition(5, ("a",)), 2: Partition(5, ("b",)), 3: Partition(5, ("a",))}
    places |= {4: Partition(6, ("a",)), 5: Partition(5, (None,)), 6: Partition(5, (None,))}
    assert ids(small([file(n) for n in range(1, 8)], partitions=places)) == [[1, 3], [5, 6]]


def test_files_with_deleted_rows_are_left_to_the_rewrite():
    dead = file(2, delete_file=DeleteFile("/t/d", "parquet", 1, 7))
    also = file(3, inlined_deletes=(4,))
    assert ids(small([file(1), dead, also, file(4)])) == [[1, 4]]


@pytest.mark.parametrize(
    ("threshold", "chosen"), [(0.5, [[1], [3]]), (0.2, [[1, 2], [3]]), (0, [[1, 2], [3], [4]])]
)
def test_files_are_rewritten_from_a_part_of_dead_rows_on(threshold, chosen):
    files = [
        file(1, delete_file=DeleteFile("/t/d", "parquet", 5, 7)),
        file(2, inlined_deletes=(1, 2)),
        file(3, 1000, delete_file=DeleteFile("/t/d", "parquet", 4, 7), inlined_deletes=(9,)),
        file(4, inlined_deletes=(0,)),
        file(5),
    ]
    found = dead_row_bins(files, {}, threshold, 100)
    assert sorted(ids(found)) == sorted(chosen)
    assert not any(b.keeps_history for b in found)


OLD_TYPE = ColumnVersion(1, "int32", None, None, 1, 5)
NEW_TYPE = ColumnVersion(1, "int64", None, None, 5, None)
DROPPED = ColumnVersion(2, "varchar", None, None, 1, 5)
KEPT = ColumnVersion(1, "int32", None, None, 1, None)


@pytest.mark.parametrize(
    ("versions", "snapshots", "columns", "begin", "allowed"),
    [
        # Nothing ever changed, or only names: ids are what counts.
        ([KEPT], [1, 2, 3], (1,), 1, True),
        ([KEPT, ColumnVersion(1, "INT32", None, None, 1, 5)], [1, 6], (1,), 1, True),
        # A column that older snapshots show under another type.
        ([OLD_TYPE, NEW_TYPE], [3, 6], (1,), 1, False),
        ([OLD_TYPE, NEW_TYPE], [5, 6], (1,), 1, True),
        ([OLD_TYPE, NEW_TYPE], [4, 5, 6], (1,), 5, True),
        # A column that only the file has.
        ([KEPT, DROPPED], [3, 6], (1, 2), 1, False),
        ([KEPT, DROPPED], [3, 6], (1,), 1, True),
        ([KEPT, DROPPED], [6], (1, 2), 1, True),
        ([KEPT, DROPPED], [3, 6], (1, 2), 4, True),
        # Another default for rows without the column.
        (
            [
                KEPT,
                ColumnVersion(3, "int32", None, "1", 2, 4),
                ColumnVersion(3, "int32", None, None, 4, None),
            ],
            [3, 6],
            (1,),
            1,
            False,
        ),
        # Moved into a struct, or out of one.
        ([KEPT, ColumnVersion(1, "int32", 9, None, 1, 5)], [3, 6], (1,), 1, False),
        # An id that was only reserved was never seen.
        ([KEPT, ColumnVersion(4, "int32", None, None, 3, 3)], [3, 6], (1, 4), 1, True),
    ],
)
def test_history_is_kept_where_older_snapshots_miss_nothing(
    versions, snapshots, columns, begin, allowed
):
    history = History(versions, snapshots)
    assert history.allows(file(1, begin=begin, columns=columns)) is allowed


def test_history_needs_the_file_whose_deleted_rows_older_snapshots_show():
    history = History([KEPT], [1, 2], deleted_from=[1])
    assert not history.allows(file(1))
    assert history.allows(file(2))


def test_an_adopted_file_has_the_columns_of_its_mapping():
    mapping = NameMapping(3, (MappedName("a", 1, False), MappedName("b", 2, False)))
    history = History([KEPT, DROPPED], [3, 6], mappings={3: mapping})
    adopted = file(1, columns=(None,), mapping_id=3)
    assert not history.allows(adopted)
    narrow = History([KEPT, DROPPED], [3, 6], mappings={3: NameMapping(3, mapping.names[:1])})
    assert narrow.allows(adopted)


def test_a_file_without_ids_may_have_anything():
    assert not History([KEPT, DROPPED], [3, 6]).allows(file(1, columns=(None,)))
    assert History([KEPT], [3, 6]).allows(file(1, columns=(None,)))


@pytest.mark.parametrize(
    ("begins", "keeps"),
    [
        ((1, 2), True),
        ((4, 5), True),
        ((2, 4), False),
        ((1, 6), False),
        ((6, 10), True),
        ((10, 12), False),
        ((12, 14), True),
    ],
)
def test_files_from_before_and_after_a_column_came_are_not_one_of_history(begins, keeps):
    """DuckDB would write the result anew with the columns of its first snapshot."""
    versions = [
        KEPT,
        ColumnVersion(3, "int32", None, None, 3, None),
        # Renamed; dropped and restored; and widened, which no snapshot that is left shows.
        ColumnVersion(5, "int32", None, None, 1, 5),
        ColumnVersion(5, "int32", None, None, 5, None),
        ColumnVersion(7, "int32", None, None, 1, 9),
        ColumnVersion(7, "int32", None, None, 12, None),
        ColumnVersion(4, "float32", None, None, 1, 6),
        ColumnVersion(4, "float64", None, None, 6, None),
    ]
    [found] = small([file(n, begin=n) for n in begins], history=History(versions, [14]))
    assert found.keeps_history is keeps


def test_files_that_history_needs_have_bins_of_their_own():
    history = History([KEPT, DROPPED], [3, 6])
    files = [file(1, columns=(1, 2)), file(2), file(3, columns=(1, 2)), file(4)]
    found = small(files, history=history)
    assert [(i, b.keeps_history) for i, b in zip(ids(found), found, strict=True)] == [
        ([2, 4], True),
        ([1, 3], False),
    ]


def test_lots_are_of_one_kind_and_bounded():
    bins = [Bin((file(n),), keeps_history=n < 70) for n in range(100)]
    assert [len(lot) for lot in batches(bins)] == [64, 6, 30]
    large = [Bin((file(n, 3 << 30),), keeps_history=True) for n in range(5)]
    assert [len(lot) for lot in batches(large)] == [2, 2, 1]


def test_the_directory_of_a_write_tells_its_table():
    mine, other = "018f2f5c-6a1b-4c3d-8e9f-0123456789ab", "018f2f5c-6a1b-4c3d-8e9f-ffffffffffff"
    made = write_directory(mine, 1_700_000_000_000, 123456789)
    assert made == "018bcfe5-6800-7d15-b5bc-0123456789ab"
    assert is_write_directory(made, mine)
    assert not is_write_directory(made, other)
    assert not is_write_directory("year=2024", mine)
    assert write_directory(mine, 1_700_000_000_001, 0) > made


def test_no_more_bytes_than_allowed_are_taken_from_the_first_files_of_each_bin():
    files = [file(n, 20) for n in range(1, 13)]
    assert ids(small(files, max_bytes=120)) == [[1, 2, 3, 4], [5, 6]]
    assert ids(small(files, max_bytes=119)) == [[1, 2, 3, 4]]
    assert small(files, max_bytes=39) == []


def test_a_bin_that_is_too_large_leaves_its_bytes_to_the_next():
    places = {n: Partition(5, ("a" if n < 3 else "b",)) for n in range(1, 5)}
    files = [file(1, 30), file(2, 30), file(3), file(4)]
    assert ids(small(files, partitions=places, max_bytes=59)) == [[3, 4]]


def test_dead_rows_are_removed_within_limits_of_bytes_and_of_sizes():
    files = [file(n, 20 * n, inlined_deletes=(1,)) for n in range(1, 5)]
    assert ids(dead_row_bins(files, {}, 0, 100, below=60)) == [[1, 2]]
    assert ids(dead_row_bins(files, {}, 0, 30, max_bytes=130)) == [[1], [2], [3]]
