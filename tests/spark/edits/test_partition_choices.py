"""Which rows a comparison of a partition key chooses, by every door, beside plain Spark on Parquet.

Each table has the same rows in files and in the catalog; a row's `id` says its place in ROWS.
"""

from __future__ import annotations

from itertools import product

import pytest
from pyspark.errors import PySparkException

from shelduck import InvalidRequest, NotFound, Unsupported

ROWS = {
    "STRING": ["'a'", "NULL", "'b'", "'01'", "'1'", "'1.0'"],
    "INT": ["1", "NULL", "2", "-3"],
    "DATE": ["DATE'2024-01-02'", "NULL", "DATE'2024-01-03'"],
}
DIRECTORIES = {
    "STRING": ["a", "__HIVE_DEFAULT_PARTITION__", "b", "01", "1", "1.0"],
    "INT": ["1", "__HIVE_DEFAULT_PARTITION__", "2", "-3"],
    "DATE": ["2024-01-02", "__HIVE_DEFAULT_PARTITION__", "2024-01-03"],
}
LITERALS = {
    "STRING": ["NULL", "'__HIVE_DEFAULT_PARTITION__'", "'a'", "1", "1.0", "'01'", "'zz'", "TRUE"],
    "INT": ["NULL", "'__HIVE_DEFAULT_PARTITION__'", "1", "'01'", "2L", "'x'", "9"],
    "DATE": ["NULL", "'__HIVE_DEFAULT_PARTITION__'", "'2024-1-2'", "DATE'2024-01-02'", "'x'"],
}
COMPARISONS = ("<>", "=", "!=", "<", "<=", ">", ">=")
CONDITIONS = (
    *(f"c {word} {{0}}" for word in (*COMPARISONS, "<=>")),
    *("c IN ({0}, NULL)", "c NOT IN ({0})", "c NOT IN ({0}, NULL)", "c BETWEEN {0} AND {0}"),
    *("c IS NULL", "c IS NOT NULL", "c LIKE {0}", "CAST(c AS STRING) <> {0}"),
)
NULLS = ("NULL", "'__HIVE_DEFAULT_PARTITION__'")
STATEMENTS = [
    statement
    for kind, values in ROWS.items()
    for statement in (
        f"CREATE TABLE of_{kind} (id INT, c {kind}) PARTITIONED BY (c)",
        "CALL set_option('data_inlining_row_limit', '0')",
        f"INSERT INTO of_{kind} VALUES {', '.join(f'({n}, {v})' for n, v in enumerate(values))}",
        "CALL set_option('data_inlining_row_limit', '10')",
        f"INSERT INTO of_{kind} VALUES {', '.join(f'({n}, {v})' for n, v in enumerate(values))}",
    )
]
SPECS = [(k, w, v) for w in COMPARISONS for k, values in LITERALS.items() for v in values]
WHERES = [
    (kind, f"{negation}({condition.format(literal)})")
    for condition, (kind, literals) in product(CONDITIONS, LITERALS.items())
    for literal, negation in product(literals[:3], ("", "NOT "))
]


@pytest.fixture(scope="module")
def read(base):
    """One lake for all tests, which change it in transactions that are rolled back."""
    _, lake = base.copy()
    yield lake
    lake.close()


@pytest.fixture(scope="module")
def plain(spark, tmp_path_factory):
    """Spark's own tables of Parquet with the same rows."""
    folder = tmp_path_factory.mktemp("plain")
    for kind, values in ROWS.items():
        spark.sql(
            f"CREATE TABLE spark_catalog.default.of_{kind} (id INT, c {kind}) USING parquet"
            f" PARTITIONED BY (c) LOCATION '{folder / kind}'"
        )
        listed = ", ".join(f"({n}, {v})" for n, v in enumerate(values))
        spark.sql(f"INSERT INTO spark_catalog.default.of_{kind} VALUES {listed}")
    yield "spark_catalog.default.of_"
    for kind in ROWS:
        spark.sql(f"DROP TABLE spark_catalog.default.of_{kind}")


def ids(frame):
    return sorted({row.id for row in frame.select("id").collect()})


def chosen(lake, kind, statement):
    """The rows that a statement deletes, None if it is refused."""
    tx = lake.transaction()
    try:
        tx.sql(statement)
        kept = ids(tx.sql(f"SELECT id FROM of_{kind}"))
    except NotFound:
        return []
    except (InvalidRequest, Unsupported, PySparkException):
        return None
    finally:
        tx.rollback()
    return [n for n in range(len(ROWS[kind])) if n not in kept]


def spark_rows(spark, plain, kind, condition):
    """The rows of Spark's own table for which a condition is true, None if it is an error."""
    try:
        return ids(spark.sql(f"SELECT id FROM {plain}{kind} WHERE {condition}"))
    except PySparkException:
        return None


def spark_partition(spark, plain, kind, literal):
    """The rows of the partition that Spark's own statement finds, None if it is an error."""
    try:
        found = spark.sql(f"SHOW PARTITIONS {plain}{kind} PARTITION (c = {literal})").collect()
    except PySparkException:
        return None
    return [DIRECTORIES[kind].index(row.partition.removeprefix("c=")) for row in found]


@pytest.mark.guard
@pytest.mark.sampled(4)
@pytest.mark.parametrize("clause", SPECS, ids=" ".join)
def test_a_partition_clause_means_the_partitions_of_spark(read, plain, spark, clause):
    kind, word, literal = clause
    spec = f"of_{kind} PARTITION (c {word} {literal})"
    drop = chosen(read, kind, f"ALTER TABLE {spec.replace(' PARTITION (', ' DROP PARTITION (')}")
    assert chosen(read, kind, f"TRUNCATE TABLE {spec}") == drop
    if word == "=":
        assert drop == spark_partition(spark, plain, kind, literal)
    elif literal in NULLS:
        assert drop is None
        assert spark_rows(spark, plain, kind, f"c {word} NULL") == []
    else:
        value = f"CAST(CAST({literal} AS STRING) AS {kind})"
        assert drop == spark_rows(spark, plain, kind, f"c {word} {value}")
    if drop is not None:
        shown = {row[0] for row in read.sql(f"SHOW PARTITIONS {spec}").collect()}
        assert shown == {f"c={DIRECTORIES[kind][n]}" for n in drop}


@pytest.mark.guard
@pytest.mark.sampled(3)
@pytest.mark.parametrize(("kind", "condition"), WHERES)
def test_a_condition_on_a_partition_key_chooses_what_spark_chooses(
    read, plain, spark, kind, condition
):
    truth = spark_rows(spark, plain, kind, condition)
    none = f"SELECT * FROM of_{kind} WHERE false"
    for statement in (
        f"DELETE FROM of_{kind} WHERE {condition}",
        f"INSERT INTO of_{kind} REPLACE WHERE {condition} {none}",
    ):
        assert chosen(read, kind, statement) == truth, statement
    if truth is not None:
        assert ids(read.sql(f"SELECT id FROM of_{kind} WHERE {condition}")) == truth


@pytest.mark.guard
@pytest.mark.sampled(2)
@pytest.mark.parametrize(("kind", "literal"), [(k, v) for k, v in product(ROWS, LITERALS["INT"])])
def test_a_static_partition_is_that_of_spark(read, plain, spark, kind, literal):
    into = f"INSERT OVERWRITE of_{kind} PARTITION (c = {literal}) SELECT 7 AS id"
    assert chosen(read, kind, into) == spark_partition(spark, plain, kind, literal)
