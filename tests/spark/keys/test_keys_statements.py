"""Statements on tables with a key model: whatever they do, each key is there once."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F  # noqa: N812

import shelduck
from shelduck import InvalidRequest, Staged, when_matched_update_all, when_not_matched_insert_all
from shelduck.model.tables.keys import DELETE_SIGN
from tests.support.lakes import newest, refusal, rows
from tests.support.oracle import DuckDBOracle

STATEMENTS = [
    "CREATE TABLE u (k INT, v STRING) UNIQUE KEY (k)",
    "INSERT INTO u VALUES (1, 'a'), (2, 'b'), (3, 'c'), (NULL, 'n')",
    "CREATE TABLE p (k INT, p STRING, v INT) UNIQUE KEY (k, p) PARTITIONED BY (p)",
    "INSERT INTO p VALUES (1, 'a', 1), (2, 'a', 2), (1, 'b', 3), (7, 'c', 4)",
    "CREATE TABLE a (k INT, v INT SUM) AGGREGATE KEY (k)",
    "INSERT INTO a VALUES (1, 1), (2, 2), (1, 1)",
]
START = [(1, "a"), (2, "b"), (3, "c"), (None, "n")]
WOULD = "would leave several rows with the key"


@pytest.fixture
def refused(copied, base):
    """The message of a refusal, which changed nothing."""
    catalog, lake = copied

    def refused(act):
        run = act if callable(act) else lambda: lake.sql(act)
        return refusal(InvalidRequest, run, catalog, base.folder / "data")

    return refused


def test_a_load_with_a_sign_computes_what_the_table_generates(copied):
    _, lake = copied
    lake.sql("CREATE TABLE g (k INT, v INT, w INT GENERATED ALWAYS AS (v * 2)) UNIQUE KEY (k)")
    lake.sql("INSERT INTO g (k, v) VALUES (1, 1), (2, 2)")
    loaded = "(1, 0, true), (2, 5, false), (3, 6, NULL)"
    lake.sql(f"INSERT INTO g (k, v, {DELETE_SIGN}) VALUES {loaded}")
    assert sorted(rows(lake.table("g").read())) == [(2, 5, 10), (3, 6, 12)]


@pytest.mark.slow
def test_a_table_of_a_query_has_each_key_once(copied, refused):
    catalog, lake = copied
    query = "SELECT * FROM VALUES (1, 'a'), (2, 'b'), (1, 'c') AS x(k, v)"
    lake.sql(f"CREATE TABLE c UNIQUE KEY (k) AS {query}")

    assert newest(lake) == 7
    assert sorted(rows(lake.table("c").read())) == [(1, "c"), (2, "b")]
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.rows("c") == [(1, "c"), (2, "b")]
    lake.sql("CREATE OR REPLACE TABLE c UNIQUE KEY (v) AS SELECT v, k FROM c")
    assert lake.sql("INSERT INTO c VALUES ('b', 5)").first().updated == 1
    assert sorted(rows(lake.table("c").read())) == [("b", 5), ("c", 1)]
    assert "column v of e is not a key of the AGGREGATE KEY" in refused(
        f"CREATE TABLE e AGGREGATE KEY (k) AS {query}"
    )


@pytest.mark.slow
def test_an_overwrite_folds_its_own_rows_and_no_others(lake, both):
    done = lake.sql("INSERT OVERWRITE u VALUES (1, 'x'), (5, 'y'), (1, 'z')").first()
    assert (done.inserted, done.deleted) == (2, 4)
    assert both("u") == [(1, "z"), (5, "y")]
    lake.table("a").overwrite(lake.sql("SELECT 1 AS k, 5 AS v UNION ALL SELECT 1, 6"))
    assert both("a") == [(1, 11)]
    assert lake.sql("INSERT INTO a VALUES (1, 1)").first().updated == 1
    assert both("a") == [(1, 12)]


@pytest.mark.slow
def test_rows_in_the_place_of_others_have_keys_of_their_own(lake, both, refused):
    done = lake.sql("INSERT INTO u REPLACE WHERE k >= 2 SELECT 2, 'x' UNION ALL SELECT 2, 'y'")
    assert (done.first().inserted, done.first().deleted) == (1, 2)
    assert both("u") == [START[0], (2, "y"), START[3]]
    told = refused("INSERT INTO u REPLACE WHERE v = 'y' SELECT 1, 'y'")
    assert f"INSERT … REPLACE WHERE {WOULD} (1) in main.u" in told
    told = refused("INSERT INTO u REPLACE WHERE v = 'y' SELECT CAST(NULL AS INT), 'y'")
    assert f"{WOULD} (None) in main.u" in told


def test_partitions_are_overwritten(lake, both, spark):
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        lake.sql("INSERT OVERWRITE p VALUES (1, 'b', 5), (1, 'b', 6), (8, 'c', 1)")
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert both("p") == [(1, "a", 1), (1, "b", 6), (2, "a", 2), (8, "c", 1)]
    lake.sql("INSERT OVERWRITE p PARTITION (p = 'a') VALUES (5, 1), (5, 2)")
    assert both("p") == [(1, "b", 6), (5, "a", 2), (8, "c", 1)]
    lake.sql("INSERT INTO p PARTITION (p = 'a') VALUES (5, 8), (6, 2)")
    assert both("p") == [(1, "b", 6), (5, "a", 8), (6, "a", 2), (8, "c", 1)]
    lake.table("p").overwrite_partitions(lake.sql("SELECT 8 AS k, 'c' AS p, id AS v FROM range(3)"))
    assert both("p")[3] == (8, "c", 2)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("update", "key"),
    [("SET k = 1 WHERE k = 2", "1"), ("SET k = 77", "77"), ("SET k = 3 WHERE k IS NULL", "3")],
)
def test_an_update_does_not_give_two_rows_one_key(refused, update, key):
    told = refused(f"UPDATE u {update}")

    assert told == (
        f"UPDATE would leave several rows with the key ({key}) in main.u, where keys are unique;"
        " load the rows with INSERT INTO instead, which replaces the old ones"
    )


@pytest.mark.slow
def test_an_update_may_move_keys_to_where_others_were(copied, both):
    catalog, lake = copied
    lake.sql("UPDATE u SET k = CASE WHEN k IS NULL THEN 1 WHEN k = 1 THEN NULL ELSE k + 1 END")

    assert both("u") == [(1, "n"), (3, "b"), (4, "c"), (None, "a")]
    lake.table("u").update({"v": F.lit("all")})
    lake.sql("INSERT INTO u VALUES (3, 'load')")
    assert both("u") == [(1, "all"), (3, "load"), (4, "all"), (None, "all")]
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.sql("SELECT rowid FROM u ORDER BY k NULLS LAST") == [(3,), (1,), (2,), (0,)]


@pytest.mark.slow
def test_a_merge_does_not_insert_a_key_that_is_there(lake, both, refused):
    clash = "MERGE INTO u USING ({}) AS s ON u.v = s.v WHEN NOT MATCHED THEN INSERT *"
    told = refused(clash.format("SELECT 3 AS k, 'm' AS v"))
    assert f"MERGE {WOULD} (3) in main.u" in told
    told = refused(clash.format("SELECT 30 AS k, 'm' AS v UNION ALL SELECT 30, 'n2'"))
    assert f"MERGE {WOULD} (30) in main.u" in told
    source = lake.sql("SELECT 3 AS k, 'm' AS v UNION ALL SELECT 30, 'n'")
    clauses = (when_matched_update_all(), when_not_matched_insert_all())
    done = lake.table("u").merge(source, ["k"], *clauses)
    assert (done.inserted, done.updated) == (1, 1)
    assert both("u") == [START[0], START[1], (3, "m"), (30, "n"), START[3]]


def test_what_is_deleted_may_come_again(lake, both):
    lake.sql("DELETE FROM u WHERE k = 1 OR k IS NULL")
    done = lake.sql("INSERT INTO u VALUES (1, 'again'), (2, 'over')").first()
    assert (done.inserted, done.updated) == (1, 1)
    assert both("u") == [(1, "again"), (2, "over"), (3, "c")]
    lake.sql("TRUNCATE TABLE u")
    assert lake.sql("INSERT INTO u VALUES (1, 'x'), (1, 'y')").first().inserted == 1
    assert both("u") == [(1, "y")]


@pytest.mark.slow
def test_a_transaction_loads_several_times(lake, both):
    with lake.transaction() as tx:
        tx.sql("INSERT INTO u VALUES (3, 'one'), (8, 'one')")
        staged = tx.sql("INSERT INTO u VALUES (8, 'two'), (9, 'two'), (1, 'two')").first()
        assert (staged.inserted, staged.updated) == (1, 2)
        tx.sql(f"INSERT INTO u (k, {DELETE_SIGN}) VALUES (9, 1), (2, 1)")
        tx.sql("UPDATE u SET v = 'three' WHERE k = 8; INSERT INTO a VALUES (1, 1), (9, 1)")
        tx.sql("INSERT INTO a VALUES (1, 1), (9, 1), (7, 7)")
        inside = sorted(rows(tx.table("u").read()), key=str)

    assert newest(lake) == 7
    assert both("u") == inside == [(1, "two"), (3, "one"), (8, "three"), (None, "n")]
    assert both("a") == [(1, 4), (2, 2), (7, 7), (9, 2)]


@pytest.mark.slow
def test_a_transaction_loads_into_a_table_of_its_own(copied):
    catalog, lake = copied
    with lake.transaction() as tx:
        tx.sql("CREATE TABLE o (k INT, v INT) UNIQUE KEY (k)")
        assert isinstance(tx.table("o").append(lake.sql("SELECT 1 AS k, 1 AS v")), Staged)
        tx.sql("INSERT INTO o VALUES (1, 2), (1, 3)")
        tx.sql(f"INSERT INTO o (k, {DELETE_SIGN}) VALUES (5, 1)")
    assert rows(lake.table("o").read()) == [(1, 3)]
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.rows("o") == [(1, 3)]
    assert lake.table("o").fold() == shelduck.Unchanged(7)


@pytest.mark.slow
def test_a_transaction_that_is_given_up_leaves_nothing(copied, refused):
    _, lake = copied

    def give_up():
        with lake.transaction() as tx:
            tx.sql("INSERT INTO u VALUES (1, 'x'), (8, 'y')")
            raise InvalidRequest("no")

    assert refused(give_up) == "no"


@pytest.mark.slow
def test_a_stream_loads_batch_after_batch(lake, both, spark):
    sink = lake.table("u").sink("q")
    for number, name in ((0, "x"), (1, "y"), (1, "not again")):
        sink(spark.sql(f"SELECT * FROM VALUES (1, '{name}'), (1, '{name}2') AS v(k, v)"), number)

    assert both("u") == [(1, "y2"), *START[1:]]
    assert newest(lake) == 8


@pytest.mark.slow
def test_a_load_may_bring_columns_and_wider_types(lake, both, spark):
    wide = "SELECT CAST(k AS BIGINT) AS k, v, n FROM VALUES (1, 'x', 5), (1, 'y', 6) AS s(k, v, n)"
    done = lake.table("u").append(spark.sql(wide), merge_schema=True)
    assert (done.inserted, done.updated) == (0, 1)
    assert both("u") == [(1, "y", 6), *[(*row, None) for row in START[1:]]]
    assert str(lake.table("u").columns.get(("k",)).type) == "int64"
    lake.sql("INSERT WITH SCHEMA EVOLUTION INTO u BY NAME SELECT 5000000000 AS k, 'z' AS v, 1 AS w")
    assert both("u")[3] == (5_000_000_000, "z", None, 1)


TABLES = [
    "UNIQUE KEY (`a b`, k)\nPROPERTIES ('function_column.sequence_col' = 'v')",
    "UNIQUE KEY (`a b`)\nDISTRIBUTED BY HASH (`a b`)\nPARTITIONED BY (bucket(4, `a b`))",
    "DUPLICATE KEY (`a b`, k)\nDISTRIBUTED BY HASH (k, v)",
    "DUPLICATE KEY (`a b`)\nPARTITIONED BY (v)\nSORTED BY (v DESC)",
    "DISTRIBUTED BY HASH (k) BUCKETS 8",
]
SUMS = "AGGREGATE KEY (`a b`, k)\nDISTRIBUTED BY HASH (k) BUCKETS 3\nSORTED BY (k)"


@pytest.mark.parametrize("clauses", [*TABLES, SUMS])
def test_a_table_is_made_again_by_what_it_shows(lake, clauses):
    how = " SUM NOT NULL DEFAULT '0'" if clauses is SUMS else ""
    statement = f"CREATE TABLE t (`a b` DATE NOT NULL COMMENT 'c', k STRING, v BIGINT{how})"
    lake.sql(f"{statement}\n{clauses}")
    [(text,)] = rows(lake.sql("SHOW CREATE TABLE t"))
    lake.sql(text.replace("main.t", "main.again"))
    one, other = lake.table("t")._version(), lake.table("again")._version()

    assert one.properties == other.properties
    assert (one.columns, one.comments) == (other.columns, other.comments)
    assert (one.partition, one.sort) == (other.partition, other.sort)
    assert rows(lake.sql("SHOW CREATE TABLE again")) == [(text.replace("main.t", "main.again"),)]


def test_a_distributed_table_without_keys_is_altered_like_any_other(copied):
    catalog, lake = copied
    lake.sql("CREATE TABLE t (a INT, b INT) DISTRIBUTED BY HASH (a) BUCKETS 8")
    lake.sql("INSERT INTO t VALUES (2, 1), (1, 1), (1, 1)")
    lake.sql("ALTER TABLE t ADD COLUMN c INT FIRST, RENAME COLUMN a TO k, DROP COLUMN b")
    lake.sql("UPDATE t SET c = 5 WHERE k = 1")
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert sorted(duckdb.rows("t"), key=str) == [(5, 1), (5, 1), (None, 2)]
    for clause, said in (
        ("DROP COLUMN k", "Distribution column k"),
        ("ADD COLUMN d INT KEY", "has no key model"),
    ):
        with pytest.raises(InvalidRequest, match=said):
            lake.sql(f"ALTER TABLE t {clause}")
    [(text,)] = rows(lake.sql("SHOW CREATE TABLE t"))
    assert text.endswith(")\nDISTRIBUTED BY HASH (k) BUCKETS 8")


def test_a_table_that_is_not_sorted_any_more_is_shown_as_it_is(lake):
    lake.sql("ALTER TABLE u RESET SORTED BY")
    [(text,)] = rows(lake.sql("SHOW CREATE TABLE u"))
    lake.sql(text.replace("main.u", "main.again"))

    assert lake.table("again")._version().sort == lake.table("u")._version().sort == ()


def test_a_description_tells_the_keys(lake):
    lake.sql(f"CREATE TABLE t (`a b` INT, v INT) {TABLES[0].replace(', k', '')}")
    found = [tuple(row)[:2] for row in rows(lake.sql("DESCRIBE t"))]

    assert found == [
        *[("a b", "int"), ("v", "int"), ("", ""), ("# Keys", "")],
        ("Key 0", "UNIQUE KEY (`a b`)"),
        ("Key 1", "PROPERTIES ('function_column.sequence_col' = 'v')"),
        *[("", ""), ("# Sort Order", ""), ("Sort 0", "`a b`")],
    ]
    assert "shelduck.keys" not in str(rows(lake.sql("SHOW TBLPROPERTIES t")))
