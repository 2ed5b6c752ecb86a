"""Addresses with secrets: whatever goes wrong, nothing printed, raised or logged has them."""

from __future__ import annotations

import logging
import sys
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

import shelduck
from shelduck import CatalogUnavailable, InvalidRequest, ShelduckError
from shelduck.catalog.databases.address import parse_address
from shelduck.catalog.databases.duckdb_view import duckdb_rows
from shelduck.catalog.databases.store import open_store
from shelduck.cli import main
from shelduck.doors.connect import connect_existing
from shelduck.model.files.storage_settings import StorageSettings
from shelduck.web.guard import Guard
from shelduck.web.site import Site
from tests.support.secret_places import every_text, reached

SECRET = "Gehe1m-Wort"
CLOSED = "127.0.0.1:1"

UNREACHABLE = {
    "refused": f"postgresql://u:{SECRET}@{CLOSED}/db",
    "escaped": f"postgresql://u:{SECRET}%40x@{CLOSED}/db",
    "as option": f"postgresql://u@{CLOSED}/db?password={SECRET}",
    "twice": f"postgresql://u:{SECRET}@{CLOSED}/db?password={SECRET}&password={SECRET}",
    "of the key": f"postgresql://u@{CLOSED}/db?sslpassword={SECRET}",
    "no host": f"postgresql://u:{SECRET}@nowhere.invalid/db",
    "no socket": f"postgresql://u:{SECRET}@/db?host=/nowhere",
    "ssl mode": f"postgresql://u:{SECRET}@{CLOSED}/db?sslmode=sometimes",
    "service": f"postgresql://u:{SECRET}@{CLOSED}/db?service=none",
    "value": f"postgresql://u@{CLOSED}/db?keepalives={SECRET}",
    "duckdb": f"duckdb:////nowhere/lake.ducklake?password={SECRET}",
}
WRONG = {
    "at": f"postgresql://u:a@{SECRET}@{CLOSED}/db",
    "at the end": f"postgresql://u:{SECRET}{CLOSED}/db",
    "at and slash": f"postgresql://u:a@b/{SECRET}@{CLOSED}/db",
    "at and mark": f"postgresql://u:a@{SECRET}?x@{CLOSED}/db",
    "at and options": f"postgresql://u:a@{SECRET}?x=y@{CLOSED}/db",
    "port": f"postgresql://u:{SECRET}@127.0.0.1:{SECRET}/db",
    "no user": f"postgresql://host:{SECRET}/db",
    "no slashes": f"postgresql:u:{SECRET}@{CLOSED}/db",
    "blank": f"post gresql://u:{SECRET}@{CLOSED}/db",
    "no scheme": f"u:{SECRET}@{CLOSED}/db",
    "database": f"mysql://u:{SECRET}@{CLOSED}/db",
    "driver": f"postgresql+{SECRET}://u:{SECRET}@{CLOSED}/db",
    "option": f"postgresql://u@{CLOSED}/db?unknown={SECRET}",
    "plugin": f"postgresql://u@{CLOSED}/db?plugin={SECRET}",
    "truth": f"sqlite:////nowhere/lake.db?check_same_thread={SECRET}",
}
ADDRESSES = UNREACHABLE | WRONG


CALLS = {
    "connect": lambda url, folder: shelduck.connect(url, f"{folder}/data"),
    "existing": lambda url, folder: connect_existing(url),
    "read": lambda url, folder: open_store(url).read().__enter__(),
    "write": lambda url, folder: open_store(url).write().__enter__(),
}


@pytest.mark.sampled(15)
@pytest.mark.filterwarnings("ignore:Query string argument")
@pytest.mark.parametrize("name", ADDRESSES)
def test_no_error_shows_a_secret(name, tmp_path, caplog, capfd, monkeypatch):
    monkeypatch.delenv("PGSERVICEFILE", raising=False)
    caplog.set_level(logging.DEBUG)
    kind = InvalidRequest if name in WRONG else ShelduckError
    for call in CALLS.values():
        with pytest.raises(kind) as caught:
            call(ADDRESSES[name], tmp_path)
        assert SECRET not in every_text(caught.value)
    monkeypatch.setattr(sys, "argv", ["shelduck", "tables", "-c", ADDRESSES[name]])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    printed = "".join(capfd.readouterr())
    assert printed
    assert SECRET not in printed + caplog.text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://u:pass@h:5/db", "postgresql://u:***@h:5/db"),
        ("postgresql://u:p%40ss@h/db?host=/tmp", "postgresql://u:***@h/db?host=%2Ftmp"),
        ("postgresql://h/db?password=x&sslmode=require", "postgresql://h/db?password=***&sslmode=require"),
        ("sqlite:////a/b.db?key=x&timeout=3", "sqlite:////a/b.db?key=***&timeout=3"),
    ],
)  # fmt: skip
def test_an_address_is_shown_without_its_secrets(text, shown):
    found = parse_address(text)
    assert str(found) == found.shown == shown
    assert "pass" not in repr(found)


