from __future__ import annotations

import base64
import sqlite3
import subprocess
import sys
import threading
import zlib
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import Mock

import duckdb
import psycopg
import pytest
from sqlalchemy import Connection, insert, select, text, update
from sqlalchemy.exc import DBAPIError

from shelduck.catalog.databases import duckdb as duckdb_catalog
from shelduck.catalog.databases.database import Contention, Failure
from shelduck.catalog.databases.store import open_store
from shelduck.catalog.schema.lake_schema import create_lake
from shelduck.ducklake import tables
from shelduck.errors import (
    CatalogUnavailable,
    CorruptLake,
    InvalidRequest,
    OutcomeUnknown,
    ShelduckError,
    Unsupported,
)

pytestmark = pytest.mark.every_database

SNAPSHOT_IDS = select(tables.snapshot.c.snapshot_id).order_by(tables.snapshot.c.snapshot_id)


@contextmanager
def lake(url, data_path):
    store = open_store(url)
    create_lake(store, data_path)
    try:
        yield store
    finally:
        store.close()


@pytest.fixture
def store(lake_url, data_path):
    with lake(lake_url, data_path) as opened:
        yield opened


@pytest.fixture
def postgres_store(postgres_url, data_path):
    with lake(postgres_url, data_path) as opened:
        yield opened


@pytest.fixture
def sqlite_store(sqlite_url, data_path):
    with lake(f"{sqlite_url}?timeout=0.1", data_path) as opened:
        yield opened


@pytest.fixture
def duckdb_store(duckdb_url, data_path):
    with lake(duckdb_url, data_path) as opened:
        yield opened


def snapshot_ids(store):
    with store.read() as connection:
        return list(connection.execute(SNAPSHOT_IDS).scalars())


def add_snapshot(connection, number):
    connection.execute(insert(tables.snapshot), {"snapshot_id": number})


def write(store, *steps):
    with store.write() as connection:
        for step in steps:
            step(connection)


def adding(number):
    return lambda connection: add_snapshot(connection, number)


def running(statement):
    return lambda connection: connection.execute(statement)


NONSENSE = text("SELECT nonsense FROM nowhere")


def test_write_commits_at_its_end(store):
    with store.write() as connection:
        add_snapshot(connection, 1)

    assert snapshot_ids(store) == [0, 1]


def test_exception_rolls_everything_back_and_passes_through(store):
    with pytest.raises(KeyError, match="mine"):
        write(store, adding(1), lambda _: {}["mine"])

    assert snapshot_ids(store) == [0]


def test_store_works_on_after_a_fault_of_a_statement(store):
    with pytest.raises(CorruptLake, match="cannot answer a statement"):
        write(store, adding(1), running(NONSENSE))
    write(store, adding(2))

    assert snapshot_ids(store) == [0, 2]


def test_a_connection_that_failed_is_not_used_again(sqlite_store):
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR
    with sqlite_store.read() as connection:
        first = connection.connection.dbapi_connection
    with pytest.raises(CatalogUnavailable), sqlite_store.write():
        raise error
    with sqlite_store.read() as connection:
        second = connection.connection.dbapi_connection
    with sqlite_store.read() as connection:
        third = connection.connection.dbapi_connection

    assert second is not first
    assert third is second


def test_taken_primary_key_is_contention(store):
    with pytest.raises(Contention), store.write() as connection:
        add_snapshot(connection, 0)

    assert snapshot_ids(store) == [0]


def test_statements_of_callers_are_counted_and_nothing_else(store):
    before = store.statements
    with store.write() as connection:
        add_snapshot(connection, 1)
        connection.execute(SNAPSHOT_IDS).all()
    with store.read():
        pass

    assert store.statements - before == 2


def test_rows_go_in_as_one_statement(store):
    before = store.statements
    with store.write() as connection:
        rows = [{"snapshot_id": n, "next_file_id": None} for n in range(1, 501)]
        connection.execute(insert(tables.snapshot), rows)

    assert store.statements - before == 1
    assert len(snapshot_ids(store)) == 501


