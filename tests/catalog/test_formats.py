"""Lakes of each DuckLake version: their tables are those that other implementations make."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from ducklakepy import load_catalog
from typer.testing import CliRunner

import shelduck
from shelduck.catalog.read.inlined_rows import inlined_rows
from shelduck.cli.app import app
from shelduck.ducklake.format import FORMATS, V1_1
from shelduck.errors import InvalidRequest, LakeChanged
from tests.support.lake import Lake


def columns(path) -> dict[str, list[str]]:
    """Return the columns of each of DuckLake's tables in a SQLite file, in their order."""
    with closing(sqlite3.connect(path)) as connection:
        names = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'ducklake_%'"
        ).fetchall()
        return {
            name: [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
            for (name,) in names
        }


def opened(path, **options):
    """Return the lake of a SQLite file as ducklakepy opens it."""
    return load_catalog(url=f"sqlite:///{path}", data_path=f"{path.parent}/data/", **options)


def migrated(path) -> None:
    """Let ducklakepy migrate the lake of a SQLite file to DuckLake 1.1."""
    found = opened(path, automatic_migration=True)
    assert found.spec_version() == "1.1"
    found.close()


def test_a_lake_of_1_1_has_the_tables_that_ducklakepy_makes(tmp_path, data_path):
    theirs = load_catalog(url=f"sqlite:///{tmp_path}/theirs.db", data_path=f"{tmp_path}/theirs/")
    theirs.initialize()
    theirs.close()
    shelduck.connect(f"sqlite:///{tmp_path}/ours.db", data_path, ducklake_version="1.1").close()

    assert columns(tmp_path / "ours.db") == columns(tmp_path / "theirs.db")


def test_a_table_of_inlined_rows_in_1_1_has_the_columns_that_ducklakepy_makes(tmp_path, data_path):
    lake = shelduck.connect(f"sqlite:///{tmp_path}/c.db", data_path, ducklake_version="1.1")
    lake.execute("CREATE TABLE t (row_id INT, s STRING)")
    lake.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    lake.close()

    catalog = opened(tmp_path / "c.db")
    found = catalog.load_table("main.t").scan().to_arrow().to_pylist()
    assert sorted(found, key=str) == [{"row_id": 1, "s": "a"}, {"row_id": 2, "s": "b"}]
    assert columns(tmp_path / "c.db")["ducklake_inlined_data_1_1"] == [
        "_ducklake_row_id",
        "_ducklake_begin_snapshot",
        "_ducklake_end_snapshot",
        "row_id",
        "s",
    ]


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE n (a INT, _ducklake_x INT)",
        "CREATE TABLE n (_DuckLake_row_id INT)",
        "ALTER TABLE t ADD COLUMN _ducklake_x INT",
        "ALTER TABLE t ADD COLUMNS (c INT, _DUCKLAKE_X STRING)",
        "ALTER TABLE t RENAME COLUMN a TO _ducklake_x",
        "ALTER TABLE t RENAME COLUMN a TO b, ADD COLUMN _ducklake_ INT",
        "REPLACE TABLE t (_ducklake_x INT)",
    ],
)
def test_1_1_keeps_names_of_columns_for_itself_and_says_so(tmp_path, data_path, statement):
    lake = shelduck.connect(f"sqlite:///{tmp_path}/c.db", data_path, ducklake_version="1.1")
    lake.execute("CREATE TABLE t (a INT)")

    with pytest.raises(
        InvalidRequest,
        match=r"(?i)column name '_ducklake_\w*' of main\.[tn] is reserved, like all names that"
        r" begin with _ducklake_ in a lake of DuckLake 1\.1; choose another name",
    ):
        lake.execute(statement)

    assert [table.name for table in lake.tables()] == ["t"]
    assert lake.table("t").schema.names == ["a"]


def test_names_of_fields_and_those_that_1_0_kept_for_itself_are_free_in_1_1(tmp_path, data_path):
    lake = shelduck.connect(f"sqlite:///{tmp_path}/c.db", data_path, ducklake_version="1.1")
    lake.execute("CREATE TABLE t (s STRUCT<_ducklake_x: INT>, begin_snapshot INT)")
    lake.execute("ALTER TABLE t ADD COLUMNS (end_snapshot INT, row_id STRING)")
    lake.execute("INSERT INTO t VALUES (NULL, 1, 2, 'a')")
    lake.close()

    found = opened(tmp_path / "c.db").load_table("main.t").scan().to_arrow().to_pylist()
    assert found == [{"s": None, "begin_snapshot": 1, "end_snapshot": 2, "row_id": "a"}]


def test_1_0_refuses_only_what_it_always_refused(sqlite_url, data_path):
    lake = shelduck.connect(sqlite_url, data_path)
    lake.execute("CREATE TABLE t (_ducklake_x INT)")
    lake.execute("ALTER TABLE t ADD COLUMN _ducklake_y INT")

    assert lake.table("t").schema.names == ["_ducklake_x", "_ducklake_y"]


def test_a_lake_of_another_version_than_asked_for_is_refused(sqlite_url, data_path):
    shelduck.connect(sqlite_url, data_path).close()

    told = r"has DuckLake version '1\.0', not '1\.1'; leave out .*, or migrate the lake \("
    with pytest.raises(InvalidRequest, match=told):
        shelduck.connect(sqlite_url, ducklake_version="1.1")
    with shelduck.connect(sqlite_url) as lake:
        lake.migrate("1.1")
    # There is no way back.
    with pytest.raises(InvalidRequest, match=r"'1\.1', not '1\.0'; leave out ducklake_version$"):
        shelduck.connect(sqlite_url, ducklake_version="1.0")


