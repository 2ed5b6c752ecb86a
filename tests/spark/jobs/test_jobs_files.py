"""What a job leaves: files that begin with their columns, so that DuckDB compacts all of them."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from shelduck.jobs import lots, worker
from shelduck.jobs.lots import Lots
from tests.support.lakes import newest, rows
from tests.support.meanwhile import convert_first, once_after, once_before
from tests.support.oracle import DuckDBOracle

STATEMENTS = [
    "CALL set_option('data_inlining_row_limit', 0)",
    "CREATE TABLE t (id INT NOT NULL, p INT, v STRING, d DOUBLE)",
    "CREATE TABLE parts (id INT NOT NULL, p INT, v STRING, d DOUBLE)",
    "ALTER TABLE parts SET PARTITIONED BY (p)",
]
STATEMENTS += [
    f"INSERT INTO {name} SELECT CAST(id AS INT), CAST(id % 2 AS INT), CAST(id * 10 AS STRING),"
    f" id / 4 FROM range({n}, {n + 20})"
    for name in ("t", "parts")
    for n in (0, 20, 40)
]
CHANGE = "ALTER TABLE {} MODIFY COLUMN v INT, MODIFY COLUMN d DECIMAL(18,2)"
COMPACTIONS = [
    "CALL ducklake_rewrite_data_files('lake', '{}', delete_threshold => 0)",
    "CALL ducklake_merge_adjacent_files('lake', '{}')",
]


def expected(numbers):
    return [(n, n % 2, n * 10, Decimal(n) / 4) for n in numbers]


def everything(lake, name, at=""):
    return rows(lake.sql(f"SELECT * FROM {name}{at} ORDER BY id"))


def after_the_first_lot(monkeypatch, act):
    """Do something once, when files were converted and before all is shown."""
    convert_first(monkeypatch)
    once_after(monkeypatch, lots, "land", act)


@pytest.fixture(autouse=True)
def small_bins(monkeypatch):
    """A file for each that is converted, so that DuckDB has some to merge."""
    monkeypatch.setattr(
        Lots, "_bins", lambda _, found, left, *_shadows: (found.chosen(left, 1), None)
    )


def begins(oracle):
    """Where the live data files begin."""
    return oracle.sql(
        "SELECT DISTINCT begin_snapshot FROM __ducklake_metadata_lake.ducklake_data_file"
        " JOIN ducklake_table_info('lake') USING (table_id)"
        " WHERE end_snapshot IS NULL AND table_name = getvariable('name')"
    )


@pytest.mark.slow
@pytest.mark.parametrize("compact", COMPACTIONS, ids=["rewrite", "merge"])
@pytest.mark.parametrize("name", ["t", "parts"])
def test_duckdb_compacts_what_a_quiet_job_converted(copied, name, compact):
    catalog, lake = copied
    before, old = newest(lake), everything(lake, name)
    lake.sql(CHANGE.format(name))
    shown = newest(lake)
    with DuckDBOracle(f"sqlite:///{catalog}") as oracle:
        oracle.execute(f"SET VARIABLE name = '{name}'")
        assert begins(oracle) == [(shown,)]
        oracle.execute(f"DELETE FROM {name} WHERE id IN (3, 30)")
        assert oracle.sql(compact.format(name))
        kept = expected(n for n in range(60) if n not in (3, 30))
        assert oracle.rows(name) == kept
        assert oracle.sql(f"SELECT count(*), count(v), count(d), max(v) FROM {name}") == [
            (58, 58, 58, 590)
        ]
        for version in range(before, shown):
            assert oracle.rows(name, version=version) == old

    assert everything(lake, name) == kept
    assert everything(lake, name, f" VERSION AS OF {shown - 1}") == old


@pytest.mark.sampled(1)
@pytest.mark.parametrize("compact", COMPACTIONS, ids=["rewrite", "merge"])
@pytest.mark.parametrize("name", ["t", "parts"])
def test_duckdb_compacts_what_was_written_while_a_job_ran(copied, monkeypatch, name, compact):
    catalog, lake = copied
    seen = {}

    def note():
        seen[newest(lake)] = everything(lake, name)

    def act():
        note()
        lake.sql(f"INSERT INTO {name} {_NEW}")
        note()
        lake.sql(f"DELETE FROM {name} WHERE id IN (3, 61)")
        note()
        with DuckDBOracle(f"sqlite:///{catalog}") as oracle:
            oracle.execute(f"DELETE FROM {name} WHERE id IN (5, 45)")
        note()
        lake.sql(f"UPDATE {name} SET v = '7' WHERE id = 10")
        note()

    after_the_first_lot(monkeypatch, act)
    note()
    lake.sql(CHANGE.format(name))

    kept = expected(n for n in range(70) if n not in (3, 5, 45, 61))
    kept = [(*row[:2], 7, row[3]) if row[0] == 10 else row for row in kept]
    assert everything(lake, name) == kept
    shown = newest(lake)
    assert lake.table(name).changes(shown).count() == 0
    feed = lake.table(name).changes(min(seen) + 1, shown - 1)
    told = rows(feed.groupBy("_change_type").count().orderBy("_change_type"))
    assert told == [
        *[("delete", 4), ("insert", 10)],
        *[("update_postimage", 1), ("update_preimage", 1)],
    ]
    with DuckDBOracle(f"sqlite:///{catalog}") as oracle:
        oracle.execute(f"SET VARIABLE name = '{name}'")
        assert begins(oracle) == [(shown,)]
        assert oracle.rows(name) == kept
        assert oracle.sql(compact.format(name))
        assert oracle.rows(name) == kept
        assert oracle.sql(f"SELECT count(v), min(v), max(v) FROM {name}") == [(66, 0, 690)]
        assert oracle.sql(f"SELECT count(DISTINCT rowid) FROM {name}") == [(66,)]
        for version, then in seen.items():
            assert oracle.rows(name, version=version) == then
    assert everything(lake, name) == kept
    for version, then in seen.items():
        assert everything(lake, name, f" VERSION AS OF {version}") == then


_NEW = (
    "SELECT CAST(id AS INT), CAST(id % 2 AS INT), CAST(id * 10 AS STRING), id / 4"
    " FROM range(60, 70)"
)


@pytest.mark.slow
def test_what_a_quiet_job_converted_is_not_written_again(copied):
    catalog, lake = copied
    before = lake.table("t").files().count()
    lake.sql(CHANGE.format("t"))
    now = lake.table("t").files().count()
    with DuckDBOracle(f"sqlite:///{catalog}") as oracle:
        known = oracle.dump_metadata()["ducklake_data_file"]
    assert len([f for f in known if "p=" not in f["path"]]) == before + now


@pytest.mark.slow
def test_files_whose_older_snapshots_expired_begin_with_their_columns_too(copied, monkeypatch):
    catalog, lake = copied
    after_the_first_lot(monkeypatch, lambda: lake.expire_snapshots(retain_last=1))
    lake.sql(CHANGE.format("t"))
    shown = newest(lake)
    with DuckDBOracle(f"sqlite:///{catalog}") as oracle:
        oracle.execute("SET VARIABLE name = 't'")
        assert begins(oracle) == [(shown,)]
        assert oracle.rows("t") == expected(range(60))
        assert oracle.sql(COMPACTIONS[1].format("t"))
        assert oracle.rows("t") == expected(range(60))
    assert everything(lake, "t") == expected(range(60))


@pytest.mark.slow
@pytest.mark.parametrize("in_steps", [False, True])
def test_a_small_delete_after_the_last_look_stays_deleted(copied, monkeypatch, in_steps):
    catalog, lake = copied
    if in_steps:
        convert_first(monkeypatch)

    def act():
        with DuckDBOracle(f"sqlite:///{catalog}") as oracle:
            oracle.execute("CALL lake.set_option('data_inlining_row_limit', 10)")
            oracle.execute("DELETE FROM t WHERE id = 7")

    once_before(monkeypatch, worker, "publication", act)
    lake.sql(CHANGE.format("t"))

    kept = expected(n for n in range(60) if n != 7)
    assert everything(lake, "t") == kept
    with DuckDBOracle(f"sqlite:///{catalog}") as oracle:
        assert oracle.rows("t") == kept


def test_a_compaction_of_duckdb_that_crosses_the_end_of_a_job_gives_way(copied, monkeypatch):
    catalog, lake = copied
    with DuckDBOracle(f"sqlite:///{catalog}") as oracle:

        def act():
            oracle.execute("BEGIN")
            return oracle.sql(COMPACTIONS[1].format("t"))

        convert_first(monkeypatch)
        compacted = once_before(monkeypatch, worker, "renew", act)
        lake.sql(CHANGE.format("t"))
        assert compacted[0]
        with pytest.raises(duckdb.Error, match="conflict"):
            oracle.execute("COMMIT")
        assert oracle.rows("t") == expected(range(60))
    assert everything(lake, "t") == expected(range(60))


def test_a_publication_that_loses_leaves_no_copies(copied, monkeypatch):
    _, lake = copied

    def act():
        lake.sql(f"INSERT INTO t {_NEW}")

    after_the_first_lot(monkeypatch, act)
    real, lost = worker.renew, []

    def loses(*arguments):
        renewal = real(*arguments)
        if not lost:
            lost.append(renewal.copies.paths)
            lake.sql("DELETE FROM t WHERE id = 60")
        return renewal

    monkeypatch.setattr(worker, "renew", loses)
    lake.sql(CHANGE.format("t"))

    assert lost[0]
    [place] = {Path(f.file_path).parents[1] for f in lake.table("t").files().collect()}
    assert not any((place / path).exists() for path in lost[0])
    assert everything(lake, "t") == expected(n for n in range(70) if n != 60)
