"""Partitioned and sorted tables: the catalog is DuckDB's, and each reads what the other wrote."""

from __future__ import annotations

import pytest

import shelduck
from tests.support.ducklakepy_oracle import oracle_at
from tests.support.metadata import unexplained
from tests.support.normal import duckdb_rows, spark_rows, spark_rows_by_key
from tests.support.oracle import DuckDBOracle, at

pytestmark = pytest.mark.usefixtures("ducklake_version")

# A statement that both understand, or one for Shelduck and those (one transaction) for DuckDB.
STORY: tuple[str | tuple[str, str], ...] = (
    "CREATE TABLE t (id BIGINT, region VARCHAR, on_day DATE, n INT)",
    "INSERT INTO t VALUES (1, 'a', DATE '2024-01-31', 1)",
    "ALTER TABLE t SET PARTITIONED BY (region)",
    "ALTER TABLE t SET PARTITIONED BY (region)",
    "INSERT INTO t VALUES (2, 'b', NULL, 2)",
    "INSERT INTO t VALUES (3, NULL, NULL, 3)",
    "INSERT INTO t VALUES (4, '', NULL, 4)",
    "INSERT INTO t VALUES (5, 'é/=%', NULL, 5)",
    "ALTER TABLE t RENAME COLUMN region TO area",
    (
        "ALTER TABLE t SET PARTITIONED BY (bucket(8, id), year(on_day), month(on_day), area)",
        "ALTER TABLE t SET PARTITIONED BY (bucket(8,id), year(on_day), month(on_day), area)",
    ),
    "INSERT INTO t VALUES (34, 'a', DATE '2017-11-16', 6)",
    "INSERT INTO t VALUES (NULL, NULL, NULL, NULL)",
    "ALTER TABLE t SET SORTED BY (n DESC, upper(area), id ASC NULLS FIRST)",
    "INSERT INTO t VALUES (34, 'a', DATE '2017-11-16', 7), (34, 'a', DATE '2017-11-16', 8)",
    "ALTER TABLE t RENAME COLUMN area TO land",
    'ALTER TABLE t RENAME COLUMN n TO "odd name"',
    "ALTER TABLE t RESET PARTITIONED BY",
    "ALTER TABLE t RESET PARTITIONED BY",
    "INSERT INTO t VALUES (9, 'a', NULL, 1), (10, 'b', NULL, NULL), (11, 'b', NULL, 3)",
    (
        "ALTER TABLE t RESET SORTED BY, DROP COLUMN land, SET PARTITIONED BY (on_day)",
        (
            "ALTER TABLE t RESET SORTED BY; ALTER TABLE t DROP COLUMN land;"
            " ALTER TABLE t SET PARTITIONED BY (on_day)"
        ),
    ),
    "INSERT INTO t VALUES (12, DATE '0044-03-15', 1)",
    "ALTER TABLE t SET SORTED BY (id)",
    "ALTER TABLE t RESET SORTED BY",
    "DROP TABLE t",
)


@pytest.fixture
def no_inlining(lake_url, data_path):
    """The address of a lake in which every row goes into a file."""
    with oracle_at(lake_url, data_path) as oracle:
        oracle.execute("CALL lake.set_option('data_inlining_row_limit', 0)")
    return lake_url


@pytest.mark.versions("1.0")
@pytest.mark.slow
def test_both_write_the_same_catalog(no_inlining, data_path, one_file, tmp_path):
    theirs = f"sqlite:///{tmp_path}/theirs.db"
    with shelduck.connect(no_inlining, spark=one_file) as lake:
        for told in STORY:
            lake.sql(told if isinstance(told, str) else told[0])
    with oracle_at(theirs, data_path) as oracle:
        oracle.execute("CALL lake.set_option('data_inlining_row_limit', 0)")
        for told in STORY:
            statements = (told if isinstance(told, str) else told[1]).split("; ")
            for statement in ("BEGIN", *statements, "COMMIT"):
                oracle.execute(statement)
        expected = oracle.dump_metadata()
        last = oracle.snapshot()
        their_rows = {v: duckdb_rows(oracle, at("t", v)) for v in range(1, last)}
    with oracle_at(no_inlining) as oracle:
        found = oracle.dump_metadata()
        our_rows = {v: duckdb_rows(oracle, at("t", v)) for v in range(1, last)}

    different = unexplained(_alike(found), _alike(expected), ())
    assert not different, "\n".join(different)
    assert our_rows == their_rows
    with shelduck.connect(no_inlining, spark=one_file) as lake:
        frames = {v: lake.sql(f"SELECT * FROM t VERSION AS OF {v}") for v in their_rows}
        assert spark_rows_by_key(frames) == their_rows


