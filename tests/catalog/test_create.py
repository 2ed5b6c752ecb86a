from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest
from sqlalchemy import delete, insert, select, text, update

from shelduck.catalog.databases.known import dialect_of
from shelduck.catalog.databases.store import open_store
from shelduck.catalog.schema.lake_schema import (
    LakeInfo,
    create_lake,
    open_lake,
    open_or_create_lake,
)
from shelduck.catalog.schema.own_tables import ensure_own_tables, indexes
from shelduck.ducklake import tables
from shelduck.errors import AlreadyExists, CorruptLake, InvalidRequest, NotFound, Unsupported
from tests.support.oracle import DuckDBOracle

pytestmark = pytest.mark.every_database

OWN_TABLES = {"shelduck_layout", "shelduck_file_layout"}


@pytest.fixture
def store(lake_url):
    with_store = open_store(lake_url)
    yield with_store
    with_store.close()


def set_option(store, key, value):
    t = tables.metadata
    with store.write() as connection:
        connection.execute(update(t).where(t.c.key == key).values(value=value))


def test_new_lake_has_the_first_rows_of_the_spec(store, data_path):
    before = datetime.now(UTC)
    create_lake(store, data_path)

    with store.read() as connection:
        options = connection.execute(select(tables.metadata)).all()
        [(snapshot, at, *counters)] = connection.execute(select(tables.snapshot)).all()
        changes = connection.execute(select(tables.snapshot_changes)).all()
        [schema] = connection.execute(select(tables.schema)).all()
        others = [t for t in tables.DUCKLAKE.tables.values() if connection.execute(select(t)).all()]

    assert ("version", "1.0", None, None) in options
    assert ("data_path", data_path, None, None) in options
    assert ("encrypted", "false", None, None) in options
    [created_by] = [row.value for row in options if row.key == "created_by"]
    assert created_by.startswith("Shelduck")
    assert len(options) == 4
    assert (snapshot, counters) == (0, [0, 1, 0])
    assert before <= at <= datetime.now(UTC)
    assert changes == [(0, 'created_schema:"main"', None, None, None)]
    assert (schema[0], *schema[2:]) == (0, 0, None, "main", "main/", True)
    assert schema.schema_uuid[14] == "4"
    assert {t.name for t in others} == {
        "ducklake_metadata",
        "ducklake_snapshot",
        "ducklake_snapshot_changes",
        "ducklake_schema",
    }


def test_duckdb_reads_writes_and_alters_a_lake_made_here(store, lake_url, data_path):
    create_lake(store, data_path)
    with DuckDBOracle(lake_url, options={"DATA_INLINING_ROW_LIMIT": 0}) as oracle:
        oracle.execute("CREATE TABLE t (a INTEGER, s STRUCT(x INTEGER))")
        oracle.execute("INSERT INTO t SELECT range, {'x': range} FROM range(100)")
        oracle.execute("ALTER TABLE t ADD COLUMN b VARCHAR DEFAULT 'x'")
        oracle.execute("ALTER TABLE t ALTER a TYPE BIGINT")
        oracle.execute("ALTER TABLE t RENAME COLUMN b TO c")
        oracle.execute("ALTER TABLE t SET PARTITIONED BY (c)")
        oracle.execute("INSERT INTO t VALUES (100, {'x': 1}, 'y')")
        oracle.execute("UPDATE t SET c = 'z' WHERE a = 5")
        oracle.execute("DELETE FROM t WHERE a < 5")
        oracle.execute("CALL ducklake_merge_adjacent_files('lake')")
        oracle.execute("CALL ducklake_rewrite_data_files('lake')")
        oracle.execute("ALTER TABLE t DROP COLUMN s")
        oracle.execute("CHECKPOINT")
        found = oracle.sql("SELECT count(*), sum(a), min(c), max(c) FROM t")

    assert found == [(96, 5050 - 10, "x", "z")]
    with store.read() as connection:
        assert store.table_names(connection) >= OWN_TABLES


def test_lake_that_duckdb_made_opens_here(store, lake_url, data_path):
    DuckDBOracle(lake_url, data_path).close()

    found = open_lake(store)

    assert (found.data_path, found.version) == (data_path, "1.0")
    assert found.created_by.startswith("DuckDB")
    assert open_lake(store, data_path) == found