def test_a_short_secret_is_hidden_where_it_stands_alone():
    found = parse_address("postgresql://u:db@h/x?password=secret")
    assert found.hide("user db of database, secretly") == "user *** of database, ***ly"


@pytest.mark.parametrize("password", ["a%40b", "a:b", "a/b", "a?b", "a#b", "a%2Fb"])
def test_what_can_be_read_in_one_way_is_read(password):
    assert parse_address(f"postgresql://u:{password}@h/db").url.host == "h"


@contextmanager
def asking_for_passwords(server):
    """A role that the server lets in by password only; yields the address of a database for it."""
    database = server.create_database()
    with psycopg.connect(database, autocommit=True) as connection:
        [[place]] = connection.execute("SHOW hba_file").fetchall()
        rules = Path(place).read_text()
        connection.execute("CREATE ROLE asked LOGIN PASSWORD 'right'")
        Path(place).write_text(f"local all asked scram-sha-256\n{rules}")
        connection.execute("SELECT pg_reload_conf()")
        try:
            yield database
        finally:
            Path(place).write_text(rules)
            connection.execute("SELECT pg_reload_conf()")
    server.drop_database(database)
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute("DROP ROLE asked")


def test_a_wrong_password_is_not_shown(postgres_server, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    with asking_for_passwords(postgres_server) as database:
        for url in (
            database.replace("postgres@", f"asked:{SECRET}@"),
            database.replace("postgres@", "asked@") + f"&password={SECRET}",
        ):
            for call in CALLS.values():
                with pytest.raises(CatalogUnavailable) as caught:
                    call(url, tmp_path)
                text = every_text(caught.value)
                assert "password authentication failed" in text
                assert SECRET not in text + caplog.text


def test_a_lake_that_is_open_shows_no_secret(postgres_url, tmp_path, caplog, capfd, monkeypatch):
    caplog.set_level(logging.DEBUG)
    url = postgres_url.replace("postgres@", f"postgres:{SECRET}@") + f"&sslpassword={SECRET}"
    told = []
    for wrong in (lambda: connect_existing(url), lambda: shelduck.connect(url)):
        with pytest.raises(InvalidRequest) as caught:
            wrong()
        told.append(every_text(caught.value))
    with shelduck.connect(url, f"{tmp_path}/data") as lake:
        told += [repr(lake), str(lake), repr(lake._state), repr(lake._state.store)]
        for wrong in (
            lambda: shelduck.connect(url, "/elsewhere"),
            lambda: lake.table("nowhere").columns,
            lambda: lake.set_option("nothing", 1),
            lambda: list(duckdb_rows(url, "SELECT * FROM nowhere")),
        ):
            with pytest.raises(Exception) as caught:  # noqa: PT011 - any error
                wrong()
            told.append(every_text(caught.value))
    monkeypatch.setattr(sys, "argv", ["shelduck", "history", "--json", "-c", url])
    with pytest.raises(SystemExit):
        main()
    told += [*capfd.readouterr(), caplog.text]
    assert any("***" in text for text in told)
    assert SECRET not in "\n".join(told)


def test_no_object_of_a_lake_shows_a_secret(postgres_url, tmp_path):
    url = postgres_url.replace("postgres@", f"postgres:{SECRET}@") + f"&sslpassword={SECRET}"
    settings = {"spark.hadoop.fs.s3a.secret.key": SECRET}
    with shelduck.connect(url, f"{tmp_path}/data", config=settings) as lake:
        lake.execute("CREATE TABLE t (id INT); INSERT INTO t VALUES (1)")
        state = lake._state
        state.storage = StorageSettings(access_key=SECRET, secret_key=SECRET)
        table, site = lake.table("t"), Site(state, Guard(1), rows_from=url)
        with lake.transaction() as open_one:
            roots = (
                lake,
                table,
                open_one,
                table.plan_alter(shelduck.rename_column("id", "n")),
                site,
            )
            found = list(reached(roots))
            assert len(found) > 20
            telling = {type(one).__name__ for one in found if SECRET in repr(one)}
    assert telling == set()
    assert repr(state) == f"LakeState({state.store.where!r})"
