"""Views and macros of branches: DuckDB writes and reads them on all sides."""

from __future__ import annotations

import pytest

from shelduck.errors import Conflict, InvalidRequest, NotFound, Unsupported

pytestmark = pytest.mark.databases("sqlite", "postgres")


@pytest.fixture
def duck(duck):
    duck.execute("CREATE TABLE t (id INT, v INT)")
    duck.execute("INSERT INTO t VALUES (1, 10)")
    return duck


def text_of(duck, name):
    """DuckDB's text of a view, with its schema."""
    catalog = "__ducklake_metadata_lake.ducklake"
    [(text,)] = duck.sql(
        f"SELECT sql FROM {catalog}_view v JOIN {catalog}_schema s USING (schema_id)"
        f" WHERE schema_name || '.' || view_name = '{name}' AND v.end_snapshot IS NULL"
    )
    return text


FORMS = {
    "FROM t": "SELECT * FROM t",
    "SELECT main.t.v FROM main.t": 'SELECT "b".t.v FROM "b".t',
    "FROM lake.t": 'SELECT * FROM {DUCKLAKE_CATALOG}."b".t',
    "SELECT v FROM lake.main.t AS x WHERE v IN (SELECT v FROM MAIN.t)": (
        'SELECT v FROM {DUCKLAKE_CATALOG}."b".t AS x WHERE (v = ANY(SELECT v FROM "b".t))'
    ),
    "WITH t AS (SELECT 7 AS v) SELECT * FROM t": "WITH t AS (SELECT 7 AS v)SELECT * FROM t",
    "FROM other.z": "SELECT * FROM other.z",
    "FROM main.t AT (VERSION => 2)": "SELECT * FROM main.t AT (VERSION => 2)",
    "FROM t AT (VERSION => 2)": 'SELECT * FROM "main".t AT (VERSION => 2)',
}


def test_the_views_of_a_branch_read_its_tables(lake, duck):
    duck.execute("CREATE SCHEMA other")
    duck.execute("CREATE TABLE other.z (id INT)")
    for number, text in enumerate(FORMS):
        duck.execute(f"CREATE VIEW v{number} AS {text}")
    duck.execute("COMMENT ON VIEW v1 IS 'kept'")
    before = [duck.sql(f"FROM v{n}") for n in range(len(FORMS))]
    lake.create_branch("b")
    assert [text_of(duck, f"b.v{n}") for n in range(len(FORMS))] == [*FORMS.values()]
    comments = "SELECT schema_name, comment FROM duckdb_views() WHERE view_name = 'v1'"
    assert sorted(duck.sql(comments)) == [("b", "kept"), ("main", "kept")]
    duck.execute("INSERT INTO b.t VALUES (2, 20)")
    assert [duck.sql(f"FROM v{n}") for n in range(len(FORMS))] == before
    assert duck.sql("FROM b.v1") == [(10,), (20,)]
    assert len(duck.sql("FROM b.v0")) == len(duck.sql("FROM b.v2")) == 2
    assert duck.sql("FROM b.v7") == duck.sql("FROM b.v6") == [(1, 10)]


def test_what_a_branch_does_to_views_and_macros_is_merged(lake, duck):
    duck.execute("CREATE VIEW changed AS SELECT id FROM main.t")
    duck.execute("CREATE VIEW gone AS FROM t")
    duck.execute("CREATE VIEW kept AS FROM main.t")
    duck.execute("CREATE MACRO f(x) AS x + (SELECT max(v) FROM main.t)")
    duck.execute("CREATE MACRO g() AS TABLE FROM main.t")
    lake.create_branch("b")
    duck.execute("INSERT INTO b.t VALUES (2, 20)")
    assert duck.sql("SELECT b.f(1), main.f(1), (SELECT count(*) FROM b.g())") == [(21, 11, 2)]
    duck.execute("CREATE OR REPLACE VIEW b.changed AS SELECT id, v FROM b.t")
    duck.execute("DROP VIEW b.gone")
    duck.execute("CREATE VIEW b.more AS SELECT v FROM lake.b.t")
    duck.execute("CREATE OR REPLACE MACRO b.f(x) AS x - 1")
    duck.execute("CREATE VIEW ours AS FROM t")
    assert lake.branch_diff("b").told.rows == [
        ("main.changed", "view changed", None, None, None, ""),
        ("main.f", "macro changed", None, None, None, ""),
        ("main.gone", "view dropped", None, None, None, ""),
        ("main.more", "view created", None, None, None, ""),
        ("main.t", "changed", 1, 0, 0, ""),
    ]
    assert "main.changed view changed" in str(lake.branch_diff("b"))
    lake.merge_branch("b")
    assert duck.sql("FROM changed") == [(1, 10), (2, 20)]
    assert duck.sql("FROM more") == [(10,), (20,)]
    assert duck.sql("SELECT f(1)") == [(0,)]
    assert text_of(duck, "main.more") == "SELECT v FROM {DUCKLAKE_CATALOG}.main.t"
    names = duck.sql(
        "SELECT view_name FROM duckdb_views() WHERE database_name = 'lake' AND schema_name = 'main'"
    )
    assert sorted(names) == [("changed",), ("kept",), ("more",), ("ours",)]
    at = lake.branches()[0].base
    assert lake.branch_diff("b").is_empty
    assert lake.merge_branch("b").snapshot == at
    assert not lake.check().problems