def test_read_sees_one_state_while_others_commit(postgres_store):
    with postgres_store.read() as reader:
        before = reader.execute(SNAPSHOT_IDS).all()
        with postgres_store.write() as writer:
            add_snapshot(writer, 1)
        after = reader.execute(SNAPSHOT_IDS).all()

    assert before == after == [(0,)]
    assert snapshot_ids(postgres_store) == [0, 1]


def write_from_threads(stores):
    """Add five snapshots from one thread for each store, each numbered by what it reads."""
    failures = []

    def work(store):
        try:
            for _ in range(5):
                with store.write() as connection:
                    top = connection.execute(SNAPSHOT_IDS).scalars().all()[-1]
                    add_snapshot(connection, top + 1)
        except ShelduckError as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


def test_threads_that_share_a_store_lose_nothing(store):
    assert write_from_threads([store] * 4) == []
    assert snapshot_ids(store) == list(range(21))


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_stores_that_write_at_once_lose_nothing(kind, request, data_path):
    url = request.getfixturevalue(f"{kind}_url")
    with lake(url, data_path) as store:
        others = [open_store(url) for _ in range(3)]
        assert write_from_threads([store, *others]) == []
        assert snapshot_ids(store) == list(range(21))
        for other in others:
            other.close()


def test_locked_sqlite_file_is_contention(sqlite_store, sqlite_url):
    other = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Contention, match="you can repeat the work"), sqlite_store.write():
        pass
    other.execute("ROLLBACK")
    other.close()

    with sqlite_store.write() as connection:
        add_snapshot(connection, 1)
    assert snapshot_ids(sqlite_store) == [0, 1]


def test_sqlite_write_holds_the_lock_before_its_first_statement(sqlite_store, sqlite_url):
    other = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None, timeout=0)
    with sqlite_store.write(), pytest.raises(sqlite3.OperationalError) as refused:
        other.execute("BEGIN IMMEDIATE")
    other.close()

    assert refused.value.sqlite_errorcode == sqlite3.SQLITE_BUSY


def test_sqlite_commit_blocked_by_a_reader_is_contention(sqlite_store, sqlite_url):
    reader = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM ducklake_snapshot").fetchall()
    with pytest.raises(Contention), sqlite_store.write() as connection:
        add_snapshot(connection, 1)
    reader.execute("ROLLBACK")
    reader.close()

    assert snapshot_ids(sqlite_store) == [0]


def test_write_inside_a_write_does_not_hang(sqlite_store):
    with pytest.raises(Contention):
        write(sqlite_store, adding(1), lambda _: write(sqlite_store, adding(2)))

    assert snapshot_ids(sqlite_store) == [0]


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_journal_mode_stays_as_it_was_found(sqlite_store, sqlite_url, mode):
    path = sqlite_url.removeprefix("sqlite:///")
    sqlite_store.close()
    other = sqlite3.connect(path)
    other.execute(f"PRAGMA journal_mode = {mode}")
    other.close()
    with sqlite_store.write() as connection:
        add_snapshot(connection, 1)
    sqlite_store.close()

    other = sqlite3.connect(path)
    assert other.execute("PRAGMA journal_mode").fetchall() == [(mode,)]
    other.close()


def test_file_that_is_no_database_is_a_corrupt_lake(tmp_path):
    (tmp_path / "bad").write_bytes(b"no database at all " * 400)

    for kind in ("sqlite", "duckdb"):
        with pytest.raises(CorruptLake), open_store(f"{kind}:///{tmp_path}/bad").read() as c:
            c.execute(SNAPSHOT_IDS)


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:////proc/lake.db",
        "duckdb:////proc/lake.ducklake",
        "postgresql://nobody@127.0.0.1:1/lake",
    ],
)
def test_database_that_cannot_be_reached_is_unavailable(url):
    with pytest.raises(CatalogUnavailable) as error, open_store(url).write():
        pass

    assert not isinstance(error.value, Contention)


def test_missing_postgres_database_is_unavailable_and_no_password_is_shown(postgres_server):
    url = postgres_server.url("no_such_lake").replace("postgres@", "postgres:secret@")
    with pytest.raises(CatalogUnavailable) as error, open_store(url).read():
        pass

    assert "no_such_lake" in str(error.value)
    assert "secret" not in str(error.value)


