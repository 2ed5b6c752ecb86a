"""Schemas inside schemas: what DuckLake 1.1 stores of them, and how other clients see them."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

import pyarrow as pa
import pytest
from ducklakepy import load_catalog
from ducklakepy.schema import Column, Schema
from ducklakepy.types import Int32Type

import shelduck
from shelduck.catalog.databases.store import open_store
from shelduck.catalog.read import read
from shelduck.catalog.read.inlined_rows import inlined_rows
from shelduck.catalog.schema.lake_schema import open_or_create_lake
from shelduck.errors import AlreadyExists, Conflict, InvalidRequest, NotFound, Unsupported
from shelduck.lake.results import TableName
from tests.support.lake import Lake

NUMBERS = Schema(Column("i", Int32Type()))
NEED = "schemas inside schemas need DuckLake 1.1; migrate the lake, or use one name, in backticks"


@pytest.fixture
def lake(lake_url, data_path):
    made = shelduck.connect(lake_url, data_path, ducklake_version="1.1")
    yield made
    made.close()


@pytest.fixture
def theirs(tmp_path):
    """Return a lake of ducklakepy, and its path."""
    path = tmp_path / "theirs.db"
    made = load_catalog(url=f"sqlite:///{path}", data_path=f"{tmp_path}/theirs/")
    made.initialize()
    yield made, path
    made.close()


def rows(path, query):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def change(path, statement):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()


def schemas_in(path):
    """Return the rows of schemas, with 'uuid/' for a path that is a UUID."""
    found = rows(
        path,
        "SELECT schema_id, begin_snapshot, end_snapshot, schema_name, path, path_is_relative,"
        " parent_schema_id FROM ducklake_schema ORDER BY schema_id",
    )
    return [(*row[:4], re.sub("[0-9a-f-]{36}/", "uuid/", row[4]), *row[5:]) for row in found]


def log_of(path):
    """Return what each snapshot did; the order of one snapshot's entries says nothing."""
    found = rows(path, "SELECT changes_made FROM ducklake_snapshot_changes ORDER BY snapshot_id")
    return [sorted(re.split(r",(?=\w+:)", text)) for (text,) in found]


def test_the_catalog_is_the_one_that_ducklakepy_makes(tmp_path, data_path, theirs):
    catalog, path = theirs
    catalog.create_namespace("a")
    catalog.create_namespace("A.b")
    catalog.create_namespace(("a.b",))
    catalog.create_namespace("a.b.C d")
    catalog.create_table("a.b.t", schema=NUMBERS)
    catalog.rename_table("a.b.t", "u")
    catalog.drop_namespace("a", cascade=True)
    ours = shelduck.connect(f"sqlite:///{tmp_path}/ours.db", data_path, ducklake_version="1.1")

    for text in (
        "CREATE SCHEMA a",
        "CREATE SCHEMA A.b",
        "CREATE SCHEMA `a.b`",
        "CREATE SCHEMA a.b.`C d`",
        "CREATE TABLE a.b.t (i INT)",
        "ALTER TABLE a.b.t RENAME TO u",
        "DROP SCHEMA a CASCADE",
    ):
        ours.execute(text)

    assert schemas_in(tmp_path / "ours.db") == schemas_in(path)
    assert log_of(tmp_path / "ours.db") == log_of(path)


def test_ducklakepy_reads_ours_at_each_snapshot(tmp_path, data_path):
    ours = shelduck.connect(f"sqlite:///{tmp_path}/c.db", data_path, ducklake_version="1.1")
    for text in (
        "CREATE SCHEMA a",
        "CREATE SCHEMA a.b",
        "CREATE SCHEMA `a.b`",
        "CREATE TABLE a.b.t (i INT)",
        "INSERT INTO a.b.t VALUES (1), (2)",
        "CREATE TABLE `a.b`.t (s STRING)",
        "INSERT INTO a.b.t VALUES (3)",
        "DROP SCHEMA a.b CASCADE",
    ):
        ours.execute(text)

    catalog = load_catalog(url=f"sqlite:///{tmp_path}/c.db", data_path=data_path)
    found = {
        number: sorted(
            row["i"]
            for row in catalog.load_table("a.b.t", snapshot=catalog.snapshot_by_id(number))
            .scan()
            .to_arrow()
            .to_pylist()
        )
        for number in (4, 5, 7)
    }
    assert found == {4: [], 5: [1, 2], 7: [1, 2, 3]}
    assert sorted(catalog.list_namespaces()) == ['"a.b"', "a", "main"]
    catalog.close()
    assert [str(t.name) for t in catalog.list_tables(("a.b",))] == ["t"]


