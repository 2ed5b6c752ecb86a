"""Tables with very many files: their files are listed as numbers, and looked up when needed."""

from __future__ import annotations

import pytest
from sqlalchemy import text

import shelduck
import shelduck.catalog.read.files.data_files
from shelduck.operations.read import file_lists
from tests.support.lakes import rows
from tests.support.oracle import DuckDBOracle

NO_INLINING = {"DATA_INLINING_ROW_LIMIT": 0}
FILES = 3_000


@pytest.fixture
def loads(monkeypatch):
    """Every table has a list; how many files each call read into one."""
    monkeypatch.setattr(file_lists, "LISTED_FROM", 0)
    found = []
    read_all = file_lists.file_numbers

    def counted(connection, table, after=-1):
        made = list(read_all(connection, table, after))
        found.append(len(made))
        return iter(made)

    monkeypatch.setattr(file_lists, "file_numbers", counted)
    return found


@pytest.fixture
def lake(lake_url, data_path, spark, loads):
    with shelduck.connect(lake_url, data_path, spark) as lake:
        lake.set_option("data_inlining_row_limit", 0)
        lake.sql("CREATE TABLE t (id BIGINT, v STRING, day DATE)")
        yield lake


def insert(lake, first, count=10):
    lake.sql(
        f"INSERT INTO t SELECT id, concat('v', id), date_add(DATE'2026-01-01', INT(id / 10))"
        f" FROM range({first}, {first + count}, 1, 1)"
    )


QUERIES = (
    "SELECT * FROM t",
    "SELECT count(*), min(id), max(id), min(day) FROM t",
    "SELECT * FROM t WHERE id = 17",
    "SELECT * FROM t WHERE id BETWEEN 8 AND 23 AND v <> 'v11'",
    "SELECT count(*) FROM t WHERE id >= 20 AND id < 30",
    "SELECT v FROM t WHERE day = DATE '2026-01-02'",
    "SELECT * FROM t WHERE v = 'v25' OR id IN (1, 38)",
    "SELECT * FROM t WHERE id > 1000",
)


def assert_same(lake, url, queries=QUERIES):
    ours = [sorted(map(str, rows(lake.sql(query)))) for query in queries]
    with DuckDBOracle(url, None, NO_INLINING) as duckdb:
        assert ours == [sorted(map(str, duckdb.sql(query))) for query in queries]


@pytest.mark.every_database
def test_a_listed_table_answers_as_duckdb_does(lake, lake_url, loads):
    for first in range(0, 40, 10):
        insert(lake, first)
    assert_same(lake, lake_url)
    assert loads == [4]

    insert(lake, 40)
    lake.sql("DELETE FROM t WHERE id IN (3, 17, 44)")
    lake.sql("DELETE FROM t WHERE id BETWEEN 20 AND 29")
    assert_same(lake, lake_url)
    assert loads == [4, 1]

    lake.sql("ALTER TABLE t ADD COLUMN n INT DEFAULT 7, RENAME COLUMN v TO w")
    assert_same(lake, lake_url, ["SELECT * FROM t WHERE n = 7 AND w > 'v3'"])
    lake.sql("ALTER TABLE t ALTER COLUMN id TYPE STRING")
    assert_same(lake, lake_url, ["SELECT * FROM t WHERE id = '17'", "SELECT * FROM t"])


def test_older_snapshots_of_a_listed_table_are_read(lake, lake_url, loads):
    insert(lake, 0)
    then = lake.snapshots()[-1].id
    insert(lake, 10)
    lake.sql("DELETE FROM t WHERE id < 5")
    assert rows(lake.sql("SELECT count(*) FROM t")) == [(15,)]
    assert rows(lake.table("t").read(version=then).where("id < 5").select("id")) == [
        (n,) for n in range(5)
    ]
    assert loads == [2]


