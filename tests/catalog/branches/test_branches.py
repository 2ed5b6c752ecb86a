"""Branches: DuckDB writes on all sides, and Shelduck branches and merges."""

from __future__ import annotations

from pathlib import Path

import pytest

import shelduck
from shelduck.branches.merge import BranchMerge
from shelduck.errors import AlreadyExists, Conflict, InvalidRequest, NotFound, Unsupported
from tests.support.oracle import DuckDBOracle

pytestmark = pytest.mark.databases("sqlite", "postgres")


def test_a_lake_in_a_duckdb_file_has_no_branches(duckdb_url, data_path):
    with shelduck.connect(duckdb_url, data_path) as lake:
        lake.execute("CREATE TABLE t (id INT)")
        with pytest.raises(Unsupported, match="a DuckDB file, which has no triggers"):
            lake.create_branch("b")
        assert lake.branches() == []
        assert lake.schemas() == ["main"]


def test_a_branch_is_made_of_some_tables_as_of_a_snapshot(lake, duck):
    duck.execute("CREATE TABLE t (id INT)")
    duck.execute("CREATE TABLE other (id INT)")
    duck.execute("INSERT INTO t VALUES (1)")
    at = duck.sql("SELECT max(snapshot_id) FROM ducklake_snapshots('lake')")[0][0]
    duck.execute("INSERT INTO t VALUES (2)")

    lake.execute(f"CREATE BRANCH b FROM main VERSION AS OF {at} WITH TABLES (t)")
    assert lake.execute("SHOW BRANCHES").rows == [("b", "main", at, 1, None)]
    assert duck.sql("FROM b.t") == [(1,)]
    assert [str(name) for name in lake.tables("b")] == ["b.t"]
    lake.execute("CREATE BRANCH IF NOT EXISTS b")
    lake.execute("USE BRANCH b")
    assert lake.execute("SHOW TABLES").rows == [("b", "t", False)]
    lake.execute("DROP BRANCH b")
    lake.execute("DROP BRANCH IF EXISTS b")
    assert lake.branches() == []


@pytest.mark.parametrize(
    ("text", "error", "told"),
    [
        ("CREATE BRANCH main", AlreadyExists, "schema 'main' already exists"),
        ("CREATE BRANCH b FROM nowhere", NotFound, "schema 'nowhere' does not exist"),
        ("CREATE BRANCH b VERSION AS OF 99", NotFound, "snapshot 99 does not exist"),
        ("CREATE BRANCH b WITH TABLES (nothing)", NotFound, "table 'nothing' does not exist"),
        ("DROP BRANCH main", NotFound, "branch 'main' does not exist"),
        ("MERGE BRANCH nothing", NotFound, "branch 'nothing' does not exist"),
        ("MERGE BRANCH known INTO known", InvalidRequest, "branch 'known' came from 'main'"),
        ("BEGIN; CREATE BRANCH b", InvalidRequest, "CREATE BRANCH commits by itself"),
    ],
)
def test_what_is_no_branch_is_refused(lake, text, error, told):
    lake.execute("CREATE TABLE t (id INT)")
    lake.execute("CREATE BRANCH known")
    with pytest.raises(error, match=told):
        lake.execute(text)
    assert [branch.name for branch in lake.branches()] == ["known"]


def test_tables_are_made_and_dropped_on_a_branch(lake, duck):
    for name in ("kept", "gone"):
        duck.execute(f"CREATE TABLE {name} (id INT)")
        duck.execute(f"INSERT INTO {name} VALUES (1)")
    lake.create_branch("b")
    duck.execute("CREATE TABLE b.more (id INT, s VARCHAR)")
    duck.execute("INSERT INTO b.more VALUES (7, 'seven')")
    duck.execute("DROP TABLE b.gone")

    assert lake.branch_diff("b").told.rows == [
        ("main.gone", "dropped", None, None, None, ""),
        ("main.more", "created", 1, 0, 0, ""),
    ]
    lake.merge_branch("b")
    assert duck.sql("FROM main.more") == [(7, "seven")]
    assert [str(name) for name in lake.tables("main")] == ["main.kept", "main.more"]
    duck.execute("INSERT INTO b.more VALUES (8, 'eight')")
    lake.merge_branch("b")
    assert sorted(duck.sql("FROM main.more")) == [(7, "seven"), (8, "eight")]
    duck.execute("DROP TABLE b.more")
    duck.execute("DROP TABLE b.kept")
    lake.merge_branch("b")
    assert lake.tables("main") == []
    base = lake.branches()[0].base
    assert lake.merge_branch("b").snapshot == base


