"""Passwords that do not stand in the address: libpq's variables, password file and services."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

import shelduck
from shelduck import CatalogUnavailable

USER, PASSWORD = "keeper", "Gehe1m-Wort"


@pytest.fixture(scope="module")
def guarded(postgres_server):
    """A server on which one user needs a password."""
    with psycopg.connect(postgres_server.url("postgres"), autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {USER} SUPERUSER LOGIN PASSWORD '{PASSWORD}'")
        rules = Path(admin.execute("SHOW hba_file").fetchone()[0])
        before = rules.read_text()
        rules.write_text(f"local all {USER} scram-sha-256\n{before}")
        admin.execute("SELECT pg_reload_conf()")
        yield postgres_server
        rules.write_text(before)
        admin.execute("SELECT pg_reload_conf()")
        admin.execute(f"DROP OWNED BY {USER} CASCADE")
        admin.execute(f"DROP ROLE {USER}")


@pytest.fixture
def place(guarded, monkeypatch):
    """The socket and the name of an empty database."""
    for name in ("PGPASSWORD", "PGPASSFILE", "PGSERVICE", "PGSERVICEFILE"):
        monkeypatch.delenv(name, raising=False)
    with guarded.fresh_database() as url:
        yield guarded.socket_dir, urlsplit(url).path.removeprefix("/")


def as_variable(socket, database, folder, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    return f"postgresql://{USER}@/{database}?host={socket}"


def password_file(folder):
    file = folder / "passwords"
    file.write_text(f"*:*:*:{USER}:{PASSWORD}\n")
    file.chmod(0o600)
    return file


def in_file(socket, database, folder, monkeypatch):
    monkeypatch.setenv("PGPASSFILE", str(password_file(folder)))
    return f"postgresql://{USER}@/{database}?host={socket}"


def in_named_file(socket, database, folder, monkeypatch):
    return f"postgresql://{USER}@/{database}?host={socket}&passfile={password_file(folder)}"


def in_service(socket, database, folder, monkeypatch):
    file = folder / "services.conf"
    lines = {"host": socket, "dbname": database, "user": USER, "password": PASSWORD}
    file.write_text("[lake]\n" + "".join(f"{key}={value}\n" for key, value in lines.items()))
    monkeypatch.setenv("PGSERVICEFILE", str(file))
    return "postgresql:///?service=lake"


@pytest.mark.parametrize("say", [as_variable, in_file, in_named_file, in_service])
def test_a_password_may_be_where_libpq_looks_for_it(place, tmp_path, monkeypatch, say):
    address = say(*place, tmp_path, monkeypatch)
    with shelduck.connect(address, f"{tmp_path}/data") as lake:
        lake.create_table("t", {"id": "int"})
        assert [table.name for table in lake.tables()] == ["t"]
        assert PASSWORD not in repr(lake)


@pytest.mark.parametrize("say", [as_variable, in_file])
def test_a_wrong_password_is_one_sentence_without_it(place, tmp_path, monkeypatch, say):
    monkeypatch.setattr(f"{__name__}.PASSWORD", "Fal5ch-Wort")
    address = say(*place, tmp_path, monkeypatch)
    with pytest.raises(CatalogUnavailable, match="password authentication failed") as caught:
        shelduck.connect(address, f"{tmp_path}/data")
    assert "Fal5ch" not in str(caught.value)
