"""Rows of the catalog are read once for each snapshot, and only newer ones for the next."""

from __future__ import annotations

import shutil
from collections import Counter

import pytest
from py4j.java_gateway import GatewayClient

import shelduck
from shelduck.catalog.read import inlined_rows
from tests.support.lakes import rows
from tests.support.oracle import DuckDBOracle

ALL = "SELECT rowid, id, s FROM t ORDER BY id"


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/catalog.db"


@pytest.fixture
def lake(tmp_path, spark, url):
    with shelduck.connect(url, f"{tmp_path}/data", spark) as made:
        made.sql("CREATE TABLE t (id INT, s STRING, x DECIMAL(9, 2), at TIMESTAMP)")
        for n in range(0, 100, 10):
            values = (
                f"({i}, 's{i}', {i}.5, TIMESTAMP'2024-01-01 00:00:00Z')" for i in range(n, n + 10)
            )
            made.sql(f"INSERT INTO t VALUES {', '.join(values)}")
        yield made


@pytest.fixture
def fetched(monkeypatch):
    """How many rows each later snapshot brought."""
    found: list[int] = []
    real = inlined_rows.stored_rows

    def stored_rows(*given):
        parts = real(*given)
        found.append(sum(len(stored) for _, _, stored in parts))
        return parts

    monkeypatch.setattr(inlined_rows, "stored_rows", stored_rows)
    return found


def commands(monkeypatch, act):
    """How many commands the JVM gets."""
    calls = Counter()
    real = GatewayClient.send_command

    def send(client, command, *args, **kwargs):
        # Objects are let go whenever Python collects them: these commands are not counted.
        calls["sent"] += command[0] != "m"
        return real(client, command, *args, **kwargs)

    with monkeypatch.context() as patched:
        # PySpark would ask the JVM which line of the user a call belongs to.
        patched.setattr("pyspark.errors.utils._enable_debugging_cache", False)
        patched.setattr(GatewayClient, "send_command", send)
        act()
    return calls["sent"]


def test_a_second_read_of_a_snapshot_asks_for_no_rows_and_makes_no_data_frame(lake, monkeypatch):
    query = "SELECT id, x, day(at) FROM t WHERE id = 42"
    assert str(rows(lake.sql(query))) == "[(42, Decimal('42.50'), 1)]"
    tracker = lake.spark.sparkContext.statusTracker()
    before, jobs = lake._state.store.statements, len(tracker.getJobIdsForGroup())
    sent = commands(monkeypatch, lambda: lake.sql(query).collect())
    assert lake._state.store.statements - before == 3
    assert sent <= 11
    assert len(tracker.getJobIdsForGroup()) == jobs


def test_the_next_snapshot_asks_only_for_rows_that_came_or_went(lake, url, fetched):
    assert len(rows(lake.sql(ALL))) == 100
    with shelduck.connect(url, spark=lake.spark) as other:
        other.sql("INSERT INTO t (id, s) VALUES (100, 'new')")
        other.sql("UPDATE t SET s = 'u' WHERE id = 7")
        other.sql("DELETE FROM t WHERE id = 8")
        other.sql("CREATE TABLE other (a INT)")
    fetched.clear()
    found = rows(lake.sql(ALL))
    assert [row for row in found if row[1] in (6, 7, 8, 9, 100)] == [
        (6, 6, "s6"),
        (7, 7, "u"),
        (9, 9, "s9"),
        (100, 100, "new"),
    ]
    # One came, one went, and one did both.
    assert fetched == [4]
    assert found == rows(lake.sql(ALL))
    assert fetched == [4]


def test_whatever_duckdb_does_between_two_reads_is_seen(lake, url, fetched):
    def same() -> list[tuple[object, ...]]:
        found = rows(lake.sql(ALL))
        with DuckDBOracle(url) as oracle:
            assert oracle.sql(ALL) == found
        return found

    first = same()
    for statement in (
        "INSERT INTO t (id, s) VALUES (-1, 'duck')",
        "UPDATE t SET s = 'quack' WHERE id IN (-1, 5)",
        "DELETE FROM t WHERE id > 90",
        "ALTER TABLE t ADD COLUMN z INT DEFAULT 3",
        "INSERT INTO t (id, s, z) VALUES (-2, 'later', 4)",
        "CALL ducklake_flush_inlined_data('lake')",
        "INSERT INTO t (id, s) VALUES (-3, 'again')",
    ):
        with DuckDBOracle(url) as oracle:
            oracle.execute(statement)
        same()
    assert rows(lake.sql("SELECT id, z FROM t WHERE id < 1 ORDER BY id")) == [
        (-3, 3),
        (-2, 4),
        (-1, 3),
        (0, 3),
    ]
    # A flush moves rows to files at older snapshots too.
    assert rows(lake.sql(ALL.replace("FROM t", "FROM t VERSION AS OF 11"))) == first


def test_a_transaction_reads_its_own_snapshot_while_others_flush(lake, url):
    with lake.transaction() as work:
        before = rows(work.sql(ALL))
        with DuckDBOracle(url) as oracle:
            oracle.execute("INSERT INTO t (id, s) VALUES (500, 'other')")
            oracle.execute("CALL ducklake_flush_inlined_data('lake')")
        assert len(rows(lake.sql(ALL))) == 101
        assert rows(work.sql(ALL)) == before
    assert len(rows(lake.sql(ALL))) == 101


def test_a_catalog_that_takes_the_place_of_another_is_read_anew(lake, tmp_path, url):
    shutil.copy(tmp_path / "catalog.db", tmp_path / "backup.db")
    lake.sql("INSERT INTO t (id, s) VALUES (1000, 'lost')")
    assert len(rows(lake.sql(ALL))) == 101
    other = tmp_path / "backup.db"
    with shelduck.connect(f"sqlite:///{other}", spark=lake.spark) as backup:
        backup.sql("DELETE FROM t WHERE id = 1")
        backup.sql("INSERT INTO t (id, s) VALUES (1000, 'kept'), (1001, 'kept')")
    lake._state.store.close()
    shutil.copy(other, tmp_path / "catalog.db")
    with shelduck.connect(url, spark=lake.spark) as again:
        again._state.inlined = lake._state.inlined
        found = rows(again.sql("SELECT id, s FROM t WHERE id = 1 OR id >= 1000 ORDER BY id"))
    assert found == [(1000, "kept"), (1001, "kept")]


def test_data_frames_of_one_snapshot_can_be_joined(lake):
    first, second = lake.table("t").read(), lake.table("t").read()
    pairs = first.join(second, first["id"] == second["id"] + 1).where(first["id"] < 3)
    assert sorted(rows(pairs.select(first["id"], second["s"]))) == [(1, "s0"), (2, "s1")]
    query = "SELECT a.id, b.s FROM t a JOIN t b ON a.id = b.id + 1 WHERE a.id < 3 ORDER BY 1"
    assert rows(lake.sql(query)) == [(1, "s0"), (2, "s1")]
    assert first.union(second).count() == 200