def test_postgres_writers_wait_for_each_other(postgres_store, postgres_url):
    other = open_store(postgres_url)
    order = []

    def second():
        with other.write() as connection:
            order.append(list(connection.execute(SNAPSHOT_IDS).scalars()))

    thread = threading.Thread(target=second)
    with postgres_store.write() as connection:
        thread.start()
        thread.join(timeout=0.3)
        assert thread.is_alive()
        add_snapshot(connection, 1)
    thread.join()
    other.close()

    assert order == [[0, 1]]


def test_postgres_race_with_a_writer_that_takes_no_lock_is_contention(postgres_store, postgres_url):
    with psycopg.connect(postgres_url) as foreign:
        foreign.execute("INSERT INTO ducklake_snapshot (snapshot_id) VALUES (1)")
        threading.Timer(0.2, foreign.commit).start()
        with pytest.raises(Contention), postgres_store.write() as connection:
            add_snapshot(connection, 1)


def end_other_connections(url):
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_connection_that_the_server_closed_meanwhile_is_replaced(postgres_store, postgres_url):
    assert snapshot_ids(postgres_store) == [0]
    end_other_connections(postgres_url)

    with postgres_store.write() as connection:
        add_snapshot(connection, 1)
    assert snapshot_ids(postgres_store) == [0, 1]


def test_connection_lost_before_commit_is_unavailable(postgres_store, postgres_url):
    with pytest.raises(CatalogUnavailable):
        write(
            postgres_store,
            adding(1),
            lambda _: end_other_connections(postgres_url),
            running(SNAPSHOT_IDS),
        )

    assert snapshot_ids(postgres_store) == [0]


def test_connection_lost_during_commit_is_outcome_unknown(postgres_store, postgres_url):
    with pytest.raises(OutcomeUnknown):
        write(postgres_store, adding(1), lambda _: end_other_connections(postgres_url))

    assert snapshot_ids(postgres_store) == [0]


def test_an_interrupt_during_commit_is_outcome_unknown(store, monkeypatch):
    real = Connection.commit

    def interrupted(connection):
        real(connection)
        raise KeyboardInterrupt

    monkeypatch.setattr(Connection, "commit", interrupted)
    with pytest.raises(
        OutcomeUnknown, match=r"may or may not have succeeded \(it was interrupted\)"
    ):
        write(store, adding(1))
    monkeypatch.undo()

    assert snapshot_ids(store) == [0, 1]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError("no space left")])
def test_a_commit_whose_connection_does_not_close_is_outcome_unknown(store, monkeypatch, error):
    real, failing = Connection.close, [error]

    def interrupted(connection):
        real(connection)
        if failing:
            raise failing.pop()

    monkeypatch.setattr(Connection, "close", interrupted)
    with pytest.raises(
        OutcomeUnknown, match=r"may or may not have succeeded \(the connection did not close\)"
    ):
        write(store, adding(1))

    assert snapshot_ids(store) == [0, 1]


def test_commit_of_a_transaction_that_failed_is_refused(postgres_store):
    def swallow(connection):
        with pytest.raises(DBAPIError):
            connection.execute(NONSENSE)

    with pytest.raises(CatalogUnavailable, match="nothing was written"):
        write(postgres_store, adding(1), swallow)

    assert snapshot_ids(postgres_store) == [0]


@pytest.mark.parametrize(
    ("state", "committing", "expected"),
    [
        ("40001", False, Failure.RETRYABLE),
        ("40001", True, Failure.RETRYABLE),
        ("40P01", False, Failure.RETRYABLE),
        ("23505", False, Failure.RETRYABLE),
        ("55P03", False, Failure.RETRYABLE),
        ("28P01", False, Failure.UNAVAILABLE),
        ("53100", False, Failure.UNAVAILABLE),
        ("57P01", False, Failure.UNAVAILABLE),
        ("57P01", True, Failure.OUTCOME_UNKNOWN),
        ("08006", True, Failure.OUTCOME_UNKNOWN),
        ("40003", True, Failure.OUTCOME_UNKNOWN),
        ("42601", False, Failure.OTHER),
    ],
)
def test_postgres_errors_are_told_apart_by_sqlstate(postgres_store, state, committing, expected):
    error = psycopg.errors.lookup(state)("whatever the language of the server says")

    assert postgres_store.database.classify(error, committing=committing) is expected


