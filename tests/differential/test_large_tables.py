"""Tables with very many files: their files are listed as numbers, and looked up when needed."""

from __future__ import annotations

import contextlib
import sqlite3

import duckdb
import pytest
from sqlalchemy import text

import shelduck
from shelduck import CorruptLake
from shelduck.read import listed_files
from tests.support.lakes import newest, rows
from tests.support.looked_up import note_files, note_lists
from tests.support.many_files import multiply
from tests.support.oracle import DuckDBOracle

NO_INLINING = {"DATA_INLINING_ROW_LIMIT": 0}
FILES = 3_000


@pytest.fixture
def loads(monkeypatch):
    """Every table has a list at once; how many files each call read into one."""
    return note_lists(monkeypatch, 0)


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
    # The statements looked at the list, too.
    assert loads == [4, 1, 0, 0]

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
    assert loads == [2, 0]


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


def test_a_frame_that_is_older_than_the_list_finds_its_rows(lake, lake_url):
    for first in range(0, 40, 10):
        insert(lake, first)
    lake.sql("DELETE FROM t WHERE id < 20")
    frame = lake.table("t").read()
    insert(lake, 40)
    lake.expire_snapshots(versions=[s.id for s in lake.snapshots()][:-1])
    # The catalog lacks the first two files now, and so does the next list.
    assert rows(lake.sql("SELECT id FROM t WHERE id = 45")) == [(45,)]
    assert rows(frame.where("id = 35").select("id")) == [(35,)]
    insert(lake, 50)
    assert_same(lake, lake_url, ["SELECT id FROM t WHERE id = 55"])
    lake.sql("DELETE FROM t WHERE id = 56")
    assert rows(lake.sql("SELECT count(*) FROM t")) == [(39,)]
    assert rows(frame.where("id = 25").select("id")) == [(25,)]


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


def test_a_damaged_id_in_the_statistics_is_told(spark, sqlite_url, data_path, loads):
    with shelduck.connect(sqlite_url, data_path, spark) as lake:
        lake.set_option("data_inlining_row_limit", 0)
        lake.sql("CREATE TABLE t (id BIGINT, v STRING, day DATE)")
        insert(lake, 0)
    with contextlib.closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as catalog:
        catalog.execute("UPDATE ducklake_file_column_stats SET data_file_id = 'one'")
        catalog.commit()
    with (
        shelduck.connect(sqlite_url, data_path, spark) as lake,
        pytest.raises(CorruptLake, match=r"stats.data_file_id is 'one' in the row with"),
    ):
        lake.sql("SELECT * FROM t WHERE id = 3").collect()


def test_one_file_named_twice_is_found(lake, loads):
    insert(lake, 0)
    insert(lake, 10)
    with lake._state.store.write() as connection:
        connection.execute(
            text("UPDATE ducklake_data_file SET path = (SELECT min(path) FROM ducklake_data_file)")
        )
    with pytest.raises(shelduck.CorruptLake, match="have the same data file"):
        lake.table("t").read()


MERGE = (
    "MERGE INTO t USING (VALUES (33, 'a'), (100, 'b')) AS s(id, v) ON t.id = s.id"
    " WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)"
)
MERGE_OF_ONE = (
    "MERGE INTO t USING (VALUES (7L)) AS s(id) ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'w'"
)
CHANGES = (
    "DELETE FROM t WHERE id = 17",
    "DELETE FROM t WHERE v = 'v25' OR day = DATE '2026-01-01' AND id > 7",
    "DELETE FROM t WHERE id BETWEEN 10 AND 19",
    "DELETE FROM t WHERE id IN (SELECT id + 1 FROM t WHERE id = 20)",
    "DELETE FROM t WHERE id % 10 = 6",
    "UPDATE t SET v = 'new' WHERE id BETWEEN 28 AND 31",
    "UPDATE t SET v = upper(v) WHERE length(v) = 2",
    MERGE,
    "DELETE FROM t WHERE id = 5000",
    "TRUNCATE TABLE t",
)