def _alike(dump):
    """A dump without tables for inlined rows, booleans as databases have them that lack them."""
    return {
        table: [{k: int(v) if isinstance(v, bool) else v for k, v in row.items()} for row in rows]
        for table, rows in dump.items()
        if "inlined_data" not in table
    }


STATEMENTS = (
    (
        "CREATE TABLE t (id BIGINT, region STRING, ts TIMESTAMP_NTZ)"
        " PARTITIONED BY (region, bucket(4, id), year(ts)) SORTED BY (id DESC)"
    ),
    (
        "INSERT INTO t SELECT id, concat('r', id % 3), TIMESTAMP_NTZ '2024-01-01 00:00:00'"
        " + make_dt_interval(id) FROM range(600)"
    ),
    "INSERT INTO t VALUES (NULL, NULL, NULL), (1, '', NULL)",
)
# What prunes by region, by bucket and by year, and how many rows there are.
QUESTIONS = {
    "region = 'r1'": 200,
    "region = ''": 1,
    "region IS NULL": 1,
    "id = 34": 1,
    "id IN (1, 34, 35)": 4,
    "year(ts) = 2025": 234,
    "ts < TIMESTAMP '2024-01-11 00:00:00'": 10,
    "region = 'r1' AND id = 34": 1,
    "region = 'r2' AND id = 34": 0,
}


@pytest.mark.versions("1.0")
def test_duckdb_reads_what_is_written_in_partitions(no_inlining, spark):
    with shelduck.connect(no_inlining, spark=spark) as lake:
        for statement in STATEMENTS:
            lake.sql(statement)
        written = spark_rows(lake.sql("SELECT * FROM t"))
    with oracle_at(no_inlining) as oracle:
        assert duckdb_rows(oracle, "t") == written
        counts = {q: oracle.sql(f"SELECT count(*) FROM t WHERE {q}")[0][0] for q in QUESTIONS}
        assert counts == QUESTIONS
        assert oracle.sql("SELECT count(*), min(id), max(id) FROM t") == [(602, 0, 599)]
        [(files,)] = oracle.sql("SELECT count(*) FROM ducklake_list_files('lake', 't')")
        # Three regions in four buckets of two years, and the two odd rows.
        assert files == 3 * 4 * 2 + 2
        assert _files_read(oracle, "id = 34") < files / 2


@pytest.mark.slow
def test_files_of_a_partition_are_merged_by_duckdb(no_inlining, spark):
    with shelduck.connect(no_inlining, spark=spark) as lake:
        lake.sql("CREATE TABLE t (id BIGINT, r STRING) PARTITIONED BY (r, bucket(2, id))")
        for first in (0, 100, 200):
            lake.sql(
                f"INSERT INTO t SELECT id, concat('r ', id % 2) FROM range({first}, {first} + 100)"
            )
        lake.sql("INSERT INTO t VALUES (NULL, NULL), (NULL, '')")
        lake.sql("INSERT INTO t VALUES (NULL, ''), (NULL, NULL)")
        before = spark_rows(lake.sql("SELECT * FROM t"))
    with oracle_at(no_inlining) as oracle:
        oracle.execute("CALL ducklake_merge_adjacent_files('lake')")
        partitions = oracle.sql(
            "SELECT list(v.partition_value ORDER BY v.partition_key_index), any_value(record_count)"
            " FROM __ducklake_metadata_lake.ducklake_data_file f"
            " JOIN __ducklake_metadata_lake.ducklake_file_partition_value v USING (data_file_id)"
            " WHERE f.end_snapshot IS NULL GROUP BY data_file_id ORDER BY ALL"
        )
        assert duckdb_rows(oracle, "t") == before
    assert [values for values, _ in partitions] == [
        ["", None],
        ["r 0", "0"],
        ["r 0", "1"],
        ["r 1", "0"],
        ["r 1", "1"],
        [None, None],
    ]
    assert sum(count for _, count in partitions) == 304
    with shelduck.connect(no_inlining, spark=spark) as lake:
        assert spark_rows(lake.sql("SELECT * FROM t")) == before