@pytest.mark.parametrize("url", ["sqlite_url", "postgres_url"])
def test_ours_reads_what_ducklakepy_made(request, url, data_path):
    where = request.getfixturevalue(url)
    address = where.replace("postgresql://", "postgresql+psycopg://")
    catalog = load_catalog(url=address, data_path=data_path)
    catalog.initialize()
    catalog.create_namespace("a")
    catalog.create_namespace("a.b")
    table = catalog.create_table("a.b.t", schema=NUMBERS)
    catalog.append_to_table(table, pa.table({"i": pa.array([1, 2], pa.int32())}))
    catalog.close()

    lake = Lake(where, None)
    found = lake.table("t", "a\x01b")
    with lake.store.read() as connection:
        parts = inlined_rows(connection, found)
    assert [row for part in parts for row in part.rows] == [("1",), ("2",)]
    assert [s.text for s in schemas_of(lake)] == ["main", "a", "a.b"]
    lake.store.close()


def schemas_of(lake):
    with lake.store.read() as connection:
        return read.schemas(connection, read.snapshot(connection), lake.info)


def test_names_of_several_parts_find_what_is_in_a_schema(lake):
    for text in (
        "CREATE SCHEMA a",
        "CREATE SCHEMA a.b",
        "CREATE SCHEMA `a.b`",
        "CREATE TABLE a.b.t (i INT)",
        "CREATE TABLE `a.b`.t (s STRING)",
        "INSERT INTO A.B.T VALUES (1)",
        "COMMENT ON COLUMN a.b.t.i IS 'of a number'",
        "ALTER TABLE a.b.t ADD COLUMN more INT",
        "ALTER TABLE a.b.t RENAME TO a.b.u",
        "CALL set_option('data_inlining_row_limit', 3, schema => 'a.b')",
    ):
        lake.execute(text)

    assert lake.execute("SHOW SCHEMAS").rows == [("`a.b`",), ("a",), ("main",)]
    assert lake.execute("SHOW SCHEMAS IN a").rows == [("a.b",)]
    assert lake.execute("SHOW TABLES IN a.b").rows == [("a.b", "u", False)]
    assert lake.execute("SHOW TABLES IN `a.b`").rows == [("`a.b`", "t", False)]
    assert lake.execute("DESCRIBE a.b.u").rows == [
        ("i", "int", "of a number"),
        ("more", "int", None),
    ]
    assert lake.schemas() == ["main", "a", "a.b", "`a.b`"]
    assert [str(t) for t in lake.tables()] == ["a.b.u", "`a.b`.t"]
    assert (lake.tables("a.b")[0].schema, lake.tables("`a.b`")[0].schema) == ("a.b", "`a.b`")
    assert [(row[0], row[3]) for row in lake.execute("CALL options()").rows] == [
        ("data_inlining_row_limit", "a.b")
    ]
    assert [s.id for s in lake.table("a.b.u").history()] == [9, 8, 7, 6, 4]
    assert not lake.check().problems


def test_use_takes_a_path(lake):
    lake.execute("CREATE SCHEMA a")
    lake.execute("CREATE SCHEMA a.b")
    lake.execute("USE A.B")
    lake.execute("CREATE TABLE t (i INT)")

    assert [str(t) for t in lake.tables()] == ["a.b.t"]
    assert lake.execute("SHOW TABLES").rows == [("a.b", "t", False)]


