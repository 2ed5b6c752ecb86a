"""Committing to a lake, in each kind of catalog; DuckDB's extension reads what came of it."""

from __future__ import annotations

import math
import uuid
from contextlib import contextmanager
from dataclasses import replace

import pytest

from shelduck.catalog import read
from shelduck.catalog.commit import commit
from shelduck.catalog.create import open_or_create_lake
from shelduck.catalog.store import open_store
from shelduck.errors import AlreadyExists, Conflict, InvalidRequest, Unsupported
from shelduck.model.change import (
    AlterTable,
    AppendFiles,
    CommitInfo,
    CreateSchema,
    CreateTable,
    DropSchema,
    DropTable,
    RenameTable,
)
from shelduck.model.layout import Layout, PhysicalField
from shelduck.model.names import directory
from shelduck.model.schema import Default, SchemaId, TableId, new_schema
from shelduck.model.schema_change import (
    AddColumn,
    ChangeType,
    Draft,
    DropColumn,
    MoveColumn,
    Position,
    RenameColumn,
    SetComment,
    SetDefault,
    SetNullable,
    apply_changes,
)
from shelduck.model.table import SchemaInfo, TableVersion
from shelduck.model.types import Member, Primitive, parse_type
from tests.support.files import write_file
from tests.support.oracle import DuckDBOracle

PLAIN = {"DATA_INLINING_ROW_LIMIT": 0}


class Lake:
    """A lake and the shortest words for committing to it."""

    def __init__(self, url, data_path):
        self.url = url
        self.store = open_store(url)
        self.info = open_or_create_lake(self.store, data_path)

    def head(self):
        with self.store.read() as connection:
            return read.snapshot(connection)

    def table(self, name, schema="main"):
        with self.store.read() as connection:
            return read.table(connection, read.snapshot(connection), schema, name, self.info)

    def schema(self, name="main"):
        with self.store.read() as connection:
            found = read.schemas(connection, read.snapshot(connection), self.info)
        return next(s for s in found if s.name == name)

    def files(self, name):
        with self.store.read() as connection:
            table = read.table(connection, read.snapshot(connection), "main", name, self.info)
            return read.data_files(connection, table)

    def commit(self, *changes, base=None, info=CommitInfo(), learned=None):  # noqa: B008
        base = self.head().id if base is None else base
        return commit(
            self.store, self.info, changes, base=base, info=info, layouts_learned=learned or {}
        )

    def create(self, name="t", **columns):
        return self.commit(created(self.schema(), name, **columns))

    def alter(self, name, *changes):
        return self.commit(altered(self.table(name), *changes))

    def append(self, name, rows, bounds=None):
        table = self.table(name)
        return self.commit(AppendFiles(table.id, (write_file(table, rows, bounds),)))

    @contextmanager
    def duckdb(self, options=PLAIN):
        self.store.close()
        with DuckDBOracle(self.url, None, options) as oracle:
            yield oracle

    def tell(self, *statements, inline=0):
        with self.duckdb({"DATA_INLINING_ROW_LIMIT": inline}) as oracle:
            for statement in statements:
                oracle.execute(statement)

    def ask(self, query):
        with self.duckdb() as oracle:
            return oracle.sql(query)

    def metadata(self, table):
        with self.duckdb() as oracle:
            return oracle.dump_metadata()[table]


def created(schema, name="t", number=-1, **columns):
    members = [Member(n, parse_type(kind)) for n, kind in columns.items()]
    return CreateTable(TableId(number), schema, name, str(uuid.uuid4()), new_schema(members))


def altered(table, *changes):
    draft = Draft(table.columns, table.max_column_id + 1, dict(table.comments))
    after = apply_changes(draft, changes, table.full_name)
    return AlterTable(
        table,
        after.columns,
        after.comments,
        after.unsafe_bounds,
        excludes_inserts=bool(after.must_hold_no_null),
    )


def new_schema_info(lake, name, number=-9):
    unique = str(uuid.uuid4())
    path = lake.info.data_path + directory(name, unique)
    return CreateSchema(SchemaInfo(SchemaId(number), name, path), unique)


@pytest.fixture
def lake(lake_url, data_path):
    made = Lake(lake_url, data_path)
    yield made
    made.store.close()


@pytest.fixture
def sqlite_lake(sqlite_url, data_path):
    made = Lake(sqlite_url, data_path)
    yield made
    made.store.close()


