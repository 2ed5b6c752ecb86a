"""First queries of a process on large tables: SQL looks for the files, and no list is made."""

from __future__ import annotations

import contextlib

import duckdb
import pytest
from sqlalchemy import text

import shelduck
from shelduck.catalog.read.files.numbers import file_sums
from shelduck.catalog.read.holdings import holdings_of
from shelduck.read import file_lists
from shelduck.read.listed_files import LargeTable
from tests.support.lakes import newest, rows
from tests.support.looked_up import note_files, note_lists
from tests.support.many_files import multiply
from tests.support.oracle import DuckDBOracle

NO_INLINING = {"DATA_INLINING_ROW_LIMIT": 0}
FILES = 3_000


@pytest.fixture
def loads(monkeypatch):
    """Every table is large, and none has a list; how many files each list read."""
    return note_lists(monkeypatch, 1_000)


@pytest.fixture
def lake(lake_url, data_path, spark, loads):
    with shelduck.connect(lake_url, data_path, spark) as lake:
        lake.set_option("data_inlining_row_limit", 0)
        lake.sql("CREATE TABLE t (id INT, v FLOAT, name STRING)")
        yield lake


@pytest.fixture
def reconnect(lake_url, data_path, spark):
    """Connects as a new process would: without a list."""
    with contextlib.ExitStack() as stack:
        yield lambda: stack.enter_context(shelduck.connect(lake_url, data_path, spark))


def insert(lake, first, count=4):
    some = f"range({first}, {first + count}, 1, 1)"
    lake.sql(f"INSERT INTO t SELECT INT(id), FLOAT(id / 4), concat('n', id) FROM {some}")


def make_mixed(lake, url, folder):
    """Make a table with files of every kind: 41 rows with the ids from 0.

    Returns the snapshot after the first 16.
    """
    insert(lake, 0)
    insert(lake, 4)
    with DuckDBOracle(url, None, NO_INLINING) as oracle:
        oracle.execute("CALL ducklake_merge_adjacent_files('lake')")
        oracle.execute("INSERT INTO t SELECT i, i / 4, 'n' || i FROM range(8, 12) AS r(i)")
    insert(lake, 12)
    then = lake.snapshots()[-1].id
    for part in (16, 20):
        place = folder / f"day={part}"
        place.mkdir(parents=True)
        made = "i::INT AS id, (i / 4)::FLOAT AS v, 'n' || i AS name"
        query = f"SELECT {made} FROM range({part}, {part + 4}) AS r(i)"
        duckdb.sql(f"COPY ({query}) TO '{place}/f.parquet'")
        lake.table("t").add_files(f"{place}/f.parquet")
    lake.sql("ALTER TABLE t ALTER COLUMN id TYPE BIGINT")
    lake.sql("ALTER TABLE t ADD COLUMN more INT DEFAULT 7")
    lake.sql("ALTER TABLE t RENAME COLUMN name TO label")
    lake.sql("INSERT INTO t SELECT id, FLOAT(id / 4), 'w', 8 FROM range(24, 28, 1, 1)")
    lake.sql("ALTER TABLE t SET PARTITIONED BY (more)")
    lake.sql("INSERT INTO t SELECT id, FLOAT(id / 4), 'p', INT(id % 2) FROM range(28, 32, 1, 1)")
    lake.sql("ALTER TABLE t SET PARTITIONED BY (more, bucket(2, id))")
    lake.sql("INSERT INTO t SELECT id, FLOAT(id / 4), 'q', INT(id % 2) FROM range(32, 40, 1, 1)")
    lake.sql("DELETE FROM t WHERE id IN (2, 13)")
    lake.set_option("data_inlining_row_limit", 5)
    lake.sql("DELETE FROM t WHERE id IN (17, 33)")
    lake.sql("INSERT INTO t VALUES (40, 10.0, 'in the catalog', 1)")
    return then


def in_text(found):
    return sorted(map(str, found))


# Most of them meet two files, and each file is met by two of them.
RANGES = [f"id BETWEEN {n} AND {n + 5}" for n in range(-2, 43, 5)]


