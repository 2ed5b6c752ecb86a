"""The partitions of a table, summed up by the catalog: numbers that are known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import text

import shelduck
from shelduck.catalog.read.overview.table_files import (
    PartitionSums,
    largest_partitions,
    partition_rows,
)
from shelduck.model.changes.change import AppendFiles, DeleteRows, FileDeletes
from shelduck.model.files.data_file import DeletesSeen
from tests.support.files import write_delete_file, write_file


def alter(lake, statement):
    with shelduck.connect(lake.url) as connected:
        connected.execute(statement)


def add(lake, count, size, values):
    table = lake.table("t")
    made = write_file(table, [{"a": 1, "b": 2}] * count)
    spec = table.partition_id
    mine = {"file_size_bytes": size, "partition_id": spec, "partition_values": values}
    lake.commit(AppendFiles(table.id, (replace(made, **mine),)))
    return spec, lake.head().id


def delete(lake, file, *positions, inline):
    made = None
    if not inline:
        made, positions = write_delete_file(lake.table("t"), file.path, positions), ()
    seen = DeletesSeen()
    deletes = FileDeletes(file.id, seen, delete_file=made, positions=positions)
    lake.commit(DeleteRows(lake.table("t"), (deletes,)))


@pytest.mark.every_database
def test_partitions_have_the_sums_of_their_files(lake):
    lake.create("t", a="int", b="int")
    add(lake, 4, 50, ())
    alter(lake, "ALTER TABLE t SET PARTITIONED BY (a)")
    old, _ = add(lake, 10, 100, ("1",))
    alter(lake, "ALTER TABLE t SET PARTITIONED BY (b, a)")
    new, _ = add(lake, 5, 300, ("2", None))
    add(lake, 7, 10, ("2", "1"))
    _, last = add(lake, 3, 20, ("2", "1"))
    files = lake.files("t")
    delete(lake, files[1], 0, 1, inline=False)
    delete(lake, files[3], 2, inline=True)
    with lake.store.write() as connection:
        # Two processes may delete the same row.
        name = f"ducklake_inlined_delete_{lake.table('t').id}"
        twice = f"INSERT INTO {name} SELECT * FROM {name}"
        connection.execute(text(twice))

    with lake.store.read() as connection:
        found = partition_rows(connection, lake.table("t"))
        largest = largest_partitions(connection, lake.table("t"), 2)
    begins = [file.begin_snapshot for file in files]
    assert found == [
        PartitionSums((), None, 4, 1, 50, 0, begins[0]),
        PartitionSums((("a", "1"),), old, 10, 1, 100, 2, begins[1]),
        PartitionSums((("b", "2"), ("a", "1")), new, 10, 2, 30, 1, last),
        PartitionSums((("b", "2"), ("a", None)), new, 5, 1, 300, 0, begins[2]),
    ]
    assert largest == ([found[3], found[1]], 4)


def test_an_older_snapshot_shows_its_own_partitions(lake):
    lake.create("t", a="int", b="int")
    alter(lake, "ALTER TABLE t SET PARTITIONED BY (a)")
    spec, first = add(lake, 10, 100, ("1",))
    before = lake.table("t")
    add(lake, 1, 1, ("2",))
    delete(lake, lake.files("t")[0], 0, inline=True)
    with lake.store.read() as connection:
        found = partition_rows(connection, before)
    assert found == [PartitionSums((("a", "1"),), spec, 10, 1, 100, 0, first)]