def test_both_sides_changed_a_view(lake, duck):
    duck.execute("CREATE VIEW v AS SELECT id FROM t")
    lake.create_branch("b")
    duck.execute("CREATE OR REPLACE VIEW v AS SELECT 7 AS id FROM main.t")
    duck.execute("CREATE OR REPLACE VIEW b.v AS SELECT v AS id FROM b.t")
    [found] = lake.merge_conflicts("b")
    assert (found.table, found.kind, found.item) == ("main.v", "view", "v")
    assert (found.base, found.theirs) == ("SELECT id FROM t", "SELECT v AS id FROM main.t")
    assert lake.branch_diff("b").told.rows == [("main.v", "conflict", None, None, None, "")]
    with pytest.raises(Conflict, match=r"view v of main\.v: it was SELECT id FROM t, is now"):
        lake.merge_branch("b")
    with pytest.raises(NotFound, match="table 'w' does not exist"):
        lake.execute("MERGE BRANCH b RESOLVE w USING OURS")
    lake.execute("MERGE BRANCH b RESOLVE v USING OURS")
    assert duck.sql("FROM v") == [(7,)]
    duck.execute("CREATE OR REPLACE VIEW v AS SELECT 8 AS id FROM main.t")
    # The branch has not changed it since.
    assert lake.branch_diff("b").is_empty
    duck.execute("CREATE OR REPLACE VIEW b.v AS SELECT v + 1 AS id FROM b.t")
    lake.execute("MERGE BRANCH b RESOLVE v USING THEIRS")
    assert duck.sql("FROM v") == [(11,)]
    for name in ("v", "b.v"):
        duck.execute(f"DROP VIEW {name}")
    lake.merge_branch("b")


def test_equal_changes_of_a_view_do_not_conflict(lake, duck):
    lake.create_branch("b")
    for schema in ("main", "b"):
        duck.execute(f"CREATE VIEW {schema}.v AS SELECT id FROM {schema}.t")
    lake.merge_branch("b")
    assert duck.sql("FROM v") == [(1,)]


def test_a_name_is_that_of_a_table_on_one_side_and_of_a_view_on_the_other(lake, duck):
    lake.create_branch("b")
    duck.execute("CREATE TABLE x (id INT)")
    duck.execute("CREATE VIEW b.x AS FROM t")
    duck.execute("CREATE VIEW y AS FROM t")
    duck.execute("CREATE TABLE b.y (id INT)")
    found = {(one.kind, one.item, one.ours) for one in lake.merge_conflicts("b")}
    assert found == {("view", "x", "a table"), ("table", "y", "a view")}
    duck.execute("DROP TABLE x")
    duck.execute("DROP VIEW y")
    lake.merge_branch("b")
    assert duck.sql("FROM x") == [(1, 10)]
    duck.execute("DROP VIEW b.x")
    duck.execute("CREATE TABLE b.x (id INT)")
    lake.merge_branch("b")
    assert duck.sql("FROM x") == []


