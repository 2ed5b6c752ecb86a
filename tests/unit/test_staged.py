"""What a transaction sees of its own changes."""

from __future__ import annotations

import pytest

from shelduck.errors import Conflict
from shelduck.model.changes.change import FileDeletes
from shelduck.model.changes.staged import StagedRows
from shelduck.model.files.data_files import DataFile, DeletesSeen
from tests.support.scans import column, table

_KEPT = DataFile(5, "/lake/t/5.parquet", 100, 3, 0, 1)


def test_a_file_whose_rows_are_all_deleted_is_gone():
    staged = StagedRows(deletes={6: FileDeletes(6, DeletesSeen())})

    assert staged.over(table(column("a", "int32", 1)), [_KEPT, _KEPT._replace(id=6)]) == [_KEPT]


def test_deletes_of_a_file_that_the_snapshot_lost_are_a_conflict():
    staged = StagedRows(deletes={6: FileDeletes(6, DeletesSeen())})

    with pytest.raises(Conflict, match=r"moved rows of main.t .*run the statement again"):
        staged.over(table(column("a", "int32", 1)), [_KEPT])
