"""Reading a lake that DuckDB wrote, in each kind of catalog."""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from shelduck.catalog.commit.own_rows import record_layouts
from shelduck.catalog.databases.store import open_store
from shelduck.catalog.read import read
from shelduck.catalog.read.files.data_files import files_at_once
from shelduck.catalog.schema.lake_schema import open_lake
from shelduck.catalog.schema.own_tables import ensure_own_tables
from shelduck.errors import CorruptLake, InvalidRequest, NotFound
from shelduck.model.files.data_file import Layout, MappedName, PhysicalField
from shelduck.model.tables.schema import Default
from shelduck.model.types.data_types import parse_type
from tests.support.oracle import DuckDBOracle


class Reader:
    """The lake's newest snapshot, or an older one, through one connection."""

    def __init__(self, store, connection, version=None):
        self.store = store
        self.connection = connection
        self.lake = open_lake(store)
        self.at = read.snapshot(connection, version)

    def table(self, name, schema="main"):
        return read.table(self.connection, self.at, schema, name, self.lake)

    def files(self, name):
        return read.data_files(self.connection, self.table(name))

    def inlined(self, name):
        """(row id, values by column name) of every inlined row."""
        return [
            (row_id, dict(zip(part.columns.names, row, strict=True)))
            for part in read.inlined_rows(self.connection, self.table(name))
            for row_id, row in zip(part.row_ids, part.rows, strict=True)
        ]


@contextmanager
def reading(url, version=None):
    with closing(open_store(url)) as store, store.session(), store.read() as connection:
        yield Reader(store, connection, version)


@pytest.fixture
def told(lake_url, data_path):
    """Lets DuckDB run statements on the lake, then closes it again."""

    def tell(*statements, inline=0):
        with DuckDBOracle(lake_url, data_path, {"DATA_INLINING_ROW_LIMIT": inline}) as oracle:
            for statement in statements:
                oracle.execute(statement)

    return tell


def test_a_table_comes_with_types_ids_defaults_and_nullability(told, lake_url, data_path):
    told(
        "CREATE TABLE t (id BIGINT NOT NULL, price DECIMAL(9,2) DEFAULT 1.5, ts TIMESTAMP,"
        " seen TIMESTAMPTZ DEFAULT now(), tags VARCHAR[], s STRUCT(x INTEGER, y STRUCT(z DATE)),"
        " m MAP(VARCHAR, BLOB))"
    )
    with reading(lake_url) as lake:
        table = lake.table("T", "MAIN")

    assert str(table.columns) == (
        "id int64 NOT NULL\nprice decimal(9,2)\nts timestamp\nseen timestamptz\n"
        "tags array<varchar>\ns struct<x: int32, y: struct<z: date>>\nm map<varchar, blob>"
    )
    assert [f.id for f in table.columns.walk()] == list(range(1, 14))
    assert table.columns.get(("price",)).initial_default == "1.50"
    assert table.columns.get(("price",)).default == Default("1.5")
    assert table.columns.get(("seen",)).default == Default("now()", literal=False)
    assert table.columns.get(("id",)).default is None
    assert table.full_name == "main.t"
    assert table.path == f"{data_path}main/t/"
    assert (table.snapshot.id, table.begin_snapshot, table.max_column_id) == (1, 1, 13)
    assert (table.partition_id, table.partition, table.sort, table.comments) == (None, (), (), {})


def test_ids_and_first_names_outlive_renames_and_drops(told, lake_url):
    told(
        "CREATE TABLE t (a INTEGER, b INTEGER, s STRUCT(x INTEGER))",
        "ALTER TABLE t RENAME a TO z",
        "ALTER TABLE t DROP COLUMN b",
        "ALTER TABLE t ADD COLUMN b VARCHAR",
        "ALTER TABLE t DROP COLUMN b",
        "ALTER TABLE t RENAME s.x TO w",
        "ALTER TABLE t RENAME TO u",
    )
    with reading(lake_url) as lake:
        table = lake.table("u")
    with reading(lake_url, 4) as lake:
        older = lake.table("t")

    assert table.columns.names == ["z", "s"]
    assert table.first_names == {1: "a", 2: "b", 3: "s", 4: "x", 5: "b"}
    assert table.max_column_id == 5
    assert table.path == older.path
    assert older.columns.names == ["z", "s", "b"]
    assert older.id == table.id


