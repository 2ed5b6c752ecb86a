"""The pages of a table with many files: the catalog sums, and files do not become objects."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import text

from shelduck.files.candidates import LOOKED_UP
from shelduck.model.changes.change import AppendFiles
from tests.support.files import write_file
from tests.support.html import figures, rows, words
from tests.support.looked_up import note_files

SIZE = 1_000
_COPY = """
INSERT INTO ducklake_data_file (data_file_id, table_id, begin_snapshot, path, path_is_relative,
  file_format, record_count, file_size_bytes, row_id_start, partition_id)
SELECT n.i, f.table_id, f.begin_snapshot, 'copy-' || CAST(n.i AS VARCHAR), f.path_is_relative,
  f.file_format, f.record_count, f.file_size_bytes, n.i, f.partition_id
FROM ducklake_data_file AS f CROSS JOIN {numbers} WHERE f.data_file_id = 0;

INSERT INTO shelduck_file_layout (data_file_id, layout_id)
SELECT n.i, f.layout_id
FROM shelduck_file_layout AS f CROSS JOIN {numbers} WHERE f.data_file_id = 0;

INSERT INTO ducklake_file_partition_value (data_file_id, table_id, partition_key_index,
  partition_value)
SELECT n.i, f.table_id, 0, CAST(n.i % 7 AS VARCHAR)
FROM ducklake_file_partition_value AS f CROSS JOIN {numbers} WHERE f.data_file_id = 0;

INSERT INTO ducklake_file_column_stats (data_file_id, table_id, column_id, value_count, null_count,
  min_value, max_value, contains_nan)
SELECT n.i, f.table_id, f.column_id, f.value_count, f.null_count, CAST(n.i AS VARCHAR),
  CAST(n.i AS VARCHAR), f.contains_nan
FROM ducklake_file_column_stats AS f CROSS JOIN {numbers} WHERE f.data_file_id = 0
"""
_NUMBERS = """(
WITH RECURSIVE r(i) AS (
  SELECT CAST(:first AS BIGINT) UNION ALL SELECT i + 1 FROM r WHERE i < :last
) SELECT i FROM r) AS n"""


@pytest.fixture
def made_objects(monkeypatch):
    """How many files became objects."""
    found = []
    note_files(monkeypatch, found.extend)
    return found


def copy(lake, first, last):
    with lake.store.write() as connection:
        for statement in _COPY.split(";"):
            asked_for = statement.format(numbers=_NUMBERS)
            connection.execute(text(asked_for), {"first": first, "last": last})


def asked(lake, page, path):
    before = lake.store.statements
    found = page.tree(path)
    return found, lake.store.statements - before


@pytest.mark.every_database
def test_the_pages_of_many_files_make_no_object_for_a_file(lake, page, sql, made_objects):
    sql("CREATE TABLE t (id INT, p INT) PARTITIONED BY (p) SORTED BY (id)")
    table = lake.table("t")
    made = write_file(table, [{"id": 0, "p": 0}], {1: ("0", "0", 0)})
    mine = {"partition_id": table.partition_id, "partition_values": ("0",)}
    lake.commit(AppendFiles(table.id, (replace(made, file_size_bytes=SIZE, **mine),)))
    path = f"/tables/{page.id_of('t')}/files"
    moult = f"/tables/{page.id_of('t')}/moult"
    copy(lake, 1, LOOKED_UP + 500)
    made_objects.clear()
    first, statements = asked(lake, page, path)
    copy(lake, LOOKED_UP + 501, 2 * LOOKED_UP - 1)
    second, again = asked(lake, page, path)

    assert (made_objects, again) == ([], statements)
    assert statements <= 25
    assert f"A job would write {2 * LOOKED_UP:,} files again" in words(page.tree(moult))
    assert made_objects == []
    assert figures(first)["data files"] == f"{LOOKED_UP + 501:,}"
    told = words(second)
    assert "about 20,000 files (20.0 MB) would become 7 files" in told
    assert "Of the 10,000 newest files: One value of id is in at most 1 file of 10,000" in told
    each = 2 * LOOKED_UP // 7
    found = rows(second, "Partitions")
    assert [line[0] for line in found] == [f"p = {n}" for n in range(7)]
    assert [line[1] for line in found] == [f"{each + (n == 0):,}" for n in range(7)]
