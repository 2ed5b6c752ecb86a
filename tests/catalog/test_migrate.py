"""A migration to a newer DuckLake: all of it or nothing, and whoever is connected goes on."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import event, text
from typer.testing import CliRunner

import shelduck
from shelduck.catalog.databases.store import Store
from shelduck.catalog.read import read
from shelduck.catalog.running.writers import register_writer
from shelduck.cli.app import app
from shelduck.errors import Conflict, CorruptLake, InvalidRequest

OURS = ["row_id", "begin_snapshot", "end_snapshot"]
ADDED = [
    "ducklake_data_file.row_group_count",
    "ducklake_delete_file.row_group_count",
    "ducklake_file_column_stats.max_is_exact",
    "ducklake_file_column_stats.min_is_exact",
    "ducklake_schema.parent_schema_id",
    "ducklake_table_column_stats.max_is_exact",
    "ducklake_table_column_stats.min_is_exact",
    "ducklake_view_column_tag",
]
RENAMED = (
    "row_id becomes _ducklake_row_id, begin_snapshot becomes _ducklake_begin_snapshot,"
    " end_snapshot becomes _ducklake_end_snapshot"
)


@pytest.fixture
def lake(lake_url, data_path):
    """A lake of 1.0 with rows in the catalog, some of them deleted."""
    with shelduck.connect(lake_url, data_path) as made:
        made.execute("CREATE TABLE t (a INT, s STRING)")
        made.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
        made.execute("ALTER TABLE t ADD COLUMN b INT DEFAULT 7")
        yield made


def run(lake, *statements):
    """Send statements to the catalog's database."""
    with lake._state.store.write() as connection:
        return [connection.execute(text(statement)) for statement in statements]


def version_of(lake):
    query = "SELECT value FROM ducklake_metadata WHERE key = 'version'"
    with lake._state.store.read() as connection:
        return connection.execute(text(query)).scalar_one()


def rows(lake, table="t"):
    """The rows of a table that are in the catalog."""
    with lake._state.store.read() as connection:
        at = read.snapshot(connection)
        found = read.table(connection, at, "main", table, lake._state.info)
        return sorted(
            (row for part in read.inlined_rows(connection, found) for row in part.rows), key=str
        )


def told(done):
    return [(step.action, step.object) for step in done.steps]


EXPECTED = [
    ("rename", "ducklake_inlined_data_1_1"),
    ("rename", "ducklake_inlined_data_1_2"),
    *(("add", name) for name in ADDED),
    ("version", "ducklake_metadata"),
]


@pytest.mark.every_database
def test_a_plan_tells_what_the_migration_then_does(lake):
    before = rows(lake)
    plan = lake.migrate("1.1", plan=True)
    assert sorted(told(plan)) == sorted(EXPECTED)
    assert version_of(lake) == "1.0"

    done = lake.migrate("1.1")

    assert told(done) == told(plan)
    assert (done.was, done.version, version_of(lake)) == ("1.0", "1.1", "1.1")
    assert rows(lake) == before == [("1", "a"), ("2", "b"), ("3", "c")]
    lake.execute("INSERT INTO t VALUES (4, 'd', 8)")
    assert rows(lake)[-1] == ("4", "d", "8")
    assert lake.check().is_sound
    assert str(lake.migrate("1.1")) == "the lake already has DuckLake 1.1"


def test_a_call_and_a_command_migrate_as_well(lake, lake_url):
    found = lake.execute("CALL migrate(version => '1.1', plan => true)").rows
    assert found[0] == ("rename", "ducklake_inlined_data_1_1", RENAMED)
    shell = CliRunner().invoke(app, ["migrate", "-c", lake_url, "--to", "1.1"])
    assert shell.exit_code == 0
    assert shell.stdout.splitlines()[-1] == "the lake is migrated from DuckLake 1.0 to 1.1"
    assert lake.execute("CALL migrate('1.1')").rows == []


@pytest.mark.parametrize(
    ("version", "error"),
    [
        ("1.0", r"has DuckLake version '1\.1', and there is no way back to '1\.0'; restore"),
        ("1.7", r"DuckLake version '1\.7' is not one of '1\.0' and '1\.1'"),
    ],
)
def test_there_is_no_way_back_and_no_way_to_an_unknown_version(lake, version, error):
    lake.migrate("1.1")

    with pytest.raises(InvalidRequest, match=error):
        lake.migrate(version)


def test_a_transaction_does_not_migrate(lake):
    lake.execute("BEGIN")

    with pytest.raises(InvalidRequest, match="migrate"):
        lake.execute("CALL migrate('1.1')")


