"""Texts that a database cannot hold: one clear refusal on each, and the lake is as before."""

from __future__ import annotations

import pytest

import shelduck
from shelduck import InvalidRequest, NotFound

HALF = "a\ud800b"
NUL = "a\0b"


def asks(lake, bad):
    """What a user may say with the text, by what it is."""
    table = lake.table("t")
    return {
        "comment": lambda: table.alter(shelduck.set_comment("id", bad)),
        "property": lambda: table.alter(shelduck.set_properties({"k": bad})),
        "default": lambda: table.alter(shelduck.set_default("s", bad)),
        "name": lambda: lake.table(bad).columns,
        "new name": lambda: table.rename(bad),
        "schema": lambda: lake.create_schema(bad),
        "batch": lambda: lake.transaction(once=(bad, 1)).commit(),
        "message": lambda: _with_message(lake, bad),
        "statement": lambda: lake.execute(f"COMMENT ON TABLE t IS '{bad}'"),
        "row": lambda: lake.execute(f"INSERT INTO t VALUES (1, '{bad}')"),
        "view": lambda: lake.execute(f"CREATE VIEW v AS SELECT '{bad}' AS c"),
        "files": lambda: table.add_files(bad),
        "delta": lambda: lake.import_delta(bad, "n"),
    }


def _with_message(lake, bad):
    with lake.transaction(bad) as transaction:
        transaction.create_table("n", {"id": "int"})


@pytest.fixture
def lake(lake_url, tmp_path, spark):
    with shelduck.connect(lake_url, f"{tmp_path}/data", spark) as lake:
        lake.create_table("t", {"id": "int", "s": "string"})
        yield lake


@pytest.mark.every_database
def test_half_of_a_character_is_refused_in_all_texts(lake):
    for act in asks(lake, HALF).values():
        with pytest.raises(InvalidRequest, match=r"U\+D800"):
            act()
    assert len(lake.snapshots()) == 2


def test_postgresql_holds_no_nul_and_the_lake_is_not_called_corrupt(postgres_url, tmp_path):
    with shelduck.connect(postgres_url, f"{tmp_path}/data") as lake:
        lake.create_table("t", {"id": "int", "s": "string"})
        for what in ("comment", "property", "name", "message", "statement"):
            with pytest.raises(InvalidRequest, match=r"'a\\x00b' has the character U\+0000"):
                asks(lake, NUL)[what]()
        lake.execute("INSERT INTO t VALUES (1, 'a\0b')")
        assert len(lake.snapshots()) == 3


def test_nul_is_in_no_name_and_in_no_path_wherever_the_catalog_is(lake, tmp_path):
    for what in ("new name", "schema", "files", "delta"):
        with pytest.raises(InvalidRequest, match=r"has the character U\+0000, which no"):
            asks(lake, NUL)[what]()
    # PostgreSQL cannot even look for it.
    with pytest.raises(InvalidRequest if lake._state.store.kind == "postgresql" else NotFound):
        asks(lake, NUL)["name"]()
    for path in (NUL, HALF):
        with pytest.raises(InvalidRequest, match=r"has the character U\+\w{4}, which no path"):
            shelduck.connect(f"sqlite:///{tmp_path}/other.db", f"{tmp_path}/{path}")
        with pytest.raises(InvalidRequest, match="has a character that no address has"):
            shelduck.connect(f"sqlite:///{tmp_path}/{path}.db", f"{tmp_path}/data")
