"""Few rows of a transaction, or of a partitioned table, stay in the catalog too."""

from __future__ import annotations

from pathlib import Path

import pytest

import shelduck
from shelduck.errors import InvalidRequest
from tests.support.lakes import rows
from tests.support.oracle import DuckDBOracle

STORY = [
    "INSERT INTO t VALUES (1, 'a', 1.5), (2, 'b', 2.5), (3, 'c', 3.5)",
    "UPDATE t SET s = 'A' WHERE id = 1",
    "INSERT INTO t SELECT 4, 'd', 4.5",
    "UPDATE t SET s = 'D', x = x + 1 WHERE id >= 4",
    "DELETE FROM t WHERE id = 2",
    "UPDATE t SET s = 'AA' WHERE id = 1",
    "UPDATE t SET s = 'old' WHERE id = -1",
    "DELETE FROM t WHERE id = -2",
    "INSERT INTO t VALUES (5, 'e', 5.5)",
]
MERGE = (
    "MERGE INTO t USING (VALUES (5), (6), (-3)) u(id) ON t.id = u.id"
    " WHEN MATCHED THEN UPDATE SET s = 'm'"
    " WHEN NOT MATCHED THEN INSERT (id, s, x) VALUES (u.id, 'new', 0.5)"
)
AFTER = [(-4, "z"), (-3, "m"), (-1, "old"), (1, "AA"), (3, "c"), (4, "D"), (5, "m"), (6, "new")]


@pytest.fixture
def lake(tmp_path, spark):
    with shelduck.connect(f"sqlite:///{tmp_path}/catalog.db", f"{tmp_path}/data", spark) as made:
        yield made


def files(tmp_path):
    return list(Path(f"{tmp_path}/data").rglob("*.parquet"))


def started(lake, arranged):
    """A table with two rows of a file, and two in the catalog."""
    lake.sql(f"CREATE TABLE t (id INT, s STRING, x DOUBLE) {arranged}")
    lake.table("t").append(
        lake.spark.sql("SELECT CAST(-id - 1 AS INT) id, 'f' s, 0D x FROM range(0, 2, 1, 1)")
    )
    lake.sql("CALL flush_inlined_data()")
    lake.sql("INSERT INTO t VALUES (-3, 'y', 0.5), (-4, 'z', 0.5)")


@pytest.mark.parametrize("arranged", ["", "PARTITIONED BY (s)"])
def test_a_transaction_of_small_statements_leaves_no_file(lake, tmp_path, arranged):
    started(lake, arranged)
    before = set(files(tmp_path))
    with lake.transaction() as work:
        for statement in [*STORY, MERGE]:
            work.sql(statement)
        assert rows(work.sql("SELECT id, s FROM t ORDER BY id")) == AFTER
        assert [r[0] for r in rows(work.sql("SELECT count(*) FROM t"))] == [8]
    assert set(files(tmp_path)) == before
    wanted = rows(lake.sql("SELECT rowid, id, s, x FROM t ORDER BY id"))
    assert [(row[1], row[2]) for row in wanted] == AFTER
    # Rows that were there before keep their ids; each new row has one of its own.
    assert [row[0] for row in wanted[:3]] == [3, 2, 0]
    assert sorted(row[0] for row in wanted[3:]) == [4, 5, 6, 7, 8]
    lake.close()
    with DuckDBOracle(f"sqlite:///{tmp_path}/catalog.db") as oracle:
        assert oracle.sql("SELECT rowid, id, s, x FROM t ORDER BY id") == wanted
        oracle.execute("CALL ducklake_flush_inlined_data('lake')")
        assert oracle.sql("SELECT rowid, id, s, x FROM t ORDER BY id") == wanted
    with shelduck.connect(f"sqlite:///{tmp_path}/catalog.db", spark=lake.spark) as again:
        assert rows(again.sql("SELECT rowid, id, s, x FROM t ORDER BY id")) == wanted