@pytest.mark.parametrize("inlined", [0, 5])
def test_changes_of_a_listed_table_are_those_that_duckdb_makes(
    lake, lake_url, tmp_path, loads, inlined
):
    lake.set_option("data_inlining_row_limit", inlined)
    for first in range(0, 40, 10):
        insert(lake, first)
    with duckdb.connect() as other:
        other.execute(
            "CREATE TABLE t AS SELECT i AS id, concat('v', i) AS v,"
            " (DATE '2026-01-01' + (i // 10)::INT) AS day FROM range(40) AS r(i)"
        )
        states = {}
        for change in CHANGES:
            lake.sql(change)
            other.execute(change)
            expected = sorted(map(str, other.sql("SELECT * FROM t").fetchall()))
            assert sorted(map(str, rows(lake.sql("SELECT * FROM t")))) == expected
            states[newest(lake)] = expected
    with DuckDBOracle(lake_url, None, NO_INLINING) as theirs:
        for snapshot, expected in states.items():
            found = theirs.sql(f"SELECT * FROM t AT (VERSION => {snapshot})")
            assert sorted(map(str, found)) == expected
    # Every statement used the list.
    assert len(loads) >= len(CHANGES)


def test_a_file_without_statistics_may_hold_rows_to_change(lake, loads):
    insert(lake, 0)
    insert(lake, 10)
    with lake._state.store.write() as connection:
        connection.execute(
            text("DELETE FROM ducklake_file_column_stats WHERE min_value = '10' AND column_id = 1")
        )
    assert lake.table("t").delete("id = 12").deleted == 1
    assert lake.table("t").update({"v": "'w'"}, where="id = 13").updated == 1
    assert rows(lake.sql("SELECT count(*), count_if(v = 'w') FROM t")) == [(19, 1)]


@pytest.mark.parametrize("inlined", [0, 5])
def test_changes_of_one_file_of_a_listed_table_are_a_conflict(
    lake, lake_url, data_path, spark, inlined
):
    lake.set_option("data_inlining_row_limit", inlined)
    insert(lake, 0)
    insert(lake, 10)
    with shelduck.connect(lake_url, data_path, spark) as other:
        with lake.transaction() as mine:
            mine.sql("DELETE FROM t WHERE id = 3")
            other.sql("DELETE FROM t WHERE id = 13")
        mine = lake.transaction()
        mine.sql("DELETE FROM t WHERE id = 4")
        other.sql("DELETE FROM t WHERE id = 5")
        with pytest.raises(shelduck.Conflict, match="data file"):
            mine.commit()
    assert rows(lake.sql("SELECT id FROM t WHERE id < 8 ORDER BY id")) == [
        (n,) for n in (0, 1, 2, 4, 6, 7)
    ]


def test_deletes_that_move_while_a_statement_runs_are_a_conflict(lake, lake_url, data_path, spark):
    lake.set_option("data_inlining_row_limit", 5)
    insert(lake, 0)
    lake.sql("DELETE FROM t WHERE id = 1")
    listed = listed_files.ListedFiles.of
    with (
        shelduck.connect(lake_url, data_path, spark) as other,
        pytest.MonkeyPatch.context() as patched,
    ):

        def moved(files, ids):
            patched.undo()
            other.sql("DELETE FROM t WHERE id = 2")
            other.table("t").flush_inlined_data()
            return listed(files, ids)

        patched.setattr(listed_files.ListedFiles, "of", moved)
        with pytest.raises(shelduck.Conflict, match=r"moved deletes of main\.t into files"):
            lake.sql("UPDATE t SET v = 'w' WHERE id < 3")
    assert rows(lake.sql("SELECT id FROM t WHERE v = 'w' OR id < 5")) == [(0,), (3,), (4,)]


@pytest.fixture
def other(lake, lake_url, data_path, spark):
    """The same lake, as another writer sees it."""
    with shelduck.connect(lake_url, data_path, spark) as connected:
        yield connected


ALL_ROWS = (
    lambda lake: lake.table("t").truncate(),
    lambda lake: lake.table("t").overwrite(lake.sql("SELECT * FROM t WHERE id < 5")),
)