def test_python_takes_a_path_and_makes_one_name_of_a_quoted_one(lake):
    lake.create_schema("a")
    lake.create_schema("a.b")
    lake.create_schema('"a.b"')
    lake.create_schema("A.B", if_not_exists=True)
    lake.create_table("a.b.t", {"i": "int"})

    assert lake.schemas() == ["main", "a", "a.b", "`a.b`"]
    assert lake.tables("a.b") == [TableName("a\x01b", "t")]
    assert repr(lake.tables("a.b")[0]) == "TableName(schema='a.b', name='t')"
    with pytest.raises(AlreadyExists, match=r"^schema 'a\.b' already exists$"):
        lake.create_schema("a.b")
    with pytest.raises(NotFound, match=r"^schema 'z' does not exist; existing schemas: 'main'"):
        lake.create_schema("z.b")
    lake.drop_schema("a.b", cascade=True)
    assert lake.schemas() == ["main", "a", "`a.b`"]
    # Now it names no schema inside another one.
    lake.drop_schema("a.b")
    assert lake.schemas() == ["main", "a"]


def test_a_schema_that_holds_schemas_is_dropped_only_with_all_of_them(lake):
    for text in ("CREATE SCHEMA a", "CREATE SCHEMA a.b", "CREATE TABLE a.b.t (i INT)"):
        lake.execute(text)

    for text in ("DROP SCHEMA a", "DROP SCHEMA a RESTRICT"):
        with pytest.raises(InvalidRequest, match=r"it contains 1 schema\(s\), such as 'b'; drop"):
            lake.execute(text)
    lake.execute("DROP SCHEMA a CASCADE")

    assert (lake.schemas(), lake.tables()) == (["main"], [])
    assert lake.execute("CALL list_files('a.b.t', snapshot_version => 3)").rows == []
    lake.execute("CREATE SCHEMA a")
    assert lake.execute("SHOW SCHEMAS IN a").rows == []


def test_one_transaction_makes_and_fills_schemas(lake):
    with lake.transaction() as tx:
        tx.create_schema("a")
        tx.create_schema("a.b")
        tx.create_table("a.b.t", {"i": "int"})
        tx.create_schema("gone")
        tx.create_schema("gone.too")
        tx.drop_schema("gone", cascade=True)

    assert lake.schemas() == ["main", "a", "a.b"]
    assert [str(t) for t in lake.tables()] == ["a.b.t"]


def create(name):
    return lambda tx: tx.create_schema(name)


def drop(name):
    return lambda tx: tx.drop_schema(name, cascade=True)


def fill(name):
    return lambda tx: tx.create_table(name, {"i": "int"})


@pytest.mark.parametrize(
    ("mine", "other", "error"),
    [
        (create("a.b.c"), "DROP SCHEMA a CASCADE", Conflict),
        (create("a.b.c"), "DROP SCHEMA a.b", Conflict),
        (create("a.b.c"), "CREATE SCHEMA A.B.C", Conflict),
        (fill("a.b.t"), "DROP SCHEMA a CASCADE", Conflict),
        (drop("a.b"), "CREATE SCHEMA a.b.c", Conflict),
        (drop("a"), "CREATE TABLE a.b.t (i INT)", Conflict),
        (drop("a"), "CREATE SCHEMA a.b.c", Conflict),
        (create("a.b.c"), "CREATE SCHEMA a.c", None),
        (create("a.c"), "CREATE SCHEMA a.b.c", None),
        (fill("a.t"), "CREATE TABLE a.b.t (i INT)", None),
        (drop("a.b"), "CREATE SCHEMA `a.b`", None),
    ],
)
def test_what_others_did_to_the_schemas_around(sqlite_url, data_path, mine, other, error):
    lake = shelduck.connect(sqlite_url, data_path, ducklake_version="1.1")
    lake.execute("CREATE SCHEMA a")
    lake.execute("CREATE SCHEMA a.b")
    second = shelduck.connect(sqlite_url)
    tx = lake.transaction()
    mine(tx)
    second.execute(other)
    second.close()

    if error is None:
        tx.commit()
    else:
        with pytest.raises(error):
            tx.commit()
    assert not lake.check().problems