@pytest.mark.every_database
def test_no_row_of_a_table_with_files_of_every_kind_is_lost(
    lake, lake_url, reconnect, tmp_path, loads
):
    then = make_mixed(lake, lake_url, tmp_path / "adopted")
    loads.clear()
    table = reconnect().table("t")
    found = [in_text(rows(table.read().where(where))) for where in RANGES]
    earlier = table.read(version=then).select("id")
    older = [rows(earlier.where(f"id BETWEEN {n} AND {n + 3}")) for n in range(-3, 18, 8)]
    # One DataFrame answers several of them, too.
    frame = table.read()
    again = [in_text(rows(frame.where(where))) for where in RANGES[::4]]
    assert loads == []
    assert again == found[::4]
    with DuckDBOracle(lake_url, None, NO_INLINING) as oracle:
        assert found == [in_text(oracle.sql(f"SELECT * FROM t WHERE {w}")) for w in RANGES]
        assert len({row for some in found for row in some}) == 37
        assert len(oracle.sql("SELECT * FROM t")) == 37
    # DuckDB fails at such a query of an older snapshot.
    assert [sorted(some) for some in older] == [
        [(n,) for n in range(first, first + 4) if 0 <= n < 16] for first in range(-3, 18, 8)
    ]


def test_a_query_without_a_range_makes_the_list_for_the_same_frame(
    lake, lake_url, reconnect, tmp_path, loads
):
    make_mixed(lake, lake_url, tmp_path / "adopted")
    loads.clear()
    frame = reconnect().table("t").read()
    assert frame.where("id = 20").count() == 1
    assert loads == []
    found = in_text(rows(frame))
    assert len(loads) == 1
    assert frame.where("id = 20").count() == 1
    with DuckDBOracle(lake_url, None, NO_INLINING) as oracle:
        assert found == in_text(oracle.sql("SELECT * FROM t"))


def test_kinds_are_as_fine_as_those_of_the_list(lake, lake_url, tmp_path, loads):
    make_mixed(lake, lake_url, tmp_path / "adopted")
    insert_old = "UPDATE ducklake_data_file SET row_id_start = NULL WHERE data_file_id = 4"
    with lake._state.store.write() as connection:
        connection.execute(text(insert_old))
    table = lake.table("t")._version()
    with lake._state.store.read() as connection:
        found = file_lists.alike_files(connection, table, holdings_of(connection, table.id))
        listed = file_lists.FileLists().of(connection, table)
    there = listed.at(table.snapshot.id)
    kinds = [kind for some in found for kind in some.kinds]
    assert {kind for kind, _ in kinds} == {listed.known[n] for n in listed.kinds[there].tolist()}
    assert sum(some.sums.files for some in found) == there.sum()
    assert sum(some.sums.bytes for some in found) == listed.sizes[there].sum()
    assert sum(some.sums.ids for some in found) == listed.ids[there].sum()
    assert max(some.sums.largest for some in found) == listed.sizes[there].max()
    assert len(kinds) > len({kind for kind, _ in kinds}) > 6


def test_files_that_are_read_alike_are_of_the_kinds_of_the_list(lake, loads):
    insert(lake, 0)
    insert(lake, 4)
    lake.sql("ALTER TABLE t SET PARTITIONED BY (name)")
    insert(lake, 8, 2)
    with lake._state.store.write() as connection:
        for change in (
            "row_id_start = NULL WHERE data_file_id = 0",
            "path = 'another.parquet' WHERE data_file_id = 1",
        ):
            connection.execute(text(f"UPDATE ducklake_data_file SET {change}"))
    table = lake.table("t")._version()
    with lake._state.store.read() as connection:
        [found] = file_lists.alike_files(connection, table, holdings_of(connection, table.id))
        listed = file_lists.FileLists().of(connection, table)
    assert {kind for kind, _ in found.kinds} == set(listed.known)
    assert len(found.kinds) == len(found.examples) == 3
    sums = (len(listed.ids), listed.ids.sum(), listed.sizes.sum(), listed.sizes.max())
    assert found.sums == sums
    kind_of = dict(zip(listed.ids.tolist(), listed.kinds.tolist(), strict=True))
    assert [listed.known[kind_of[n]] for n in found.examples] == [k for k, _ in found.kinds]


@pytest.mark.parametrize(
    "change",
    ["file_size_bytes = 0", "begin_snapshot = NULL", "end_snapshot = 0", "file_size_bytes = NULL"],
)
def test_rows_that_sums_would_hide_are_refused_as_ever(lake, change, loads):
    insert(lake, 0)
    insert(lake, 4)
    with lake._state.store.write() as connection:
        connection.execute(text(f"UPDATE ducklake_data_file SET {change} WHERE data_file_id = 1"))
    with pytest.raises(shelduck.CorruptLake, match="ducklake_data_file"):
        lake.table("t").read()


