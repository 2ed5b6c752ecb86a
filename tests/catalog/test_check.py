"""``check``: what is wrong in a lake, without reading its rows."""

from __future__ import annotations

import io
import json
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

import shelduck
from shelduck.cli.app import app
from shelduck.engine.files.footers import metadata_of
from shelduck.upkeep import check as lake_check
from shelduck.upkeep import check_files
from shelduck.write import progress
from tests.support.lake import Lake


@pytest.fixture
def lake(sqlite_url, data_path):
    made = Lake(sqlite_url, data_path)
    made.create("t", id="bigint")
    made.append("t", [{"id": 1}])
    made.append("t", [{"id": 2}, {"id": 3}])
    made.create("u", id="bigint")
    yield made
    made.store.close()


def change(lake, statement):
    lake.store.close()
    with closing(sqlite3.connect(lake.url.removeprefix("sqlite:///"))) as connection, connection:
        connection.execute(statement)


def check(lake, table=None):
    with shelduck.connect(lake.url) as opened:
        return opened.check(table)


def found(lake, table=None):
    """Table, kind, the last part of the object's path, and what is wrong."""
    return [
        (p.table, p.kind, p.object.rpartition("/")[2], p.wrong) for p in check(lake, table).problems
    ]


def test_a_sound_lake_has_no_problem(lake):
    assert str(check(lake)) == "2 table(s), 2 file(s): no problem(s)"
    assert check(lake).is_sound


@pytest.mark.parametrize("asked", ["dead", "older_files", "listed_files"])
def test_a_catalog_that_goes_away_is_no_problem_of_the_lake(lake, monkeypatch, asked):
    def gone(*_):
        raise shelduck.CatalogUnavailable("the server is gone")

    monkeypatch.setattr(lake_check, asked, gone)
    with (
        shelduck.connect(lake.url, progress=False) as connected,
        pytest.raises(shelduck.CatalogUnavailable, match="the server is gone"),
    ):
        connected.check()


def test_files_exist_with_their_size_their_rows_and_their_columns(lake):
    first, second = (Path(f.path) for f in lake.files("t"))
    first.unlink()
    change(lake, "UPDATE ducklake_data_file SET record_count = 5 WHERE data_file_id = 1")
    rows = [
        ("main.t", "file", first.name, "it is missing"),
        ("main.t", "footer", second.name, "it has 2 rows, and the catalog says 5"),
    ]

    assert found(lake, "t") == rows
    # The second file has no row ids left, either.
    number = "ducklake_table_stats (table_id 1)"
    wrong = "next_row_id is 3, and ids up to 5 are in use"
    assert found(lake) == [("", "number", number, wrong), *rows]


def test_a_file_of_another_size_and_another_layout(lake):
    first, second = (Path(f.path) for f in lake.files("t"))
    size = second.stat().st_size
    change(
        lake,
        "UPDATE shelduck_layout SET layout = '[]', digest = '4f53cda18c2baa0c0354bb5f9a3ecbe5'",
    )
    change(
        lake, f"UPDATE ducklake_data_file SET file_size_bytes = {size + 1} WHERE data_file_id = 1"
    )

    assert found(lake, "t") == [
        ("main.t", "file", second.name, f"it has {size} bytes instead of {size + 1}"),
        (
            "main.t",
            "footer",
            first.name,
            "its columns are not those of its layout in shelduck_layout",
        ),
    ]


@pytest.mark.parametrize(
    ("statement", "kind", "wrong"),
    [
        (
            "UPDATE ducklake_data_file SET table_id = 77 WHERE data_file_id = 0",
            "reference",
            "table_id 77 does not exist",
        ),
        (
            "UPDATE ducklake_data_file SET begin_snapshot = 99 WHERE data_file_id = 0",
            "interval",
            "it goes from snapshot 99 to None",
        ),
        (
            "UPDATE ducklake_snapshot SET next_file_id = 1",
            "number",
            "next_file_id is 1, and ids up to 1 are in use",
        ),
        (
            "DELETE FROM ducklake_snapshot_changes WHERE snapshot_id = 2",
            "log",
            "ducklake_snapshot_changes has no row of it",
        ),
        (
            "INSERT INTO ducklake_table_stats SELECT * FROM ducklake_table_stats LIMIT 1",
            "row",
            "there are 2 rows",
        ),
    ],
)
def test_rows_that_no_read_would_notice(lake, statement, kind, wrong):
    change(lake, statement)

    assert (kind, wrong) in [(k, w) for _, k, _, w in found(lake)]


INLINED = (
    "CREATE TABLE ducklake_inlined_delete_1 (file_id BIGINT, row_id BIGINT, begin_snapshot BIGINT)"
)