NESTED = {
    "id": "bigint",
    "tags": "array<string>",
    "s": "struct<x: int, y: struct<z: double>>",
    "m": "map<string, int>",
}


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


def test_appended_files_are_read_by_duckdb_which_goes_on_writing(lake):
    lake.create("t", **NESTED)
    row = {"id": 1, "tags": ["a", None], "s": {"x": 3, "y": {"z": 0.5}}, "m": [("k", 2)]}
    lake.append("t", [row, {"id": 2}], {1: ("1", "2", 0)})
    lake.tell("INSERT INTO t (id) VALUES (3)", "UPDATE t SET id = 20 WHERE id = 2")
    lake.append("t", [{"id": 4}])

    with lake.duckdb() as oracle:
        assert oracle.rows("t", columns="rowid, id, tags, s, m") == [
            (0, 1, ["a", None], {"x": 3, "y": {"z": 0.5}}, {"k": 2}),
            (1, 20, None, None, None),
            (2, 3, None, None, None),
            (4, 4, None, None, None),
        ]
        assert oracle.sql("SELECT count(*), max(id) FROM t") == [(4, 20)]
        assert oracle.sql("SELECT id FROM t WHERE id > 3 ORDER BY id") == [(4,), (20,)]
        assert oracle.rows("t", version=2, columns="id") == [(1,), (2,)]


def test_table_statistics_are_written_at_the_first_insert_and_widened_later(lake):
    lake.create("t", a="int", b="string", c="double")
    lake.append("t", [{"a": 5}, {"a": 9}], {1: ("5", "9", 0), 2: (None, None, 2)})
    lake.append("t", [{"a": 1}, {"a": None}], {1: ("1", "1", 1), 2: (None, None, 2)})
    lake.append("t", [{"a": 10}], {1: ("10", "10", 0), 2: (None, None, 1)})

    rows = lake.metadata("ducklake_table_column_stats")
    assert [
        (r["column_id"], bool(r["contains_null"]), r["min_value"], r["max_value"]) for r in rows
    ] == [(1, True, "1", "10"), (2, True, None, None)]
    [totals] = lake.metadata("ducklake_table_stats")
    sizes = [f.file_size_bytes for f in lake.files("t")]
    assert (totals["record_count"], totals["next_row_id"]) == (5, 5)
    assert totals["file_size_bytes"] == sum(sizes)
    assert lake.ask("SELECT min(a), max(a), count(*) FROM t") == [(1, 10, 5)]


UNKNOWN = {1: (None, None, 0)}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(None, None, id="no statistics"),
        pytest.param(UNKNOWN, UNKNOWN, id="no bounds"),
        pytest.param({1: ("5", "5", 0)}, None, id="lost later"),
        pytest.param(None, {1: ("900", "900", 0)}, id="known too late"),
        pytest.param({1: (None, None, 1)}, {1: ("900", "900", 0)}, id="no values at first"),
    ],
)
def test_duckdb_never_takes_bounds_for_certain_that_are_not(lake, first, second):
    lake.create("t", a="int")
    lake.append("t", [{"a": None if first == {1: (None, None, 1)} else 5}], first)
    lake.append("t", [{"a": 900}], second)
    before = lake.ask("SELECT min(a), max(a) FROM t WHERE a <> 5")
    lake.tell("INSERT INTO t VALUES (7)")

    assert before == [(900, 900)]
    assert lake.ask("SELECT min(a), max(a) FROM t WHERE a <> 5") == [(7, 900)]
    assert lake.ask("SELECT max(a) FROM t") == [(900,)]
    assert lake.ask("SELECT a FROM t WHERE a > 100") == [(900,)]


def test_a_nan_that_the_statistics_do_not_tell_is_found_by_duckdb(lake):
    lake.create("t", a="double")
    lake.append("t", [{"a": 1.5}, {"a": math.nan}], {1: ("1.5", "1.5", 0)})

    assert math.isnan(lake.ask("SELECT max(a) FROM t")[0][0])


def test_row_ids_go_on_where_the_statistics_of_a_table_are_missing(sqlite_lake):
    sqlite_lake.create("t", a="int")
    sqlite_lake.append("t", [{"a": 5}, {"a": 6}])
    with sqlite_lake.store.write() as connection:
        connection.exec_driver_sql("DELETE FROM ducklake_table_stats")
    sqlite_lake.append("t", [{"a": 7}])

    assert sqlite_lake.ask("SELECT rowid, a FROM t ORDER BY a") == [(0, 5), (1, 6), (2, 7)]