def test_the_undo_of_a_merge_takes_views_back(lake, duck):
    duck.execute("CREATE VIEW v AS SELECT id FROM t")
    lake.create_branch("b")
    duck.execute("CREATE OR REPLACE VIEW b.v AS SELECT v AS id FROM b.t")
    duck.execute("CREATE VIEW b.w AS FROM b.t")
    lake.merge_branch("b")
    assert duck.sql("FROM v") == [(10,)]
    duck.execute("CREATE VIEW later AS FROM t")
    duck.execute("CREATE OR REPLACE VIEW w AS SELECT 5 AS five")
    with pytest.raises(Conflict, match=r"view w of main\.w"):
        lake.undo_merge("b")
    duck.execute("DROP VIEW w")
    lake.undo_merge("b")
    assert duck.sql("FROM v") == [(1,)]
    assert duck.sql("FROM later") == [(1, 10)]
    with pytest.raises(InvalidRequest, match="has no merge to undo"):
        lake.undo_merge("b")
    # It is not brought again.
    assert lake.branch_diff("b").is_empty


def test_a_branch_of_some_tables_has_the_views_that_are_listed(lake, duck):
    duck.execute("CREATE TABLE other (id INT)")
    duck.execute("CREATE VIEW v AS SELECT t.id FROM main.t, other, main.other")
    duck.execute("CREATE VIEW w AS FROM t")
    lake.execute("CREATE BRANCH b WITH TABLES (t, v)")
    assert [str(name) for name in lake.tables("b")] == ["b.t"]
    assert text_of(duck, "b.v") == 'SELECT t.id FROM "b".t , "main".other , main.other'
    lake.execute("ALTER TABLE t CREATE BRANCH one")
    views = duck.sql("SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal")
    assert sorted(views) == [("b", "v"), ("main", "v"), ("main", "w")]
    lake.merge_branch("b")
    duck.execute("DROP VIEW b.v")
    lake.merge_branch("b")
    assert lake.execute("SHOW VIEWS").rows == [("main", "w", False)]


def test_a_tag_has_views_which_nobody_changes(lake, duck):
    duck.execute("CREATE VIEW v AS FROM t")
    lake.execute("CREATE TAG x")
    duck.execute("INSERT INTO t VALUES (2, 20)")
    assert duck.sql("FROM x.v") == [(1, 10)]
    for text in ("ALTER VIEW x.v RENAME TO w", "COMMENT ON VIEW x.v IS 'c'"):
        with pytest.raises(Unsupported, match="schema 'x' is a tag, which nobody changes"):
            lake.execute(text)
    lake.execute("DROP TAG x")
    assert lake.tags() == []
    assert lake.execute("SHOW VIEWS").rows == [("main", "v", False)]


def test_views_of_an_older_snapshot_come_as_they_were(lake, duck):
    duck.execute("CREATE VIEW v AS SELECT id FROM main.t")
    at = duck.snapshot()
    duck.execute("CREATE OR REPLACE VIEW v AS SELECT v FROM main.t")
    duck.execute("CREATE VIEW w AS FROM t")
    lake.execute(f"CREATE BRANCH b VERSION AS OF {at}")
    assert duck.sql("FROM b.v") == [(1,)]
    assert lake.branch_diff("b").is_empty
    lake.merge_branch("b")
    assert duck.sql("FROM v") == [(10,)]


def test_whoever_expires_keeps_what_views_are_compared_with(lake, duck):
    duck.execute("DROP TABLE t")
    duck.execute("CREATE VIEW v AS SELECT 1 AS one")
    lake.create_branch("b")
    duck.execute("CREATE OR REPLACE VIEW b.v AS SELECT 2 AS one")
    duck.execute("CREATE VIEW more AS SELECT 3 AS three")
    lake.expire_snapshots(retain_last=1)
    lake.merge_branch("b")
    assert duck.sql("FROM v") == [(2,)]
    duck.execute("CREATE OR REPLACE VIEW b.v AS SELECT 4 AS one")
    duck.execute("CALL ducklake_expire_snapshots('lake', older_than => now())")
    with pytest.raises(Conflict, match="with which a merge compares the views"):
        lake.merge_branch("b")


def test_what_nobody_can_copy_is_told(lake, duck):
    lake.pin("t", lake.snapshots()[-1].id, "old")
    duck.execute("CREATE VIEW v AS SELECT * FROM t")
    done = lake.create_branch("b")
    assert done.note == "left out main.old: pinned, or of a text that cannot be read"
    assert duck.sql("SELECT count(*) FROM b.v") == [(1,)]
    lake.execute("DROP VIEW old")
    assert lake.create_branch("c").note == ""
