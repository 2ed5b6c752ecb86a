"""Addresses that lead to no lake: one sentence each, which says what to do."""

from __future__ import annotations

import builtins
import importlib
import sys

import psycopg
import pytest

import shelduck
from shelduck import CatalogUnavailable, InvalidRequest, Unsupported
from shelduck.doors.connect import connect_existing
from shelduck.engine import session

CLOSED = "postgresql://u@127.0.0.1:1/db"
WRONG = {
    "postgresql://u@h:99999/db": "has no valid port; use 1 to 65535",
    "postgresql://u@h:x/db": "and use a number as the port",
    "postgresql://u@h/db?nope=1": "does not support the setting 'nope'; leave it out (known",
    "sqlite:////nowhere/x.db?nope=1": "does not support the setting 'nope'; leave it out (known",
    "sqlite:////tmp/x.db?timeout=abc": "could not convert string to float: 'abc'; correct its addr",
    "sqlite:////nowhere/x.db": "the folder /nowhere of the sqlite catalog x.db does not exist",
    "duckdb:////nowhere/x.db": "the folder /nowhere of the duckdb catalog x.db does not exist",
    "sqlite:////tmp": "the sqlite catalog /tmp is a folder; name a file in it",
    "mysql://u@h/db": "unknown catalog database 'mysql'; use sqlite:////file.db, postgresql://",
    "nothing": "cannot parse the catalog address; use sqlite:////file.db, postgresql://",
}


def one_sentence(error):
    text = str(error)
    assert "\n" not in text
    assert not text.endswith(".")
    return text


@pytest.mark.parametrize(("address", "told"), WRONG.items(), ids=WRONG)
def test_an_address_that_cannot_be_used_is_told_in_one_sentence(address, told, tmp_path):
    with pytest.raises(InvalidRequest) as caught:
        shelduck.connect(address, f"{tmp_path}/data")
    assert told in one_sentence(caught.value)


REFUSED = {
    "nobody listens": (lambda url: CLOSED, "check host and port in the address, and that the"),
    "no host": (lambda url: "postgresql://u@nowhere.invalid/db", "check the host in the address"),
    "no database": (
        lambda url: url.replace("lake_", "other_"),
        "create the database, or correct its name in the address",
    ),
    "no role": (
        lambda url: url.replace("postgres@", "nobody@"),
        "create the role, or correct the user in the address",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_server_that_refuses_is_told_with_a_way_out(name, postgres_url, tmp_path):
    change, told = REFUSED[name]
    with pytest.raises(CatalogUnavailable) as caught:
        shelduck.connect(change(postgres_url), f"{tmp_path}/data")
    assert one_sentence(caught.value).endswith(told) or told in str(caught.value)


@pytest.fixture
def reader(postgres_url, tmp_path):
    """The address of a lake for a role without rights, and a connection that grants them."""
    with shelduck.connect(postgres_url, f"{tmp_path}/data") as lake:
        lake.create_table("t", {"id": "int"})
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute("CREATE ROLE rosa LOGIN")
        yield postgres_url.replace("postgres@", "rosa@"), admin
        admin.execute("DROP OWNED BY rosa; DROP ROLE rosa")


def test_a_right_that_is_missing_is_named_with_its_object(reader):
    address, admin = reader

    def refusal(act):
        with pytest.raises(CatalogUnavailable) as caught:
            act()
        text = one_sentence(caught.value)
        assert text.startswith("catalog postgresql://rosa@/lake_")
        assert "the server denies its role a right; nothing was written (permission" in text
        assert "cannot be reached" not in text
        return text.partition("written (")[2]

    select = (
        "); ask its owner to GRANT SELECT to a role that reads, and also INSERT, UPDATE, DELETE and"
        " TRIGGER to one that writes"
    )
    told = refusal(lambda: connect_existing(address))
    assert told == f"permission denied for table ducklake_metadata{select}"
    admin.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO rosa")
    with connect_existing(address) as lake:
        told = refusal(lambda: lake.execute("INSERT INTO t VALUES (1)"))
        assert told == f"permission denied for table ducklake_snapshot{select}"
        admin.execute("GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO rosa")
        told = refusal(lambda: lake.create_table("u", {"id": "int"}))
        assert told == (
            "permission denied for schema public); ask its owner to GRANT USAGE ON SCHEMA to this"
            " role, and CREATE to one that writes"
        )


@pytest.mark.parametrize(
    ("module", "address", "extra"),
    [("psycopg", "postgresql://u@h/db", "postgres"), ("duckdb", "duckdb:////tmp/x.lake", "duckdb")],
)
def test_a_driver_that_is_missing_is_named_with_its_extra(module, address, extra, monkeypatch):
    find, load = builtins.__import__, importlib.import_module

    def refuse(name):
        if name.partition(".")[0] == module:
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    monkeypatch.setattr(
        builtins, "__import__", lambda name, *a, **k: refuse(name) or find(name, *a, **k)
    )
    monkeypatch.setattr(importlib, "import_module", lambda name, *a: refuse(name) or load(name, *a))
    for found in [m for m in sys.modules if m.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, found)
    monkeypatch.setattr(
        "shelduck.catalog.databases.postgres.import_module", importlib.import_module
    )
    with pytest.raises(InvalidRequest) as caught:
        shelduck.connect(address, "/tmp/data")
    assert one_sentence(caught.value) == (
        f"{module!r} is not installed; run pip install '.[{extra}]' in your checkout of Shelduck"
    )


def test_no_java_is_told_before_spark_starts(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(Unsupported) as caught:
        session._require_java()
    assert one_sentence(caught.value) == (
        "Spark needs Java 17 or newer, but none is on the path; install it, or set JAVA_HOME to"
        " where it is"
    )
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(
        Unsupported, match="but JAVA_HOME is '/nowhere', which has no bin/java; inst"
    ):
        session._require_java()


@pytest.mark.parametrize(("version", "number"), [("1.8.0_402", 8), ("11.0.2", 11)])
def test_a_java_that_is_too_old_is_told(version, number, tmp_path, monkeypatch):
    java = tmp_path / "bin/java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2024' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(Unsupported) as caught, session._told_of_java(session._require_java()):
        raise RuntimeError("the JVM went away")
    assert one_sentence(caught.value) == (
        f"Spark needs Java 17 or newer, but {java} is Java {number}; install it, or set JAVA_HOME"
        " to where it is"
    )


def test_an_error_under_a_java_that_is_new_enough_stays_as_it_is():
    with pytest.raises(RuntimeError, match="full"), session._told_of_java(session._require_java()):
        raise RuntimeError("the disk is full")