def test_a_field_that_duckdb_marks_not_null_inside_a_struct_is_nullable(told, lake_url):
    told("CREATE TABLE t (s STRUCT(x INTEGER))", "ALTER TABLE t RENAME s.x TO w")
    with reading(lake_url) as lake:
        assert lake.table("t").columns.get(("s", "w")).nullable


def test_comments_partition_keys_and_sort_keys_are_those_of_the_snapshot(told, lake_url):
    told(
        "CREATE TABLE t (a INTEGER, b VARCHAR)",
        "COMMENT ON TABLE t IS 'all of it'",
        "COMMENT ON COLUMN t.a IS 'number'",
        "COMMENT ON COLUMN t.b IS 'gone soon'",
        "COMMENT ON COLUMN t.b IS NULL",
        "ALTER TABLE t SET PARTITIONED BY (bucket(4, b), a)",
        "ALTER TABLE t SET SORTED BY (upper(b) DESC, a)",
    )
    with reading(lake_url) as lake:
        table = lake.table("t")
    with reading(lake_url, 1) as lake:
        first = lake.table("t")

    assert table.comments == {None: "all of it", 1: "number"}
    assert [(p.column_id, p.transform) for p in table.partition] == [
        (2, "bucket(4)"),
        (1, "identity"),
    ]
    assert table.partition_id is not None
    assert table.sort == ("upper(b) DESC NULLS LAST", "a ASC NULLS LAST")
    assert (first.comments, first.partition, first.sort) == ({}, (), ())


def test_a_partition_spec_that_was_reset_is_none(told, lake_url):
    told(
        "CREATE TABLE t (a INTEGER)",
        "ALTER TABLE t SET PARTITIONED BY (a)",
        "ALTER TABLE t RESET PARTITIONED BY",
    )
    with reading(lake_url) as lake:
        assert (lake.table("t").partition_id, lake.table("t").partition) == (None, ())


def test_a_missing_table_schema_or_snapshot_is_named_with_what_there_is(told, lake_url):
    told("CREATE TABLE events (a INTEGER)", "CREATE SCHEMA sales")
    with reading(lake_url) as lake:
        with pytest.raises(NotFound, match=r"table 'event' .*did you mean 'events'"):
            lake.table("event")
        with pytest.raises(NotFound, match=r"schema 'sale' .*did you mean 'sales'"):
            lake.table("events", "sale")
        with pytest.raises(NotFound, match="snapshot 9 does not exist; existing snapshots: 0 to 2"):
            read.snapshot(lake.connection, 9)
        with pytest.raises(NotFound, match="no snapshot as old as 2001"):
            read.snapshot(lake.connection, timestamp=datetime(2001, 1, 1, tzinfo=UTC))
        with pytest.raises(InvalidRequest, match="needs a time zone"):
            read.snapshot(lake.connection, timestamp=datetime(2001, 1, 1))  # noqa: DTZ001


def test_snapshots_are_found_by_time(told, lake_url):
    told("CREATE TABLE a (i INTEGER)", "CREATE TABLE b (i INTEGER)", "CREATE TABLE c (i INTEGER)")
    with reading(lake_url) as lake:
        everything = read.snapshots(lake.connection)
        second = everything[2]
        exact = read.snapshot(lake.connection, timestamp=second.time)
        before = read.snapshot(lake.connection, timestamp=second.time - timedelta(microseconds=1))

    assert [s.id for s in everything] == [0, 1, 2, 3]
    assert [s.changes_made for s in everything[:2]] == [
        'created_schema:"main"',
        'created_table:"main"."a"',
    ]
    assert exact == second
    assert before.id == 1


def test_schemas_and_table_names_are_those_of_the_snapshot(told, lake_url, data_path):
    told(
        "CREATE SCHEMA sales",
        'CREATE SCHEMA "odd name"',
        "CREATE TABLE sales.b (i INTEGER)",
        "CREATE TABLE sales.A (i INTEGER)",
        "DROP TABLE sales.b",
        "CREATE VIEW sales.v AS SELECT 1 AS one",
    )
    with reading(lake_url) as lake:
        main, sales, odd = read.schemas(lake.connection, lake.at, lake.lake)
        now = read.table_names(lake.connection, lake.at, sales)
        before = read.table_names(lake.connection, read.snapshot(lake.connection, 4), sales)

    assert (main.name, main.path) == ("main", f"{data_path}main/")
    assert (sales.name, sales.path) == ("sales", f"{data_path}sales/")
    assert odd.path.startswith(data_path)
    assert "odd name" not in odd.path
    assert now == ["A"]
    assert before == ["A", "b"]