def test_what_others_compact_is_listed_again(lake, lake_url, loads):
    for first in range(0, 40, 10):
        insert(lake, first)
    assert_same(lake, lake_url)
    with DuckDBOracle(lake_url, None, NO_INLINING) as duckdb:
        duckdb.execute("CALL ducklake_merge_adjacent_files('lake')")
        duckdb.execute("INSERT INTO t SELECT 50, 'duck', DATE '2026-02-01'")
    # The catalog lacks the layouts of DuckDB's files until the next commit of Shelduck.
    assert_same(lake, lake_url)
    insert(lake, 60)
    assert_same(lake, lake_url)
    assert loads == [4, 2, 3]


def test_a_frame_whose_files_were_merged_says_so(lake, lake_url):
    insert(lake, 0)
    insert(lake, 10)
    frame = lake.table("t").read()
    assert frame.where("id = 3").count() == 1
    with DuckDBOracle(lake_url, None, NO_INLINING) as duckdb:
        duckdb.execute("CALL ducklake_merge_adjacent_files('lake')")
    with pytest.raises(
        Exception, match=r"another commit merged files of main\.t after it was read"
    ):
        frame.where("id = 4").collect()


def test_frames_of_one_table_with_other_columns_keep_their_own(lake):
    insert(lake, 0)
    table = lake.table("t")
    first = table.read(columns=["v"])
    second = table.read(columns=["day", "id"])
    assert rows(first.where("v = 'v3'")) == [("v3",)]
    assert rows(second.where("id = 3").select("id")) == [(3,)]
    assert rows(first.where("v = 'v4'")) == [("v4",)]


def test_a_lake_from_a_backup_is_listed_again(lake, lake_url, spark, loads):
    insert(lake, 0)
    assert_same(lake, lake_url)
    with lake._state.store.write() as connection:
        connection.execute(text("UPDATE ducklake_snapshot SET snapshot_time = '2020-01-01 00:00'"))
    assert_same(lake, lake_url)
    assert loads == [1, 1]


def test_one_file_named_twice_is_found(lake, loads):
    insert(lake, 0)
    insert(lake, 10)
    with lake._state.store.write() as connection:
        connection.execute(
            text("UPDATE ducklake_data_file SET path = (SELECT min(path) FROM ducklake_data_file)")
        )
    with pytest.raises(shelduck.CorruptLake, match="have the same data file"):
        lake.table("t").read()


def test_a_point_query_looks_at_one_file_of_many(lake, loads, monkeypatch):
    insert(lake, 0)
    with lake._state.store.write() as connection:
        copy = (
            "INSERT INTO ducklake_data_file (data_file_id, table_id, begin_snapshot, path,"
            " path_is_relative, file_format, record_count, file_size_bytes, row_id_start)"
            " SELECT data_file_id + {n}, table_id, begin_snapshot, path || '{n}',"
            " path_is_relative, file_format, record_count, file_size_bytes,"
            " row_id_start + {n} * 10 FROM ducklake_data_file WHERE row_id_start = 0"
        )
        bounds = (
            "INSERT INTO ducklake_file_column_stats (data_file_id, table_id, column_id,"
            " value_count, null_count, min_value, max_value)"
            " SELECT data_file_id, table_id, 1, 10, 0, row_id_start, row_id_start + 9"
            " FROM ducklake_data_file WHERE row_id_start > 0"
        )
        for n in range(1, FILES):
            connection.execute(text(copy.format(n=n)))
        connection.execute(text(bounds))
        connection.execute(
            text(
                "INSERT INTO shelduck_file_layout SELECT f.data_file_id, l.layout_id FROM"
                " ducklake_data_file AS f, shelduck_layout AS l WHERE f.row_id_start > 0"
            )
        )
        connection.execute(text("UPDATE ducklake_snapshot SET next_file_id = 100000"))

    made = []
    look_up = shelduck.catalog.read.files.data_files._files

    def counted(table, found, known):
        files = look_up(table, found, known)
        made.append(len(files))
        return files

    monkeypatch.setattr(shelduck.catalog.read.files.data_files, "_files", counted)
    for _ in range(2):
        made.clear()
        statements = lake._state.store.statements
        assert rows(lake.table("t").read().where("id = 7").select("v")) == [("v7",)]
        asked = lake._state.store.statements - statements
    # One file as the example of its kind, and the same as the only one that may match.
    assert sum(made) <= 6
    assert asked <= 25
    assert loads == [FILES]