def test_a_schema_in_one_that_is_gone_is_not_there(tmp_path, data_path):
    lake = shelduck.connect(f"sqlite:///{tmp_path}/c.db", data_path, ducklake_version="1.1")
    for text in ("CREATE SCHEMA a", "CREATE SCHEMA a.b", "CREATE TABLE a.b.t (i INT)"):
        lake.execute(text)
    change(tmp_path / "c.db", "UPDATE ducklake_schema SET end_snapshot = 3 WHERE schema_id = 1")
    other = Lake(f"sqlite:///{tmp_path}/c.db", None)

    assert [s.text for s in schemas_of(other)] == ["main"]
    with pytest.raises(NotFound, match=r"^schema 'a\.b' does not exist"):
        other.table("t", "a\x01b")
    other.store.close()


@pytest.mark.parametrize("parent", [77, 2])
def test_check_finds_a_schema_that_is_in_no_schema(tmp_path, data_path, parent):
    lake = shelduck.connect(f"sqlite:///{tmp_path}/c.db", data_path, ducklake_version="1.1")
    lake.execute("CREATE SCHEMA a")
    lake.execute("CREATE SCHEMA a.b")
    change(
        tmp_path / "c.db",
        f"UPDATE ducklake_schema SET parent_schema_id = {parent} WHERE schema_id = 2",
    )

    assert [p.wrong for p in lake.check().problems] == [
        f"parent_schema_id {parent} leads to no schema of the lake"
    ]
    assert lake.schemas() == ["main", "a"]


def test_expiry_forgets_dropped_schemas(lake):
    for text in ("CREATE SCHEMA a", "CREATE SCHEMA a.b", "CREATE TABLE a.b.t (i INT)"):
        lake.execute(text)
    lake.execute("DROP SCHEMA a CASCADE")
    lake.execute("CALL expire_snapshots(versions => ARRAY(0, 1, 2, 3))")

    assert not lake.check().problems
    assert lake.schemas() == ["main"]


@pytest.mark.parametrize(
    "text",
    [
        "CREATE SCHEMA a.b",
        "CREATE TABLE a.b.t (i INT)",
        "SHOW TABLES IN a.b",
        "DROP SCHEMA a.b",
        "USE a.b",
        "ALTER TABLE a.b.t ADD COLUMN i INT",
    ],
)
def test_a_lake_of_1_0_has_no_schemas_in_schemas(sqlite_url, data_path, text):
    lake = shelduck.connect(sqlite_url, data_path)
    lake.execute("CREATE SCHEMA a")

    with pytest.raises((NotFound, Unsupported), match=re.escape(NEED)):
        lake.execute(text)
    assert lake.schemas() == ["main", "a"]


def test_dots_are_part_of_names_in_a_lake_of_1_0(sqlite_url, data_path):
    lake = shelduck.connect(sqlite_url, data_path)
    lake.create_schema("a.b")
    lake.execute("CREATE TABLE `a.b`.t (i INT)")

    assert [str(t) for t in lake.tables("a.b")] == ["`a.b`.t"]
    lake.drop_schema("a.b", cascade=True)
    assert lake.schemas() == ["main"]


def test_a_name_cannot_have_the_sign_that_stands_between_names(lake):
    with pytest.raises(InvalidRequest, match=r"has the character U\+0001, which no name of a"):
        lake.execute("CREATE SCHEMA `a\x01b`")


def test_tables_of_one_name_in_nested_and_other_schemas_are_not_mixed_up(sqlite_url, data_path):
    store = open_store(sqlite_url)
    shelduck.connect(sqlite_url, data_path, ducklake_version="1.1").close()
    info = open_or_create_lake(store, None)
    lake = shelduck.connect(sqlite_url)
    for text in ("CREATE SCHEMA b", "CREATE SCHEMA a", "CREATE SCHEMA a.b"):
        lake.execute(text)
    for home in ("b", "a", "a.b", "main"):
        lake.execute(f"CREATE TABLE {home}.t (`{home}` INT)")
    with store.read() as connection:
        at = read.snapshot(connection)
        found = {
            home: read.table(connection, at, home, "t", info).columns.names
            for home in ("b", "a", "a\x01b", "main")
        }
    assert {word: [*names] for word, names in found.items()} == {
        "b": ["b"],
        "a": ["a"],
        "a\x01b": ["a.b"],
        "main": ["main"],
    }
    store.close()