def test_a_table_whose_columns_have_all_ended_is_hidden(told, sqlite_url, data_path):
    with DuckDBOracle(sqlite_url, data_path) as oracle:
        oracle.execute("CREATE TABLE t (i INTEGER)")
    store = open_store(sqlite_url)
    with store.write() as connection:
        connection.exec_driver_sql("UPDATE ducklake_column SET end_snapshot = 1")
    with reading(sqlite_url) as lake:
        assert (
            read.table_names(
                lake.connection, lake.at, read.schemas(lake.connection, lake.at, lake.lake)[0]
            )
            == []
        )
        with pytest.raises(NotFound, match="table 't'"):
            lake.table("t")


def test_a_table_is_read_in_two_statements(told, lake_url):
    told("CREATE TABLE t (a INTEGER, s STRUCT(x INTEGER))", "COMMENT ON TABLE t IS 'c'")
    with reading(lake_url) as lake:
        before = lake.store.statements
        lake.table("t")

        assert lake.store.statements - before == 2


def test_data_files_and_deletes_are_those_of_the_snapshot(told, lake_url, data_path):
    told(
        "CREATE TABLE t (a INTEGER)",
        "INSERT INTO t SELECT * FROM range(5)",
        "INSERT INTO t SELECT * FROM range(10, 13)",
        "DELETE FROM t WHERE a = 2",
        "DELETE FROM t WHERE a = 3",
        "DELETE FROM t WHERE a >= 10",
    )
    with reading(lake_url) as lake:
        [now] = lake.files("t")
    with reading(lake_url, 4) as lake:
        first, second = lake.files("t")
    with reading(lake_url, 1) as lake:
        assert lake.files("t") == []

    assert now.path.startswith(f"{data_path}main/t/ducklake-")
    assert (now.record_count, now.row_id_start, now.begin_snapshot) == (5, 0, 2)
    # Replaced by one for both deletes, which tells them apart by snapshot.
    assert (now.delete_file.format, now.delete_file.delete_count) == ("parquet", 2)
    assert now.delete_file.path.startswith(f"{data_path}main/t/ducklake-")
    # It also has a row that was deleted later.
    assert first.delete_file == replace(now.delete_file, is_later=True)
    assert (second.row_id_start, second.delete_file) == (5, None)


def test_small_deletes_that_the_catalog_holds_come_with_their_file(told, lake_url):
    told("CREATE TABLE t (a INTEGER)", "INSERT INTO t SELECT * FROM range(5)")
    told("DELETE FROM t WHERE a = 3", "DELETE FROM t WHERE a = 1", inline=5)
    with reading(lake_url) as lake:
        assert [f.inlined_deletes for f in lake.files("t")] == [(1, 3)]
    with reading(lake_url, 3) as lake:
        assert [f.inlined_deletes for f in lake.files("t")] == [(3,)]
    with reading(lake_url, 2) as lake:
        assert [f.inlined_deletes for f in lake.files("t")] == [()]


@pytest.mark.every_database
def test_one_statement_finds_a_few_files_and_all_that_belongs_to_them(told, lake_url):
    told(
        "CREATE TABLE t (a INTEGER)",
        *(f"INSERT INTO t SELECT * FROM range({n}, {n + 5})" for n in (0, 10, 20)),
        "DELETE FROM t WHERE a = 2",
        "DELETE FROM t WHERE a >= 20",
    )
    told("DELETE FROM t WHERE a = 11", inline=5)
    layout = Layout((PhysicalField("a", 1, parse_type("int")),))
    with closing(open_store(lake_url)) as store, store.write() as connection:
        ensure_own_tables(store, connection)
        record_layouts(connection, {0: layout})
    with reading(lake_url) as lake:
        table, apart = lake.table("t"), lake.files("t")
        files, known = files_at_once(lake.connection, table)
        assert files_at_once(lake.connection, table, at_most=1) is None

    assert files == apart
    assert [f.delete_file is not None for f in files] == [True, False]
    assert [f.inlined_deletes for f in files] == [(), (1,)]
    assert [f.layout == layout for f in files].count(True) == 1
    assert known.has_delete_files


