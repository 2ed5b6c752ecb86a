"""COUNT, MIN and MAX of a whole table: answered by the catalog or by rows, and always right."""

from __future__ import annotations

import pytest

import shelduck
from tests.support.jobs import jobs_of
from tests.support.oracle import DuckDBOracle

SETTING = "spark.shelduck.metadataAnswers"
ALL = "SELECT count(*), min(id), max(id) + 1 AS next, count(s), min(d), max(d) FROM t"
COUNT = "SELECT count(*) FROM t"


@pytest.fixture
def lake(spark, sqlite_url, data_path):
    with shelduck.connect(sqlite_url, data_path, spark) as lake:
        lake.sql("CREATE TABLE t (id INT, s STRING, d DATE, x DOUBLE)")
        lake.sql(
            "INSERT INTO t SELECT CAST(id AS INT), concat('a', id),"
            " date_add(DATE '2020-01-01', CAST(id AS INT)), id FROM range(1000)"
        )
        yield lake


def asked(lake, query):
    """What a query answers, and how many jobs it runs; the rows themselves must say the same."""
    spark = lake.spark
    found = []
    jobs = jobs_of(spark, lambda: found.extend(lake.sql(query).collect()))
    spark.conf.set(SETTING, "false")
    try:
        by_rows = []
        assert jobs_of(spark, lambda: by_rows.extend(lake.sql(query).collect()))
    finally:
        spark.conf.unset(SETTING)
    assert found == by_rows
    return tuple(found[0]), jobs


def test_files_and_rows_in_the_catalog_are_counted_without_a_job(lake):
    assert asked(lake, COUNT) == ((1000,), 0)
    lake.sql("INSERT INTO t VALUES (-5, NULL, NULL, NULL)")
    found, jobs = asked(lake, ALL)

    assert (found[:4], jobs) == ((1001, -5, 1000, 1000), 0)


def test_columns_that_changed_are_answered_too(lake):
    lake.sql("ALTER TABLE t ALTER COLUMN id TYPE BIGINT, ADD COLUMN n INT DEFAULT 7")
    lake.sql("INSERT INTO t SELECT id, NULL, NULL, id, NULL FROM range(2000, 3000)")

    assert asked(lake, "SELECT max(id), max(n), count(n), count(d) FROM t") == (
        (2999, 7, 1000, 1000),
        0,
    )


def test_ends_of_every_type_whose_bounds_are_whole_need_no_job(lake):
    lake.sql(
        "CREATE TABLE w AS SELECT id / 8 AS f, CAST(id AS DECIMAL(9, 2)) AS n, id > 1 AS b,"
        " CAST(id / 8 AS FLOAT) AS g, timestamp_micros(id) AS at,"
        " CAST(timestamp_micros(id) AS TIMESTAMP_NTZ) AS z FROM range(1, 1001)"
    )
    ends = ", ".join(f"min({c}), max({c}), count({c})" for c in ("f", "n", "b", "g", "at", "z"))
    found, jobs = asked(lake, f"SELECT {ends} FROM w")

    assert (found[:5], jobs) == ((0.125, 125.0, 1000, 1, 1000), 0)
    lake.sql("INSERT INTO w SELECT double('NaN'), 0, NULL, 0, NULL, NULL FROM range(2)")
    assert asked(lake, "SELECT min(n), max(b), min(at) FROM w")[1] == 0
    # NaN is the greatest, and a zero may be a negative one.
    assert asked(lake, "SELECT string(max(f)), min(g) FROM w")[1] > 0


def test_deleted_rows_are_left_out_and_may_have_been_the_lowest(lake):
    lake.sql("DELETE FROM t WHERE id % 10 = 0")

    assert asked(lake, COUNT) == ((900,), 0)
    found, jobs = asked(lake, "SELECT min(id), max(id) FROM t")
    assert (found, jobs > 0) == ((1, 999), True)