def test_own_tables_join_a_lake_of_duckdb_once_and_it_keeps_working(store, lake_url, data_path):
    with DuckDBOracle(lake_url, data_path) as oracle:
        oracle.execute("CREATE TABLE t AS SELECT range AS a FROM range(100)")
    for _ in range(2):
        with store.write() as connection:
            ensure_own_tables(store, connection)
    with store.read() as connection:
        present, indexed = store.table_names(connection), store.index_names(connection)
        known = {index.name for index in indexes(dialect_of(connection))}
    with DuckDBOracle(lake_url) as oracle:
        oracle.execute("ALTER TABLE t ADD COLUMN b INTEGER")
        oracle.execute("INSERT INTO t SELECT range, 1 FROM range(50)")
        count = oracle.sql("SELECT count(*), count(b) FROM t WHERE a >= 0")

    assert present >= OWN_TABLES
    assert indexed & known == (set() if store.kind == "duckdb" else known)
    assert count == [(150, 50)]


def test_open_returns_what_create_returned(store, data_path):
    assert create_lake(store, data_path) == open_lake(store)


def test_second_creation_is_refused(store, data_path):
    create_lake(store, data_path)

    with pytest.raises(AlreadyExists, match="there is already a lake"):
        create_lake(store, data_path)


def test_opening_where_no_lake_is_creates_nothing(tmp_path, postgres_url):
    for url in (f"sqlite:///{tmp_path}/none.db", f"duckdb:///{tmp_path}/none.ducklake"):
        with pytest.raises(NotFound, match="does not exist"):
            open_lake(open_store(url))
    store = open_store(postgres_url)
    with pytest.raises(NotFound, match="no table ducklake_metadata"):
        open_lake(store)
    store.close()

    assert list(tmp_path.iterdir()) == []


def test_lake_is_created_beside_tables_of_others(store, data_path):
    with store.write() as connection:
        connection.execute(text("CREATE TABLE orders (id BIGINT)"))
        connection.execute(text("INSERT INTO orders VALUES (7)"))

    create_lake(store, data_path)

    with store.read() as connection:
        assert connection.execute(text("SELECT id FROM orders")).all() == [(7,)]
    assert open_lake(store).data_path == data_path


def test_other_data_path_is_refused_and_both_are_named(store, data_path, tmp_path):
    create_lake(store, data_path)

    with pytest.raises(InvalidRequest) as refusal:
        open_lake(store, f"{tmp_path}/elsewhere")

    assert data_path in str(refusal.value)
    assert f"{tmp_path}/elsewhere/" in str(refusal.value)


@pytest.mark.parametrize("version", ["1.2", "1.1-dev1", "0.3"])
def test_other_versions_are_refused(store, data_path, version):
    create_lake(store, data_path)
    set_option(store, "version", version)

    with pytest.raises(Unsupported, match=f"version '{version}'"):
        open_lake(store)


def test_a_lake_says_whether_it_is_encrypted(store, data_path):
    made = create_lake(store, data_path, encrypted=True)

    assert made.encrypted
    assert open_lake(store).encrypted
    set_option(store, "encrypted", "false")
    assert not open_lake(store).encrypted


def test_lake_without_a_version_is_corrupt(store, data_path):
    create_lake(store, data_path)
    with store.write() as connection:
        connection.execute(delete(tables.metadata).where(tables.metadata.c.key == "version"))

    with pytest.raises(CorruptLake, match="no row 'version'"):
        open_lake(store)


def test_options_of_a_table_do_not_pass_for_those_of_the_lake(store, data_path):
    create_lake(store, data_path)
    with store.write() as connection:
        connection.execute(
            insert(tables.metadata),
            {"key": "version", "value": "9", "scope": "table", "scope_id": 1},
        )

    assert open_lake(store).version == "1.0"


def test_half_a_lake_is_refused(store, data_path):
    with store.write() as connection:
        connection.execute(text("CREATE TABLE ducklake_snapshot (snapshot_id BIGINT)"))

    with pytest.raises(CorruptLake, match="ducklake_snapshot but no ducklake_metadata"):
        create_lake(store, data_path)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_data_path_is_needed_except_for_a_duckdb_file(kind, request, tmp_path):
    store = open_store(request.getfixturevalue(f"{kind}_url"))

    with pytest.raises(InvalidRequest, match="needs a data_path"):
        create_lake(store)
    store.close()