def test_deletion_vectors_are_found(told, lake_url):
    told(
        "CREATE TABLE t (a INTEGER)",
        "CALL lake.set_option('write_deletion_vectors', true)",
        "INSERT INTO t SELECT * FROM range(5)",
        "DELETE FROM t WHERE a = 2",
    )
    with reading(lake_url) as lake:
        [file] = lake.files("t")

    assert file.delete_file.format == "puffin"


def test_merged_and_flushed_files_carry_their_newest_snapshot(told, lake_url):
    told(
        "CREATE TABLE t (a INTEGER)",
        "INSERT INTO t VALUES (1)",
        "INSERT INTO t VALUES (2)",
        "CALL ducklake_merge_adjacent_files('lake')",
    )
    with reading(lake_url) as lake:
        [file] = lake.files("t")

    assert (file.begin_snapshot, file.partial_max, file.record_count) == (2, 3, 2)


def test_adopted_files_come_with_a_mapping_and_their_partition_values(
    told, lake_url, data_path, tmp_path
):
    folder = tmp_path / "ext" / "h=7" / "k=a%20b"
    folder.mkdir(parents=True)
    told(
        f"COPY (SELECT 5 AS id, [{{'x': 1}}] AS l) TO '{folder}/a.parquet'",
        "CREATE TABLE t (id INTEGER, l STRUCT(x INTEGER)[], k VARCHAR, h INTEGER)",
        f"CALL ducklake_add_data_files('lake', 't', '{tmp_path}/ext/*/*/*.parquet',"
        " hive_partitioning => true)",
    )
    with reading(lake_url) as lake:
        [file] = lake.files("t")
        mapping = read.name_mappings(lake.connection, [file.mapping_id])[file.mapping_id]

    assert file.path == f"{folder}/a.parquet"
    assert [n.source_name for n in mapping.names if n.is_partition] == ["h", "k"]
    assert file.partition_values == ("7", "a b")
    assert mapping.names[1] == MappedName(
        "l",
        2,
        is_partition=False,
        children=(MappedName("list", 3, False, (MappedName("x", 4, False),)),),
    )


def test_statistics_come_by_column_and_file(told, lake_url):
    told(
        "CREATE TABLE t (a INTEGER, b DOUBLE)",
        "INSERT INTO t VALUES (1, 1.5), (3, 'nan'), (NULL, 2.0)",
        "INSERT INTO t VALUES (7, NULL)",
    )
    with reading(lake_url) as lake:
        bounds = read.file_bounds(lake.connection, lake.table("t"), [1, 2])

    assert {n: (s.min_value, s.max_value, s.null_count) for n, s in bounds[1].items()} == {
        0: ("1", "3", 1),
        1: ("7", "7", 0),
    }
    assert [(s.value_count, s.contains_nan) for s in bounds[2].values()] == [(3, True), (0, False)]


def test_the_history_of_a_table_has_its_snapshots_and_no_others(told, lake_url):
    told(
        "CREATE TABLE t (a INTEGER)",
        "CREATE TABLE other (a INTEGER)",
        "INSERT INTO t VALUES (1)",
        "INSERT INTO other VALUES (1)",
        "ALTER TABLE t RENAME TO u",
        "ALTER TABLE u ADD COLUMN b INTEGER",
    )
    with reading(lake_url) as lake:
        history = read.table_history(lake.connection, lake.table("u"))

    assert [(s.id, s.changes_made) for s in history] == [
        (6, "altered_table:1"),
        (5, 'created_table:"main"."u"'),
        (3, "inserted_into_table:1"),
        (1, 'created_table:"main"."t"'),
    ]