@pytest.mark.parametrize(
    ("statements", "problem"),
    [
        (
            ["INSERT INTO ducklake_metadata VALUES ('target_file_size', '1', 'planet', 1)"],
            (
                "ducklake_metadata.scope: ducklake_metadata.scope is 'planet' in the row with key"
                " 'target_file_size', scope_id 1, expected 'schema' or 'table' or NULL"
            ),
        ),
        (
            ["INSERT INTO ducklake_metadata VALUES ('target_file_size', 'much', 'table', 9)"],
            (
                "ducklake_metadata (key 'target_file_size', scope_id 9): option target_file_size"
                " has the invalid value 'much' in the catalog"
            ),
        ),
        (
            ["INSERT INTO ducklake_metadata VALUES ('target_file_size', '1', 'table', NULL)"],
            (
                "ducklake_metadata (key 'target_file_size'): ducklake_metadata has"
                " 'target_file_size' for scope 'table' with scope_id None"
            ),
        ),
        (
            [
                "INSERT INTO ducklake_sort_info VALUES (9, 1, 1, NULL)",
                (
                    "INSERT INTO ducklake_sort_expression"
                    " VALUES (9, 1, 0, 'id', 'duckdb', 'UPWARDS', 'NULLS_LAST')"
                ),
            ],
            (
                "ducklake_sort_expression (sort_id 9, table_id 1): sort key 'id UPWARDS NULLS LAST'"
                " in the catalog has no direction or no order of NULLs"
            ),
        ),
        (
            [
                "INSERT INTO ducklake_macro VALUES (0, 9, 'm', 1, NULL)",
                "INSERT INTO ducklake_macro_impl VALUES (9, 0, 'duckdb', '1', 'vector')",
            ],
            (
                "ducklake_macro_impl.type: ducklake_macro_impl.type is 'vector' in the row with"
                " macro_id 9, impl_id 0, expected 'scalar' or 'table'"
            ),
        ),
        (
            [
                (
                    "INSERT INTO ducklake_view VALUES (9, '01a2a4a4-0000-7000-8000-000000000000',"
                    " 1, NULL, 0, 'v', 'duckdb', 'SELECT 1', 'no quotes')"
                )
            ],
            (
                "ducklake_view (view_id 9, begin_snapshot 1, schema_id 0): cannot parse"
                " column_aliases of a view: 'no quotes'"
            ),
        ),
        (
            ["UPDATE ducklake_column SET column_type = 'int33' WHERE table_id = 1"],
            (
                "ducklake_column (column_id 1, begin_snapshot 1, table_id 1): column 'id' of table"
                " 1: unknown DuckLake column type 'int33'"
            ),
        ),
        (
            ["UPDATE ducklake_data_file SET partial_max = 99 WHERE data_file_id = 0"],
            (
                "ducklake_data_file (data_file_id 0, table_id 1, begin_snapshot 2): it goes from"
                " snapshot 2 to None, with rows up to snapshot 99"
            ),
        ),
        (
            [INLINED, "INSERT INTO ducklake_inlined_delete_1 VALUES (0, 0, 99)"],
            (
                "ducklake_inlined_delete_1 (file_id 0, row_id 0, begin_snapshot 99): it goes from"
                " snapshot 99"
            ),
        ),
        (
            [INLINED, "INSERT INTO ducklake_inlined_delete_1 VALUES (0, -1, 2)"],
            (
                "ducklake_inlined_delete_1.row_id: ducklake_inlined_delete_1.row_id is -1 in the"
                " row with file_id 0, begin_snapshot 2, expected an integer from 0 to"
                " 9007199254740992"
            ),
        ),
        (
            [
                (
                    "UPDATE ducklake_data_file SET end_snapshot = 4, path ="
                    " (SELECT path FROM ducklake_data_file WHERE data_file_id = 0)"
                )
            ],
            (
                "ducklake_data_file (data_file_id 0, table_id 1, begin_snapshot 2): another row has"
                " the same table_id, path in the same snapshots"
            ),
        ),
        (
            [
                (
                    "INSERT INTO ducklake_column SELECT 2, 1, 3, 1, 2, 'ID', 'int32', NULL, NULL,"
                    " 1, NULL, NULL, NULL"
                )
            ],
            (
                "ducklake_column (column_id 1, begin_snapshot 1, table_id 1): another row has the"
                " same table_id, parent_column, column_name in the same snapshots"
            ),
        ),
        (
            [
                (
                    "INSERT INTO ducklake_column SELECT 2, 1, 3, 1, 2, 'x', 'int32', NULL, NULL, 1,"
                    " 77, NULL, NULL"
                )
            ],
            (
                "ducklake_column (column_id 2, begin_snapshot 1, table_id 1): parent_column 77 of"
                " table_id 1 does not exist"
            ),
        ),
    ],
)
def test_what_a_read_refuses_is_found_in_every_snapshot(lake, statements, problem):
    for statement in statements:
        change(lake, statement)

    assert problem in [str(p).rpartition("; ")[0] for p in check(lake).problems]


def test_a_wrong_value_is_told_once_for_each_column(lake):
    change(lake, "UPDATE ducklake_table_stats SET next_row_id = 'x', record_count = -1")

    assert [(p.kind, p.object) for p in check(lake).problems][:2] == [
        ("value", "ducklake_table_stats.record_count"),
        ("value", "ducklake_table_stats.next_row_id"),
    ]