def test_files_without_a_layout_are_all_looked_at(lake, loads):
    insert(lake, 0)
    insert(lake, 4)
    with lake._state.store.write() as connection:
        connection.execute(text("DELETE FROM shelduck_file_layout WHERE data_file_id = 1"))
    assert lake.table("t").read().where("id IN (1, 5)").count() == 2
    assert loads == [2]


def test_a_file_of_no_known_kind_is_never_left_out(lake, monkeypatch, loads):
    insert(lake, 0)
    lake.sql("ALTER TABLE t ADD COLUMN s STRUCT<a: INT>")
    lake.sql(
        "INSERT INTO t SELECT id, FLOAT(id / 4), 'n', named_struct('a', 1) FROM range(4, 8, 1, 1)"
    )
    lake.sql("ALTER TABLE t ALTER COLUMN v TYPE DOUBLE")
    lake.sql("DELETE FROM t WHERE id = 1")
    real = file_lists.alike_files

    def coarse(connection, table, known):
        found = real(connection, table, known)
        assert [files.examples for files in found] == [(0,), (2,)]
        return [found[-1]._replace(sums=file_sums(connection, table))]

    with monkeypatch.context() as patched:
        patched.setattr(file_lists, "alike_files", coarse)
        frame = lake.table("t").read()
        with pytest.raises(Exception, match=r"read it again"):
            frame.where("id = 2").collect()
        with pytest.raises(Exception, match=r"read it again"):
            frame.count()
        # Who reads again has the list.
        assert lake.table("t").read().where("id = 2").count() == 1
    assert loads


@pytest.mark.every_database
def test_files_without_statistics_may_match(lake, loads):
    for first in (0, 4, 8):
        insert(lake, first)
    of_id = "WHERE column_id = 1 AND min_value ="
    for change in (
        f"DELETE FROM ducklake_file_column_stats {of_id} '0'",
        f"UPDATE ducklake_file_column_stats SET min_value = NULL, max_value = NULL {of_id} '4'",
        f"UPDATE ducklake_file_column_stats SET max_value = 'x' {of_id} '8'",
    ):
        with lake._state.store.write() as connection:
            connection.execute(text(change))
    for n in range(12):
        assert rows(lake.table("t").read().where(f"id = {n}").select("id")) == [(n,)]
    assert loads == []


def test_statistics_that_an_alter_clears_rule_out_nothing(lake, loads):
    insert(lake, 0)
    insert(lake, 4)
    frame = lake.table("t").read()
    assert frame.where("id = 1").count() == 1
    with lake._state.store.write() as connection:
        connection.execute(text("DELETE FROM ducklake_file_column_stats WHERE column_id = 1"))
    lake.sql("ALTER TABLE t ADD COLUMN w INT")
    assert [frame.where(f"id = {n}").count() for n in range(8)] == [1] * 8
    assert loads == []


@pytest.mark.parametrize("where", ["id = 1", "id = 5", "id = 9", "v < 100"])
def test_a_frame_whose_files_were_merged_says_so(lake, lake_url, where):
    insert(lake, 0)
    insert(lake, 4)
    frame = lake.table("t").read()
    assert frame.where("id = 3").count() == 1
    with DuckDBOracle(lake_url, None, NO_INLINING) as oracle:
        oracle.execute("CALL ducklake_merge_adjacent_files('lake')")
    with pytest.raises(Exception, match=r"another commit (merged|changed how) .*read it again"):
        frame.where(where).collect()


def test_a_frame_whose_files_have_expired_says_so(lake):
    insert(lake, 0)
    insert(lake, 4)
    then = lake.snapshots()[-1].id
    frame = lake.table("t").read()
    older = lake.table("t").read(version=then)
    lake.sql("DELETE FROM t WHERE id < 4")
    lake.expire_snapshots(versions=[s.id for s in lake.snapshots()][:-1])
    for one in (frame, older):
        with pytest.raises(Exception, match=r"another commit merged files of main\.t"):
            one.where("id = 1").collect()
    assert lake.table("t").read().where("id = 5").count() == 1


