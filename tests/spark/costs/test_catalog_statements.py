"""What verbs ask of the catalog: statements and transactions that write, on a server too."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psycopg
import pytest
from psycopg.pq import PipelineStatus

import shelduck
from shelduck.catalog.databases.duckdb import DuckDB
from shelduck.catalog.databases.store import Store
from tests.support.budgets import budgets, within
from tests.support.oracle import DuckDBOracle

pytestmark = pytest.mark.guard


@dataclass
class Cost:
    """Statements, and transactions that take the catalog's lock."""

    statements: int = 0
    writes: int = 0


@pytest.fixture
def lake(lake_url, data_path, spark):
    with shelduck.connect(lake_url, data_path=data_path, spark=spark) as made:
        made.set_option("data_inlining_row_limit", "0")
        yield made


@pytest.fixture
def costs(lake, monkeypatch):
    """Counts what a block takes."""
    real, writes = Store.write, []

    def counted(store):
        writes.append(store)
        return real(store)

    monkeypatch.setattr(Store, "write", counted)

    @contextmanager
    def counting():
        found, store = Cost(), lake._state.store
        before = store.statements
        writes.clear()
        yield found
        found.statements, found.writes = store.statements - before, len(writes)

    return counting


def rows(spark, first=0):
    """Twenty rows in one file."""
    return spark.range(first, first + 20, 1, 1).selectExpr("id", "cast(id as string) v")


@pytest.fixture
def more(lake):
    """One if whoever writes files asks for open jobs in a statement of its own, else none."""
    return 1 if lake._state.store.kind == "duckdb" else 0


@pytest.mark.every_database
def test_rows_are_written_with_few_statements(lake, costs, spark, more):
    lake.sql("CREATE TABLE t (id BIGINT, v STRING)")
    table = lake.table("t")
    table.append(rows(spark))
    with costs() as append:
        table.append(rows(spark, 20))
    with costs() as delete:
        table.delete("id = 7")
    with costs() as again:
        table.delete("id = 8")
    table.update({"v": "'x'"}, where="id = 9")
    with costs() as update:
        table.update({"v": "'x'"}, where="id = 10")

    assert [cost.writes for cost in (append, delete, again, update)] == [2] * 4
    within("statements.append", append.statements - more)
    within("statements.delete", max(delete.statements, again.statements) - more)
    within("statements.update", update.statements - more)


@pytest.mark.databases("sqlite", "postgres")
def test_a_table_with_ten_branches_takes_no_more_statements(lake, costs, spark):
    lake.sql("CREATE TABLE t (id BIGINT, v STRING)")
    table, found = lake.table("t"), []
    for number in range(4):
        for branch in range(10) if number == 2 else ():
            lake.create_branch(f"b{branch}")
        first = 100 * len(found)
        with costs() as append:
            table.append(rows(spark, first))
        with costs() as read:
            assert table.read().where("id = 7").count() == 1
        with costs() as delete:
            table.delete(f"id = {first + 8}")
        with costs() as add:
            lake.sql(f"ALTER TABLE t ADD COLUMN c{first} INT")
        found.append([append, read, delete, add])
    # The first round after a change of the lake tells the process what it keeps.
    assert found[3] == found[1]


def test_a_small_load_by_key_asks_no_more_after_others(lake, costs, spark, more):
    lake.sql("CREATE TABLE t (id BIGINT, v STRING) UNIQUE KEY (id)")
    lake.table("t").append(rows(spark))
    lake.set_option("data_inlining_row_limit", 10, table="t")
    found = []
    for n in range(4):
        with costs() as load:
            lake.sql(f"INSERT INTO t VALUES ({n}, 'x'), ({100 + n}, 'x'), (15, 'x')")
        found.append(load)

    assert found[2:] == [found[2]] * 2
    within("statements.load", found[2].statements - more)
    assert found[2].writes == 2


@pytest.mark.every_database
def test_columns_are_changed_with_few_statements(lake, costs):
    lake.sql("CREATE TABLE t (id BIGINT, v STRING)")
    lake.sql("ALTER TABLE t ADD COLUMN c INT")
    with costs() as add:
        lake.sql("ALTER TABLE t ADD COLUMN d INT")
    with costs() as rename:
        lake.sql("ALTER TABLE t RENAME COLUMN d TO e")

    assert (add.writes, rename.writes) == (1, 1)
    within("statements.add_column", add.statements)
    within("statements.rename_column", rename.statements)