def test_a_transaction_alters_the_rows_that_it_inserted(lake, tmp_path):
    lake.sql("CREATE TABLE t (id INT, s STRING, x FLOAT, d DATE, n STRUCT<a: INT>)")
    with lake.transaction() as work:
        work.sql("INSERT INTO t VALUES (1, 'a', 1.1F, DATE '2024-01-02', named_struct('a', 1))")
        work.sql("ALTER TABLE t ADD COLUMN z INT DEFAULT 7")
        work.sql("ALTER TABLE t ALTER COLUMN id TYPE BIGINT")
        work.sql("ALTER TABLE t ALTER COLUMN x TYPE DOUBLE")
        work.sql("ALTER TABLE t ADD COLUMN n.b STRING")
        work.sql("ALTER TABLE t RENAME COLUMN s TO name")
        work.sql("ALTER TABLE t DROP COLUMN d")
        work.sql("INSERT INTO t (id, name, x, z) VALUES (20000000000, 'b', 2.5, 8)")
        inside = rows(work.sql("SELECT id, name, x, n, z FROM t ORDER BY id"))
    wanted = [(1, "a", 1.100000023841858, (1, None), 7), (20000000000, "b", 2.5, None, 8)]
    assert files(tmp_path) == []
    query = "SELECT id, name, x, n, z FROM t ORDER BY id"
    assert inside == rows(lake.sql(query)) == wanted
    lake.close()
    with DuckDBOracle(f"sqlite:///{tmp_path}/catalog.db") as oracle:
        [first, second] = oracle.sql(query)
        assert first == (1, "a", 1.100000023841858, {"a": 1, "b": None}, 7)
        assert second == (20000000000, "b", 2.5, None, 8)


def test_a_statement_that_fails_leaves_the_rows_of_the_transaction(lake):
    lake.sql("CREATE TABLE t (id INT)")
    with lake.transaction() as work:
        work.sql("INSERT INTO t VALUES (1), (2)")
        with pytest.raises(InvalidRequest):
            work.sql("UPDATE t SET id = id + 2147483646")
        work.sql("DELETE FROM t WHERE id = 1")
        work.sql("INSERT INTO t VALUES (3)")
    assert rows(lake.sql("SELECT rowid, id FROM t ORDER BY id")) == [(0, 2), (1, 3)]


def test_deletes_of_a_transaction_add_up(lake, tmp_path):
    lake.sql("CREATE TABLE t (id BIGINT)")
    lake.table("t").append(lake.spark.range(100).coalesce(1))
    before = set(files(tmp_path))
    with lake.transaction() as work:
        work.sql("DELETE FROM t WHERE id < 3")
        work.sql("DELETE FROM t WHERE id = 50")
    assert set(files(tmp_path)) == before
    with lake.transaction() as work:
        work.sql("DELETE FROM t WHERE id = 60")
        work.sql("DELETE FROM t WHERE id BETWEEN 10 AND 40")
        work.sql("DELETE FROM t WHERE id = 61")
        assert work.sql("SELECT count(*) FROM t").first()[0] == 63
    left = [n for n in range(3, 100) if not (10 <= n <= 40 or n in (50, 60, 61))]
    assert rows(lake.sql("SELECT id FROM t ORDER BY id")) == [(n,) for n in left]
    with lake.transaction() as work:
        work.sql("DELETE FROM t WHERE id = 62")
        work.sql("DELETE FROM t WHERE id > 64")
        left_inside = [(n,) for n in left if n <= 64 and n != 62]
        assert rows(work.sql("SELECT id FROM t ORDER BY id")) == left_inside
        work.sql("DELETE FROM t")
    assert rows(lake.sql("SELECT id FROM t")) == []
    lake.close()
    with DuckDBOracle(f"sqlite:///{tmp_path}/catalog.db") as oracle:
        assert oracle.sql("SELECT count(*) FROM t") == [(0,)]
        found = oracle.sql("SELECT id FROM t AT (VERSION => 4) ORDER BY id")
        assert found == [(n,) for n in left]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT OVERWRITE t VALUES (1, 'a', 1.5)",
        "INSERT INTO t REPLACE WHERE id < 0 VALUES (-9, 'a', 1.5)",
        "RESTORE TABLE t TO VERSION AS OF 3",
    ],
)
def test_rows_that_replace_others_stay_in_the_catalog(lake, tmp_path, statement):
    started(lake, "")
    lake.sql("DELETE FROM t WHERE id > -3")
    before = set(files(tmp_path))
    lake.sql(statement)
    assert set(files(tmp_path)) == before
    found = rows(lake.sql("SELECT rowid, id, s FROM t ORDER BY id"))
    if statement.startswith("RESTORE"):
        assert found == [(1, -2, "f"), (0, -1, "f")]
    lake.close()
    with DuckDBOracle(f"sqlite:///{tmp_path}/catalog.db") as oracle:
        assert oracle.sql("SELECT rowid, id, s FROM t ORDER BY id") == found
