"""Committing to a lake, in each kind of catalog; DuckDB's extension reads what came of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shelduck.errors import AlreadyExists, Conflict, InvalidRequest, Unsupported
from shelduck.model.changes.change import (
    AppendFiles,
    CommitInfo,
    DropSchema,
    DropTable,
    RenameTable,
)
from shelduck.model.changes.schema_change import AddColumn, RenameColumn, SetComment
from shelduck.model.tables.schema import Default, TableId
from shelduck.model.types.data_types import parse_type
from tests.support.files import write_file
from tests.support.lake import NESTED, PLAIN, altered, created, new_schema_info, provisional
from tests.support.oracle import DuckDBOracle

pytestmark = pytest.mark.every_database


def test_a_new_table_is_duckdbs_table_too(lake):
    done = lake.create("t", **NESTED)

    assert done.table_ids == {-1: 1}
    assert (done.snapshot.id, done.snapshot.schema_version) == (1, 1)
    assert done.snapshot.changes_made == 'created_table:"main"."t"'
    assert done.snapshot == lake.head()
    with lake.duckdb() as oracle:
        assert oracle.columns("t") == [
            ("id", "BIGINT"),
            ("tags", "VARCHAR[]"),
            ("s", "STRUCT(x INTEGER, y STRUCT(z DOUBLE))"),
            ("m", "MAP(VARCHAR, INTEGER)"),
        ]
        oracle.execute("INSERT INTO t VALUES (1, ['a'], {'x': 1, 'y': {'z': .5}}, MAP {'k': 2})")
        assert oracle.rows("t") == [(1, ["a"], {"x": 1, "y": {"z": 0.5}}, {"k": 2})]


def test_the_rows_of_a_new_table_are_those_that_duckdb_writes(sqlite_lake):
    sqlite_lake.create("ours", **NESTED)
    sqlite_lake.tell(
        "CREATE TABLE theirs (id BIGINT, tags VARCHAR[], s STRUCT(x INTEGER, y STRUCT(z DOUBLE)),"
        " m MAP(VARCHAR, INTEGER))"
    )
    rows = sqlite_lake.metadata("ducklake_column")
    ours, theirs = (
        [
            {k: v for k, v in row.items() if k not in ("table_id", "begin_snapshot")}
            for row in rows
            if row["table_id"] == number
        ]
        for number in (1, 2)
    )

    assert ours == theirs
    versions = sqlite_lake.metadata("ducklake_schema_versions")
    assert [(v["begin_snapshot"], v["schema_version"]) for v in versions] == [(1, 1), (2, 2)]


def test_changes_that_amount_to_nothing_make_no_snapshot(lake):
    create = created(lake.schema(), a="int")
    done = lake.commit(create, DropTable(replace(provisional(create, lake), id=TableId(-1))))

    assert done.snapshot.id == lake.head().id == 0


def test_a_renamed_table_keeps_its_rows_and_its_directory(lake):
    lake.create("t", a="int")
    lake.append("t", [{"a": 1}])
    done = lake.commit(RenameTable(lake.table("t"), "u"))
    lake.append("u", [{"a": 2}])

    assert done.snapshot.changes_made == 'created_table:"main"."u"'
    with lake.duckdb() as oracle:
        assert oracle.rows("u") == [(1,), (2,)]
        assert oracle.rows("t", version=2) == [(1,)]
        oracle.execute("INSERT INTO u VALUES (3)")
        oracle.execute("CREATE TABLE t (b INTEGER)")
        assert oracle.rows("t") == []
    assert [v["begin_snapshot"] for v in lake.metadata("ducklake_schema_versions")] == [1, 3, 6]


def test_a_dropped_table_is_gone_but_for_time_travel(lake):
    lake.create("t", a="int")
    lake.append("t", [{"a": 1}])
    lake.alter("t", SetComment((), "c"), SetComment(("a",), "d"))
    done = lake.commit(DropTable(lake.table("t")))

    assert done.snapshot.changes_made == "dropped_table:1"
    with lake.duckdb() as oracle:
        assert oracle.sql("SHOW TABLES") == []
        assert oracle.rows("t", version=2) == [(1,)]
        dump = oracle.dump_metadata()
    for name in ("table", "column", "data_file", "tag", "column_tag"):
        assert {r["end_snapshot"] for r in dump[f"ducklake_{name}"]} == {4}


def test_schemas_are_made_and_dropped_with_their_tables(lake):
    plain, odd = new_schema_info(lake, "sales"), new_schema_info(lake, "odd name", -10)
    done = lake.commit(
        plain, odd, created(plain.schema, "b", a="int"), created(odd.schema, "c", -2, a="int")
    )
    table = lake.table("b", "sales")
    lake.commit(AppendFiles(table.id, (write_file(table, [{"a": 1}]),)))

    assert done.schema_ids == {-9: 1, -10: 2}
    assert done.table_ids == {-1: 3, -2: 4}
    with lake.duckdb() as oracle:
        assert oracle.rows("sales.b") == [(1,)]
        oracle.execute('INSERT INTO "odd name".c VALUES (2)')
        assert oracle.rows('"odd name".c') == [(2,)]
    with pytest.raises(InvalidRequest, match="while table 'b' is in it"):
        lake.commit(DropSchema(lake.schema("sales")))
    done = lake.commit(DropTable(lake.table("b", "sales")), DropSchema(lake.schema("sales")))
    assert done.snapshot.changes_made == "dropped_schema:1,dropped_table:3"
    assert lake.ask("SELECT schema_name FROM duckdb_schemas() WHERE schema_name = 'sales'") == []


def test_a_schema_that_holds_a_view_is_not_dropped(lake):
    lake.tell("CREATE SCHEMA s", "CREATE VIEW s.v AS SELECT 1 AS one")

    with pytest.raises(InvalidRequest, match="while view 'v' is in it"):
        lake.commit(DropSchema(lake.schema("s")))


def test_a_table_does_not_begin_in_a_schema_that_ends_in_the_same_commit(lake):
    lake.tell("CREATE SCHEMA s")
    schema = lake.schema("s")

    with pytest.raises(InvalidRequest, match="drops schema 's' and fills it"):
        lake.commit(created(schema, "t", a="int"), DropSchema(schema))


def test_create_rename_and_append_are_one_snapshot(lake):
    create = replace(created(lake.schema(), "t", x="int", c="string"), comments={2: "new"})
    version = provisional(create, lake)
    done = lake.commit(
        create,
        RenameTable(version, "u"),
        AppendFiles(create.id, (write_file(version, [{"x": 1, "c": "y"}]),)),
    )

    assert done.snapshot.changes_made == 'created_table:"main"."u",inserted_into_table:1'
    with lake.duckdb() as oracle:
        assert oracle.columns("u") == [("x", "INTEGER"), ("c", "VARCHAR")]
        assert oracle.rows("u") == [(1, "y")]
        oracle.execute("INSERT INTO u VALUES (2, 'z')")
    assert lake.table("u").comments == {2: "new"}


def test_a_commit_says_who_made_it_and_why(lake):
    info = CommitInfo("me", "because", '{"x": 1}')
    lake.commit(created(lake.schema(), a="int"), info=info)

    assert lake.ask(
        "SELECT author, commit_message, commit_extra_info FROM ducklake_snapshots('lake')"
        " WHERE snapshot_id = 1"
    ) == [("me", "because", '{"x": 1}')]


def test_a_lake_that_demands_messages_gets_them(lake):
    lake.tell("CALL lake.set_option('require_commit_message', true)")

    with pytest.raises(InvalidRequest, match="demands a commit message"):
        lake.create("t", a="int")
    lake.commit(created(lake.schema(), a="int"), info=CommitInfo(message="why"))
    assert lake.table("t").columns.names == ["a"]


def test_a_lake_of_an_unknown_version_is_not_written(sqlite_lake):
    with sqlite_lake.store.write() as connection:
        connection.exec_driver_sql("UPDATE ducklake_metadata SET value='1.2' WHERE key='version'")

    with pytest.raises(Unsupported, match=r"now has DuckLake version '1.2'"):
        sqlite_lake.create("t", a="int")


def test_a_taken_name_is_refused_in_any_case(lake):
    lake.create("Taken", a="int")
    lake.create("other", a="int")
    lake.tell("CREATE VIEW seen AS SELECT 1 AS one")

    for name in ("taken", "SEEN"):
        with pytest.raises(AlreadyExists, match="already exists in schema 'main'"):
            lake.create(name, a="int")
        with pytest.raises(AlreadyExists, match="already exists in schema 'main'"):
            lake.commit(RenameTable(lake.table("other"), name))
    with pytest.raises(AlreadyExists, match="schema 'MAIN' already exists"):
        lake.commit(new_schema_info(lake, "MAIN"))


def test_names_that_the_same_commit_frees_can_be_given(lake):
    lake.create("a", x="int")
    lake.create("b", y="int")
    lake.commit(RenameTable(lake.table("a"), "b"), RenameTable(lake.table("b"), "a"))
    lake.commit(DropTable(lake.table("a")), created(lake.schema(), "a", z="int"))
    lake.commit(RenameTable(lake.table("a"), "A"))

    with lake.duckdb() as oracle:
        assert oracle.columns("b") == [("x", "INTEGER")]
        assert oracle.columns("A") == [("z", "INTEGER")]


def test_a_conflict_writes_nothing_and_names_both_changes(lake):
    lake.create("t", a="int")
    stale = lake.table("t")
    lake.tell("ALTER TABLE t ADD COLUMN b INTEGER")
    head = lake.head()

    with pytest.raises(Conflict, match=r"alter table main.t .*altered_table:1 in snapshot 2"):
        lake.commit(altered(stale, RenameColumn(("a",), "z")), base=stale.snapshot.id)
    with pytest.raises(Conflict, match="append to table 1"):
        lake.commit(AppendFiles(stale.id, (write_file(stale, [{"a": 1}]),)), base=stale.snapshot.id)
    assert lake.head() == head
    assert lake.metadata("ducklake_data_file") == []


def test_a_change_on_an_older_version_of_a_table_conflicts_whatever_its_base(lake):
    lake.create("t", a="int")
    stale = lake.table("t")
    lake.alter("t", RenameColumn(("a",), "b"))

    with pytest.raises(Conflict, match="altered_table:1"):
        lake.commit(altered(stale, RenameColumn(("a",), "z")))


def test_changes_of_others_that_do_not_touch_mine_are_no_conflict(lake):
    lake.create("t", a="int")
    stale = lake.table("t")
    lake.tell("CREATE TABLE other (a INTEGER)", "INSERT INTO t VALUES (5)")
    lake.commit(altered(stale, AddColumn(("b",), parse_type("int"))), base=stale.snapshot.id)

    assert lake.ask("FROM t") == [(5, None)]


def test_a_rename_that_lost_to_a_rename_or_a_drop_is_a_conflict(lake):
    lake.create("t", a="int")
    stale = lake.table("t")
    lake.tell("ALTER TABLE t RENAME TO u")
    with pytest.raises(Conflict, match="another commit renamed it to 'u'"):
        lake.commit(RenameTable(stale, "v"), base=stale.snapshot.id)
    lake.tell("DROP TABLE u")
    with pytest.raises(Conflict, match="dropped_table:1"):
        lake.commit(RenameTable(stale, "v"), base=stale.snapshot.id)
    with pytest.raises(Conflict, match="was dropped by another commit"):
        lake.commit(AppendFiles(stale.id, (write_file(stale, [{"a": 1}]),)))


def test_a_base_that_does_not_exist_yet_is_refused(lake):
    with pytest.raises(InvalidRequest, match="snapshot 5, the newest is 0"):
        lake.commit(created(lake.schema(), a="int"), base=5)


def test_snapshot_times_never_go_back(sqlite_lake):
    with sqlite_lake.store.write() as connection:
        connection.exec_driver_sql(
            "UPDATE ducklake_snapshot SET snapshot_time='2999-01-01 00:00:00+00'"
        )
    done = sqlite_lake.create("t", a="int")

    assert done.snapshot.time.year == 2999


def test_duckdb_sessions_that_were_open_see_the_change(sqlite_lake):
    sqlite_lake.create("t", a="int")
    sqlite_lake.append("t", [{"a": 1}], {1: ("1", "1", 0)})
    with DuckDBOracle(sqlite_lake.url, None, PLAIN) as oracle:
        assert oracle.sql("SELECT max(a) FROM t") == [(1,)]
        sqlite_lake.append("t", [{"a": 5}], {1: ("5", "5", 0)})
        assert oracle.sql("SELECT max(a), count(*) FROM t") == [(5, 2)]
        sqlite_lake.alter("t", AddColumn(("b",), parse_type("int"), default=Default("3")))
        assert oracle.sql("SELECT max(b), count(b) FROM t") == [(3, 2)]


def test_duckdb_maintains_a_lake_that_we_wrote(lake):
    lake.create("t", a="int")
    for n in range(4):
        lake.append("t", [{"a": n}], {1: (str(n), str(n), 0)})
        lake.alter("t", AddColumn((f"c{n}",), parse_type("int")))
    with lake.duckdb() as oracle:
        before = oracle.rows("t")
        oracle.execute("CALL ducklake_merge_adjacent_files('lake')")
        oracle.execute("DELETE FROM t WHERE a = 2")
        oracle.execute("CALL ducklake_rewrite_data_files('lake', delete_threshold => 0)")
        oracle.execute("CALL ducklake_expire_snapshots('lake', older_than => now())")
        oracle.execute("CALL ducklake_cleanup_old_files('lake', cleanup_all => true)")
        assert oracle.rows("t") == [row for row in before if row[0] != 2]
    lake.append("t", [{"a": 9}])
    assert lake.ask("SELECT count(*) FROM t") == [(4,)]
