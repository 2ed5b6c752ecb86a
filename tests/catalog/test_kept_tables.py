"""Tables that a process keeps: read again whenever the catalog has become another one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from shelduck.catalog.databases.store import open_store
from shelduck.catalog.read import read
from shelduck.catalog.read.kept_tables import KeptTables
from shelduck.catalog.schema.lake_schema import open_lake
from shelduck.model.changes.schema_change import SetComment
from tests.support.lake import Lake, altered
from tests.support.oracle import DuckDBOracle


class Keeper:
    """A process that has read table t, and reads it again after others changed the lake."""

    def __init__(self, url):
        self.store = open_store(url)
        self.info = open_lake(self.store)
        self.kept = KeptTables(self.info)

    def table(self):
        """The kept table, after a comparison with a new read of it."""
        with self.store.read() as connection:
            found = self.kept.table(connection, "main", "t")
            assert found == read.table(
                connection, read.snapshot(connection), "main", "t", self.info
            )
        return found

    def asks(self):
        """How many statements the table takes."""
        with self.store.read() as connection:
            before = self.store.statements
            self.kept.table(connection, "main", "t")
            return self.store.statements - before


@pytest.fixture
def made(lake_url, data_path):
    with DuckDBOracle(lake_url, data_path) as oracle:
        oracle.execute("CREATE TABLE t (a INTEGER, b VARCHAR, s STRUCT(x INTEGER))")
        oracle.execute("INSERT INTO t VALUES (1, 'a', {x: 1})")
    return lake_url


CHANGES = [
    "COMMENT ON TABLE t IS 'new'",
    "COMMENT ON COLUMN t.a IS 'new'",
    "ALTER TABLE t SET PARTITIONED BY (a)",
    "ALTER TABLE t SET SORTED BY (a)",
    "ALTER TABLE t ALTER b SET DEFAULT 'x'",
    "ALTER TABLE t ALTER b SET NOT NULL",
    "ALTER TABLE t RENAME COLUMN b TO c",
    "ALTER TABLE t ADD COLUMN d INTEGER DEFAULT 3",
    "ALTER TABLE t DROP COLUMN c",
    "ALTER TABLE t ADD COLUMN s.y INTEGER",
    "ALTER TABLE t ALTER a TYPE BIGINT",
]


@pytest.mark.every_database
def test_whatever_duckdb_changes_in_a_table_is_seen_at_once(made):
    keeper = Keeper(made)
    seen = keeper.table()
    for statement in CHANGES:
        keeper.store.close()
        with DuckDBOracle(made) as oracle:
            oracle.execute(statement)
        found = keeper.table()
        assert found.snapshot.id == seen.snapshot.id + 1
        assert found.snapshot.schema_version == seen.snapshot.schema_version + 1, statement
        seen = found
    keeper.store.close()


@pytest.mark.every_database
def test_options_are_read_every_time(made):
    keeper = Keeper(made)
    assert keeper.table().options.target_file_size == 512 * 2**20
    keeper.store.close()
    with DuckDBOracle(made) as oracle:
        oracle.execute("CALL lake.set_option('target_file_size', '1MB', table_name => 't')")
    assert keeper.table().options.target_file_size == 1_000_000
    keeper.store.close()


def test_a_table_of_the_same_name_is_another_one(made):
    keeper = Keeper(made)
    first = keeper.table()
    with DuckDBOracle(made) as oracle:
        oracle.execute("ALTER TABLE t RENAME TO u")
        oracle.execute("CREATE TABLE t (z INTEGER)")
    assert keeper.table().columns.names == ["z"]
    assert keeper.table().id != first.id
    keeper.store.close()


def test_a_backup_that_takes_the_place_of_the_catalog_has_its_own_history(sqlite_url, data_path):
    lake, backup = Lake(sqlite_url, data_path), Path(data_path).parent / "backup.db"
    file = Path(sqlite_url.removeprefix("sqlite:///"))
    lake.create(a="int")
    lake.store.close()
    shutil.copy(file, backup)
    comments = []
    keeper = Keeper(sqlite_url)
    for text in ("before", "after"):
        lake.commit(altered(lake.table("t"), SetComment((), text)))
        lake.store.close()
        found = keeper.table()
        comments.append((found.snapshot.id, found.snapshot.schema_version, found.comments[None]))
        keeper.store.close()
        shutil.copy(backup, file)
    # The same numbers for different commits.
    assert comments == [(2, 2, "before"), (2, 2, "after")]


def test_a_lake_that_is_made_again_has_its_own_tables(sqlite_url, data_path):
    file = Path(sqlite_url.removeprefix("sqlite:///"))
    found = []
    keeper = None
    for name in ("a", "b"):
        file.unlink(missing_ok=True)
        lake = Lake(sqlite_url, data_path)
        lake.create(**{name: "int"})
        lake.store.close()
        keeper = keeper or Keeper(sqlite_url)
        table = keeper.table()
        found.append((table.snapshot.id, table.id, *table.columns.names))
        keeper.store.close()
    assert found == [(1, 1, "a"), (1, 1, "b")]


@pytest.mark.every_database
def test_an_unchanged_table_takes_one_statement_after_rows_were_written(made):
    keeper = Keeper(made)
    assert [keeper.asks(), keeper.asks()] == [3, 1]
    keeper.store.close()
    with DuckDBOracle(made) as oracle:
        oracle.execute("INSERT INTO t VALUES (2, 'b', {x: 2})")
    assert keeper.asks() == 1
    assert keeper.table().snapshot.id == 3
    keeper.store.close()
