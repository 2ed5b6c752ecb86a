"""Sizes of files in the catalog that are not those of the storage."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from shelduck.errors import CorruptLake

STATEMENTS = ["CREATE TABLE t (id INT)", "INSERT INTO t SELECT CAST(id AS INT) FROM range(100)"]


def test_no_tasks_are_planned_for_a_terabyte_that_is_not_there(copied):
    catalog, lake = copied
    with closing(sqlite3.connect(catalog)) as connection, connection:
        connection.execute("UPDATE ducklake_data_file SET file_size_bytes = 1000000000000")

    with pytest.raises(
        CorruptLake, match=r"data files of main.t are not those .* bytes instead of 1000000000000"
    ):
        lake.sql("SELECT sum(id) FROM t").collect()
