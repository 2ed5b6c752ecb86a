"""Maintenance that decides by itself: what it does, leaves, and tells."""

from __future__ import annotations

import json
import logging
import sqlite3
from contextlib import closing
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import shelduck
from shelduck import CatalogUnavailable, InvalidRequest
from shelduck.catalog.upkeep import lake_counts
from shelduck.cli import maintain_command as command
from shelduck.cli.app import app
from shelduck.doors import lake as api
from shelduck.files import verb
from shelduck.upkeep import maintain
from shelduck.upkeep.maintain import maintain_lake
from tests.support.lakes import everything, newest, rows
from tests.support.lengths import long, one_by_one
from tests.support.oracle import DuckDBOracle

LOADS = 8


def loads(table, first=0):
    """Eight files of ten rows."""
    return [
        f"INSERT INTO {table} SELECT id, 'v' FROM range({10 * n}, {10 * n + 10}, 1, 1)"
        for n in range(first, first + LOADS)
    ]


STATEMENTS = [
    "CALL set_option('data_inlining_row_limit', '2')",
    *(f"CREATE TABLE {name} (id BIGINT, v STRING)" for name in ("kept", "many", "quiet", "worn")),
    *loads("many"),
    *loads("worn"),
    *loads("quiet")[1:],
    *(f"DELETE FROM worn WHERE id BETWEEN {10 * n} AND {10 * n + 6}" for n in range(LOADS)),
    *(f"INSERT INTO kept VALUES ({n}, 'k')" for n in range(20)),
]


@pytest.fixture
def catalog(copied):
    return copied[0]


def told(done):
    return [(str(s.table), s.work, s.state, s.files) for s in done.steps if s.table is not None]


def live_files(catalog, name):
    """How many data files and delete files a table has."""
    query = (
        "SELECT count(*) FROM {} JOIN ducklake_table AS t USING (table_id)"
        " WHERE t.table_name = ? AND {}.end_snapshot IS NULL"
    )
    with closing(sqlite3.connect(catalog)) as connection:
        sources = ("ducklake_data_file", "ducklake_delete_file")
        return [connection.execute(query.format(s, s), [name]).fetchone()[0] for s in sources]


def kept_rows(catalog):
    """How many rows the catalog keeps, in all versions."""
    with closing(sqlite3.connect(catalog)) as connection:
        names = connection.execute("SELECT table_name FROM ducklake_inlined_data_tables").fetchall()
        counts = [connection.execute(f"SELECT count(*) FROM {name}") for (name,) in names]
        return sum(count.fetchone()[0] for count in counts)


def change(catalog, statement):
    with closing(sqlite3.connect(catalog)) as connection, connection:
        connection.execute(statement)


EVERYTHING = [
    ("main.kept", "flush_inlined_data", "done", 1),
    ("main.many", "compact", "done", 8),
    ("main.worn", "rewrite_deletes", "done", 8),
]


def test_a_dry_run_says_why_and_changes_nothing(lake, base, catalog):
    before = everything(catalog, base.folder / "data")

    planned = lake.maintain(dry_run=True)

    assert everything(catalog, base.folder / "data") == before
    assert [str(step).partition(" file(s)")[0] for step in planned.steps] == [
        "lake: remove_orphans: nobody has looked yet",
        "main.kept: flush_inlined_data: 20 rows and deletes are in the catalog",
        "main.many: compact: many small files of similar size, 8",
        "main.worn: rewrite_deletes: many small files of similar size, with deleted rows, 8",
    ]
    assert {step.state for step in planned.steps} == {"planned"}
    assert [step.files for step in planned.steps] == [0, 0, 8, 8]


