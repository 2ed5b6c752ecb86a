"""Files that maintenance looks at: the catalog chooses them, and the others stay numbers."""

from __future__ import annotations

from math import inf

import pytest
from sqlalchemy import insert, text

from shelduck.ducklake import tables
from shelduck.files.candidates import Outlook, outlook, survey_small, survey_some, survey_worn
from shelduck.lake.state import LakeState
from shelduck.model.changes.change import DeleteRows, FileDeletes
from shelduck.model.files.compaction import SmallFiles
from shelduck.model.files.data_file import DeletesSeen
from shelduck.write.changes.flush_rows import flush_table
from tests.support.lake import Lake
from tests.support.looked_up import note_files

TARGET = 1_000_000
LARGE = 900_000
COPIES = 10_000
_NUMBERS = (
    "(WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < :copies)"
    " SELECT i FROM r) AS n"
)


@pytest.fixture
def lake(lake_url, data_path):
    """A table whose file 0 has ten thousand copies: large ones."""
    made = Lake(lake_url, data_path)
    made.create(a="int")
    made.append("t", [{"a": 1}], {1: ("1", "1", 0)})
    with made.store.write() as connection:
        copy = (
            "INSERT INTO ducklake_data_file (data_file_id, table_id, begin_snapshot, path,"
            " path_is_relative, file_format, record_count, file_size_bytes, row_id_start)"
            " SELECT n.i, f.table_id, f.begin_snapshot, 'copy-' || CAST(n.i AS VARCHAR), f.path_is_"
            "relative, f.file_format, f.record_count, :size, n.i FROM ducklake_data_file AS f"
            f" CROSS JOIN {_NUMBERS} WHERE f.data_file_id = 0"
        )
        connection.execute(text(copy), {"copies": COPIES, "size": LARGE})
        layouts = (
            "INSERT INTO shelduck_file_layout (data_file_id, layout_id) SELECT f.data_file_id,"
            " l.layout_id FROM ducklake_data_file AS f CROSS JOIN shelduck_layout AS l"
            " WHERE f.data_file_id > 0"
        )
        connection.execute(text(layouts))
        size = "UPDATE ducklake_data_file SET file_size_bytes = :size WHERE data_file_id = 0"
        connection.execute(text(size), {"size": LARGE})
    yield made
    made.store.close()


@pytest.fixture
def looked_up(monkeypatch):
    """The files that became objects."""
    found = []
    note_files(monkeypatch, lambda files: found.extend(f.id for f in files))
    return found


def resize(lake, which, size=100):
    with lake.store.write() as connection:
        change = f"UPDATE ducklake_data_file SET file_size_bytes = {size} WHERE {which}"
        connection.execute(text(change))


def partition(lake, value):
    """Give each file a value of the first key of the partitioning 5."""
    with lake.store.write() as connection:
        connection.execute(text("UPDATE ducklake_data_file SET partition_id = 5"))
        values = (
            "INSERT INTO ducklake_file_partition_value (data_file_id, table_id,"
            " partition_key_index, partition_value) SELECT data_file_id, table_id, 0,"
            f" CAST({value} AS VARCHAR) FROM ducklake_data_file"
        )
        connection.execute(text(values))


def spec(lake):
    """Make the partitioning 5, by the only column."""
    table = lake.table("t")
    [column] = table.columns.fields
    info = {"partition_id": 5, "table_id": table.id, "begin_snapshot": 1}
    key = {"partition_id": 5, "table_id": table.id, "partition_key_index": 0}
    key |= {"column_id": column.id, "transform": "identity"}
    with lake.store.write() as connection:
        connection.execute(insert(tables.partition_info), info)
        connection.execute(insert(tables.partition_column), key)


def set_option(lake, key, value):
    row = {"key": key, "value": value, "scope": "table", "scope_id": lake.table("t").id}
    with lake.store.write() as connection:
        connection.execute(insert(tables.metadata), row)


def add_deletes(lake, *numbers):
    table = lake.table("t")
    with lake.store.write() as connection:
        for number in numbers:
            row = {"delete_file_id": 50_000 + number, "table_id": table.id, "begin_snapshot": 1}
            row |= {"data_file_id": number, "path": f"{number}-d", "path_is_relative": True}
            row |= {"format": "parquet", "delete_count": 1, "file_size_bytes": 1}
            connection.execute(insert(tables.delete_file), row)


def bins_of(lake, **limits):
    statements = lake.store.statements
    wanted = SmallFiles(TARGET, **limits)
    _, bins = survey_small(LakeState(lake.store, lake.info), lake.table("t"), wanted)
    return [[f.id for f in one.files] for one in bins], lake.store.statements - statements