@pytest.mark.parametrize("version", ["1.7", "", "v1.1", 1.1])
def test_a_version_that_does_not_exist_is_refused_before_anything_is_made(
    tmp_path, data_path, version
):
    url = f"sqlite:///{tmp_path}/c.db"
    with pytest.raises(InvalidRequest, match=r"is not one of '1\.0' and '1\.1'"):
        shelduck.connect(url, data_path, ducklake_version=version)

    assert not (tmp_path / "c.db").exists()


def run(*arguments):
    """What the command prints, or the error that it ends with."""
    done = CliRunner().invoke(app, arguments)
    return done.stdout if done.exception is None else done.exception


def test_the_shell_makes_lakes_of_a_version_and_refuses_another_one(sqlite_url, data_path):
    make = ("sql", "CREATE TABLE t (a INT)", "-c", sqlite_url, "-d", data_path)
    assert "'9' is not one of '1.0' and '1.1'" in str(run(*make, "--ducklake-version", "9"))
    assert "there is no lake" in str(run("migrate", "-c", sqlite_url, "--to", "1.1"))

    assert "CREATE TABLE" in run(*make, "--ducklake-version", "1.1")
    with shelduck.connect(sqlite_url) as lake:
        assert lake._state.store.format.version == "1.1"
    show = ("sql", "SHOW TABLES", "-c", sqlite_url, "--ducklake-version")
    assert "'1.1', not '1.0'" in str(run(*show, "1.0"))
    assert "|t" in run(*show, "1.1").replace(" ", "")


def test_the_shell_refuses_versions_to_which_a_lake_cannot_migrate(sqlite_url, data_path):
    shelduck.connect(sqlite_url, data_path, ducklake_version="1.1").close()
    migrate = ("migrate", "-c", sqlite_url)

    assert run(*migrate).code == 2
    assert "'9' is not one of '1.0' and '1.1'" in str(run(*migrate, "--to", "9", "--plan"))
    assert "there is no way back to '1.0'" in str(run(*migrate, "--to", "1.0", "--plan"))
    assert run(*migrate, "--to", "1.1") == "the lake already has DuckLake 1.1\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("", "missing a required argument: 'version'; it takes version, [plan => …]"),
        ("'9'", "'9' is not one of '1.0' and '1.1'"),
        ("1.1", "argument version must be text"),
        ("'1.1', plan => 'maybe'", "argument plan must be true or false, not 'maybe'"),
        ("'1.1', to => '1.0'", "unexpected keyword argument 'to'; it takes version, [plan => …]"),
    ],
)
def test_a_call_of_migrate_says_what_it_takes(sqlite_url, data_path, arguments, told):
    with shelduck.connect(sqlite_url, data_path) as lake:
        with pytest.raises(InvalidRequest, match=re.escape(told)):
            lake.execute(f"CALL migrate({arguments})")
        assert lake._state.store.format.version == "1.0"


def test_a_commit_goes_on_in_the_version_that_somebody_migrated_to(tmp_path, data_path):
    lake = shelduck.connect(f"sqlite:///{tmp_path}/c.db", data_path)
    lake.execute("CREATE TABLE t (a INT)")
    lake.execute("INSERT INTO t VALUES (1)")
    migrated(tmp_path / "c.db")

    lake.execute("INSERT INTO t VALUES (2)")

    catalog = opened(tmp_path / "c.db")
    rows = catalog.load_table("main.t").scan().to_arrow().to_pylist()
    assert sorted(row["a"] for row in rows) == [1, 2]


def test_a_reader_is_told_that_somebody_migrated_and_then_reads(tmp_path, data_path):
    made = shelduck.connect(f"sqlite:///{tmp_path}/c.db", data_path)
    made.execute("CREATE TABLE t (a INT)")
    made.execute("INSERT INTO t VALUES (1)")
    lake = Lake(f"sqlite:///{tmp_path}/c.db", data_path)
    table = lake.table("t")
    migrated(tmp_path / "c.db")

    with pytest.raises(LakeChanged, match=r"from DuckLake 1\.0 to 1\.1"), lake.store.read() as c:
        inlined_rows(c, table)
    with lake.store.read() as connection:
        assert [part.rows for part in inlined_rows(connection, table)] == [(("1",),)]


def test_a_row_that_is_written_again_keeps_the_columns_of_a_later_version(
    tmp_path, data_path, monkeypatch
):
    more = {"ducklake_table": "message text", "ducklake_view": "message text"}
    monkeypatch.setitem(FORMATS, "1.2", replace(V1_1, version="1.2", added={**V1_1.added, **more}))
    lake = shelduck.connect(f"sqlite:///{tmp_path}/c.db", data_path, ducklake_version="1.2")
    lake.execute("CREATE TABLE t (a INT)")
    lake.pin("t", 1, "v")
    with closing(sqlite3.connect(tmp_path / "c.db")) as connection:
        connection.execute("UPDATE ducklake_table SET message = 'x'")
        connection.execute("UPDATE ducklake_view SET message = view_id")
        connection.commit()

    lake.execute("ALTER TABLE t RENAME TO u")
    lake.execute("ALTER VIEW v RENAME TO w")
    lake.execute("ALTER TABLE u RENAME COLUMN a TO b")
    lake.close()

    with closing(sqlite3.connect(tmp_path / "c.db")) as connection:
        tables = "SELECT table_name, message FROM ducklake_table"
        assert connection.execute(tables).fetchall() == [("t", "x"), ("u", "x")]
        views = "SELECT DISTINCT view_name, message = view_id FROM ducklake_view ORDER BY 1"
        assert connection.execute(views).fetchall() == [("v", 1), ("w", 1)]