def test_conflicting_writers_of_a_duckdb_file_are_contention(duckdb_store, duckdb_url):
    other = open_store(duckdb_url)
    change = running(update(tables.snapshot).values(next_file_id=1))

    with pytest.raises(Contention):
        write(duckdb_store, change, lambda _: write(other, change))


def test_duckdb_file_is_free_between_units_of_work(duckdb_store, duckdb_url):
    path = duckdb_url.removeprefix("duckdb:///")
    command = [sys.executable, "-c", f"import duckdb; duckdb.connect({path!r}).close()"]

    for _ in range(2):
        assert snapshot_ids(duckdb_store) == [0]
        subprocess.run(command, check=True)
        with duckdb.connect() as inside:
            inside.execute(f"ATTACH '{path}' AS l")


@pytest.fixture
def newer_duckdb(monkeypatch):
    """Make DuckDB choose the newest storage version by itself, as newer ones do."""
    connect = duckdb.connect
    newest = {"storage_compatibility_version": "latest"}
    monkeypatch.setattr(duckdb, "connect", lambda path=":memory:": connect(path, config=newest))
    return connect


def storage_version(path):
    return int.from_bytes(path.read_bytes()[12:20], "little")


def test_a_duckdb_file_is_made_so_that_every_duckdb_since_1_0_opens_it(
    newer_duckdb, tmp_path, data_path
):
    newer_duckdb(config={"storage_compatibility_version": "latest"}).execute(
        f"ATTACH '{tmp_path}/newest.db' AS newest"
    ).close()
    with lake(f"duckdb:///{tmp_path}/it's.ducklake", data_path) as store:
        write(store, lambda connection: add_snapshot(connection, 1))

    assert storage_version(tmp_path / "newest.db") > 64
    assert storage_version(tmp_path / "it's.ducklake") == 64


def test_a_duckdb_file_is_made_so_where_no_file_can_be_linked(
    newer_duckdb, tmp_path, data_path, monkeypatch
):
    monkeypatch.setattr(Path, "hardlink_to", Mock(side_effect=OSError("no links here")))
    with lake(f"duckdb:///{tmp_path}/l.ducklake", data_path) as store:
        assert snapshot_ids(store) == [0]

    assert storage_version(tmp_path / "l.ducklake") == 64
    assert [file.name for file in tmp_path.glob("l.ducklake*")] == ["l.ducklake"]


def test_a_duckdb_file_keeps_the_storage_version_that_it_has(tmp_path, data_path):
    with duckdb.connect() as other:
        other.execute(f"ATTACH '{tmp_path}/l.ducklake' AS l (STORAGE_VERSION 'v1.4.0')")
    with lake(f"duckdb:///{tmp_path}/l.ducklake", data_path) as store:
        write(store, lambda connection: add_snapshot(connection, 1))

    assert storage_version(tmp_path / "l.ducklake") == 67


# What DuckDB 2.0.1 makes of a new file, by `duckdb.connect("l.ducklake").close()`.
OF_DUCKDB_2 = (
    "eNrt17EKQQEUBmDFYPEAyjPoXhFmlJLBQMlgYTdxX0A2D+EVrJLFM7CYbXYTw01KkUUZvm/5O53TGc52Zs3DcpVd"
    "bOrdWuucTHxlWsgH+fB9vzIqV8KwOK4Gn/d0xqf+dXtZ9zLD+WS3LyUAAACAnziWoyg3qLcf9e3FczIVRzqOhtMB"
    "AACA/x8AAAD4G3d8NzlN"
)


