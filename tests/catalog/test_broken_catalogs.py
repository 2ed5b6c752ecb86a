"""Catalogs with a fault: every one is a ShelduckError that names table, column and row."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

import shelduck
from shelduck.catalog.read import metadata_rows, read
from shelduck.errors import CorruptLake, ShelduckError
from tests.support.broken_catalogs import BrokenCatalogs
from tests.support.lake import Lake
from tests.support.lengths import shown, turns

FAST = 10
SLOW = 20_000
CHUNK = 150


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    catalogs = BrokenCatalogs(tmp_path_factory.mktemp("lakes"))
    yield catalogs
    catalogs.close()


def faults(broken, seeds):
    """The faults of each seed, with what brings it back."""
    found = []
    for seed in seeds:
        mutation = broken.mutation(seed)
        found += [f"seed {seed}, {mutation}: {wrong}" for wrong in broken.faults(mutation)]
    return found


def test_no_fault_of_a_catalog_is_a_raw_error_or_hangs(broken):
    # The last ones: a sort order of no meaning, rows and deletes in the catalog twice, bytes in a
    # text, a log of nobody, a file without an id, an inlined row that ends before it begins.
    assert faults(broken, [*range(FAST), 34, 1338, 1625, 1770, 2034, 2400, 19394]) == []


@pytest.mark.slow
@pytest.mark.parametrize("seeds", turns(range(FAST, SLOW), CHUNK), ids=shown)
def test_none_of_many_faults_is_a_raw_error_or_hangs(broken, seeds):
    assert faults(broken, seeds) == []


def test_the_lakes_without_faults_have_no_problem(broken):
    assert [broken.problems(name) for name in broken.names] == [[]] * 11


@pytest.fixture
def lake(sqlite_url, data_path):
    made = Lake(sqlite_url, data_path)
    made.create("t", id="bigint", v="string", s="struct<a: int, b: int>")
    made.append("t", [{"id": 1, "v": "a"}], {1: ("1", "1", 0)})
    made.append("t", [{"id": 2, "v": "b"}], {1: ("2", "2", 0)})
    yield made
    made.store.close()


def refused(lake, *statements):
    """What reading the table says after changes to the catalog."""
    change(lake, *statements)
    with pytest.raises(CorruptLake) as found:
        look(lake)
    return str(found.value)


def look(lake):
    with lake.store.read() as connection:
        table = read.table(connection, read.snapshot(connection), "main", "t", lake.info)
        read.data_files(connection, table)
        read.file_bounds(connection, table, [1])
        metadata_rows.changed_snapshots(connection, table)


def change(lake, *statements):
    lake.store.close()
    path = lake.url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


RESTORE = "; correct the row, or restore the catalog from a backup"


@pytest.mark.parametrize(
    ("size", "shown"),
    [("NULL", "NULL"), ("0", "0"), (str(2**62), str(2**62)), ("'abc'", "'abc'"), ("1.5", "1.5")],
)
def test_the_size_of_a_file_is_a_number_of_bytes(lake, size, shown):
    told = refused(
        lake, f"UPDATE ducklake_data_file SET file_size_bytes = {size} WHERE data_file_id = 1"
    )

    assert told == (
        f"ducklake_data_file.file_size_bytes is {shown} in the row with data_file_id 1,"
        " table_id 1, begin_snapshot 3, expected an integer from 1 to 1125899906842624" + RESTORE
    )


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        (
            "UPDATE ducklake_snapshot SET snapshot_time = 'yesterday' WHERE snapshot_id = 3",
            "ducklake_snapshot.snapshot_time is 'yesterday' in the row with snapshot_id 3,"
            " next_catalog_id 2, next_file_id 2, expected a time" + RESTORE,
        ),
        (
            "UPDATE ducklake_table SET table_uuid = 'no uuid'",
            "ducklake_table.table_uuid is 'no uuid' in the row with table_id 1, begin_snapshot 1,"
            " schema_id 0, expected a UUID" + RESTORE,
        ),
        (
            "UPDATE ducklake_column SET column_type = NULL WHERE column_id = 2",
            "ducklake_column.column_type is NULL in the row with column_id 2, begin_snapshot 1,"
            " table_id 1, expected a text" + RESTORE,
        ),
        (
            "UPDATE ducklake_column SET nulls_allowed = 7 WHERE column_id = 1",
            "ducklake_column.nulls_allowed is 7 in the row with column_id 1, begin_snapshot 1,"
            " table_id 1, expected true or false or NULL" + RESTORE,
        ),
        (
            (
                "UPDATE ducklake_data_file SET path = 'x.parquet', path_is_relative = 0"
                " WHERE data_file_id = 0"
            ),
            "the path 'x.parquet' in the catalog is not absolute, and path_is_relative is false"
            + RESTORE,
        ),
        (
            (
                "UPDATE ducklake_data_file SET begin_snapshot = 3, end_snapshot = 2"
                " WHERE data_file_id = 0"
            ),
            "ducklake_data_file has a row from snapshot 3 to 2, with data_file_id 0, table_id 1,"
            " which is not an interval" + RESTORE,
        ),
        (
            "UPDATE ducklake_column SET begin_snapshot = NULL WHERE column_id = 2",
            "ducklake_column has a row from snapshot None to None, with column_id 2, table_id 1,"
            " which is not an interval" + RESTORE,
        ),
        (
            "UPDATE ducklake_column SET parent_column = 4 WHERE column_id = 3",
            "main.t has column id 3 below itself",
        ),
        (
            "UPDATE ducklake_column SET parent_column = 77 WHERE column_id = 4",
            "main.t has 'a' below column id 77, which does not exist",
        ),
        (
            "UPDATE ducklake_column SET column_name = 'V' WHERE column_id = 1",
            "main.t has two columns 'v' in one snapshot",
        ),
        (
            (
                "INSERT INTO ducklake_table SELECT table_id, table_uuid, begin_snapshot,"
                " end_snapshot, schema_id, 'other', path, path_is_relative FROM ducklake_table"
            ),
            "ducklake_table has two rows of main.t for snapshot 3; end one of them",
        ),
        (
            (
                "INSERT INTO ducklake_delete_file VALUES (9, 1, 2, NULL, 77, 'd.parquet', 1,"
                " 'parquet', 1, 100, 10, NULL, NULL)"
            ),
            "main.t has deletes of data file 77, but no such file" + RESTORE,
        ),
        (
            "INSERT INTO ducklake_file_column_stats SELECT * FROM ducklake_file_column_stats",
            (
                "ducklake_file_column_stats has two rows for data file 0 and column id 1 of main.t;"
                " delete one of them"
            ),
        ),
    ],
)
def test_a_fault_is_told_with_table_column_and_row(lake, statement, told):
    assert refused(lake, statement) == told


@pytest.mark.parametrize("table", ["ducklake_tag", "ducklake_data_file", "ducklake_column"])
def test_a_missing_table_is_a_corrupt_lake(lake, table):
    told = refused(lake, f"DROP TABLE {table}")

    assert f"cannot answer a statement: no such table: {table}; its tables are not" in told


def test_schemas_and_tables_without_a_path_are_sound(lake):
    change(lake, "UPDATE ducklake_schema SET path = NULL, path_is_relative = NULL")
    with lake.store.read() as connection:
        found = read.table(connection, read.snapshot(connection), "main", "t", lake.info)

    assert found.path == f"{lake.info.data_path}t/"


def test_a_changed_text_of_a_layout_is_not_used(lake):
    change(lake, "UPDATE shelduck_layout SET layout = replace(layout, 'int64', 'int32')")

    assert [f.layout for f in lake.files("t")] == [None, None]


def test_a_lake_has_one_data_path(lake, tmp_path):
    change(lake, "INSERT INTO ducklake_metadata VALUES ('data_path', '/elsewhere/', NULL, NULL)")
    lake.store.close()

    with pytest.raises(ShelduckError, match="has two values of 'data_path'"):
        shelduck.connect(lake.url)


def test_tables_of_others_are_not_dropped(lake):
    change(
        lake,
        "CREATE TABLE mine (id BIGINT)",
        "INSERT INTO ducklake_inlined_data_tables VALUES (1, 'mine', 1)",
        "UPDATE ducklake_table SET end_snapshot = 3",
        "UPDATE ducklake_column SET end_snapshot = 3",
    )
    with shelduck.connect(lake.url) as found:
        found.execute("CREATE TABLE after (a INT)")
        with pytest.raises(CorruptLake, match="'mine' for table_id 1, which is not one of its"):
            found.expire_snapshots(retain_last=1)

    change(lake, "INSERT INTO mine VALUES (1)")
