"""What a process keeps of its own commits is what a read of the catalog returns."""

from __future__ import annotations

import sys
from contextlib import closing

import pytest

import shelduck
from shelduck.catalog.read import read
from shelduck.catalog.read.kept_tables import KeptTables
from shelduck.errors import Conflict
from tests.support.contenders import OURS
from tests.support.contested import make_contested
from tests.support.copies import SQLiteCopies
from tests.support.lake import Lake
from tests.support.oracle import DuckDBOracle

TABLES = ("main", "t"), ("side", "s")
# What changes the columns, the description or the name of a table that was there before.
ALTERING = {
    *("rename table", "rename table to else", "rename side.s", "add column"),
    *("comment", "set not null", "partition", "sort"),
}


@pytest.fixture(scope="module")
def contested(tmp_path_factory):
    copies = SQLiteCopies(tmp_path_factory.mktemp("catalogs"))
    url = copies.fresh()
    with closing(make_contested(url, f"{tmp_path_factory.mktemp('data')}/").store):
        pass
    return copies, url


def _names(connection, lake):
    at = read.snapshot(connection)
    for schema in read.schemas(connection, at, lake.info):
        for name in read.table_names(connection, at, schema):
            yield schema.name, name


def _followed(lake, kept, changes):
    """Commit changes and let what is kept follow; then every table is as a read finds it.

    Returns the names of the tables that take no more than one statement.
    """
    landed = lake.commit(*changes)
    if landed.before is not None:
        kept.follow(landed.before, landed.snapshot, landed.altered)
    known = set()
    with lake.store.read() as connection:
        for schema, name in list(_names(connection, lake)):
            before = lake.store.statements
            found = kept.table(connection, schema, name)
            if lake.store.statements == before + 1:
                known.add(f"{schema}.{name}")
            assert found == read.table(
                connection, read.snapshot(connection), schema, name, lake.info
            )
    return known


@pytest.mark.parametrize("name", sorted(OURS))
def test_after_each_kind_of_change_what_is_kept_is_what_a_read_finds(contested, name):
    copies, url = contested
    lake = Lake(copies.copy(url), None)
    with closing(lake.store):
        kept = KeptTables(lake.info)
        with lake.store.read() as connection:
            for table in TABLES:
                kept.table(connection, *table)
        known = _followed(lake, kept, OURS[name].make(lake))
    if name in ALTERING:
        (altered,) = (
            {"side.fresh"} if name == "rename side.s" else {OURS[name].effect.t or "main.t"}
        )
        assert altered in known
    copies.remove(lake.url)


STATEMENTS = [
    "ALTER TABLE t ADD COLUMN c INT",
    "ALTER TABLE t ADD COLUMN d STRING DEFAULT 'NULLs' COMMENT 'text' FIRST",
    "ALTER TABLE t ADD COLUMN len VARCHAR(10)",
    "ALTER TABLE t RENAME COLUMN c TO e",
    "ALTER TABLE t ALTER COLUMN a TYPE BIGINT",
    "ALTER TABLE t ALTER COLUMN s.x TYPE BIGINT",
    "ALTER TABLE t ADD COLUMN s.y DECIMAL(9, 2)",
    "ALTER TABLE t ADD COLUMN s.z ARRAY<STRUCT<q: INT, r: MAP<STRING, TIMESTAMP>>>",
    "ALTER TABLE t RENAME COLUMN s.y TO yy",
    "ALTER TABLE t DROP COLUMN s.x",
    "ALTER TABLE t ALTER COLUMN len TYPE VARCHAR(20)",
    "ALTER TABLE t RENAME COLUMN len TO long",
    "ALTER TABLE t ADD COLUMN s.short VARCHAR(3), ALTER COLUMN long TYPE VARCHAR(30)",
    "ALTER TABLE t ALTER COLUMN s.short TYPE VARCHAR(4)",
    "ALTER TABLE t ALTER COLUMN s.short TYPE STRING",
    "ALTER TABLE t DROP COLUMN s.short",
    "ALTER TABLE t ALTER COLUMN e AFTER b",
    "ALTER TABLE t ALTER COLUMN e FIRST",
    "ALTER TABLE t ALTER COLUMN e AFTER long",
    "ALTER TABLE t ALTER COLUMN e SET DEFAULT 7",
    "ALTER TABLE t ALTER COLUMN b SET DEFAULT current_date()",
    "ALTER TABLE t ALTER COLUMN e DROP DEFAULT",
    "ALTER TABLE t ALTER COLUMN a SET NOT NULL",
    "ALTER TABLE t ALTER COLUMN a DROP NOT NULL",
    "COMMENT ON TABLE t IS 'a table'",
    "COMMENT ON COLUMN t.e IS 'moved'",
    "COMMENT ON TABLE t IS NULL",
    "ALTER TABLE t SET PARTITIONED BY (a, bucket(4, long))",
    "ALTER TABLE t SET SORTED BY (a DESC, e)",
    "ALTER TABLE t RESET PARTITIONED BY",
    "ALTER TABLE t RESET SORTED BY",
    "ALTER TABLE t SET TBLPROPERTIES ('owner' = 'me')",
    "ALTER TABLE t UNSET TBLPROPERTIES ('owner')",
    "ALTER TABLE t DROP COLUMN d",
    "ALTER TABLE t ADD COLUMN d INT, DROP COLUMN d",
    "ALTER TABLE t ADD COLUMN d INT, RENAME COLUMN d TO f, ALTER COLUMN f FIRST",
    "ALTER TABLE t RENAME TO u",
    "ALTER TABLE u RENAME TO t",
]