@pytest.mark.every_database
def test_a_small_table_is_converted_with_few_statements(lake, costs, spark):
    lake.sql("CREATE TABLE t (id BIGINT, v STRING)")
    lake.table("t").append(rows(spark))
    with costs() as job:
        lake.sql("ALTER TABLE t ALTER COLUMN v TYPE INT")

    # The order of columns is kept by a trigger, or by options in a DuckDB file: one statement.
    assert job.writes == 2
    within("statements.job", job.statements)


def test_bounds_are_asked_with_few_statements(lake_url, data_path):
    with shelduck.connect(lake_url, data_path) as lake:
        store = lake._state.store

        def asked(act):
            before = store.statements
            act()
            return store.statements - before

        lake.execute("CREATE TABLE t (id BIGINT, v BIGINT, w BIGINT, name STRING)")
        store.close()
        with DuckDBOracle(lake_url, options={"DATA_INLINING_ROW_LIMIT": 0}) as duckdb:
            duckdb.execute("INSERT INTO t SELECT i, i, i, i FROM range(10) r(i)")
        for file in Path(data_path).rglob("*.parquet"):
            # Nobody opens it.
            file.unlink()
        table = lake.table("t")
        clauses = ("w TYPE INT", "v TYPE INT", "id TYPE TINYINT, ALTER COLUMN v TYPE TINYINT")
        narrowed = [
            asked(partial(lake.execute, f"ALTER TABLE t ALTER COLUMN {each}")) for each in clauses
        ]
        changes = [shelduck.change_type(c, k) for c, k in (("name", "int"), ("id", "decimal(2,1)"))]
        planned = [asked(partial(table.plan_alter, each)) for each in changes]

    # Two for tables of rows, two for a column, one each for its types and the table's bounds.
    assert narrowed[1] <= budgets()["statements.add_column"] + 7
    assert narrowed[2] == narrowed[1] + 2
    assert planned[1] == planned[0] + 4


def test_a_light_alter_opens_a_duckdb_file_once(duckdb_url, data_path, monkeypatch):
    opened, inside = [], []
    session, connect = DuckDB.session, DuckDB._wait_for_file

    @contextmanager
    def keeping(database):
        opened.extend([] if inside else ["session"])
        inside.append(database)
        with session(database):
            yield
        inside.pop()

    def connecting(*given):
        opened.extend([] if inside else ["connection"])
        return connect(*given)

    monkeypatch.setattr(DuckDB, "session", keeping)
    monkeypatch.setattr(DuckDB, "_wait_for_file", connecting)
    with shelduck.connect(duckdb_url, data_path) as lake:
        lake.execute("CREATE TABLE t (id BIGINT)")
        lake.execute("ALTER TABLE t ADD COLUMN v INT")
        opened.clear()
        lake.execute("ALTER TABLE t RENAME COLUMN v TO w")
    assert opened == ["session"]


def test_a_light_alter_waits_for_a_server_a_few_times(postgres_url, data_path, monkeypatch):
    wait, leave, waits = psycopg.Connection.wait, psycopg.Pipeline.__exit__, []

    def waiting(connection, *given, **named):
        # Statements in a pipeline are only sent.
        if connection.info.pipeline_status == PipelineStatus.OFF:
            waits.append("answer")
        return wait(connection, *given, **named)

    def leaving(pipeline, *given):
        waits.append("pipeline")
        return leave(pipeline, *given)

    with shelduck.connect(postgres_url, data_path) as lake:
        lake.execute("CREATE TABLE t (id BIGINT)")
        for n in range(8):
            lake.execute(f"ALTER TABLE t ADD COLUMN c{n} INT")
        monkeypatch.setattr(psycopg.Connection, "wait", waiting)
        monkeypatch.setattr(psycopg.Pipeline, "__exit__", leaving)
        lake.execute("ALTER TABLE t ADD COLUMN last INT")
        # Four of them send nothing: two pipelines begin, and two connections have nothing to undo.
        assert len(waits) <= 13, waits