@pytest.mark.slow
def test_both_write_into_one_table_while_its_partitions_change(no_inlining, one_file):
    ours = (
        "INSERT INTO t SELECT id, concat('r', id % 3), DATE '2024-01-31' FROM range({0}, {0} + 9)"
    )
    its = "INSERT INTO t SELECT i, 'r' || i % 3, DATE '2023-02-28' FROM range({0}, {0} + 9) r(i)"
    keys = ("(region)", "(bucket(2, id))", "(year(d), month(d))")
    told = []
    for n, key in enumerate(keys):
        with shelduck.connect(no_inlining, spark=one_file) as lake:
            if n == 0:
                lake.sql("CREATE TABLE t (id BIGINT, region STRING, d DATE)")
            lake.sql(ours.format(100 * n))
            lake.sql(f"ALTER TABLE t SET PARTITIONED BY {key}")
            lake.sql(ours.format(100 * n + 50))
        with oracle_at(no_inlining) as oracle:
            oracle.execute(its.format(100 * n + 70))
            told.append(duckdb_rows(oracle, "t"))
    with oracle_at(no_inlining) as oracle:
        specs = oracle.sql(
            "SELECT partition_id, count(*) FROM __ducklake_metadata_lake.ducklake_data_file"
            " GROUP BY ALL ORDER BY 1 NULLS FIRST"
        )
        counts = oracle.sql(
            "SELECT region, count(*) FROM t WHERE id % 100 >= 50 GROUP BY ALL ORDER BY 1"
        )
        [(first, *_), (second, *_), (third, *_)] = specs[1:]
    # One file without keys and, under the old keys, one more of each partition.
    assert [count for _, count in specs] == [1, 3 + 3 + 3, 2 + 2 + 2, 1 + 1]
    assert first < second < third
    assert counts == [("r0", 18), ("r1", 18), ("r2", 18)]
    with shelduck.connect(no_inlining, spark=one_file) as lake:
        assert spark_rows(lake.sql("SELECT * FROM t")) == told[-1]


@pytest.mark.versions("1.0")
@pytest.mark.slow
def test_rows_of_a_sorted_table_have_their_ids_in_its_order(no_inlining, spark):
    with shelduck.connect(no_inlining, spark=spark) as lake:
        lake.sql("CREATE TABLE t (id INT, v STRING) SORTED BY (upper(v) DESC, id NULLS FIRST)")
        lake.sql(
            "INSERT INTO t SELECT if(id = 7, NULL, id), if(id % 2 = 0, 'a', 'B') FROM range(40)"
        )
        lake.sql("ALTER TABLE t RENAME COLUMN v TO w")
        lake.sql("INSERT INTO t VALUES (1, 'x'), (2, 'Z'), (3, NULL)")
    with oracle_at(no_inlining) as oracle:
        found = oracle.sql("SELECT id, w FROM t ORDER BY rowid")
        rewritten = oracle.sql("SELECT sum(id) FROM t")
        oracle.execute("INSERT INTO t VALUES (4, 'q'), (5, 'R')")
        assert oracle.sql("SELECT id FROM t ORDER BY rowid DESC LIMIT 2") == [(4,), (5,)]
    odd = [None, *(n for n in range(40) if n % 2 and n != 7)]
    assert found[:40] == [(n, "B") for n in odd] + [(n, "a") for n in range(0, 40, 2)]
    assert found[40:] == [(2, "Z"), (1, "x"), (3, None)]
    assert rewritten == [(sum(range(40)) - 7 + 6,)]


def _files_read(oracle: DuckDBOracle, condition: str) -> int:
    """How many files a query opens."""
    [(_, plan)] = oracle.sql(f"EXPLAIN ANALYZE SELECT * FROM t WHERE {condition}")
    return int(plan.split("Total Files Read: ")[1].split()[0])