@pytest.fixture
def lake(lake_url, data_path):
    with shelduck.connect(lake_url, data_path) as made:
        made.execute("CREATE TABLE t (a INT, b DATE, s STRUCT<x: INT>)")
        yield made


def _looked_up(lake, name="t"):
    """Compare a kept table with a read; return how many statements it took."""
    state = lake._state
    with state.store.read() as connection:
        before = state.store.statements
        found = state.tables.table(connection, "main", name)
        took = state.store.statements - before
        again = read.table(connection, read.snapshot(connection), "main", name, state.info)
        assert found == again
        # Types of texts are equal whatever their lengths.
        assert repr(found.columns) == repr(again.columns)
        kept, made = found.columns.index, again.columns.index
        assert kept == made
        assert repr(sorted(kept.by_id.items())) == repr(sorted(made.by_id.items()))
    return took


def test_a_table_that_this_process_alters_is_not_read_again(lake, lake_url):
    lake.close()
    # A DuckDB file that is opened for each statement costs more than all statements.
    stays = "?keep_open=600" if lake_url.startswith("duckdb") else ""
    with shelduck.connect(lake_url + stays) as kept:
        _looked_up(kept)
        for statement in STATEMENTS:
            kept.execute(statement)
            name = "u" if statement.endswith("TO u") else "t"
            assert _looked_up(kept, name) == 1, statement


def test_a_transaction_that_fails_leaves_what_is_kept(lake):
    _looked_up(lake)
    unit = lake.transaction()
    unit.table("t").alter(shelduck.add_column("gone", "int"))
    unit.rollback()
    assert _looked_up(lake) == 1
    assert lake.table("t").columns.names == ["a", "b", "s"]


def test_a_commit_that_loses_leaves_what_is_kept(lake, lake_url):
    _looked_up(lake)
    with shelduck.connect(lake_url) as other:
        unit = lake.transaction()
        unit.table("t").alter(shelduck.add_column("mine", "int"))
        other.execute("ALTER TABLE t ADD COLUMN theirs INT")
        with pytest.raises(Conflict):
            unit.commit()
    _looked_up(lake)
    assert lake.table("t").columns.names == ["a", "b", "s", "theirs"]


@pytest.mark.every_database
def test_what_others_commit_after_an_alter_is_seen(lake, lake_url):
    lake.execute("ALTER TABLE t ADD COLUMN c INT")
    lake._state.store.close()
    with DuckDBOracle(lake_url) as oracle:
        oracle.execute("ALTER TABLE t ADD COLUMN theirs INTEGER")
    lake.execute("ALTER TABLE t ADD COLUMN d INT")
    _looked_up(lake)
    assert lake.table("t").columns.names == ["a", "b", "s", "c", "theirs", "d"]
    lake._state.store.close()
    with DuckDBOracle(lake_url) as oracle:
        assert [name for name, _ in oracle.columns("t")] == ["a", "b", "s", "c", "theirs", "d"]


def test_rows_that_others_add_between_do_not_mislead_what_is_kept(lake, lake_url):
    _looked_up(lake)
    with shelduck.connect(lake_url) as other, lake.transaction() as unit:
        unit.table("t").alter(shelduck.add_column("mine", "int"))
        other.execute("INSERT INTO t VALUES (1, NULL, NULL)")
    _looked_up(lake)
    assert lake.table("t").columns.names == ["a", "b", "s", "mine"]


def _calls(act):
    """How many functions of Python are called, and generators resumed."""
    found = 0

    def look(_frame, event, _):
        nonlocal found
        found += event == "call"

    sys.setprofile(look)
    try:
        act()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.databases("sqlite", "postgres")
def test_an_alter_does_not_look_at_columns_that_stay(lake):
    def cost(columns):
        # Only DuckDB's own files have a table for inlined rows with so many columns.
        table = lake.create_table(f"t{columns}", {f"c{n}": "int" for n in range(columns)})
        steps = [
            shelduck.add_column("x", "int"),
            shelduck.rename_column("c9", "d"),
            shelduck.change_type("c900", "bigint"),
            shelduck.set_default("d", "7"),
            shelduck.set_comment("x", "text"),
            shelduck.set_properties({"owner": "me"}),
        ]
        table.alter(shelduck.add_column("warm", "int"))
        return [_calls(lambda step=step: table.alter(step)) for step in steps]

    few, many = cost(2_001), cost(4_002)
    assert all(m <= f + 200 for f, m in zip(few, many, strict=True)), (few, many)