def test_duckdb_file_keeps_its_files_beside_it_by_default(duckdb_url, tmp_path):
    found = create_lake(open_store(duckdb_url))

    assert found.data_path == f"{tmp_path}/catalog.ducklake.files/"
    with DuckDBOracle(duckdb_url) as oracle:
        oracle.execute("CREATE TABLE t AS SELECT range AS a FROM range(100)")
    assert len(list(tmp_path.glob("catalog.ducklake.files/main/t/*.parquet"))) == 1


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("s3://bucket/lake", "s3://bucket/lake/"),
        ("s3://bucket/lake/", "s3://bucket/lake/"),
        ("data", "{cwd}/data/"),
        ("./data/../files", "{cwd}/files/"),
        ("/data", "/data/"),
    ],
)
def test_data_path_is_stored_absolute_with_a_slash(tmp_path, monkeypatch, given, stored):
    monkeypatch.chdir(tmp_path)
    store = open_store("sqlite:///lake.db")

    found = create_lake(store, given)
    store.close()

    assert found == LakeInfo(stored.format(cwd=tmp_path), "1.0", found.created_by)
    assert (tmp_path / "lake.db").exists()


CREATE_AT_ONCE = """
import sys
from shelduck.catalog.schema.lake_schema import open_or_create_lake
from shelduck.catalog.databases.store import open_store
store = open_store(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
print(open_or_create_lake(store, sys.argv[2]).data_path)
"""


def test_processes_that_create_at_once_get_one_lake(lake_url, data_path):
    command = [sys.executable, "-c", CREATE_AT_ONCE, lake_url, data_path]
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            for _ in range(3)
        ]
        ready = [process.stdout.readline() for process in processes]
        for process in processes:
            process.stdin.write("\n")
            process.stdin.flush()
        answers = [process.communicate()[0] for process in processes]

    assert ready == ["ready\n"] * 3
    assert answers == [f"{data_path}\n"] * 3
    store = open_store(lake_url)
    with store.read() as connection:
        assert connection.execute(select(tables.snapshot.c.snapshot_id)).all() == [(0,)]
        assert len(connection.execute(select(tables.metadata)).all()) == 4
    assert open_or_create_lake(store).data_path == data_path
    store.close()


@pytest.mark.databases("duckdb")
def test_duckdb_never_creates_the_file_of_a_lake_where_another_process_may(
    lake_url, data_path, tmp_path, monkeypatch
):
    opened = []

    class Attaching:
        """A connection that notes which files it attaches."""

        def __init__(self, inner):
            self._inner = inner

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self._inner.close()

        def execute(self, text):
            path = Path(text.split("'")[1])
            opened.append((path, path.exists()))
            self._inner.execute(text)

    def connect(path=":memory:"):
        if path == ":memory:":
            return Attaching(real_connect())
        opened.append((Path(path), Path(path).exists()))
        return real_connect(path)

    real_connect = duckdb.connect
    monkeypatch.setattr(duckdb, "connect", connect)
    store = open_store(lake_url)
    with store.session():
        create_lake(store, data_path)
    store.close()

    path = store.database.path
    assert (path, True) in opened
    assert (path, False) not in opened
    assert [where.parent for where, exists in opened if not exists] == [tmp_path]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.databases("duckdb")
def test_a_lake_that_appears_while_another_is_created_stays(
    lake_url, data_path, tmp_path, monkeypatch
):
    first = open_store(lake_url)
    path = first.database.path

    def connect(to=":memory:"):
        new = real_connect(to)
        if Path(to) != path and not path.exists():
            monkeypatch.setattr(duckdb, "connect", real_connect)
            create_lake(first, data_path)
        return new

    real_connect = duckdb.connect
    monkeypatch.setattr(duckdb, "connect", connect)
    second = open_store(lake_url)
    with pytest.raises(AlreadyExists):
        create_lake(second, data_path)

    assert open_lake(second).data_path == data_path
    assert list(tmp_path.iterdir()) == [path]
    first.close()
    second.close()