@pytest.mark.every_database
def test_only_small_files_without_deletes_are_looked_up(lake, looked_up):
    resize(lake, "data_file_id IN (7, 5000, 9000, 9001)")
    add_deletes(lake, 9001)
    bins, statements = bins_of(lake)
    assert bins == [[7, 5000, 9000]]
    assert looked_up == [7, 5000, 9000]
    assert statements <= 15
    looked_up.clear()
    assert bins_of(lake, sizes=(101, inf))[0] == []
    assert looked_up == []


def test_a_compaction_of_a_few_files_looks_at_some_of_many_small_ones(lake, looked_up):
    resize(lake, "data_file_id >= 0")
    bins, statements = bins_of(lake, max_files=20)
    assert sum(map(len, bins)) == 20
    assert len(looked_up) == 1_000
    assert statements <= 15
    looked_up.clear()
    bins, _ = bins_of(lake, max_bytes=30_000)
    assert sum(map(len, bins)) == 300
    assert len(looked_up) == 1_000
    looked_up.clear()
    bins, _ = bins_of(lake)
    assert sum(map(len, bins)) == len(looked_up) == COPIES + 1


def test_more_files_are_looked_up_until_some_can_be_combined(lake, looked_up):
    """Only files of one partition are combined: the first ones are alone in theirs."""
    resize(lake, "data_file_id >= 0")
    partition(lake, "CASE WHEN data_file_id < 9000 THEN data_file_id ELSE -1 END")
    bins, _ = bins_of(lake, max_files=3)
    assert bins == [[9000, 9001, 9002]]


def test_a_rewrite_of_deletes_looks_at_files_with_deletes(lake, looked_up):
    add_deletes(lake, 3, 8000)
    found = survey_worn(LakeState(lake.store, lake.info), lake.table("t"), 0.5)
    assert [[f.id for f in one.files] for one in found.dead(0.5, TARGET)] == [[3], [8000]]
    assert looked_up == [3, 8000]


def outlooks(lake, reads_footers=False):
    return outlook(LakeState(lake.store, lake.info), lake.table("t"), reads_footers=reads_footers)


@pytest.mark.every_database
def test_sums_of_many_files_are_those_of_the_files(lake, looked_up, monkeypatch):
    """Of more files than are looked up, the catalog tells what the files would tell."""
    resize(lake, "data_file_id < 200")
    add_deletes(lake, 3, 8000)
    # The second one goes through the commit, which compares it with the file.
    deletes = FileDeletes(5, DeletesSeen(), positions=(0,))
    lake.commit(DeleteRows(lake.table("t"), (deletes,)))
    with lake.store.write() as connection:
        change = text("UPDATE ducklake_data_file SET record_count = 100 WHERE data_file_id = 8000")
        connection.execute(change)
    set_option(lake, "target_file_size", str(TARGET))
    set_option(lake, "rewrite_delete_threshold", "0.5")
    looked_up.clear()
    exact = outlooks(lake)
    assert exact == (Outlook(198, 19_800, 1), Outlook(2, 200, 1))
    assert set(looked_up) == set(range(200))
    looked_up.clear()
    monkeypatch.setattr("shelduck.files.candidates.LOOKED_UP", 1)
    assert outlooks(lake) == (Outlook(198, 19_800, 1, True), Outlook(2, 200, 2, True))
    assert looked_up == []


def test_files_alone_in_their_partition_are_not_counted(lake, looked_up):
    """The values tell partitions apart, not the key alone."""
    resize(lake, "data_file_id < 10")
    spec(lake)
    partition(lake, "CASE WHEN data_file_id < 6 THEN data_file_id ELSE -1 END")
    set_option(lake, "target_file_size", str(TARGET))
    small, _ = outlooks(lake)
    assert small == Outlook(4, 400, 1)


def test_footers_are_read_only_if_asked(lake, looked_up):
    resize(lake, "data_file_id < 3")
    set_option(lake, "target_file_size", str(TARGET))
    with lake.store.write() as connection:
        connection.execute(text("DELETE FROM shelduck_file_layout WHERE data_file_id = 9"))
    assert outlooks(lake)[0].files == 3
    with lake.store.write() as connection:
        connection.execute(text("DELETE FROM shelduck_file_layout WHERE data_file_id = 2"))
    assert outlooks(lake) is None
    assert looked_up == [0, 1, 2]


def test_a_flush_looks_at_files_with_deletes_in_the_catalog(lake, looked_up):
    deletes = FileDeletes(4, DeletesSeen(), positions=(0,))
    lake.commit(DeleteRows(lake.table("t"), (deletes,)))
    looked_up.clear()
    done = flush_table(None, lake.store, lake.table("t"), register=lambda table: table)
    [change] = done.changes
    assert [merged.data_file_id for merged in change.deletes] == [4]
    assert looked_up == [4]


def test_a_rewrite_of_some_files_looks_at_these(lake, looked_up):
    found = survey_some(LakeState(lake.store, lake.info), lake.table("t"), {4, 6, 99_999})
    assert [f.id for f in found.rows.files] == [4, 6]
    assert looked_up == [4, 6]