@pytest.mark.parametrize(
    ("statement", "wrong"),
    [
        (
            "UPDATE ducklake_file_column_stats SET min_value = '3' WHERE data_file_id = 1",
            "its footer has 2 as the least id, and the catalog 3",
        ),
        (
            "UPDATE ducklake_file_column_stats SET max_value = '2' WHERE data_file_id = 1",
            "its footer has 3 as the greatest id, and the catalog 2",
        ),
        (
            "UPDATE ducklake_file_column_stats SET null_count = 1 WHERE data_file_id = 1",
            "the catalog says that id is NULL in 1 rows, and its footer 0",
        ),
    ],
)
def test_statistics_that_a_footer_contradicts(lake, statement, wrong):
    lake.append("t", [{"id": 4}])
    change(
        lake,
        "INSERT OR REPLACE INTO ducklake_file_column_stats"
        " (data_file_id, table_id, column_id, value_count, null_count, min_value, max_value)"
        " SELECT 1, table_id, 1, 2, 0, '2', '3' FROM ducklake_table WHERE table_name = 't'",
    )
    assert found(lake, "t") == []
    change(lake, statement)

    assert [(k, w) for _, k, _, w in found(lake, "t")] == [("statistics", wrong)]


def test_files_of_older_snapshots_exist(lake):
    first = Path(lake.files("t")[0].path)
    change(lake, "UPDATE ducklake_data_file SET end_snapshot = 3 WHERE data_file_id = 0")
    assert found(lake, "t") == []
    first.unlink()

    assert found(lake, "t") == [("main.t", "file", first.name, "it is missing")]


def test_files_of_dropped_tables_exist(lake):
    [first, *_] = [Path(f.path) for f in lake.files("t")]
    lake.store.close()
    with shelduck.connect(lake.url) as opened:
        opened.execute("DROP TABLE t")
    assert found(lake) == []
    first.unlink()

    assert found(lake) == [("", "file", first.name, "it is missing")]


def test_a_job_whose_worker_died_is_a_problem(lake, spark):
    lake.store.close()
    with shelduck.connect(lake.url, spark=spark) as opened:
        opened.execute("ALTER TABLE t ALTER COLUMN id TYPE STRING PROPERTIES ('wait' = 'false')")
    assert found(lake) == []
    change(lake, "UPDATE shelduck_job SET worker = 'w', heartbeat = '2024-01-01 00:00:00+00'")

    wrong = "its worker w has given no sign of life since 2024-01-01 00:00:00+00:00"
    assert found(lake) == [("main.t", "job", "job 1", wrong)]

    change(lake, "UPDATE shelduck_job SET worker = NULL, state = 'RUNNING'")
    left = check(lake)
    assert left.is_sound
    assert [p.wrong for p in left.notes] == ["it began, and nobody runs it"]


def test_check_is_a_statement_and_a_command_with_exit_codes(lake):
    lake.store.close()
    run = CliRunner()
    sound = run.invoke(app, ["check", "-c", lake.url])
    Path(lake.files("t")[0].path).unlink()
    lake.store.close()
    broken = run.invoke(app, ["check", "t", "-c", lake.url, "--json"])
    with shelduck.connect(lake.url) as opened:
        [row] = opened.execute("CALL check('t')").rows
        assert opened.execute("CALL check('u')").rows == []

    assert (sound.exit_code, sound.output) == (0, "2 table(s), 2 file(s): no problem(s)\n")
    assert broken.exit_code == 2
    assert json.loads(broken.output) == {
        "table": "main.t",
        "kind": "file",
        "object": row[2],
        "wrong": "it is missing",
        "remedy": "restore the file, or correct its row in the catalog",
        "repair": "",
        "level": "problem",
    }
    assert row[:2] == ("main.t", "file")


def test_a_check_shows_how_many_files_it_has_looked_at(lake, monkeypatch):
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=200)
    monkeypatch.setattr(progress, "Console", lambda **_: console)
    monkeypatch.setattr(progress, "_BEGIN", 0.0)
    monkeypatch.setattr(check_files, "_THREADS", 1)

    def slow(*given):
        time.sleep(0.2)
        return metadata_of(*given)

    monkeypatch.setattr(check_files, "metadata_of", slow)
    lake.store.close()
    with shelduck.connect(lake.url, progress=True) as opened:
        opened.check("t")

    assert "checking main.t: 2 of 2 file(s) in" in shown.getvalue()


def test_ctrl_c_ends_a_check_of_many_files(lake, monkeypatch):
    for number in range(8):
        lake.append("t", [{"id": number}])
    looked = []

    def interrupted(path, what):
        looked.append(path)
        time.sleep(0.1)
        if len(looked) == 2:
            raise KeyboardInterrupt
        return metadata_of(path, what)

    monkeypatch.setattr(check_files, "_THREADS", 1)
    monkeypatch.setattr(check_files, "metadata_of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        check(lake, "t")

    assert len(looked) < 5


def test_a_check_changes_nothing(lake, data_path):
    lake.store.close()
    path = Path(lake.url.removeprefix("sqlite:///"))
    before = path.read_bytes()
    shutil.rmtree(data_path)
    assert len(check(lake).problems) == 2

    assert path.read_bytes() == before
    assert not Path(data_path).exists()