def test_a_writer_at_work_stops_a_migration_and_a_dead_one_does_not(lake, lake_url):
    writer = f"elsewhere/1/{'0' * 32}"
    register_writer(lake._state.store, writer, 1)
    refused = f"cannot migrate .* writer {writer}: it writes to main.t; wait until it ends"
    with pytest.raises(Conflict, match=refused):
        lake.migrate("1.1")
    plan = CliRunner().invoke(app, ["migrate", "-c", lake_url, "--to", "1.1", "--plan"])
    assert plan.exit_code == 2
    assert f"refuse writer {writer}" in plan.stdout
    assert version_of(lake) == "1.0"

    run(lake, "UPDATE shelduck_writer SET expires = '2020-01-01 00:00:00+00'")

    assert lake.migrate("1.1").version == "1.1"


def test_an_open_job_stops_a_migration(lake):
    run(
        lake,
        "INSERT INTO shelduck_job (job_id, table_id, table_name, state, created, work, timeout,"
        " base_snapshot, schema_version, done_files, total_files, last_file) VALUES (4, 1,"
        " 'main.t', 'RUNNING', '2026-01-01 00:00:00+00', '{}', 60, 1, 1, 0, 1, 1)",
    )
    with pytest.raises(Conflict, match=r"job 4: it changes main\.t; wait for it, or cancel it"):
        lake.migrate("1.1")
    run(lake, "UPDATE shelduck_job SET state = 'CANCELLED'")

    assert lake.migrate("1.1").version == "1.1"


def test_a_column_with_a_name_of_ducklake_is_renamed_and_flushed_first(lake):
    lake.execute("CREATE TABLE u (_ducklake_row_id INT)")
    lake.execute("INSERT INTO u VALUES (5)")
    refused = (
        r"ducklake_inlined_data_2_\d: DuckLake 1\.1 uses the name of the column _ducklake_row_id of"
        r" main\.u for rows in the catalog; rename the column, then CALL flush_inlined_data"
    )
    with pytest.raises(InvalidRequest, match=refused):
        lake.migrate("1.1")
    assert version_of(lake) == "1.0"
    lake.execute("ALTER TABLE u RENAME COLUMN _ducklake_row_id TO number")
    run(lake, *("DELETE FROM ducklake_inlined_data_2_3",))

    done = lake.migrate("1.1")

    assert ("drop", "ducklake_inlined_data_2_3") in told(done)
    lake.execute("INSERT INTO u VALUES (6)")
    assert rows(lake, "u") == [("6",)]
    assert lake.check().is_sound


def test_a_missing_table_of_inlined_rows_stops_a_migration(lake):
    run(lake, "DROP TABLE ducklake_inlined_data_1_2")

    with pytest.raises(CorruptLake, match=r"ducklake_inlined_data_1_2: it does not exist; "):
        lake.migrate("1.1")


def test_columns_that_are_renamed_already_stay(lake):
    run(
        lake,
        "ALTER TABLE ducklake_inlined_data_1_1 RENAME COLUMN row_id TO _ducklake_row_id",
        "ALTER TABLE ducklake_data_file ADD COLUMN row_group_count BIGINT",
    )

    done = lake.migrate("1.1")

    assert ("add", "ducklake_data_file.row_group_count") not in told(done)
    assert len(rows(lake)) == 3


class Struck(Exception):
    """What happens at a statement."""


@pytest.mark.every_database
@pytest.mark.databases("sqlite", "postgres")
def test_a_migration_that_fails_at_any_statement_changes_nothing(lake):
    _fails_at_each_statement(lake, 1)


# Statements cost most there: in the fast set every fourth one fails.
@pytest.mark.every_database
@pytest.mark.databases("duckdb")
@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_a_migration_of_a_duckdb_file_that_fails_changes_nothing(lake, lake_url, step):
    lake.close()
    # A file that is opened for each look costs more than all statements.
    with shelduck.connect(lake_url + "?keep_open=600") as kept:
        _fails_at_each_statement(kept, step)
    # It is so in the file as well.
    with shelduck.connect(lake_url) as again:
        assert version_of(again) == "1.1"
        assert len(rows(again)) == 3


def _fails_at_each_statement(lake, step):
    engine = lake._state.store._engine
    survived, at = 0, 1 - step
    while not survived:
        at += step
        left = [at]

        def strike(*_, left=left):
            left[0] -= 1
            if left[0] == 0:
                raise Struck

        event.listen(engine, "after_cursor_execute", strike)
        try:
            lake.migrate("1.1")
            survived = at
        except Struck:
            pass
        finally:
            event.remove(engine, "after_cursor_execute", strike)
        if not survived:
            assert lake._state.store.format.version == version_of(lake) == "1.0"
            assert len(rows(lake)) == 3

    # Six names, eight additions, the version, and what it reads.
    assert survived > 15
    assert version_of(lake) == "1.1"
    assert len(rows(lake)) == 3


def test_whoever_is_connected_goes_on_in_the_new_version(lake, lake_url):
    with shelduck.connect(lake_url) as other:
        other.execute("INSERT INTO t VALUES (4, 'd', 8)")
        assert len(rows(other)) == 4
        lake.migrate("1.1")

        assert len(rows(other)) == 4
        assert other._state.store.format.version == "1.1"
        other.execute("INSERT INTO t VALUES (5, 'e', 9)")
        other.execute("CREATE TABLE u (row_id INT)")
        other.execute("INSERT INTO u VALUES (1)")

    assert len(rows(lake)) == 5
    assert rows(lake, "u") == [("1",)]
    assert lake.check().is_sound