def test_updated_rows_are_counted_once(lake):
    lake.sql("UPDATE t SET id = id + 5000 WHERE id % 10 = 4")

    assert asked(lake, COUNT) == ((1000,), 0)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) FROM t WHERE id > 5",
        "SELECT count(DISTINCT id) FROM t",
        "SELECT min(x), max(s) FROM t",
        "SELECT count(*) FILTER (WHERE id > 5) FROM t",
        "SELECT sum(id) FROM t",
        "SELECT count(*), s IS NULL FROM t GROUP BY 2",
        "SELECT min(id + 1) FROM t",
    ],
)
def test_what_needs_rows_reads_them(lake, query):
    _, jobs = asked(lake, query)

    assert jobs


def test_older_snapshots_and_parts_of_a_query_are_answered(lake):
    before = lake.snapshots()[-1].id
    lake.sql("INSERT INTO t SELECT CAST(id AS INT), NULL, NULL, NULL FROM range(50)")

    assert asked(lake, f"SELECT count(*) FROM t AT (VERSION => {before})") == ((1000,), 0)
    assert asked(lake, "SELECT (SELECT max(id) FROM t) - (SELECT min(id) FROM t) AS span")[0] == (
        999,
    )


def test_deletes_of_later_commits_in_the_same_file_are_no_deletes_yet(lake):
    lake.sql("CREATE TABLE u AS SELECT id FROM range(0, 100, 1, 1)")
    seen = {}

    def delete(condition):
        lake.sql(f"DELETE FROM u WHERE {condition}")
        alive = lake.sql("SELECT collect_list(id) FROM u").collect()[0][0]
        seen[lake.snapshots()[-1].id] = (len(alive), min(alive), max(alive))

    delete("id < 12")
    # Positions that the catalog keeps go into the next delete file, with those of the first one.
    delete("id IN (12, 13)")
    delete("id BETWEEN 14 AND 30")
    lake.sql("CALL flush_inlined_data('u')")

    for version, told in seen.items():
        query = f"SELECT count(*), min(id), max(id) FROM u VERSION AS OF {version}"
        assert asked(lake, query)[0] == told
        assert asked(lake, f"SELECT count(*) FROM u VERSION AS OF {version}")[0] == told[:1]
        assert lake.table("u").read(version=version).count() == told[0]


@pytest.mark.parametrize("flushed_by", ["Shelduck", "DuckDB"])
def test_rows_that_were_flushed_with_their_deletes_are_counted_as_they_were(
    lake, sqlite_url, flushed_by
):
    lake.sql("CREATE TABLE u (id INT)")
    lake.sql("INSERT INTO u VALUES (1), (2), (3)")
    versions = {}
    for number in (1, 2):
        lake.sql(f"DELETE FROM u WHERE id = {number}")
        versions[lake.snapshots()[-1].id] = (3 - number, number + 1, 3)
    if flushed_by == "Shelduck":
        lake.sql("CALL flush_inlined_data('u')")
    else:
        with DuckDBOracle(sqlite_url) as oracle:
            oracle.execute("CALL ducklake_flush_inlined_data('lake', table_name => 'u')")

    for version, told in versions.items():
        query = f"SELECT count(*), min(id), max(id) FROM u VERSION AS OF {version}"
        assert asked(lake, query)[0] == told


def test_what_duckdb_says_of_nan_is_true_of_the_last_rows_only(lake, sqlite_url):
    lake.sql("CREATE TABLE u (x DOUBLE)")
    with DuckDBOracle(sqlite_url) as oracle:
        # Three groups of rows, and the NaN is in the first one.
        oracle.execute(
            "INSERT INTO lake.u SELECT if(i = 5, 'nan'::DOUBLE, i) FROM range(300000) AS x(i)"
        )

    assert asked(lake, "SELECT count(*) FROM u WHERE x > 1e9")[0] == (1,)
    assert asked(lake, "SELECT string(max(x)) FROM u")[0] == ("NaN",)
    lake.sql("DELETE FROM u WHERE x <= 1e9")
    assert [row.x for row in lake.sql("SELECT string(x) AS x FROM u").collect()] == ["NaN"]