@pytest.mark.parametrize("change", ALL_ROWS, ids=["truncate", "overwrite"])
@pytest.mark.parametrize(
    "other_change", ["DELETE FROM t WHERE id = 13", "INSERT INTO t (id) VALUES (99)", "flush"]
)
def test_what_others_do_to_a_listed_table_that_loses_all_rows_is_a_conflict(
    lake, loads, other, change, other_change
):
    lake.set_option("data_inlining_row_limit", 5)
    insert(lake, 0)
    insert(lake, 10)
    lake.sql("DELETE FROM t WHERE id = 1")
    loads.clear()
    mine = lake.transaction()
    change(mine)
    if other_change == "flush":
        other.table("t").flush_inlined_data()
    else:
        other.sql(other_change)
    with pytest.raises(shelduck.Conflict):
        mine.commit()
    assert loads
    left = 20 if other_change.startswith("INSERT") else 19 - other_change.startswith("DELETE")
    assert lake.table("t").read().count() == left
    assert change(lake).deleted == left


@pytest.fixture
def made(monkeypatch):
    """How many files became objects."""
    found = []
    note_files(monkeypatch, lambda files: found.append(len(files)))
    return found


def test_a_point_query_looks_at_one_file_of_many(lake, loads, made):
    insert(lake, 0)
    multiply(lake, FILES)
    for _ in range(2):
        made.clear()
        statements = lake._state.store.statements
        assert rows(lake.table("t").read().where("id = 7").select("v")) == [("v7",)]
        asked = lake._state.store.statements - statements
    # One file as the example of its kind, and the same as the only one that may match.
    assert sum(made) <= 6
    assert asked <= 25
    assert loads == [FILES]


@pytest.mark.parametrize(
    ("change", "most"),
    [
        ("DELETE FROM t WHERE id = 7", 40),
        ("DELETE FROM t WHERE id < 5", 40),
        ("UPDATE t SET v = 'w' WHERE id = 7", 45),
        (MERGE_OF_ONE, 45),
    ],
)
def test_a_change_of_a_few_rows_looks_at_one_file_of_many(lake, loads, made, change, most):
    insert(lake, 0)
    multiply(lake, FILES)
    statements = lake._state.store.statements
    lake.sql(change)
    # The example of the kind, and the file as Spark scans it and as it loses rows.
    assert sum(made) <= 8
    assert lake._state.store.statements - statements <= most
    assert loads == [FILES]


def test_a_delete_of_whole_files_looks_at_these(lake, loads, made):
    insert(lake, 0)
    multiply(lake, FILES)
    assert lake.table("t").delete("id >= 1000 AND id < 1040").deleted == 40
    assert sum(made) <= 6
    assert loads == [FILES]


def test_a_truncate_looks_at_no_file_of_many(lake, loads, made):
    insert(lake, 0)
    multiply(lake, FILES)
    made.clear()
    statements = lake._state.store.statements
    assert lake.table("t").truncate().deleted == 10 * FILES
    # One file is the example of its kind.
    assert sum(made) == 1
    assert lake._state.store.statements - statements <= 25
    assert lake.table("t").read().count() == 0


def test_an_overwrite_of_all_rows_looks_at_no_file_of_many(lake, spark, loads, made):
    insert(lake, 0)
    multiply(lake, FILES)
    made.clear()
    rows_ = spark.range(3).selectExpr("id", "'w' AS v", "DATE'2026-01-01' AS day")
    assert lake.table("t").overwrite(rows_).deleted == 10 * FILES
    assert sum(made) == 1
    assert lake.table("t").read().count() == 3


def test_a_truncate_counts_the_rows_of_files_that_do_not_tell(lake, loads):
    insert(lake, 0)
    insert(lake, 10)
    with lake._state.store.write() as connection:
        change = "UPDATE ducklake_data_file SET record_count = NULL WHERE row_id_start = 10"
        connection.execute(text(change))
    assert lake.table("t").truncate().deleted == 20
