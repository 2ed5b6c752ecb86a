"""Tags, RETAIN, and Iceberg's words for a branch of one table; DuckDB is the other engine."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

import shelduck
from shelduck import clock
from shelduck.branches import verb
from shelduck.errors import AlreadyExists, InvalidRequest, NotFound, Unsupported
from tests.catalog.test_check_repairs import After

pytestmark = pytest.mark.databases("sqlite", "postgres")


@pytest.fixture
def duck(duck):
    duck.execute("CREATE TABLE t (id INT, v VARCHAR)")
    duck.execute("INSERT INTO t VALUES (1, '1')")
    duck.execute("CREATE TABLE u (id INT)")
    duck.execute("INSERT INTO u VALUES (10)")
    return duck


def newest(duck):
    return duck.sql("SELECT max(snapshot_id) FROM ducklake_snapshots('lake')")[0][0]


def names(found):
    return [(one.name, one.tables) for one in found]


REFUSED = [
    "ALTER TABLE x.t ADD COLUMN more INT",
    "ALTER TABLE x.t RENAME TO other",
    "ALTER TABLE x.t SET TBLPROPERTIES ('owner' = 'me')",
    # Heavy changes: jobs.
    "ALTER TABLE x.t ALTER COLUMN id TYPE STRING PROPERTIES ('wait' = 'false')",
    "ALTER TABLE x.t ADD ROLLUP r (v, id)",
    "COMMENT ON TABLE x.t IS 'seen'",
    "CREATE TABLE x.more (id INT)",
]


@pytest.mark.parametrize("text", REFUSED)
def test_nobody_changes_a_tag(lake, duck, text):
    lake.create_tag("x")
    before = newest(duck)
    with pytest.raises(Unsupported, match="a tag, which nobody changes"):
        lake.execute(text)
    assert newest(duck) == before
    assert lake.jobs() == []
    assert duck.sql("FROM x.t") == [(1, "1")]


def test_a_tag_is_no_branch(lake, duck):
    lake.execute("CREATE TAG x FROM main WITH TABLES (t)")
    lake.execute("CREATE BRANCH b")
    for text, told in (
        ("MERGE BRANCH x", "'x' is a tag, which nobody changes"),
        ("DROP BRANCH x", "'x' is a tag"),
        ("DROP TAG b", "'b' is a branch; DROP BRANCH drops it"),
    ):
        with pytest.raises(InvalidRequest, match=told):
            lake.execute(text)
    with pytest.raises(AlreadyExists):
        lake.execute("CREATE TAG IF NOT EXISTS b")
    with pytest.raises(NotFound, match="tag 'y' does not exist"):
        lake.execute("DROP TAG y")
    lake.execute("DROP TAG IF EXISTS y")
    lake.execute("CREATE TAG IF NOT EXISTS x")
    assert (names(lake.tags()), names(lake.branches())) == ([("x", 1)], [("b", 2)])
    assert lake.execute("SHOW TAGS LIKE 'x*'").rows == [("x", "main", 4, 1, None)]
    lake.execute("USE BRANCH x")
    assert lake.execute("SHOW TABLES").rows == [("x", "t", False)]
    lake.execute("DROP TAG x")
    assert lake.tags() == []


def test_a_branch_of_a_tag_is_written_and_not_merged_into_it(lake, duck):
    lake.create_tag("x", tables=["t"])
    lake.create_branch("b", "x")
    lake.execute("ALTER TABLE b.t ADD COLUMN more INT DEFAULT 5")
    assert duck.sql("FROM b.t") == [(1, "1", 5)]
    with pytest.raises(Unsupported, match="a tag, which nobody changes"):
        lake.merge_branch("b")
    assert duck.sql("FROM x.t") == [(1, "1")]


@pytest.mark.parametrize("engine", ["DuckDB", "Shelduck"])
def test_files_of_a_tag_stay_whoever_expires_and_cleans_up(lake, duck, engine):
    lake.create_tag("x", version=newest(duck), tables=["t"])
    duck.execute("DELETE FROM t")
    duck.execute("DROP TABLE u")
    if engine == "DuckDB":
        duck.execute("CALL ducklake_expire_snapshots('lake', older_than => now())")
        duck.execute("CALL ducklake_merge_adjacent_files('lake')")
        duck.execute("CALL ducklake_cleanup_old_files('lake', cleanup_all => true)")
        duck.execute("CALL ducklake_delete_orphaned_files('lake', cleanup_all => true)")
    else:
        lake.expire_snapshots(retain_last=1)
        lake.compact()
        lake.cleanup_old_files(older_than="0 seconds")
        lake.remove_orphans(older_than="0 seconds")
    assert duck.sql("FROM x.t") == [(1, "1")]
    assert duck.sql("FROM t") == []
    assert not lake.check().problems
    lake.drop_tag("x")
    lake.expire_snapshots(retain_last=1)
    lake.cleanup_old_files(older_than="0 seconds")
    assert list(Path(lake.data_path).rglob("*.parquet")) == []


def test_an_expiry_drops_what_is_over(lake, duck):
    lake.execute("CREATE TAG short WITH TABLES (t) RETAIN 2 HOURS")
    lake.create_branch("long", retain="7 days")
    lake.create_branch("forever")
    duck.execute("INSERT INTO long.t VALUES (2, '2')")
    told = {one.name: one.until for one in (*lake.branches(), *lake.tags())}
    assert told["forever"] is None
    assert told["long"] - told["short"] > timedelta(days=6)

    def expire(hours, **more):
        with clock.using(After(timedelta(hours=hours))):
            lake.expire_snapshots(retain_last=1, **more)
        return [one.name for one in (*lake.branches(), *lake.tags())]

    assert expire(1) == ["forever", "long", "short"]
    assert expire(3, dry_run=True) == ["forever", "long", "short"]
    assert expire(3) == ["forever", "long"]
    assert expire(24 * 8) == ["forever"]
    assert not lake.check().problems
    assert duck.sql("FROM forever.t") == [(1, "1")]


def test_an_expiry_asks_nothing_about_branches_where_there_are_none(lake, duck):
    def statements():
        before = lake._state.store.statements
        lake.expire_snapshots(retain_last=100)
        return lake._state.store.statements - before

    first = statements()
    lake.create_branch("b")
    # Which snapshots merges need, and which branches are over.
    assert statements() > first
    lake.drop_branch("b")
    assert statements() == first


def test_words_of_one_table_make_a_branch_and_give_it_more_tables(lake, duck):
    lake.execute("ALTER TABLE t CREATE BRANCH b AS OF VERSION 1 RETAIN 7 DAYS")
    assert duck.sql("FROM b.t") == []
    duck.execute("INSERT INTO u VALUES (11)")
    lake.execute("ALTER TABLE main.u CREATE BRANCH IF NOT EXISTS B")
    assert names(lake.branches()) == [("b", 2)]
    assert lake.branches()[0].until is not None
    assert sorted(duck.sql("FROM b.u")) == [(10,), (11,)]
    duck.execute("INSERT INTO b.t VALUES (7, '7')")
    duck.execute("INSERT INTO b.u VALUES (12)")
    lake.merge_branch("b")
    assert sorted(duck.sql("FROM t")) == [(1, "1"), (7, "7")]
    assert sorted(duck.sql("FROM u")) == [(10,), (11,), (12,)]


def test_a_branch_of_one_table_is_replaced_and_dropped(lake, duck):
    lake.execute("ALTER TABLE t CREATE BRANCH b")
    duck.execute("INSERT INTO b.t VALUES (7, '7')")
    lake.execute("ALTER TABLE u CREATE BRANCH b")
    with pytest.raises(AlreadyExists, match=r"branch 'b' of main\.t already exists"):
        lake.execute("ALTER TABLE t CREATE BRANCH b")
    lake.execute("ALTER TABLE t CREATE BRANCH IF NOT EXISTS b")
    assert sorted(duck.sql("FROM b.t")) == [(1, "1"), (7, "7")]
    lake.execute("ALTER TABLE t REPLACE BRANCH b AS OF VERSION 1")
    assert duck.sql("FROM b.t") == []
    lake.execute("ALTER TABLE t CREATE OR REPLACE BRANCH b")
    assert duck.sql("FROM b.t") == [(1, "1")]
    assert not lake.check().problems

    # A table that leaves the branch is not a table that the branch dropped.
    lake.execute("ALTER TABLE t DROP BRANCH b")
    assert lake.branch_diff("b").told.rows == []
    lake.merge_branch("b")
    assert duck.sql("FROM t") == [(1, "1")]
    lake.execute("ALTER TABLE t DROP BRANCH IF EXISTS b")
    with pytest.raises(NotFound, match=r"branch 'b' of main\.t does not exist"):
        lake.execute("ALTER TABLE t DROP BRANCH b")
    with pytest.raises(NotFound, match=r"branch 'b' of main\.t does not exist"):
        lake.execute("ALTER TABLE t REPLACE BRANCH b")
    lake.execute("ALTER TABLE IF EXISTS u DROP BRANCH b")
    lake.execute("ALTER TABLE IF EXISTS nothing DROP BRANCH b")
    assert lake.schemas() == ["main"]


def test_a_tag_of_one_table(lake, duck):
    lake.execute("ALTER TABLE t CREATE TAG v1 AS OF VERSION 1")
    lake.execute("ALTER TABLE u CREATE TAG v1 RETAIN 180 DAYS")
    assert names(lake.tags()) == [("v1", 2)]
    assert (duck.sql("FROM v1.t"), duck.sql("FROM v1.u")) == ([], [(10,)])
    lake.execute("ALTER TABLE t REPLACE TAG v1 AS OF VERSION 2")
    assert duck.sql("FROM v1.t") == [(1, "1")]
    with pytest.raises(Unsupported, match="a tag, which nobody changes"):
        lake.execute("ALTER TABLE v1.t ADD COLUMN more INT")
    with pytest.raises(AlreadyExists, match="tag 'v1' already exists"):
        lake.execute("ALTER TABLE t CREATE BRANCH v1")
    lake.execute("ALTER TABLE t DROP TAG v1")
    lake.execute("ALTER TABLE u DROP TAG v1")
    assert lake.schemas() == ["main"]


def test_tables_keep_their_names_by_id(lake, duck):
    lake.execute("ALTER TABLE t CREATE BRANCH b AS OF VERSION 1")
    duck.execute("ALTER TABLE t RENAME TO renamed")
    with pytest.raises(AlreadyExists, match=r"branch 'b' of main\.renamed already exists"):
        lake.execute("ALTER TABLE renamed CREATE BRANCH b")
    lake.execute("ALTER TABLE renamed CREATE OR REPLACE BRANCH b AS OF VERSION 3")
    assert [str(name) for name in lake.tables("b")] == ["b.renamed"]
    lake.execute("ALTER TABLE renamed DROP BRANCH b")
    assert lake.schemas() == ["main"]


@pytest.mark.parametrize(
    ("text", "error", "told"),
    [
        ("ALTER TABLE t CREATE BRANCH main", AlreadyExists, "schema 'main' already exists"),
        ("ALTER TABLE nothing CREATE BRANCH b", NotFound, "table 'nothing' does not exist"),
        ("ALTER TABLE t CREATE BRANCH b AS OF VERSION 99", NotFound, "snapshot 99 does not exist"),
        ("ALTER TABLE u CREATE BRANCH b AS OF VERSION 2", NotFound, "not exist at snapshot 2"),
        ("ALTER TABLE known.t CREATE BRANCH known", InvalidRequest, "did not come from schema"),
        ("ALTER TABLE t CREATE BRANCH b RETAIN 7 WEEKS", InvalidRequest, "DAYS, HOURS or MINUTES"),
        ("ALTER TABLE t CREATE BRANCH b RETAIN 0 DAYS", InvalidRequest, "a time above zero"),
        ("BEGIN; ALTER TABLE t CREATE TAG b", InvalidRequest, "CREATE TAG commits by itself"),
        (
            "ALTER TABLE t CREATE BRANCH b WITH SNAPSHOT RETENTION 3 SNAPSHOTS 2 DAYS",
            Unsupported,
            r"WITH SNAPSHOT RETENTION is not supported: .*; snapshots are those of the whole lake",
        ),
    ],
)
def test_words_that_mean_nothing_are_refused(lake, duck, text, error, told):
    lake.execute("CREATE BRANCH known WITH TABLES (t)")
    with pytest.raises(error, match=told):
        lake.execute(text)
    assert lake.schemas() == ["main", "known"]


def test_branch_and_tag_are_names_of_columns_too(lake, duck):
    duck.execute("CREATE TABLE odd (branch INT, tag INT, id INT)")
    lake.execute("ALTER TABLE odd DROP branch")
    lake.execute("ALTER TABLE odd DROP COLUMN tag")
    assert lake.table("odd").columns.names == ["id"]


def test_a_folder_of_schema_files_has_no_tables_of_branches_and_tags(lake, duck, tmp_path):
    lake.pull_schema(tmp_path / "before")
    lake.create_branch("b")
    lake.create_tag("x")
    assert str(lake.plan(tmp_path / "before")) == "nothing differs"
    files = [path.name for path in lake.pull_schema(tmp_path / "after")]
    assert files == ["main.t.sql", "main.u.sql", "options.sql"]


def test_two_who_give_a_branch_tables_at_once_both_do(lake, duck, lake_url, monkeypatch):
    lake.execute("CREATE TABLE w (id INT); ALTER TABLE w CREATE BRANCH b")
    make, left = verb.share_table, ["ALTER TABLE u CREATE BRANCH b"]

    def meanwhile(*args):
        if left:
            with shelduck.connect(lake_url) as other:
                other.execute(left.pop())
        return make(*args)

    monkeypatch.setattr(verb, "share_table", meanwhile)
    lake.execute("ALTER TABLE t CREATE BRANCH b")
    assert names(lake.branches()) == [("b", 3)]
    # The branch knows that it began with all of them.
    for name in "tuw":
        duck.execute(f"DROP TABLE b.{name}")
    dropped = [(row[0], row[1]) for row in lake.branch_diff("b").told.rows]
    assert sorted(dropped) == [(f"main.{name}", "dropped") for name in "tuw"]