def test_inlined_rows_have_the_same_form_from_every_database(told, lake_url):
    told(
        "CREATE TABLE t (b BOOLEAN, i BIGINT, h HUGEINT, f FLOAT, d DOUBLE, n DECIMAL(9,3),"
        " da DATE, ti TIME, ts TIMESTAMP, tz TIMESTAMPTZ, iv INTERVAL, u UUID, v VARCHAR, bl BLOB,"
        " l INTEGER[], s STRUCT(x VARCHAR, y INTEGER), m MAP(VARCHAR, DOUBLE))",
        "INSERT INTO t VALUES (true, 7, 12345678901234567890123, 1.1, 1e300, 1.5, '2024-02-29',"
        " '01:02:03.000004', '2024-02-29 01:02:03.5', '2024-02-29 01:02:03+02',"
        " INTERVAL '14 months 3 days 01:02:03', '00000000-0000-0000-0000-0000000000aa',"
        " 'x,''é', '\\x00\\xFFa'::BLOB, [1, NULL], {'x': 'a, b', 'y': NULL}, MAP {'k': 0.5})",
        "INSERT INTO t (b, d) VALUES (false, 'nan')",
        inline=10,
    )
    with reading(lake_url) as lake:
        (first, row), (second, mostly_null) = lake.inlined("t")

    assert (first, second) == (0, 1)
    assert row == {
        "b": "true",
        "i": "7",
        "h": "12345678901234567890123",
        "f": "1.1",
        "d": "1e+300",
        "n": "1.500",
        "da": "2024-02-29",
        "ti": "01:02:03.000004",
        "ts": "2024-02-29 01:02:03.5",
        "tz": "2024-02-28 23:02:03+00",
        "iv": "1 year 2 months 3 days 01:02:03",
        "u": "00000000-0000-0000-0000-0000000000aa",
        "v": "x,'é",
        "bl": b"\x00\xffa",
        "l": ["1", None],
        "s": {"x": "a, b", "y": None},
        "m": [("k", "0.5")],
    }
    assert {k: v for k, v in mostly_null.items() if v is not None} == {"b": "false", "d": "nan"}


def test_inlined_rows_keep_the_columns_they_were_written_with(told, lake_url):
    told(
        "CREATE TABLE t (a INTEGER, b INTEGER)",
        "INSERT INTO t VALUES (1, 10)",
        "COMMENT ON TABLE t IS 'moves the schema version'",
        "ALTER TABLE t RENAME b TO c",
        "ALTER TABLE t ADD COLUMN d VARCHAR DEFAULT 'x'",
        "INSERT INTO t VALUES (2, 20, 'y')",
        "ALTER TABLE t DROP COLUMN c",
        inline=10,
    )
    with reading(lake_url) as lake:
        assert lake.inlined("t") == [
            (0, {"a": "1", "b": "10"}),
            (1, {"a": "2", "c": "20", "d": "y"}),
        ]
        parts = read.inlined_rows(lake.connection, lake.table("t"))

    assert [[f.id for f in part.columns] for part in parts] == [[1, 2], [1, 2, 3]]
    assert [part.begin_snapshots for part in parts] == [(2,), (6,)]


def test_inlined_rows_are_those_of_the_snapshot(told, lake_url):
    told(
        "CREATE TABLE t (a INTEGER)",
        "INSERT INTO t VALUES (1), (2)",
        "DELETE FROM t WHERE a = 1",
        "UPDATE t SET a = 3",
        inline=10,
    )
    seen = []
    for version in (1, 2, 3, 4):
        with reading(lake_url, version) as lake:
            seen.append([(row_id, row["a"]) for row_id, row in lake.inlined("t")])

    assert seen == [[], [(0, "1"), (1, "2")], [(1, "2")], [(1, "3")]]


def test_a_registered_table_of_rows_that_is_missing_is_corruption(told, sqlite_url, data_path):
    with DuckDBOracle(sqlite_url, data_path) as oracle:
        oracle.execute("CREATE TABLE t (i INTEGER)")
    with open_store(sqlite_url).write() as connection:
        connection.exec_driver_sql("DROP TABLE ducklake_inlined_data_1_1")
    with (
        reading(sqlite_url) as lake,
        pytest.raises(CorruptLake, match=r"main.t has rows in ducklake_inlined_data_1_1"),
    ):
        lake.inlined("t")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("UPDATE ducklake_column SET column_type = 'wonder'", "column 'i' of main.t: .*wonder"),
        (
            "UPDATE ducklake_column SET column_type = 'list'",
            "'i' of main.t has type list, but 0 child columns",
        ),
        ("UPDATE ducklake_column SET parent_column = 9", "main.t has 'i' below column id 9"),
        (
            "INSERT INTO ducklake_column SELECT * FROM ducklake_column",
            "main.t has column id 1 twice",
        ),
    ],
)
def test_columns_that_contradict_themselves_are_corruption(sqlite_url, data_path, damage, message):
    with DuckDBOracle(sqlite_url, data_path) as oracle:
        oracle.execute("CREATE TABLE t (i INTEGER)")
    with open_store(sqlite_url).write() as connection:
        connection.exec_driver_sql(damage)
    with reading(sqlite_url) as lake, pytest.raises(CorruptLake, match=message):
        lake.table("t")