def test_a_duckdb_file_of_a_newer_duckdb_is_refused_at_once(tmp_path, data_path):
    file = tmp_path / "l.ducklake"
    file.write_bytes(zlib.decompress(base64.b64decode(OF_DUCKDB_2)))

    with pytest.raises(Unsupported) as told, lake(f"duckdb:///{file}", data_path):
        pass

    assert str(told.value) == (
        f"DuckDB {duckdb.__version__} cannot open {file}: the file has the storage version 999,"
        " and this DuckDB reads versions between 64 and 68; install the DuckDB that made it, or use"
        " that one to copy it: ATTACH the file and a new one with (STORAGE_VERSION 'v1.0.0'), then"
        " COPY FROM DATABASE"
    )


def test_session_keeps_the_duckdb_file_and_then_frees_it(duckdb_store, duckdb_url):
    path = duckdb_url.removeprefix("duckdb:///")
    with duckdb_store.session():
        with duckdb_store.write() as connection:
            add_snapshot(connection, 1)
        with duckdb.connect() as inside, pytest.raises(duckdb.BinderException):
            inside.execute(f"ATTACH '{path}' AS l")
    with duckdb.connect() as inside:
        inside.execute(f"ATTACH '{path}' AS l")
        assert inside.execute("SELECT count(*) FROM l.ducklake_snapshot").fetchall() == [(2,)]


HOLD = """
import duckdb, sys
with duckdb.connect(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.readline()
"""


@contextmanager
def held_elsewhere(url):
    """Another process that has a DuckDB file open until it gets a line."""
    command = [sys.executable, "-c", HOLD, url.removeprefix("duckdb:///")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout.readline() == "held\n"
        yield holder


def test_duckdb_file_held_by_another_process_is_waited_for(duckdb_store, duckdb_url, monkeypatch):
    with held_elsewhere(duckdb_url) as holder:
        monkeypatch.setattr(duckdb_catalog, "BUSY_SECONDS", 0.1)
        with pytest.raises(CatalogUnavailable):
            snapshot_ids(duckdb_store)
        monkeypatch.setattr(duckdb_catalog, "BUSY_SECONDS", 30)

        def release():
            holder.stdin.write("\n")
            holder.stdin.flush()

        timer = threading.Timer(0.3, release)
        timer.start()
        assert snapshot_ids(duckdb_store) == [0]
        timer.join()


def test_a_session_waits_for_a_duckdb_file_that_another_process_holds(
    duckdb_store, duckdb_url, monkeypatch
):
    with held_elsewhere(duckdb_url) as holder:
        monkeypatch.setattr(duckdb_catalog, "BUSY_SECONDS", 0.1)
        with duckdb_store.session(), pytest.raises(CatalogUnavailable):
            snapshot_ids(duckdb_store)
        with duckdb_store.session():
            holder.communicate("\n")
            assert snapshot_ids(duckdb_store) == [0]


def test_duckdb_file_attached_in_this_process_is_unavailable(duckdb_store, duckdb_url):
    with duckdb.connect() as inside:
        inside.execute(f"ATTACH '{duckdb_url.removeprefix('duckdb:///')}' AS l")
        with pytest.raises(CatalogUnavailable, match="DETACH"):
            snapshot_ids(duckdb_store)


def test_session_is_free_of_effects_elsewhere(store):
    with store.session(), store.write() as connection:
        add_snapshot(connection, 1)

    assert snapshot_ids(store) == [0, 1]


@pytest.mark.parametrize(
    "url", ["mysql://host/lake", "lake.db", "sqlite://", "duckdb:///:memory:", ""]
)
def test_address_that_is_no_catalog_is_refused(url):
    with pytest.raises(InvalidRequest, match=r"sqlite|duckdb"):
        open_store(url)


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_a_file_in_no_folder_and_a_folder_are_refused_with_what_to_do(kind, tmp_path):
    with pytest.raises(InvalidRequest, match=r"folder .*/none of the .* does not exist; create it"):
        open_store(f"{kind}:///{tmp_path}/none/lake.db")
    with pytest.raises(InvalidRequest, match="is a folder; name a file in it"):
        open_store(f"{kind}:///{tmp_path}")


@pytest.mark.parametrize("port", [0, 65536, 10**12])
def test_a_port_that_does_not_exist_is_refused(port):
    with pytest.raises(InvalidRequest, match="no valid port; use 1 to 65535"):
        open_store(f"postgresql://u@h:{port}/db")