def test_a_frame_goes_on_after_an_expiry_that_leaves_its_files(lake, loads):
    insert(lake, 0)
    frame = lake.table("t").read()
    insert(lake, 4)
    lake.expire_snapshots(versions=[s.id for s in lake.snapshots()][:-1])
    assert [frame.where(f"id = {n}").count() for n in (1, 5)] == [1, 0]
    assert loads == []


def test_after_some_queries_a_list_is_made(lake, monkeypatch, loads):
    monkeypatch.setattr(file_lists, "ASKED_UP_TO", 7)
    insert(lake, 0)
    insert(lake, 4)
    for n, made in [(1, []), (5, []), (6, [2]), (7, [2])]:
        assert lake.table("t").read().where(f"id = {n}").count() == 1
        assert loads == made


def test_a_list_is_made_sooner_if_commits_come_between(lake, monkeypatch, loads):
    monkeypatch.setattr(file_lists, "ASKED_UP_TO", 13)
    for n, made in [(1, []), (5, []), (9, [3]), (13, [3, 1])]:
        insert(lake, n - 1)
        assert lake.table("t").read().where(f"id = {n}").count() == 1
        assert loads == made


MERGE = (
    "MERGE INTO t USING (VALUES (33, 'a'), (100, 'b')) AS s(id, name) ON t.id = s.id"
    " WHEN MATCHED THEN UPDATE SET name = s.name"
    " WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)"
)
CHANGES = (
    "DELETE FROM t WHERE id = 17",
    "DELETE FROM t WHERE id BETWEEN 10 AND 19",
    "UPDATE t SET name = 'new' WHERE id BETWEEN 28 AND 31",
    MERGE,
    "DELETE FROM t WHERE id = 5000",
    "DELETE FROM t WHERE name = 'n2' OR v > 9",
    "TRUNCATE TABLE t",
)


@pytest.mark.parametrize("inlined", [0, 5])
def test_first_changes_are_those_that_duckdb_makes(lake, lake_url, reconnect, inlined, loads):
    lake.set_option("data_inlining_row_limit", inlined)
    for first in range(0, 40, 10):
        insert(lake, first, 10)
    with duckdb.connect() as other:
        other.execute(
            "CREATE TABLE t AS SELECT i::INT AS id, (i / 4)::FLOAT AS v, concat('n', i) AS name"
            " FROM range(40) AS r(i)"
        )
        states = {}
        for number, change in enumerate(CHANGES):
            loads.clear()
            reconnect().sql(change)
            # The first changes have ranges.
            assert (loads == []) == (number < 5)
            other.execute(change)
            expected = in_text(other.sql("SELECT * FROM t").fetchall())
            assert in_text(rows(lake.sql("SELECT * FROM t"))) == expected
            states[newest(lake)] = expected
    with DuckDBOracle(lake_url, None, NO_INLINING) as theirs:
        for snapshot, expected in states.items():
            assert in_text(theirs.sql(f"SELECT * FROM t AT (VERSION => {snapshot})")) == expected


@pytest.mark.parametrize("where", ["id < 3", "v < 0.6"])
def test_deletes_that_move_while_a_statement_runs_are_a_conflict(
    lake, reconnect, monkeypatch, where
):
    lake.set_option("data_inlining_row_limit", 5)
    insert(lake, 0, 10)
    lake.sql("DELETE FROM t WHERE id = 1")
    other, fresh, of = reconnect(), reconnect(), LargeTable.of
    with monkeypatch.context() as patched:

        def moved(files, ids):
            patched.undo()
            other.sql("DELETE FROM t WHERE id = 2")
            other.table("t").flush_inlined_data()
            return of(files, ids)

        patched.setattr(LargeTable, "of", moved)
        with pytest.raises(shelduck.Conflict, match=r"moved deletes of main\.t into files"):
            fresh.sql(f"UPDATE t SET name = 'w' WHERE {where}")
    assert rows(lake.sql("SELECT id FROM t WHERE id < 4 ORDER BY id")) == [(0,), (3,)]


def test_a_first_point_query_makes_objects_of_few_files(lake, monkeypatch, loads):
    insert(lake, 0, 10)
    multiply(lake, FILES)
    made = []
    note_files(monkeypatch, lambda files: made.append(len(files)))
    asked = []
    for n in (7, 8):
        statements = lake._state.store.statements
        assert rows(lake.table("t").read().where(f"id = {n}").select("name")) == [(f"n{n}",)]
        asked.append(lake._state.store.statements - statements)
    assert sum(made) <= 6
    assert max(asked) <= 30
    assert loads == []