def test_a_merge_that_conflicts_changes_nothing(lake, duck):
    duck.execute("CREATE TABLE t (id INT, v VARCHAR)")
    duck.execute("INSERT INTO t VALUES (1, 'a')")
    lake.create_branch("b")
    duck.execute("ALTER TABLE t RENAME COLUMN v TO ours")
    duck.execute("ALTER TABLE b.t RENAME COLUMN v TO theirs")
    before = duck.sql("SELECT max(snapshot_id) FROM ducklake_snapshots('lake')")

    with pytest.raises(
        Conflict, match=r"column v\.name of main\.t: it was v, is now ours, and theirs"
    ):
        lake.merge_branch("b")
    [found] = lake.merge_conflicts("b")
    assert (found.kind, found.base, found.ours, found.theirs) == ("column", "v", "ours", "theirs")
    assert duck.sql("SELECT max(snapshot_id) FROM ducklake_snapshots('lake')") == before
    duck.execute("ALTER TABLE t DROP COLUMN ours")
    [found] = lake.merge_conflicts("b")
    assert (found.base, found.ours, found.theirs) == ("v varchar", "", "theirs varchar")


def test_two_branches_that_touch_other_columns_merge_in_any_order(lake, duck):
    shapes = []
    for order in (("x", "y"), ("y", "x")):
        duck.execute("CREATE OR REPLACE TABLE t (id INT, v INT)")
        duck.execute("INSERT INTO t VALUES (1, 2)")
        for name in order:
            lake.create_branch(name)
        for name in sorted(order):
            duck.execute(f"ALTER TABLE {name}.t ADD COLUMN {name} INT DEFAULT {len(name)}")
            duck.execute(f"INSERT INTO {name}.t VALUES (5, 6, {ord(name)})")
        for name in order:
            lake.merge_branch(name)
        shapes.append(sorted(duck.sql("SELECT id, v, x, y FROM t"), key=str))
        for name in order:
            lake.drop_branch(name)
    assert shapes[0] == shapes[1] == [(1, 2, 1, 1), (5, 6, 1, 121), (5, 6, 120, 1)]


MEANWHILE = {
    "INSERT INTO t VALUES (9, 9)": [(1, 1, 5), (2, 2, 5), (7, 7, 5), (9, 9, 5)],
    "DELETE FROM t WHERE id = 2": [(1, 1, 5), (7, 7, 5)],
    "INSERT INTO b.t VALUES (9, 9, 9)": [(1, 1, 5), (2, 2, 5), (7, 7, 5), (9, 9, 9)],
    "ALTER TABLE b.t ADD COLUMN y INT": [(1, 1, 5, None), (2, 2, 5, None), (7, 7, 5, None)],
    "ALTER TABLE t ADD COLUMN y INT": [(1, 1, 5, None), (2, 2, 5, None), (7, 7, 5, None)],
    "CALL ducklake_merge_adjacent_files('lake')": [(1, 1, 5), (2, 2, 5), (7, 7, 5)],
    "COMMENT ON TABLE b.t IS 'seen'": [(1, 1, 5), (2, 2, 5), (7, 7, 5)],
}


@pytest.mark.parametrize("statement", MEANWHILE)
def test_a_merge_looks_again_if_others_commit_meanwhile(lake, duck, statement, monkeypatch):
    duck.execute("CREATE TABLE t (id INT, v INT)")
    duck.execute("INSERT INTO t VALUES (1, 1)")
    duck.execute("INSERT INTO t VALUES (2, 2)")
    lake.create_branch("b")
    duck.execute("INSERT INTO b.t VALUES (7, 7)")
    duck.execute("ALTER TABLE b.t ADD COLUMN x INT DEFAULT 5")
    left = [statement]
    stage = BranchMerge.stage

    def staged(self):
        stage(self)
        if left:
            duck.execute(left.pop())

    monkeypatch.setattr(BranchMerge, "stage", staged)
    lake.merge_branch("b")
    assert sorted(duck.sql("FROM t")) == MEANWHILE[statement]
    assert not lake.check().problems


