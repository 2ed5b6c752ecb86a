"""Altered tables, in each kind of catalog, as DuckDB's extension sees them and writes on."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from shelduck.errors import InvalidRequest
from shelduck.model.changes.change import AppendFiles, RenameTable
from shelduck.model.changes.definition import Position
from shelduck.model.changes.schema_change import (
    AddColumn,
    ChangeType,
    DropColumn,
    MoveColumn,
    RenameColumn,
    SetComment,
    SetDefault,
    SetNullable,
)
from shelduck.model.tables.schema import Default
from shelduck.model.types.data_types import parse_type
from tests.support.files import write_file
from tests.support.lake import altered, statements

# Every schema change, on a table with a file that was written before it: what DuckDB then sees.
ALTERS = [
    pytest.param(
        [AddColumn(("b",), parse_type("int"), default=Default("7"))],
        [("a", "INTEGER"), ("s", "STRUCT(x INTEGER, y VARCHAR)"), ("b", "INTEGER")],
        [(1, {"x": 2, "y": "z"}, 7)],
        id="add with default",
    ),
    pytest.param(
        [AddColumn(("b",), parse_type("array<struct<q: int>>"))],
        [("a", "INTEGER"), ("s", "STRUCT(x INTEGER, y VARCHAR)"), ("b", "STRUCT(q INTEGER)[]")],
        [(1, {"x": 2, "y": "z"}, None)],
        id="add nested",
    ),
    pytest.param(
        [AddColumn(("b",), parse_type("date"), position=Position("a"))],
        [("a", "INTEGER"), ("b", "DATE"), ("s", "STRUCT(x INTEGER, y VARCHAR)")],
        [(1, None, {"x": 2, "y": "z"})],
        id="add after",
    ),
    pytest.param(
        [AddColumn(("s", "w"), parse_type("string"), default=Default("new"))],
        [("a", "INTEGER"), ("s", "STRUCT(x INTEGER, y VARCHAR, w VARCHAR)")],
        [(1, {"x": 2, "y": "z", "w": "new"})],
        id="add field with default",
    ),
    pytest.param([DropColumn(("s",))], [("a", "INTEGER")], [(1,)], id="drop struct"),
    pytest.param(
        [DropColumn(("s", "x"))],
        [("a", "INTEGER"), ("s", "STRUCT(y VARCHAR)")],
        [(1, {"y": "z"})],
        id="drop field",
    ),
    pytest.param(
        [RenameColumn(("a",), "z"), RenameColumn(("s", "y"), "b")],
        [("z", "INTEGER"), ("s", "STRUCT(x INTEGER, b VARCHAR)")],
        [(1, {"x": 2, "b": "z"})],
        id="rename",
    ),
    pytest.param(
        [RenameColumn(("a",), "tmp"), AddColumn(("a",), parse_type("string"))],
        [("tmp", "INTEGER"), ("s", "STRUCT(x INTEGER, y VARCHAR)"), ("a", "VARCHAR")],
        [(1, {"x": 2, "y": "z"}, None)],
        id="rename, then add under the old name",
    ),
    pytest.param(
        [ChangeType(("a",), parse_type("bigint")), ChangeType(("s", "x"), parse_type("bigint"))],
        [("a", "BIGINT"), ("s", "STRUCT(x BIGINT, y VARCHAR)")],
        [(1, {"x": 2, "y": "z"})],
        id="widen",
    ),
    pytest.param(
        [MoveColumn(("s",), Position())],
        [("s", "STRUCT(x INTEGER, y VARCHAR)"), ("a", "INTEGER")],
        [({"x": 2, "y": "z"}, 1)],
        id="move first",
    ),
    pytest.param(
        [MoveColumn(("s", "x"), Position("y"))],
        [("a", "INTEGER"), ("s", "STRUCT(y VARCHAR, x INTEGER)")],
        [(1, {"y": "z", "x": 2})],
        id="move field",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("changes", "columns", "rows"), ALTERS)
def test_duckdb_sees_an_altered_table_and_its_old_rows(lake, changes, columns, rows):
    lake.create("t", a="int", s="struct<x: int, y: string>")
    lake.append("t", [{"a": 1, "s": {"x": 2, "y": "z"}}], {1: ("1", "1", 0), 3: ("2", "2", 0)})
    done = lake.alter("t", *changes)

    assert done.snapshot.changes_made == "altered_table:1"
    with lake.duckdb() as oracle:
        assert oracle.columns("t") == columns
        assert oracle.rows("t") == rows
        assert oracle.rows("t", version=2) == [(1, {"x": 2, "y": "z"})]
    assert lake.table("t").columns.names == [name for name, _ in columns]


@pytest.mark.slow
@pytest.mark.parametrize(("changes", "columns", "rows"), ALTERS)
def test_duckdb_writes_on_after_an_alter_of_a_table_with_inlined_rows(lake, changes, columns, rows):
    lake.tell(
        "CREATE TABLE t (a INTEGER, s STRUCT(x INTEGER, y VARCHAR))",
        "INSERT INTO t VALUES (1, {'x': 2, 'y': 'z'})",
        inline=10,
    )
    lake.alter("t", *changes)
    with lake.duckdb({"DATA_INLINING_ROW_LIMIT": 10}) as oracle:
        assert oracle.rows("t") == rows
        oracle.execute("INSERT INTO t SELECT * FROM t")
        assert oracle.rows("t") == rows * 2
        oracle.execute("CALL ducklake_flush_inlined_data('lake')")
        assert oracle.rows("t") == rows * 2
        assert oracle.columns("t") == columns


def test_defaults_come_and_go_without_touching_rows_that_exist(lake):
    lake.create("t", a="int", b="int")
    lake.append("t", [{"a": 1, "b": 2}])
    lake.alter("t", AddColumn(("c",), parse_type("int"), default=Default("7")))
    lake.alter("t", SetDefault(("c",), Default("8")), SetDefault(("b",), Default("9")))
    lake.tell("INSERT INTO t (a) VALUES (10)")
    lake.alter("t", SetDefault(("c",), None), RenameColumn(("c",), "d"))
    lake.tell("INSERT INTO t (a) VALUES (11)")

    assert lake.ask("FROM t ORDER BY a") == [(1, 2, 7), (10, 9, 8), (11, 9, None)]


def test_a_nested_default_outlives_a_rename(lake):
    lake.create("t", a="int", s="struct<x: int>")
    lake.append("t", [{"a": 1, "s": {"x": 2}}])
    lake.alter("t", AddColumn(("s", "y"), parse_type("int"), default=Default("5")))
    lake.alter("t", RenameColumn(("s", "y"), "z"))

    assert lake.ask("FROM t") == [(1, {"x": 2, "z": 5})]


def test_not_null_is_enforced_by_duckdb_and_can_be_set_on_added_columns(lake):
    lake.create("t", a="int")
    lake.append("t", [{"a": 1}], {1: ("1", "1", 0)})
    lake.alter("t", AddColumn(("b",), parse_type("int"), default=Default("7")))
    lake.alter("t", SetNullable(("a",), nullable=False))
    with lake.duckdb() as oracle:
        with pytest.raises(Exception, match=r"NOT NULL constraint failed: t\.a|'a' is required"):
            oracle.execute("INSERT INTO t VALUES (NULL, 1)")
        oracle.execute("ALTER TABLE t ALTER b SET NOT NULL")
    assert not lake.table("t").columns.get(("b",)).nullable

    lake.alter("t", SetNullable(("a",), nullable=True))
    lake.tell("INSERT INTO t VALUES (NULL, 1)")


def test_an_added_column_gets_statistics_that_duckdb_keeps_right(lake):
    lake.create("t", a="int")
    lake.append("t", [{"a": 1}], {1: ("1", "1", 0)})
    lake.alter(
        "t",
        AddColumn(("seven",), parse_type("int"), default=Default("7")),
        AddColumn(("none",), parse_type("int")),
        AddColumn(("nan",), parse_type("double"), default=Default("nan")),
        AddColumn(("day",), parse_type("date"), default=Default("2024-01-02")),
    )
    query = "SELECT min(seven), max(seven), min(none), max(none), max(nan), min(day) FROM t"
    day = "2024-01-02"
    [before] = lake.ask(query)
    lake.tell("INSERT INTO t VALUES (2, 9, 3, 1.5, '2025-01-01')")
    [after] = lake.ask(query)

    assert before[:4] == (7, 7, None, None)
    assert after[:4] == (7, 9, 3, 3)
    assert math.isnan(before[4])
    assert math.isnan(after[4])
    assert str(before[5]) == str(after[5]) == day
    assert lake.ask("SELECT a FROM t WHERE seven = 7 AND none IS NULL") == [(1,)]


def test_bounds_that_a_type_change_makes_unsafe_are_cleared(lake):
    lake.create("t", a="float", b="int")
    lake.append("t", [{"a": 1.1, "b": 1}], {1: ("1.1", "1.1", 0), 2: ("1", "1", 0)})
    lake.alter("t", ChangeType(("a",), parse_type("double")))

    bounds = [
        [(r["column_id"], r["min_value"]) for r in lake.metadata(f"ducklake_{name}_column_stats")]
        for name in ("file", "table")
    ]
    assert bounds == [[(1, None), (2, "1")], [(2, "1")]]
    lake.tell("INSERT INTO t VALUES (1e300, 2)")
    assert lake.ask("SELECT max(a), max(b) FROM t WHERE a < 5") == [(1.100000023841858, 1)]
    assert lake.ask("SELECT a FROM t WHERE a = 1.1::FLOAT::DOUBLE") == [(1.100000023841858,)]


def test_comments_are_seen_by_duckdb_changed_and_taken_away(lake):
    lake.create("t", a="int", b="int")
    comments = (
        "SELECT comment FROM duckdb_tables() WHERE table_name = 't' UNION ALL"
        " SELECT comment FROM (SELECT comment FROM duckdb_columns() WHERE table_name = 't'"
        " ORDER BY column_index)"
    )
    lake.alter("t", SetComment((), "all"), SetComment(("a",), "first"), SetComment(("b",), "2nd"))
    assert lake.ask(comments) == [("all",), ("first",), ("2nd",)]

    lake.alter("t", SetComment((), "more"), SetComment(("a",), None))
    assert lake.ask(comments) == [("more",), (None,), ("2nd",)]

    lake.alter("t", DropColumn(("b",)))
    assert lake.table("t").comments == {None: "more"}
    tags = lake.metadata("ducklake_column_tag")
    assert {r["column_id"]: r["end_snapshot"] for r in tags} == {1: 3, 2: 4}
    versions = lake.metadata("ducklake_schema_versions")
    assert [(v["begin_snapshot"], v["schema_version"]) for v in versions] == [(1, 1), (4, 4)]


def test_comments_that_duckdb_took_away_are_given_again(lake):
    lake.create("t", a="int")
    lake.alter("t", SetComment((), "all"), SetComment(("a",), "first"))
    lake.tell("COMMENT ON TABLE t IS NULL", "COMMENT ON COLUMN t.a IS NULL")
    assert lake.table("t").comments == {}

    lake.alter("t", SetComment((), "again"), SetComment(("a",), "anew"))
    assert sorted(lake.table("t").comments.values()) == ["again", "anew"]
    for source in ("ducklake_tag", "ducklake_column_tag"):
        alive = [r["value"] for r in lake.metadata(source) if r["end_snapshot"] is None]
        assert alive == ["again" if source == "ducklake_tag" else "anew"]
    told = "SELECT comment FROM duckdb_{}() WHERE table_name = 't'"
    assert lake.ask(told.format("tables")) == [("again",)]
    assert lake.ask(told.format("columns")) == [("anew",)]


def test_only_rows_of_changed_fields_get_a_new_version(lake):
    lake.create("t", a="int", s="struct<x: int, y: int>", l="array<int>")
    lake.alter("t", RenameColumn(("s",), "r"), AddColumn(("r", "z"), parse_type("int")))

    rows = lake.metadata("ducklake_column")
    assert [(r["column_id"], r["begin_snapshot"], r["end_snapshot"]) for r in rows] == [
        (1, 1, None),
        (2, 1, 2),
        (2, 2, None),
        (3, 1, None),
        (4, 1, None),
        (5, 1, None),
        (6, 1, None),
        (7, 2, None),
    ]


def test_altering_twice_in_one_commit_is_refused(lake):
    lake.create("t", a="int")
    change = altered(lake.table("t"), RenameColumn(("a",), "b"))

    with pytest.raises(InvalidRequest, match=r"table main\.t is changed twice in one commit"):
        lake.commit(change, change)


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        pytest.param([RenameColumn(("c0",), "z")], 8, id="rename"),
        pytest.param([ChangeType(("c0",), parse_type("bigint"))], 8, id="widen"),
        pytest.param([AddColumn(("new",), parse_type("int"))], 7, id="add"),
        pytest.param([DropColumn(("c0",))], 7, id="drop"),
        # One of them ends what DuckDB's COMMENT IS NULL may have left.
        pytest.param([SetComment((), "text")], 5, id="comment"),
    ],
)
def test_an_alter_takes_few_statements_however_large_the_table_is(sqlite_lake, changes, count):
    lake = sqlite_lake
    lake.create("small", c0="int", c1="int")
    lake.create("large", **dict.fromkeys((f"c{n}" for n in range(50)), "int"))
    table = lake.table("large")
    lake.commit(AppendFiles(table.id, tuple(write_file(table, [{"c0": n}]) for n in range(5))))
    for n in range(5):
        lake.alter("large", RenameColumn((f"c{10 + n}",), f"r{n}"))
    counts = []
    for name in ("small", "large"):
        change = altered(lake.table(name), *changes)
        counts.append(statements(lake, change))

    # A small table without data needs no statistics for the new column.
    assert counts == [count, count + 1 if isinstance(changes[0], AddColumn) else count]


def test_an_alter_does_not_become_slower_with_each_alter_before_it(sqlite_lake):
    lake = sqlite_lake
    lake.tell("CREATE TABLE t (a INTEGER)", inline=10)
    steps = Counter()

    def count():
        steps["all"] += 1
        return 0

    # The pool has one connection; SQLite calls the handler after each ten steps of its machine.
    with lake.store.read() as connection:
        connection.connection.dbapi_connection.set_progress_handler(count, 10)
    costs = []
    for number in range(80):
        steps.clear()
        lake.alter("t", RenameColumn(("a" if number % 2 == 0 else "b",), "ba"[number % 2]))
        costs.append(steps["all"])

    # Every one of them leaves rows in the catalog, and some statements look at all of them.
    assert costs[79] - costs[39] < 1.5 * (costs[39] - costs[0])


@pytest.mark.every_database
def test_a_name_with_a_per_cent_sign_is_a_column_of_the_table_for_inlined_rows(lake):
    lake.tell("CREATE TABLE t (a INTEGER)", "INSERT INTO t VALUES (1)", inline=10)
    lake.alter("t", RenameColumn(("a",), "%s %(a)s 5%"))
    lake.tell("INSERT INTO t VALUES (2)", inline=10)

    assert lake.ask('SELECT "%s %(a)s 5%" FROM t ORDER BY 1') == [(1,), (2,)]


@pytest.mark.versions("1.0")
def test_a_reserved_name_is_refused_while_rows_are_in_the_catalog(lake):
    lake.tell("CREATE TABLE t (a INTEGER)", "INSERT INTO t VALUES (1)", inline=10)

    for change in (AddColumn(("Row_Id",), parse_type("int")), RenameColumn(("a",), "end_snapshot")):
        with pytest.raises(InvalidRequest, match=r"main\.t cannot have a column .* flush_inlined"):
            lake.alter("t", change)


@pytest.mark.versions("1.0")
@pytest.mark.every_database
@pytest.mark.parametrize(
    "before", ["", "DELETE FROM t", "CALL ducklake_flush_inlined_data('lake')"]
)
def test_a_table_with_a_reserved_name_takes_no_rows_into_the_catalog(lake, before):
    lake.tell("CREATE TABLE t (a INTEGER, b INTEGER)", inline=10)
    if before:
        lake.tell("INSERT INTO t VALUES (1, 1)", before, inline=10)
    lake.alter("t", RenameColumn(("b",), "row_id"), AddColumn(("c",), parse_type("int")))
    lake.tell("INSERT INTO t VALUES (2, 2, 2)", "UPDATE t SET a = a + 1", inline=10)

    kept = [(2, 1, None)] if before.startswith("CALL") else []
    assert lake.ask("FROM t ORDER BY a") == [*kept, (3, 2, 2)]
    assert lake.ask("SELECT count(*) FROM ducklake_list_files('lake', 't')") != [(0,)]


def test_duckdb_inlines_on_after_a_rename_and_a_change_of_nullability(lake):
    lake.tell("CREATE TABLE t (a INTEGER)", "INSERT INTO t VALUES (1)", inline=10)
    lake.commit(RenameTable(lake.table("t"), "u"))
    lake.tell("INSERT INTO u VALUES (2)", inline=10)
    lake.alter("u", SetNullable(("a",), nullable=False), SetComment((), "c"))
    lake.tell("INSERT INTO u VALUES (3)", "CALL ducklake_flush_inlined_data('lake')", inline=10)

    assert lake.ask("FROM u") == [(1,), (2,), (3,)]


@pytest.mark.versions("1.0")
def test_a_table_for_inlined_rows_has_the_types_that_duckdb_gives_it(lake):
    types = (
        "b BOOLEAN, i1 TINYINT, i2 SMALLINT, i4 INT, i8 BIGINT, i16 HUGEINT, u1 UTINYINT,"
        " u2 USMALLINT, u4 UINTEGER, u8 UBIGINT, u16 UHUGEINT, f FLOAT, d DOUBLE, n DECIMAL(9,3),"
        " da DATE, ti TIME, tt TIMETZ, ts TIMESTAMP, tss TIMESTAMP_S, tms TIMESTAMP_MS,"
        " tns TIMESTAMP_NS, tz TIMESTAMPTZ, iv INTERVAL, u UUID, v VARCHAR, j JSON, bl BLOB,"
        ' l INTEGER[], s STRUCT("x ""y" VARCHAR, y INTEGER), m MAP(VARCHAR, DOUBLE)'
    )
    lake.tell(f"CREATE TABLE t ({types})", inline=10)
    lake.alter("t", RenameColumn(("b",), "renamed"))

    theirs, ours = (
        lake.ask(f"DESCRIBE __ducklake_metadata_lake.ducklake_inlined_data_1_{version}")
        for version in (1, 2)
    )
    assert [row[1] for row in ours] == [row[1] for row in theirs]
    assert [row[0] for row in ours][3:5] == ["renamed", "i1"]
