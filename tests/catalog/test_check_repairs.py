"""``check`` with repair: what needs no decision is mended, in one commit that DuckDB reads."""

from __future__ import annotations

import os
import shutil
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text
from typer.testing import CliRunner

import shelduck
from shelduck import clock
from shelduck.catalog.running.writers import claim_upkeep, register_writer
from shelduck.cli.app import app
from shelduck.model.changes.job import LEASE
from shelduck.model.changes.problem import RepairCatalog
from shelduck.model.text.names import write_directory
from tests.support.lake import Lake

pytestmark = pytest.mark.every_database


class After:
    """A clock that is ahead."""

    def __init__(self, ahead):
        self.ahead = ahead

    def now(self):
        return datetime.now(UTC) + self.ahead

    def monotonic(self):
        return 0.0

    def sleep(self, seconds):
        pass


@pytest.fixture
def lake(lake_url, data_path):
    made = Lake(lake_url, data_path)
    made.create("t", id="bigint")
    made.append("t", [{"id": 1}])
    made.append("t", [{"id": 2}, {"id": 3}])
    yield made
    made.store.close()


def change(lake, *statements):
    with lake.store.write() as connection:
        for statement in statements:
            connection.execute(text(statement))
    lake.store.close()


def check(lake, table=None, **how):
    lake.store.close()
    with shelduck.connect(lake.url) as opened:
        return opened.check(table, **how)


def told(problems):
    return [(p.kind, p.wrong, p.repair) for p in problems]


def again(table):
    """Insert the rows of a table of the catalog a second time."""
    return f"INSERT INTO ducklake_{table} SELECT * FROM ducklake_{table}"


def test_rows_that_are_equal_become_one(lake):
    names = ("column", "table", "table_stats", "schema_versions", "file_column_stats")
    counts = [len(lake.metadata(f"ducklake_{name}")) for name in names]
    before = lake.head().id
    change(lake, *map(again, names))
    found = check(lake)
    assert {p.repair for p in found.problems if p.kind == "row"} == {"keeps one of the equal rows"}

    done = check(lake, repair=True)

    assert done.is_sound
    assert len(done.repaired) == sum(counts)
    assert [len(lake.metadata(f"ducklake_{name}")) for name in names] == counts
    assert (lake.head().id, lake.head().commit_message) == (before + 1, "repair")
    assert sorted(lake.ask("SELECT id FROM t")) == [(1,), (2,), (3,)]