def test_layouts_are_recorded_once_and_come_back_with_the_files(lake):
    lake.create("t", a="int", s="struct<x: int>")
    lake.append("t", [{"a": 1}])
    lake.append("t", [{"a": 2}])
    lake.alter("t", AddColumn(("b",), parse_type("int")))
    lake.append("t", [{"a": 3}])

    first, second, third = [f.layout for f in lake.files("t")]
    assert first == second
    assert [f.name for f in first.fields] == ["a", "s"]
    assert first.fields[1].children[0] == PhysicalField("x", 3, Primitive("int32"))
    assert [f.id for f in third.fields] == [1, 2, 4]


def test_learned_layouts_are_recorded_with_the_next_commit(lake):
    lake.tell("CREATE TABLE t (a INTEGER)", "INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2)")
    files = lake.files("t")
    layout = Layout((PhysicalField("a", 1, Primitive("int32")),))
    learned = {f.id: layout for f in files}
    lake.commit(altered(lake.table("t"), SetComment((), "seen")), learned=learned)
    lake.commit(altered(lake.table("t"), SetComment((), "seen again")), learned=learned)

    assert [f.layout for f in files] == [None, None]
    assert [f.layout for f in lake.files("t")] == [layout, layout]


def test_changes_that_amount_to_nothing_make_no_snapshot(lake):
    create = created(lake.schema(), a="int")
    done = lake.commit(create, DropTable(replace(_provisional(create, lake), id=TableId(-1))))

    assert done.snapshot.id == lake.head().id == 0


def _provisional(create, lake):
    """The table version of a table that is created in the same commit."""
    return TableVersion(
        id=create.id,
        uuid=create.uuid,
        schema=create.schema,
        name=create.name,
        path=create.schema.path + directory(create.name, create.uuid),
        columns=create.columns,
        snapshot=lake.head(),
        begin_snapshot=lake.head().id,
        max_column_id=max(f.id for f in create.columns.walk()),
        first_names={},
        comments={},
    )


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
        with pytest.raises(Exception, match=r"NOT NULL constraint failed: t\.a"):
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


def test_create_alter_rename_and_append_are_one_snapshot(lake):
    create = created(lake.schema(), "t", a="int", b="int")
    version = _provisional(create, lake)
    first = altered(version, RenameColumn(("a",), "x"))
    then = altered(
        replace(version, columns=first.columns),
        DropColumn(("b",)),
        AddColumn(("c",), parse_type("string")),
        SetComment(("c",), "new"),
    )
    final = replace(version, columns=then.columns)
    done = lake.commit(
        create,
        first,
        then,
        RenameTable(version, "u"),
        AppendFiles(create.id, (write_file(final, [{"x": 1, "c": "y"}]),)),
    )

    assert done.snapshot.changes_made == 'created_table:"main"."u",inserted_into_table:1'
    with lake.duckdb() as oracle:
        assert oracle.columns("u") == [("x", "INTEGER"), ("c", "VARCHAR")]
        assert oracle.rows("u") == [(1, "y")]
        oracle.execute("INSERT INTO u VALUES (2, 'z')")
    assert lake.table("u").comments == {3: "new"}


def test_altering_twice_in_one_commit_leaves_one_version(lake):
    lake.create("t", a="int")
    table = lake.table("t")
    first = altered(table, RenameColumn(("a",), "b"), AddColumn(("c",), parse_type("int")))
    then = altered(
        replace(table, columns=first.columns, max_column_id=2), RenameColumn(("b",), "d")
    )
    lake.commit(first, then)

    rows = lake.metadata("ducklake_column")
    assert [(r["column_name"], r["begin_snapshot"], r["end_snapshot"]) for r in rows] == [
        ("a", 1, 2),
        ("d", 2, None),
        ("c", 2, None),
    ]


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


def test_a_lake_that_was_migrated_meanwhile_is_not_written(sqlite_lake):
    with sqlite_lake.store.write() as connection:
        connection.exec_driver_sql("UPDATE ducklake_metadata SET value='1.1' WHERE key='version'")

    with pytest.raises(Unsupported, match=r"version '1.1' by now"):
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

    with pytest.raises(Conflict, match=r"alter table main.t .*snapshot 2 .*altered_table:1"):
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