def test_a_reader_does_not_take_a_column_for_the_row_id(lake, lake_url):
    """In 1.1, a table of inlined rows may have a column of a name that 1.0 uses itself."""
    with shelduck.connect(lake_url) as other:
        assert len(rows(other)) == 3
        lake.migrate("1.1")
        lake.execute("CREATE TABLE u (row_id INT, begin_snapshot INT, end_snapshot INT)")
        lake.execute("INSERT INTO u VALUES (70, 900, 901)")

        assert rows(other, "u") == [("70", "900", "901")]


def test_a_commit_that_waits_while_somebody_migrates_lands_in_the_new_version(lake, lake_url):
    begun, migrated = threading.Event(), threading.Event()
    with shelduck.connect(lake_url) as other:
        store, original = other._state.store, Store.write_together

        def late(self, act):
            if self is store and not begun.is_set():
                begun.set()
                assert migrated.wait(30)
            return original(self, act)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Store, "write_together", late)
            insert = threading.Thread(
                target=other.execute, args=("INSERT INTO t VALUES (4, 'd', 8)",)
            )
            insert.start()
            assert begun.wait(30)
            lake.migrate("1.1")
            migrated.set()
            insert.join(30)

    assert len(rows(lake)) == 4


def test_threads_commit_together_while_one_migrates(lake):
    def write(number):
        for _ in range(5):
            lake.execute(f"INSERT INTO t VALUES ({number}, 'x', 1)")

    crew = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for each in crew:
        each.start()
    lake.migrate("1.1")
    for each in crew:
        each.join()

    assert len(rows(lake)) == 23
    assert lake.check().is_sound


def test_a_migration_keeps_the_storage_version_that_duckdb_1_5_opens(tmp_path, duckdb_url):
    with shelduck.connect(duckdb_url, f"{tmp_path}/data/") as lake:
        lake.execute("CREATE TABLE t (a INT)")
        lake.execute("INSERT INTO t VALUES (1)")
        lake.migrate("1.1")
        lake.execute("INSERT INTO t VALUES (2)")

    header = (tmp_path / "catalog.ducklake").read_bytes()[8:20]
    assert (header[:4], int.from_bytes(header[4:], "little")) == (b"DUCK", 64)


def test_a_duckdb_file_that_is_kept_open_is_migrated(duckdb_url, data_path):
    with shelduck.connect(f"{duckdb_url}?keep_open=1", data_path) as kept:
        kept.execute("CREATE TABLE t (a INT)")
        kept.execute("INSERT INTO t VALUES (1)")
        with shelduck.connect(f"{duckdb_url}?keep_open=1") as other:
            assert rows(other) == [("1",)]
            kept.migrate("1.1")
            assert rows(other) == [("1",)]
            other.execute("INSERT INTO t VALUES (2)")
        assert rows(kept) == [("1",), ("2",)]


def to_old_names(lake, table, *names):
    run(lake, *(f"ALTER TABLE {table} RENAME COLUMN _ducklake_{n} TO {n}" for n in names))


def test_tables_with_names_of_1_0_are_found_and_repaired(lake):
    lake.migrate("1.1")
    table, names = "ducklake_inlined_data_1_1", OURS[1:]
    to_old_names(lake, table, *names)
    with pytest.raises(CorruptLake, match=f"{table} .*; run shelduck check --repair"):
        rows(lake)
    with pytest.raises(CorruptLake, match=f"{table} .*; run shelduck check --repair"):
        lake.execute("DELETE FROM t WHERE a = 1").rows  # noqa: B018
    problem = next(p for p in lake.check().problems if p.kind == "names")
    assert problem.object == table
    assert problem.wrong == f"its columns {', '.join(names)} do not have the names of DuckLake 1.1"

    found = lake.check(repair=True)

    assert ("names", table) in [(p.kind, p.object) for p in found.repaired]
    assert found.is_sound
    assert len(rows(lake)) == 3


def test_equal_rows_are_compared_in_the_columns_of_the_version(lake):
    lake.migrate("1.1")
    run(
        lake,
        "INSERT INTO ducklake_table_column_stats VALUES"
        " (1, 77, false, NULL, '1', '2', NULL, true, false)",
        "INSERT INTO ducklake_table_column_stats VALUES"
        " (1, 77, false, NULL, '1', '2', NULL, true, false)",
    )

    lake.check(repair=True)

    query = (
        "SELECT min_is_exact, max_is_exact FROM ducklake_table_column_stats WHERE column_id = 77"
    )
    with lake._state.store.read() as connection:
        assert connection.execute(text(query)).all() == [(1, 0)]