def test_what_is_worth_it_is_done_once_and_no_row_changes(lake, catalog, caplog):
    names = ("kept", "many", "quiet", "worn")
    queries = [f"SELECT * FROM {name} ORDER BY id" for name in names]
    before, at = [rows(lake.sql(query)) for query in queries], newest(lake)
    seen = []
    caplog.set_level(logging.INFO, "shelduck.maintain")

    done = lake.maintain(report=seen.append)

    assert sorted(told(done)) == EVERYTHING
    assert done.failed == done.left == ()
    assert list(done.steps) == seen
    assert [record.getMessage() for record in caplog.records] == [str(step) for step in seen]
    assert [rows(lake.sql(query)) for query in queries] == before
    with DuckDBOracle(f"sqlite:///{catalog}", None) as oracle:
        assert [oracle.sql(query) for query in queries] == before
    assert live_files(catalog, "worn") == [1, 0]
    assert live_files(catalog, "quiet") == [7, 0]
    old = lake.table("worn").read(version=at).orderBy("id")
    assert rows(old) == before[3]
    again = lake.maintain()
    assert (again.steps, str(again)) == ((), "nothing is worth doing")


def test_a_run_rewrites_no_more_than_its_bytes_and_the_next_run_goes_on(lake):
    [step] = [s for s in lake.maintain(dry_run=True).steps if s.work == "compact"]

    first = lake.maintain(max_bytes=step.bytes // 2)

    assert [one[:3] for one in told(first)] == [
        (*EVERYTHING[0][:2], "done"),
        (*EVERYTHING[1][:2], "done"),
        (*EVERYTHING[2][:2], "left"),
    ]
    assert 0 < sum(s.bytes for s in first.done if s.work == "compact") <= step.bytes // 2
    assert first.left[0].told == "the bytes of this run are used up"
    assert told(lake.maintain()) == [EVERYTHING[2]]


@pytest.mark.parametrize("dry_run", [False, True])
def test_no_step_begins_after_its_time(lake, monkeypatch, dry_run):
    before = newest(lake)

    found = lake.maintain(max_time="1 microsecond", dry_run=dry_run)

    assert {(s.state, s.told) for s in found.steps} == {("left", "the time of this run is over")}
    assert len(found.steps) == 4
    assert newest(lake) == before


@pytest.fixture
def broken(catalog):
    """The files of one table are gone."""
    mine = "(SELECT table_id FROM ducklake_table WHERE table_name = 'many')"
    change(catalog, f"UPDATE ducklake_data_file SET path = 'gone' WHERE table_id = {mine}")


@pytest.mark.usefixtures("broken")
def test_a_table_that_fails_does_not_stop_the_others(lake, caplog):
    done = lake.maintain()

    assert [one[:3] for one in sorted(told(done))] == [
        (*EVERYTHING[0][:2], "done"),
        ("main.many", "compact", "failed"),
        (*EVERYTHING[2][:2], "done"),
    ]
    [failed] = done.failed
    assert "gone" in failed.told
    assert [record.getMessage() for record in caplog.records] == [str(failed)]
    # Nobody keeps the table.
    assert [s.state for s in lake.maintain().steps] == ["failed"]


def test_tables_that_another_process_maintains_are_left_to_it(lake, base, catalog, monkeypatch):
    write, others = verb.write_bins, []

    def meanwhile(*arguments, **more):
        if not others:
            others.append(None)
            with base.connect(catalog) as second:
                others[0] = second.maintain()
        return write(*arguments, **more)

    monkeypatch.setattr(verb, "write_bins", meanwhile)

    done = lake.maintain()

    [other] = others
    assert [(s.work, s.told) for s in other.left] == [
        ("compact", "another process maintains it now")
    ]
    assert [s.work for s in done.done] == ["remove_orphans", "flush_inlined_data", "compact"]
    assert [s.work for s in other.done] == ["rewrite_deletes"]


def test_what_somebody_else_has_done_meanwhile_is_not_done_again(lake, base, catalog):
    others = []

    def meanwhile(_):
        if not others:
            with base.connect(catalog) as second:
                others.append(second.maintain())

    done = lake.maintain(report=meanwhile)

    assert sorted(told(others[0])) == EVERYTHING
    assert [(s.table, s.work) for s in done.steps] == [(None, "remove_orphans")]


def test_ctrl_c_keeps_what_is_done_and_releases_the_table(lake):
    def press(step):
        if step.table is not None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match=r"^interrupted; 2 step\(s\) are done, and stay$"):
        lake.maintain(report=press)
    assert sorted(told(lake.maintain())) == EVERYTHING[1:]