def test_no_id_is_given_on_both_sides(lake, duck):
    duck.execute("CREATE TABLE t (id INT)")
    duck.execute("INSERT INTO t VALUES (1)")
    lake.create_branch("b")
    # The process still knows the table that it alters right before and right after a merge.
    for turn, names in enumerate([("b.t", "t"), ("t", "b.t")]):
        for name in names:
            duck.execute(f"INSERT INTO {name} (id) VALUES (1)")
            lake.execute(f"ALTER TABLE {name} ADD COLUMN {name[0]}{turn} INT")
        lake.merge_branch("b")
    catalog = "FROM __ducklake_metadata_lake.ducklake"
    # All but the first column, and that of a block, are on one side only until they are merged.
    names = duck.sql(
        f"SELECT column_id, count(DISTINCT column_name) {catalog}_column"
        " WHERE column_name <> '_block' GROUP BY ALL HAVING count(DISTINCT column_name) > 1"
    )
    rows = duck.sql(
        f"SELECT row_id_start, count(DISTINCT path) {catalog}_data_file GROUP BY ALL"
        " HAVING count(DISTINCT path) > 1"
    )
    assert (names, rows) == ([], [])
    assert len(duck.sql("FROM t")) == 5


def test_a_clone_on_a_branch_is_a_table_of_its_own(lake, duck):
    duck.execute("CREATE TABLE t (id INT)")
    duck.execute("INSERT INTO t VALUES (1)")
    lake.create_branch("b")
    lake.execute("CREATE TABLE b.of_source SHALLOW CLONE t")
    lake.execute("CREATE TABLE b.of_twin SHALLOW CLONE b.t")
    duck.execute("INSERT INTO b.of_source VALUES (7)")
    duck.execute("INSERT INTO b.of_twin VALUES (8)")
    lake.merge_branch("b")
    duck.execute("INSERT INTO b.of_twin VALUES (9)")
    lake.merge_branch("b")
    assert duck.sql("FROM t") == duck.sql("FROM b.t") == [(1,)]
    assert sorted(duck.sql("FROM of_source")) == [(1,), (7,)]
    assert sorted(duck.sql("FROM of_twin")) == [(1,), (8,), (9,)]
    assert not lake.check().problems


def test_a_branch_has_no_delete_files_of_files_that_ended(lake, duck):
    duck.execute("CREATE TABLE t (id INT)")
    duck.execute("INSERT INTO t VALUES (1), (2)")
    # DuckDB ends the file with the second one, and lets its delete file stay.
    for number in (1, 2):
        duck.execute(f"DELETE FROM t WHERE id = {number}")
    lake.create_branch("b")
    assert duck.sql("FROM b.t") == []
    assert not lake.check().problems


def test_positions_of_files_that_ended_are_no_rows_to_flush(lake_url, data_path):
    with shelduck.connect(lake_url, data_path) as lake, DuckDBOracle(lake_url) as duck:
        duck.execute("CREATE TABLE t (id INT)")
        duck.execute("INSERT INTO t SELECT * FROM range(100)")
        duck.execute("DELETE FROM t WHERE id = 1")
        duck.execute("CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0.001)")
        lake.create_branch("b")
        assert duck.sql("SELECT count(*) FROM b.t") == [(99,)]


def test_a_merge_keeps_deletes_that_the_source_had_before_the_last_merge(lake, duck, monkeypatch):
    monkeypatch.setattr("shelduck.branches.changed_rows.RowMerge.is_known", False)
    duck.execute("CREATE TABLE t (id INT)")
    duck.execute("INSERT INTO t VALUES (1), (2), (3)")
    lake.create_branch("b")
    duck.execute("DELETE FROM t WHERE id = 1")
    duck.execute("ALTER TABLE b.t ADD COLUMN x INT")
    lake.merge_branch("b")
    duck.execute("DELETE FROM b.t WHERE id = 2")
    [found] = lake.merge_conflicts("b")
    assert found.kind == "file"
    assert sorted(duck.sql("SELECT id FROM t")) == [(2,), (3,)]


def test_a_block_of_ids_that_a_merge_gave_is_not_given_again(lake, duck):
    duck.execute("CREATE TABLE t (id INT)")
    lake.create_branch("a")
    lake.create_branch("b", "a")
    duck.execute("INSERT INTO b.t VALUES (1)")
    lake.merge_branch("b")
    duck.execute("INSERT INTO a.t VALUES (2)")
    lake.merge_branch("a")
    for name in ("a.t", "t"):
        duck.execute(f"INSERT INTO {name} VALUES (3)")
    found = [duck.sql(f"SELECT rowid FROM {name} WHERE id = 3") for name in ("a.t", "t")]
    assert found[0] != found[1]
    assert not lake.check().problems


