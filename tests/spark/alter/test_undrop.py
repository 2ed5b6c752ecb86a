"""Dropped columns that come back, with the values that files and the catalog still hold."""

from __future__ import annotations

import pytest

import shelduck
from shelduck.errors import AlreadyExists, InvalidRequest, NotFound, Unsupported
from tests.support.lakes import rows
from tests.support.oracle import DuckDBOracle

STATEMENTS = [
    *(
        statement.replace("{}", name)
        for name, limit in (("files", 0), ("inlined", 10))
        for statement in (
            f"CALL set_option('data_inlining_row_limit', {limit})",
            "CREATE TABLE {} (id INT, k STRING)",
            "INSERT INTO {} VALUES (0, 'z')",
            "ALTER TABLE {} ADD COLUMN a INT DEFAULT 7 COMMENT 'old' AFTER id",
            "INSERT INTO {} VALUES (1, 11, 'x'), (2, 22, 'y')",
            "ALTER TABLE {} DROP COLUMN a",
            "INSERT INTO {} VALUES (3, 'w')",
        )
    ),
    "CALL set_option('data_inlining_row_limit', 0)",
    "CREATE TABLE s (id INT, s STRUCT<x: INT, y: STRING>, m INT NOT NULL, v STRING)",
    "INSERT INTO s VALUES (1, named_struct('x', 1, 'y', 'q'), 5, '1')",
    "ALTER TABLE s ALTER COLUMN v TYPE INT",
    "CREATE TABLE keyed (id INT, v INT) UNIQUE KEY (id)",
    "ALTER TABLE keyed DROP COLUMN v",
]


@pytest.mark.parametrize("name", ["files", "inlined"])
def test_a_dropped_column_returns_with_its_values_and_all_that_it_was(copied, name):
    catalog, lake = copied
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        duckdb.execute(f"INSERT INTO lake.{name} VALUES (4, 'd')")
        duckdb.execute(f"DELETE FROM lake.{name} WHERE id = 2")

    lake.execute(f"ALTER TABLE {name} UNDROP COLUMN A")

    # As DuckDB reads a column that a file lacks: its default of the beginning.
    expected = [(0, 7, "z"), (1, 11, "x"), (3, 7, "w"), (4, 7, "d")]
    assert rows(lake.sql(f"SELECT * FROM {name} ORDER BY id")) == expected
    assert ("a", "int", "old") in rows(lake.sql(f"DESCRIBE {name}"))
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert sorted(duckdb.rows(name)) == expected
        duckdb.execute(f"INSERT INTO lake.{name} (id) VALUES (5)")
        duckdb.execute("CALL ducklake_merge_adjacent_files('lake')")
        assert sorted(duckdb.rows(name)) == [*expected, (5, 7, None)]
        assert duckdb.sql(f"SELECT min(a), max(a) FROM lake.{name}") == [(7, 11)]
    assert lake.check(rows=True).problems == ()


def test_fields_return_to_their_structs_and_structs_to_their_tables(copied):
    catalog, lake = copied
    lake.execute("ALTER TABLE s DROP COLUMN s.x")
    lake.execute("ALTER TABLE s UNDROP COLUMN s.x")
    lake.execute("ALTER TABLE s DROP COLUMN s")
    lake.sql("INSERT INTO s VALUES (2, 6, 2)")
    lake.table("s").undrop_column("s")
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.rows("s") == [(1, {"x": 1, "y": "q"}, 5, 1), (2, None, 6, 2)]


def test_a_column_returns_in_a_transaction_before_its_rows(lake):
    with lake.transaction() as tx:
        tx.sql("ALTER TABLE files UNDROP a")
        tx.sql("INSERT INTO files VALUES (5, 55, 'n')")
    assert rows(lake.sql("SELECT a FROM files WHERE id = 5 OR id = 1 ORDER BY id")) == [
        (11,),
        (55,),
    ]


@pytest.mark.parametrize(
    ("before", "statement", "error", "told"),
    [
        ("", "files UNDROP COLUMN b", NotFound, "existing dropped columns: 'a'"),
        ("", "s UNDROP COLUMN v", AlreadyExists, "column 'v' already exists in main.s"),
        ("", "keyed UNDROP COLUMN v", Unsupported, "the table has keys"),
        ("s RENAME COLUMN v TO w", "s UNDROP COLUMN v", NotFound, "'v' does not exist"),
        ("files ADD COLUMN a INT", "files UNDROP a", AlreadyExists, "already exists"),
    ],
)
def test_what_cannot_come_back_says_why(lake, before, statement, error, told):
    if before:
        lake.execute(f"ALTER TABLE {before}")
    with pytest.raises(error) as caught:
        lake.execute(f"ALTER TABLE {statement}")
    assert told in str(caught.value)
    lake.execute("ALTER TABLE IF EXISTS nothing UNDROP COLUMN a")


@pytest.mark.parametrize("name", ["files", "inlined"])
def test_a_row_that_was_written_again_has_lost_its_value(lake, name):
    lake.sql(f"UPDATE {name} SET k = 'n' WHERE id = 1")
    with pytest.raises(InvalidRequest, match=r"written again without it, into 1 file\(s\)"):
        lake.table(name).undrop_column("a")


def test_files_that_were_rewritten_have_lost_their_values(lake):
    lake.table("files").rewrite()
    with pytest.raises(InvalidRequest, match="written again without it"):
        lake.table("files").undrop_column("a")


def test_rows_that_left_the_catalog_kept_their_values(copied):
    catalog, lake = copied
    lake.table("inlined").flush_inlined_data()
    lake.table("inlined").undrop_column("a")
    expected = [(0, 7, "z"), (1, 11, "x"), (2, 22, "y"), (3, 7, "w")]
    assert rows(lake.sql("SELECT * FROM inlined ORDER BY id")) == expected
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        duckdb.execute("CALL ducklake_merge_adjacent_files('lake')")
        assert sorted(duckdb.rows("inlined")) == expected


def test_rows_that_are_new_for_sure_need_the_snapshot_before(lake):
    lake.execute("ALTER TABLE s DROP COLUMN m")
    lake.sql("INSERT INTO s VALUES (2, NULL, 2)")
    with pytest.raises(InvalidRequest, match="it is NOT NULL, and rows were written since"):
        lake.execute("ALTER TABLE s UNDROP COLUMN m")
    lake.expire_snapshots(retain_last=1)
    with pytest.raises(InvalidRequest, match=r"snapshot \d+ has expired, so nobody knows"):
        lake.execute("ALTER TABLE files UNDROP COLUMN a")


def test_files_that_an_undo_copied_are_refused(lake):
    lake.execute("ALTER TABLE s DROP COLUMN m")
    lake.undo(1).wait()
    with pytest.raises(InvalidRequest, match=r"an undo copied 1 file\(s\) with it since"):
        lake.execute("ALTER TABLE s UNDROP COLUMN m")


def test_a_column_that_others_write_anew_meanwhile_stays_away(copied, base):
    catalog, lake = copied
    with base.connect(catalog) as other:
        tx = lake.transaction()
        tx.sql("ALTER TABLE files UNDROP COLUMN a")
        other.sql("UPDATE files SET k = 'n' WHERE id = 1")
        with pytest.raises(shelduck.Conflict):
            tx.commit()