def test_options_say_which_tables_are_compacted_and_which_snapshots_expire(lake, catalog):
    lake.set_option("auto_compact", False, table="many")
    lake.set_option("rewrite_delete_threshold", 0.7, table="worn")
    lake.set_option("expire_older_than", "0 seconds")

    done = lake.maintain()

    assert [(s.work, s.told.partition(";")[0]) for s in done.steps if s.table is None] == [
        ("expire_snapshots", f"{newest(lake) - 2} snapshot(s) expired"),
        ("remove_orphans", "0 file(s) deleted"),
    ]
    assert [s.reason for s in done.steps if s.work == "rewrite_deletes"] == [
        "70% or more of their rows are deleted"
    ]
    assert live_files(catalog, "many") == [8, 0]
    lake.set_option("delete_older_than", "0 seconds")
    assert "cleanup_old_files" not in [s.work for s in lake.maintain().steps]
    change(catalog, "UPDATE ducklake_files_scheduled_for_deletion SET path = path || '.not'")
    [clean_up] = [s for s in lake.maintain().done if s.work == "cleanup_old_files"]
    assert clean_up.files > 0


def test_rows_that_cannot_leave_the_catalog_are_told_and_left(lake, catalog):
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        duckdb.execute("CREATE TABLE odd (i INTERVAL)")
        duckdb.execute("INSERT INTO odd VALUES (INTERVAL 1 DAY)")
    lake.set_option("data_inlining_row_limit", 0, table="odd")

    [step] = [s for s in lake.maintain().steps if str(s.table) == "main.odd"]
    assert step.state == "left"
    assert step.told.startswith("Shelduck cannot write files of main.odd: i: ")


def test_files_of_many_old_layouts_are_rewritten_in_the_newest(lake, monkeypatch):
    for module in (maintain, lake_counts):
        monkeypatch.setattr(module, "LAYOUTS", 4)
    lake.sql("CREATE TABLE grown (id BIGINT)")
    lake.set_option("target_file_size", 100, table="grown")
    lake.set_option("auto_compact", False)
    lake.set_option("auto_compact", True, table="grown")
    for n in range(5):
        lake.sql(f"ALTER TABLE grown ADD COLUMN c{n} INT DEFAULT {n}")
        lake.sql(f"INSERT INTO grown (id) SELECT id FROM range({n * 5}, {n * 5 + 5}, 1, 1)")
    query = "SELECT * FROM grown ORDER BY id"
    before = rows(lake.sql(query))

    [step] = [s for s in lake.maintain(dry_run=True).steps if s.work == "rewrite"]
    assert (step.reason, step.files) == ("files have 5 different layouts", 3)
    half = lake.maintain(max_bytes=step.bytes // 2)
    lake.maintain()

    assert 0 < sum(s.bytes for s in half.done if s.work == "rewrite") <= step.bytes // 2
    assert rows(lake.sql(query)) == before
    assert not lake.maintain().steps


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"max_bytes": "much"}, "max_bytes does not accept 'much'"),
        ({"max_bytes": 0}, "max_bytes does not accept 0"),
        ({"max_time": "soon"}, "max_time does not accept 'soon'; give a time above zero, such as"),
        ({"max_time": "0 s"}, "max_time does not accept '0 s'"),
    ],
)
def test_a_budget_that_means_nothing_is_refused(lake, given, error):
    with pytest.raises(InvalidRequest, match=error):
        lake.maintain(**given)