def test_a_table_that_was_dropped_and_came_back_belongs_to_its_twin_again(lake, duck):
    duck.execute("CREATE TABLE t (id INT)")
    duck.execute("INSERT INTO t VALUES (1)")
    lake.create_branch("b")
    for _ in range(2):
        lake.execute("DROP TABLE t; UNDROP TABLE t")
        duck.execute("INSERT INTO b.t VALUES (2)")
        duck.execute("INSERT INTO t VALUES (3)")
        duck.execute("ALTER TABLE b.t RENAME COLUMN id TO number")
        assert [row[:3] for row in lake.branch_diff("b").told.rows] == [("main.t", "changed", 1)]
        lake.merge_branch("b")
        duck.execute("ALTER TABLE b.t RENAME COLUMN number TO id")
        lake.merge_branch("b")
    assert sorted(duck.sql("SELECT id FROM t")) == [(1,), (2,), (2,), (3,), (3,)]
    # And on the branch, if it did nothing before.
    lake.execute("DROP TABLE b.t; UNDROP TABLE b.t")
    assert lake.branch_diff("b").is_empty
    duck.execute("INSERT INTO b.t VALUES (4)")
    lake.merge_branch("b")
    assert len(duck.sql("FROM t")) == 6
    assert not lake.check().problems


def test_a_table_that_comes_back_with_changes_is_another_one(lake, duck):
    duck.execute("CREATE TABLE t (id INT)")
    duck.execute("INSERT INTO t VALUES (1)")
    lake.create_branch("b")
    duck.execute("DELETE FROM t")
    lake.execute("DROP TABLE t; UNDROP TABLE t")
    duck.execute("INSERT INTO b.t VALUES (2)")
    [found] = lake.merge_conflicts("b")
    assert (found.kind, found.item, found.ours) == ("table", "t", "another table")


@pytest.mark.parametrize(("one", "other"), [("main", "b"), ("b", "main")])
def test_one_side_renames_a_table_and_the_other_drops_it(lake, duck, one, other):
    duck.execute("CREATE TABLE t (id INT)")
    lake.create_branch("b")
    duck.execute(f"ALTER TABLE {one}.t RENAME TO renamed")
    duck.execute(f"DROP TABLE {other}.t")
    [found] = lake.merge_conflicts("b")
    states = {"main": found.ours, "b": found.theirs}
    assert (found.kind, found.item) == ("table", "renamed")
    assert (states[one], states[other]) == ("changed", "dropped")
    lake.execute("MERGE BRANCH b RESOLVE renamed USING THEIRS")
    assert [str(name) for name in lake.tables("main")] == (["main.renamed"] if one == "b" else [])


@pytest.mark.parametrize("writes", [False, True])
def test_a_branch_may_drop_what_went_and_came_back_in_its_source(lake, duck, writes):
    duck.execute("CREATE TABLE t (id INT); INSERT INTO t VALUES (1), (2)")
    lake.execute("CREATE BRANCH b")
    lake.execute("DROP TABLE t; UNDROP TABLE t; DROP TABLE b.t")
    if writes:
        duck.execute("DELETE FROM t WHERE id = 1")
        with pytest.raises(Conflict, match="is now changed, and dropped on the branch"):
            lake.merge_branch("b")
        assert duck.sql("FROM t") == [(2,)]
    else:
        lake.merge_branch("b")
        assert lake.tables() == []


@pytest.mark.parametrize(
    ("make", "name", "end"),
    [
        ("CREATE BRANCH b", "b.t", "DROP BRANCH b"),
        ("CREATE TABLE c SHALLOW CLONE t", "c", "DROP TABLE c"),
        ("DROP TABLE t; UNDROP TABLE t", "t", "DROP TABLE t"),
    ],
)
def test_what_a_dead_writer_left_is_found_when_its_table_is_gone(lake, duck, make, name, end):
    duck.execute("CREATE TABLE t (id INT); INSERT INTO t VALUES (1)")
    lake.execute("CREATE TABLE kept SHALLOW CLONE t")
    lake.execute(make)
    table = lake.table(name)._version()
    write = f"00000000-0000-7000-8000-{table.uuid[-12:]}"
    left = Path(table.path, write, "0.parquet")
    left.parent.mkdir()
    left.write_bytes(b"PAR1")
    lake.execute(end)
    lake.expire_snapshots(retain_last=1)
    lake.cleanup_old_files(older_than="0 seconds")
    lake.remove_orphans(older_than="0 seconds")
    assert not left.exists()
    assert duck.sql("FROM kept") == [(1,)]
    assert not lake.check().problems