def test_an_open_transaction_counts_what_it_wrote(lake):
    with lake.transaction() as tx:
        tx.sql("INSERT INTO t SELECT CAST(id AS INT), NULL, NULL, NULL FROM range(50)")
        tx.sql("DELETE FROM t WHERE id = 1")
        assert tx.sql(COUNT).collect()[0][0] == 1048


PARTS = [
    "CREATE TABLE p (id INT, day DATE, n INT)",
    "ALTER TABLE p SET PARTITIONED BY (day)",
    (
        "INSERT INTO p SELECT CAST(id AS INT), date_add(DATE '2026-01-01', CAST(id % 10 AS INT)),"
        " if(id = 5, NULL, CAST(id AS INT)) FROM range(1000)"
    ),
]
DECIDED = {
    "day = DATE '2026-01-03'": 100,
    "day = DATE '2026-01-03' AND id >= 0": 100,
    "day IN (DATE '2026-01-01', DATE '2026-01-02')": 200,
    "day < '2026-01-03' OR day > '2026-01-09'": 300,
    "NOT (day <> DATE '2026-01-03')": 100,
    "day IS NULL": 0,
    "day = DATE '2030-01-01'": 0,
    "id > 2000": 0,
    "n >= 0 AND day = DATE '2026-01-07'": 100,
}
OPEN = {
    # One row of that day has no n.
    "n >= 0 AND day = DATE '2026-01-06'": 99,
    "n IS NOT NULL AND day = DATE '2026-01-06'": 99,
    "id > 10 AND day = DATE '2026-01-03'": 99,
    "dayofmonth(day) = 3": 100,
    "day = DATE '2026-01-03' OR id = 0": 101,
}


@pytest.fixture
def parts(lake):
    for statement in PARTS:
        lake.sql(statement)
    return lake


@pytest.mark.parametrize("condition", DECIDED | OPEN)
def test_filters_that_choose_whole_files_are_counted_without_a_job(parts, condition):
    (count, _), jobs = asked(parts, f"SELECT count(*), max(id) FROM p WHERE {condition}")

    assert count == (DECIDED | OPEN)[condition]
    assert (jobs == 0) == (condition in DECIDED)


@pytest.mark.parametrize("condition", DECIDED | OPEN)
def test_a_delete_of_whole_files_runs_no_job(parts, spark, condition):
    found = []
    jobs = jobs_of(
        spark, lambda: found.extend(parts.sql(f"DELETE FROM p WHERE {condition}").collect())
    )

    wanted = (DECIDED | OPEN)[condition]
    assert found[0]["deleted"] == wanted
    assert (jobs == 0) == (condition in DECIDED)
    left = f"SELECT count(*), count_if({condition}), count(DISTINCT id) FROM p"
    assert [tuple(r) for r in parts.sql(left).collect()] == [(1000 - wanted, 0, 1000 - wanted)]


def test_a_delete_of_whole_files_keeps_deletes_and_rows_in_the_catalog_apart(parts, spark):
    parts.sql("DELETE FROM p WHERE id = 12")
    parts.sql("INSERT INTO p VALUES (5000, DATE '2026-01-03', 1), (5001, DATE '2026-01-04', 1)")
    [told] = parts.sql("DELETE FROM p WHERE day = DATE '2026-01-03'").collect()

    assert told["deleted"] == 100
    assert [tuple(r) for r in parts.sql("SELECT count(*), max(id) FROM p").collect()] == [
        (901, 5001)
    ]
    [told] = parts.sql("DELETE FROM p WHERE day = (SELECT max(day) FROM p)").collect()
    assert told["deleted"] == 100
