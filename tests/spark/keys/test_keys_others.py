"""Tables with a key model among others: writers that do not know of it, jobs, and old snapshots."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from shelduck import InvalidRequest, JobState, Unchanged, Unsupported
from shelduck.keys import unique_keys
from shelduck.model.tables.keys import DELETE_SIGN
from tests.support.lakes import newest, rows
from tests.support.meanwhile import once_after
from tests.support.oracle import DuckDBOracle

STATEMENTS = [
    "CREATE TABLE u (k INT, v STRING) UNIQUE KEY (k)",
    "INSERT INTO u VALUES (1, '1'), (2, '2'), (3, '3')",
    "CREATE TABLE a (k INT, v INT SUM) AGGREGATE KEY (k)",
    "INSERT INTO a VALUES (1, 1), (2, 2)",
    (
        "CREATE TABLE q (k INT, at INT) UNIQUE KEY (k)"
        " PROPERTIES ('function_column.sequence_col' = 'at')"
    ),
]
START = [(1, "1"), (2, "2"), (3, "3")]


@pytest.fixture
def tell(copied):
    """Let DuckDB write, which knows nothing of keys; `inline` rows go to the catalog."""

    def tell(*statements, inline=0):
        options = {"DATA_INLINING_ROW_LIMIT": inline}
        with DuckDBOracle(f"sqlite:///{copied[0]}", None, options) as duckdb:
            for statement in statements:
                duckdb.execute(statement)

    return tell


def row_ids(catalog):
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        return duckdb.sql("SELECT k, rowid FROM u ORDER BY k")


@pytest.mark.slow
def test_rows_of_others_are_folded_when_asked_for(copied, both, tell):
    catalog, lake = copied
    tell("INSERT INTO u VALUES (1, 'f'), (4, 'f'), (4, 'g')", "INSERT INTO u VALUES (1, 'h')")
    tell("INSERT INTO u VALUES (2, 'i'), (2, 'j'), (5, 'i')", inline=10)
    assert len(both("u")) == 10
    lake.sql("CALL fold('u')")
    assert both("u") == [(1, "h"), (2, "j"), (3, "3"), (4, "g"), (5, "i")]
    assert row_ids(catalog)[:4] == [(1, 0), (2, 1), (3, 2), (4, 4)]
    before = newest(lake)
    lake.sql("CALL fold('u')")
    assert lake.table("u").fold() == Unchanged(before)
    assert newest(lake) == before


@pytest.mark.slow
def test_the_next_load_folds_rows_of_others_first(lake, both, tell):
    tell("INSERT INTO a VALUES (1, 10), (5, 5)")
    tell("INSERT INTO a VALUES (1, 100), (5, 50)", inline=10)
    done = lake.sql("INSERT INTO a VALUES (1, 1000), (7, 7)").first()
    assert (done.inserted, done.updated) == (1, 1)
    assert both("a") == [(1, 1111), (2, 2), (5, 55), (7, 7)]
    tell("UPDATE a SET v = 0 WHERE k = 1", "INSERT INTO a VALUES (2, 2)")
    lake.sql("UPDATE a SET v = 70 WHERE k = 7")
    assert both("a") == [(1, 0), (2, 4), (5, 55), (7, 70)]


def test_rows_of_others_that_were_moved_are_found(lake, both, tell):
    tell("INSERT INTO u VALUES (1, 'f')", "INSERT INTO u VALUES (1, 'g')")
    tell("CALL ducklake_merge_adjacent_files('lake')")
    tell("INSERT INTO u VALUES (2, 'h')", "CALL ducklake_flush_inlined_data('lake')", inline=10)
    lake.sql("ALTER TABLE u ADD COLUMN w INT DEFAULT 5; DELETE FROM u WHERE k = 3")
    lake.table("u").compact(min_files=1)
    lake.table("u").rewrite_deletes(0)
    lake.sql("INSERT INTO u VALUES (9, 'x', 1)")

    assert both("u") == [(1, "g", 5), (2, "h", 5), (9, "x", 1)]


@pytest.mark.slow
def test_a_row_that_others_give_the_key_of_another_takes_its_place(lake, both, tell):
    tell("UPDATE u SET k = 2, v = 'later' WHERE k = 3")
    lake.table("u").fold()
    assert both("u") == [(1, "1"), (2, "later")]
    tell("UPDATE u SET k = 2, v = 'last' WHERE k = 1", "CALL ducklake_merge_adjacent_files('lake')")
    lake.table("u").fold()
    assert both("u") == [(2, "last")]


def test_a_sequence_tells_the_last_row_of_others_too(lake, both, tell):
    tell("INSERT INTO q VALUES (1, 5), (2, NULL)", "INSERT INTO q VALUES (1, 4), (2, 1), (1, NULL)")
    lake.table("q").fold()

    assert both("q") == [(1, 5), (2, 1)]


@pytest.mark.slow
def test_rows_of_files_that_are_added_are_folded(lake, both, spark, tmp_path):
    added = spark.sql("SELECT * FROM VALUES (1, 3), (1, 4), (5, 5) AS x(k, v)").coalesce(1)
    added.write.parquet(str(tmp_path / "adopted"))
    lake.table("a").add_files(str(tmp_path / "adopted"))
    lake.table("a").fold()

    assert both("a") == [(1, 8), (2, 2), (5, 5)]


@pytest.mark.slow
def test_what_adds_no_row_needs_no_folding(lake, both, tell, monkeypatch):
    def never(*_, **__):
        raise AssertionError

    lake.sql("INSERT INTO u VALUES (4, '4')")
    monkeypatch.setattr(unique_keys, "fold_rows", never)
    tell("DELETE FROM u WHERE k = 1", "CALL ducklake_merge_adjacent_files('lake')")
    lake.sql(
        "DELETE FROM u WHERE k = 2; ALTER TABLE u ADD COLUMN w INT; INSERT INTO a VALUES (1, 1)"
    )
    lake.sql("INSERT INTO u VALUES (4, 'x', 1)")

    assert both("u") == [(3, "3", None), (4, "x", 1)]
    assert isinstance(lake.table("u").fold(), Unchanged)
    tell("INSERT INTO u VALUES (4, 'y', 2)")
    with pytest.raises(AssertionError):
        lake.table("u").fold()


@pytest.mark.slow
def test_loads_at_once_land_one_after_the_other(copied, base, both):
    catalog, _ = copied
    begin = threading.Barrier(2, timeout=60)

    def load(who):
        with base.connect(catalog) as own:
            begin.wait()
            own.sql(f"INSERT INTO u VALUES (1, '{who}'), (10, '{who}')")
            own.sql("INSERT INTO a VALUES (1, 1), (10, 1)")

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(load, "xy"))

    assert [k for k, _ in both("u")] == [1, 10, 2, 3]
    assert both("a") == [(1, 3), (10, 2), (2, 2)]


@pytest.mark.slow
def test_a_row_that_another_adds_under_way_is_folded(lake, both, tell, monkeypatch):
    late = "INSERT INTO u VALUES (2, 'late'), (3, 'late')"
    once_after(monkeypatch, unique_keys, "load_rows", lambda: tell(late))
    done = lake.sql("INSERT INTO u VALUES (2, 'load'), (2, 'last')").first()

    assert done.updated == 1
    assert both("u") == [(1, "1"), (2, "last"), (3, "late")]


@pytest.mark.slow
def test_a_load_serves_a_job_that_changes_a_type(copied, both):
    _, lake = copied
    lake.sql("ALTER TABLE u MODIFY COLUMN v INT PROPERTIES ('wait' = 'false')")
    lake.sql("INSERT INTO u VALUES (2, '22'), (4, '4')")
    lake.sql(f"INSERT INTO u (k, {DELETE_SIGN}) VALUES (1, 1)")
    with pytest.raises(InvalidRequest, match="zz cannot be converted to int32"):
        lake.sql("INSERT INTO u VALUES (2, 'zz')")
    assert both("u") == [(2, "22"), (3, "3"), (4, "4")]
    lake.job(1).wait()
    assert both("u") == [(2, 22), (3, 3), (4, 4)]
    lake.sql("INSERT INTO u VALUES (2, 23), (5, 5)")
    assert both("u") == [(2, 23), (3, 3), (4, 4), (5, 5)]


@pytest.mark.slow
def test_keys_and_sums_are_converted_while_loads_go_on(lake, both):
    lake.sql("ALTER TABLE a MODIFY COLUMN v DECIMAL(20, 0) SUM PROPERTIES ('wait' = 'false')")
    lake.sql("INSERT INTO a VALUES (1, 10), (3, 3)")
    lake.job(1).wait()
    lake.sql("ALTER TABLE a MODIFY COLUMN k STRING KEY PROPERTIES ('wait' = 'false')")
    lake.sql("INSERT INTO a VALUES (1, 100)")
    lake.job(2).wait()
    lake.sql("INSERT INTO a VALUES ('1', 3000000000)")

    assert lake.job(2).state is JobState.FINISHED
    assert both("a") == [("1", 3_000_000_111), ("2", 2), ("3", 3)]


@pytest.mark.slow
def test_what_was_restored_or_compacted_is_loaded_into(copied, both):
    catalog, lake = copied
    lake.sql("INSERT INTO u VALUES (2, 'x'), (4, 'x')")
    lake.sql("ALTER TABLE u RENAME COLUMN k TO id, ADD COLUMN w INT KEY")
    lake.table("u").compact(min_files=1)
    lake.sql("INSERT INTO u VALUES (2, NULL, 'y'), (2, 1, 'z')")
    assert both("u") == [
        (1, None, "1"),
        (2, 1, "z"),
        (2, None, "y"),
        (3, None, "3"),
        (4, None, "x"),
    ]
    lake.table("u").restore(version=2)
    assert both("u") == START
    done = lake.sql("INSERT INTO u VALUES (2, 'again'), (1, 'again')").first()
    assert (done.updated, lake.table("u").columns.names) == (2, ["k", "v"])
    assert both("u") == [(1, "again"), (2, "again"), (3, "3")]
    assert row_ids(catalog) == [(1, 0), (2, 1), (3, 2)]


def test_loads_stop_where_another_writer_dropped_a_key(copied, tell):
    _, lake = copied
    lake.sql("CREATE TABLE w (k INT, b INT, v STRING) UNIQUE KEY (k, b)")
    lake.sql("INSERT INTO w VALUES (1, 1, '1'), (1, 2, '2'), (3, 1, '3')")
    tell("ALTER TABLE w RESET SORTED BY", "ALTER TABLE w DROP COLUMN b")
    for more in ("", ", 1"):
        with pytest.raises(Unsupported, match=r"another writer dropped a key column of main\.w"):
            lake.sql(f"INSERT INTO w VALUES (1, 'x'{more}), (4, 'y'{more})")
        lake.sql("ALTER TABLE w ADD COLUMN IF NOT EXISTS z INT")
    lake.table("w").restore(version=7)
    lake.sql("INSERT INTO w VALUES (1, 1, 'x'), (4, 1, 'y')")

    assert sorted(rows(lake.table("w").read())) == [
        *[(1, 1, "x"), (1, 2, "2"), (3, 1, "3"), (4, 1, "y")]
    ]