def test_counters_that_would_give_an_id_twice_are_raised(lake):
    newest = lake.head().id
    change(
        lake,
        "UPDATE ducklake_snapshot SET next_file_id = 1, next_catalog_id = 1"
        f" WHERE snapshot_id = {newest}",
        "UPDATE ducklake_table_stats SET next_row_id = 2",
    )

    done = check(lake, repair=True)

    assert done.is_sound
    assert told(done.repaired) == [
        ("number", "next_catalog_id is 1, and ids up to 1 are in use", "raises it to 2"),
        ("number", "next_file_id is 1, and ids up to 1 are in use", "raises it to 2"),
        ("number", "next_row_id is 2, and ids up to 2 are in use", "raises it to 3"),
    ]
    lake.tell("INSERT INTO t VALUES (4)", "CREATE TABLE u (id BIGINT)")
    assert sorted(lake.ask("SELECT rowid, id FROM t")) == [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert check(lake).is_sound


def test_an_id_that_is_too_large_to_follow_is_left_to_you(lake):
    change(lake, f"UPDATE ducklake_data_file SET data_file_id = {2**50} WHERE data_file_id = 1")

    done = check(lake, repair=True)

    assert ("number", f"next_file_id is 2, and ids up to {2**50} are in use", "") in told(
        done.problems
    )
    assert done.repaired == ()


def test_statistics_are_taken_from_the_footer(lake):
    lake.append("t", [{"id": 4}, {"id": None}])
    change(
        lake,
        "DELETE FROM ducklake_file_column_stats WHERE data_file_id = 2",
        "INSERT INTO ducklake_file_column_stats"
        " (data_file_id, table_id, column_id, value_count, null_count, min_value, max_value)"
        " VALUES (2, 1, 1, 1, 0, '9', '9')",
        "DELETE FROM ducklake_table_column_stats",
        "INSERT INTO ducklake_table_column_stats"
        " (table_id, column_id, contains_null, min_value, max_value)"
        " VALUES (1, 1, false, '1', '3')",
    )
    assert lake.ask("SELECT id FROM t WHERE id = 4") == []

    done = check(lake, "t", repair=True)

    assert done.is_sound
    assert {p.repair for p in done.repaired} == {"takes them from the footer"}
    assert len(done.repaired) == 2
    assert lake.ask("SELECT id FROM t WHERE id = 4") == [(4,)]
    assert lake.ask("SELECT min(id), max(id), count(*) - count(id) FROM t") == [(1, 4, 1)]
    [stats] = lake.metadata("ducklake_table_column_stats")
    assert (stats["contains_null"], stats["max_value"]) == (True, "9")


def test_a_file_that_differs_from_the_catalog_is_left_to_you(lake):
    change(lake, "UPDATE ducklake_data_file SET record_count = 1 WHERE data_file_id = 1")

    done = check(lake, "t", repair=True)

    assert told(done.problems) == [("footer", "it has 2 rows, and the catalog says 1", "")]
    assert done.repaired == ()


def test_dead_writers_and_maintainers_are_notes_that_a_repair_removes(lake):
    table = lake.table("t").id
    with clock.using(After(-2 * LEASE)):
        register_writer(lake.store, "writer", table)
        claim_upkeep(lake.store, "table 1", "maintainer")
    register_writer(lake.store, "alive", table)

    found = check(lake)
    assert found.is_sound
    assert [(p.table, p.kind, p.object) for p in found.notes] == [
        ("main.t", "writer", "writer"),
        ("", "maintainer", "maintainer"),
    ]
    assert str(found) == "\n".join(
        [
            *(f"note: {p.table or 'catalog'}: {p}" for p in found.notes),
            "1 table(s), 2 file(s): no problem(s), 2 note(s)",
        ]
    )
    before = lake.head().id
    done = check(lake, repair=True)

    assert (done.problems, done.notes, done.repaired) == ((), (), found.notes)
    assert lake.head().id == before
    with lake.store.read() as connection:
        left = connection.execute(text("SELECT writer_id FROM shelduck_writer")).scalars().all()
        claims = connection.execute(text("SELECT worker FROM shelduck_upkeep")).scalars().all()
    assert (left, claims) == (["alive"], [None])


def test_what_counts_as_complete_too_far_is_forgotten(lake):
    table = lake.table("t").id
    register_writer(lake.store, "alive", table)
    change(lake, f"INSERT INTO shelduck_settled VALUES ({table}, 99)")
    wrong = "it counts as complete up to snapshot 99, and there is no such snapshot yet"
    assert told(check(lake).problems) == [("rollup", wrong, "deletes the row")]

    done = check(lake, repair=True)

    assert done.is_sound
    assert told(done.repaired) == [("rollup", wrong, "deletes the row")]


def old_orphan(lake):
    """A file of a write that never landed, four days ago."""
    table = lake.table("t")
    then = datetime.now(UTC) - timedelta(days=4)
    name = write_directory(table.uuid, int(then.timestamp() * 1000), uuid.uuid4().int >> 64)
    file = Path(table.path) / name / "part-0.parquet"
    file.parent.mkdir()
    shutil.copy(lake.files("t")[0].path, file)
    for path in (file, file.parent):
        os.utime(path, (then.timestamp(), then.timestamp()))
    return file


def test_orphans_are_removed_as_remove_orphans_does(lake):
    orphan = old_orphan(lake)
    assert told(check(lake).problems) == [
        ("orphan", "no row of the catalog names it", "deletes it")
    ]

    done = check(lake, repair=True)

    assert (done.is_sound, [p.object for p in done.repaired]) == (True, [str(orphan)])
    assert not orphan.exists()


def test_an_orphan_may_be_the_file_of_a_lost_row(lake):
    orphan = old_orphan(lake)
    change(
        lake,
        "INSERT INTO ducklake_file_column_stats (data_file_id, table_id, column_id)"
        " VALUES (0, 1, 1)",
        "DELETE FROM ducklake_data_file WHERE data_file_id = 0",
    )

    done = check(lake, repair=True)

    assert ("orphan", "no row of the catalog names it", "") in told(done.problems)
    assert ("reference", "data_file_id 0 does not exist", "") in told(done.problems)
    assert done.repaired == ()
    assert orphan.exists()


def test_a_repair_and_other_writers_do_not_disturb_each_other(lake):
    base = lake.head().id
    lake.append("t", [{"id": 4}])
    # Neither of them has seen what the other has committed.
    lake.commit(RepairCatalog(), base=base)
    lake.append("t", [{"id": 5}])

    assert sorted(lake.ask("SELECT id FROM t")) == [(1,), (2,), (3,), (4,), (5,)]
    assert check(lake).is_sound


def test_the_command_and_the_statement_repair(lake):
    change(lake, again("table_stats"))
    run = CliRunner()
    looked = run.invoke(app, ["check", "-c", lake.url])
    mended = run.invoke(app, ["check", "-c", lake.url, "--repair"])
    change(lake, again("table_stats"))
    with shelduck.connect(lake.url) as opened:
        [row] = opened.execute("CALL check(repair => true)").rows

    assert (looked.exit_code, looked.output.splitlines()[-1]) == (
        2,
        "1 table(s), 2 file(s): 1 problem(s); repair mends 1 of them",
    )
    assert (mended.exit_code, mended.output.splitlines()[-1]) == (
        0,
        "1 table(s), 2 file(s): no problem(s), 1 repaired",
    )
    assert mended.output.startswith("repaired: catalog: ducklake_table_stats")
    assert row[5:] == ("repaired", "keeps one of the equal rows")
