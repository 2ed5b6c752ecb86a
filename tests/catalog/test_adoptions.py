"""Files that a table adopts, inside the commit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shelduck.errors import AlreadyExists
from shelduck.model.changes.change import AppendFiles
from shelduck.model.files.data_file import MappedName
from shelduck.model.tables.schema import FieldId
from tests.support.files import write_file
from tests.support.lake import Lake

A = MappedName("a", FieldId(1), is_partition=False)
B = MappedName("B", FieldId(2), is_partition=False)


@pytest.fixture
def lake(lake_url, data_path):
    lake = Lake(lake_url, data_path)
    lake.create("t", a="int", b="int")
    yield lake
    lake.store.close()


def adopted(lake, *names, table="t"):
    """A file of one row that lies where it lies, under that mapping."""
    found = lake.table(table)
    written = write_file(found, [{"a": 1, "b": 2}])
    return replace(written, path=found.path + written.path, names=names)


@pytest.mark.every_database
def test_an_adopted_file_keeps_its_place_and_gets_a_mapping(lake):
    file = adopted(lake, A, B)
    lake.commit(AppendFiles(lake.table("t").id, (file,)))

    [found] = lake.files("t")
    assert (found.path, found.row_id_start) == (file.path, 0)
    assert lake.head().changes_made == "inserted_into_table:1"
    assert lake.ask("FROM t") == [(1, 2)]


def test_equal_mappings_are_one_across_commits_and_in_whatever_order(lake):
    table = lake.table("t").id
    lake.commit(AppendFiles(table, (adopted(lake, A, B), adopted(lake, B, A))))
    lake.commit(AppendFiles(table, (adopted(lake, B, A), adopted(lake, A))))

    ids = [f.mapping_id for f in lake.files("t")]
    assert ids[0] == ids[1] == ids[2] != ids[3]
    assert len(lake.metadata("ducklake_column_mapping")) == 2


def test_a_file_that_another_commit_adopted_meanwhile_is_refused(lake):
    table, base, file = lake.table("t").id, lake.head().id, adopted(lake, A, B)
    lake.commit(AppendFiles(table, (file,)))
    with pytest.raises(
        AlreadyExists, match=r"table with id 1 already contains file .*; nothing was added"
    ):
        lake.commit(AppendFiles(table, (adopted(lake, A, B), file)), base=base)

    assert len(lake.files("t")) == 1


def test_two_tables_may_adopt_one_file(lake):
    lake.create("u", a="int", b="int")
    file = adopted(lake, A, B)
    for name in ("t", "u"):
        lake.commit(AppendFiles(lake.table(name).id, (file,)))

    assert [f.path for f in lake.files("u")] == [file.path]
    assert len(lake.metadata("ducklake_column_mapping")) == 2


def test_ids_of_mappings_and_files_come_from_one_counter(lake):
    table = lake.table("t").id
    lake.commit(AppendFiles(table, (adopted(lake, A, B), adopted(lake, A))))
    lake.append("t", [{"a": 1, "b": 1}])

    ids = [f.id for f in lake.files("t")]
    mappings = [row["mapping_id"] for row in lake.metadata("ducklake_column_mapping")]
    assert sorted([*ids, *mappings]) == [0, 1, 2, 3, 4]
    assert lake.head().next_file_id == 5