def test_a_call_in_sql_shows_each_step(lake):
    found = lake.sql(
        "CALL maintain(dry_run => true, max_bytes => 1, max_time => INTERVAL '1 hour')"
    )
    assert [(r.table_name, r.step, r.state) for r in found.collect()] == [
        (None, "remove_orphans", "planned"),
        ("kept", "flush_inlined_data", "planned"),
        ("many", "compact", "planned"),
        ("worn", "rewrite_deletes", "left"),
    ]
    done = lake.sql("CALL maintain(max_bytes => '1GB')").where("table_name = 'many'").collect()
    assert [(r.state, r.files, r.told.partition(" (")[0]) for r in done] == [
        ("done", 8, "8 file(s)")
    ]
    with pytest.raises(InvalidRequest, match=r"maintain\(\) commits by itself"):
        lake.sql("BEGIN; CALL maintain()")
    lake.sql("ROLLBACK")


def run(catalog, *arguments):
    return CliRunner().invoke(app, ["maintain", "-c", f"sqlite:///{catalog}", *arguments])


def test_the_command_shows_the_plan_then_each_step(lake, catalog):
    assert run(catalog, "--dry-run").stdout.splitlines() == [
        str(step) for step in lake.maintain(dry_run=True).steps
    ]
    lines = [json.loads(line) for line in run(catalog, "--json").stdout.splitlines()]
    assert sorted((s["table"], s["work"], s["state"], s["files"]) for s in lines[1:]) == EVERYTHING
    done = run(catalog)
    assert (done.exit_code, done.stdout) == (0, "nothing is worth doing\n")


@pytest.mark.usefixtures("broken")
def test_the_command_fails_if_a_table_fails(catalog):
    failed = run(catalog)
    assert failed.exit_code == 2
    assert "main.many: compact: failed: " in failed.stdout


def test_the_command_goes_on_every_while_until_ctrl_c(catalog, monkeypatch):
    pauses = []

    def sleep(seconds):
        pauses.append(seconds)
        if len(pauses) == 3:
            raise KeyboardInterrupt

    def unless_away(*arguments, **more):
        if len(pauses) == 1:
            raise CatalogUnavailable("nobody answers")
        return maintain_lake(*arguments, **more)

    monkeypatch.setattr(command, "time", SimpleNamespace(sleep=sleep, monotonic=lambda: 100.0))
    monkeypatch.setattr(api, "maintain_lake", unless_away)

    done = run(catalog, "--every", "5m")

    assert done.exit_code == 130
    assert done.stdout.count("main.many: compact: 8 file(s)") == 1
    assert done.stderr == "lake: tried again in 5m: nobody answers\ninterrupted\n"
    assert pauses == [300.0, 300.0, 300.0]


@pytest.mark.slow
@pytest.mark.parametrize("keys", one_by_one(["", "UNIQUE KEY (id)"]))
def test_many_small_loads_leave_few_files_deletes_and_rows_in_the_catalog(tmp_path, spark, keys):
    catalog = tmp_path / "lake.db"
    with shelduck.connect(f"sqlite:///{catalog}", f"{tmp_path}/data/", spark) as lake:
        lake.sql(f"CREATE TABLE t (id BIGINT, v STRING) {keys}")
        marks, most = {}, [0, 0, 0]
        for n in range(long(200, 50)):
            # Some loads are so small that they stay in the catalog.
            size = 3 if n % 4 == 0 else 40
            load = f"SELECT id * 7 % 500 AS id, 'load {n}' AS v FROM range({n}, {n + size}, 1, 1)"
            lake.sql(f"INSERT INTO t {load}")
            if n % 50 == 25:
                marks[newest(lake)] = rows(lake.sql("SELECT * FROM t ORDER BY id, v"))
            if n % 10 == 9:
                assert lake.maintain().failed == ()
            most = [*map(max, most, [*live_files(catalog, "t"), kept_rows(catalog)])]
        query = "SELECT * FROM t ORDER BY id, v"
        expected = rows(lake.sql(query))
        assert most[0] <= 34
        assert most[1] <= 17
        assert most[2] <= 150
        assert lake.check().problems == ()
        for snapshot, old in marks.items():
            assert rows(lake.table("t").read(version=snapshot).orderBy("id", "v")) == old
    with DuckDBOracle(f"sqlite:///{catalog}", None) as oracle:
        assert oracle.sql(query) == expected
