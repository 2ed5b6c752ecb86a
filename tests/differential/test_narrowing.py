"""A column that became narrower in metadata reads alike in Spark and in DuckDB, filtered or not."""

from __future__ import annotations

import operator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from pyspark.errors import SparkRuntimeException

import shelduck
from shelduck import change_type
from tests.support.lakes import rows
from tests.support.oracle import DuckDBOracle

RANGES = {
    f"{sign}int{bits}": (0, 2**bits - 1) if sign else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for sign in ("", "u")
    for bits in (8, 16, 32, 64)
    if (sign, bits) != ("u", 64)
}
DECIMALS = [
    ("decimal(18,4)", "decimal(10,4)"),
    ("decimal(38,2)", "decimal(9,2)"),
    ("decimal(20,2)", "decimal(18,2)"),
    ("decimal(9,2)", "decimal(4,2)"),
    ("decimal(20,0)", "decimal(3,0)"),
]
INTEGERS = [
    (one, other)
    for one, (least, most) in RANGES.items()
    for other, (low, high) in RANGES.items()
    if least < low or high < most
]
OPERATORS = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "<>": operator.ne,
}


def values_of(source, target):
    """Values of both types: the ends of what both hold, their neighbours, and NULL."""
    if target.startswith("decimal"):
        digits, scale = map(int, target[8:-1].split(","))
        step = Decimal(1).scaleb(-scale)
        high = 10 ** Decimal(digits - scale) - step
        low = -high
    else:
        (least, most), (low, high), step = RANGES[source], RANGES[target], 1
        low, high = max(least, low), min(most, high)
    return [low, low + step, 1, 2, high - step, high, None]


def written(spark, table, values, files=2):
    """Appends the values as rows i, v in several files; the rows of all."""
    found = dict(enumerate(values))
    rows_of = [f"({i}, {'NULL' if v is None else f'{v}BD'})" for i, v in found.items()]
    for part in range(files):
        some = ", ".join(rows_of[part::files])
        table.append(spark.sql(f"SELECT * FROM VALUES {some} AS t(i, v)").coalesce(1))
    return found


def check(found, ask):
    """Compares a table with its values, whoever answers."""
    assert dict(ask("SELECT i, v FROM t")) == found
    known = {i: v for i, v in found.items() if v is not None}
    for word, compare in OPERATORS.items():
        for edge in (known[0], known[2], known[5]):
            expected = sorted(i for i, v in known.items() if compare(v, edge))
            answer = sorted(i for (i,) in ask(f"SELECT i FROM t WHERE v {word} {edge}"))
            assert (word, edge, answer) == (word, edge, expected)
    assert sorted(ask(f"SELECT i FROM t WHERE v IN ({known[0]}, {known[5]})")) == [(0,), (5,)]
    assert ask("SELECT i FROM t WHERE v IS NULL") == [(6,)]
    assert ask("SELECT count(*), count(v), min(v), max(v) FROM t") == [
        (len(found), len(known), known[0], known[5])
    ]


@pytest.fixture
def lake(sqlite_url, data_path, spark):
    with shelduck.connect(sqlite_url, data_path, spark) as made:
        made.set_option("data_inlining_row_limit", "0")
        made.url = sqlite_url
        yield made


def in_spark(lake):
    return lambda query: [tuple(row) for row in lake.sql(query).collect()]


@contextmanager
def hidden(*addresses):
    """Moves files away meanwhile."""
    paths = [Path(unquote(urlsplit(address).path)) for address in addresses]
    for path in paths:
        path.rename(f"{path}.away")
    yield
    for path in paths:
        Path(f"{path}.away").rename(path)


def test_files_of_wider_types_read_and_filter_alike(lake, spark):
    lake.sql("CREATE TABLE t (i INT, v BIGINT, d DECIMAL(18,4), s STRING)")
    table = lake.table("t")
    table.append(spark.sql("SELECT 1 i, 2147483647L v, -99999.9999BD d, 'a' s").coalesce(1))
    table.append(spark.sql("SELECT 2 i, -2147483648L v, NULL d, 'b' s").coalesce(1))
    done = table.alter(change_type("v", "int"), change_type("d", "decimal(9,4)"))
    table.append(spark.sql("SELECT 3 i, 7 v, 0.5BD d, 'c' s").coalesce(1))
    query = "SELECT i, v, d FROM t WHERE v >= 2147483647 OR d > 0 ORDER BY i"
    expected = [(1, 2147483647, Decimal("-99999.9999")), (3, 7, Decimal("0.5000"))]

    assert done.note == "metadata only: the bounds of 2 file(s) prove that every value fits"
    assert in_spark(lake)(query) == expected
    narrow = table.read().where("v = -2147483648").select("s")
    first, _, last = sorted(narrow.inputFiles())
    with hidden(first, last):
        # Bounds choose files still, and the others are not opened.
        assert rows(narrow) == [("b",)]
    assert table.read(version=3).schema["v"].dataType.simpleString() == "bigint"
    assert table.type_changes()["v"] == [{"fromType": "long", "toType": "integer"}]
    for kind in ("delta", "iceberg"):
        assert len(table.plan_export(kind).rewrites) == 2
    with DuckDBOracle(lake.url) as oracle:
        assert oracle.sql(query) == expected
    table.compact()
    with DuckDBOracle(lake.url) as oracle:
        assert oracle.sql(query) == expected == in_spark(lake)(query)
        assert oracle.sql("SELECT max(v), typeof(max(v)) FROM t AT (VERSION => 3)") == [
            (2147483647, "BIGINT")
        ]


def test_rows_staged_before_do_not_land_unseen(lake, spark):
    other = shelduck.connect(lake.url, lake.data_path, spark)
    lake.sql("CREATE TABLE t (i INT, v BIGINT)")
    lake.table("t").append(spark.sql("SELECT 1 i, 1L v").coalesce(1))
    late = other.transaction()
    late.table("t").append(spark.sql("SELECT 2 i, 3000000000L v"))
    assert lake.table("t").alter(change_type("v", "int")).note.startswith("metadata only")

    with pytest.raises(shelduck.Conflict, match="the type of v changed from int64 to int32"):
        late.commit()
    assert rows(lake.table("t").read()) == [(1, 1)]
    other.close()


@pytest.mark.slow
def test_a_follower_gets_what_was_deleted_before_in_a_batch_of_its_own(lake, spark, tmp_path):
    lake.sql("CREATE TABLE t (i INT, v BIGINT)")
    table = lake.table("t")
    table.append(spark.sql("SELECT 1 i, 3000000000L v").coalesce(1))
    table.delete("i = 1")
    table.append(spark.sql("SELECT 2 i, 5L v").coalesce(1))
    table.alter(change_type("v", "int"))
    table.append(spark.sql("SELECT 3 i, 6 v").coalesce(1))
    seen = []

    def handle(changes, number):
        kind = changes.schema["v"].dataType.simpleString()
        seen.append((number, kind, sorted(rows(changes.select("v", "_change_type")))))

    table.follow(handle, str(tmp_path / "cursor"))

    assert seen == [
        (0, "bigint", [(5, "insert"), (3000000000, "delete"), (3000000000, "insert")]),
        (1, "int", [(6, "insert")]),
    ]
    with pytest.raises(SparkRuntimeException, match="3000000000 is not a value of int32"):
        table.changes(1).collect()


@pytest.mark.slow
@pytest.mark.parametrize("vectorized", ["true", "false"])
@pytest.mark.parametrize(("source", "target"), [*INTEGERS, *DECIMALS])
def test_every_narrower_type_reads_and_filters_alike(lake, spark, source, target, vectorized):
    table = lake.create_table("t", {"i": "int", "v": source})
    found = written(spark, table, values_of(source, target))
    done = table.alter(change_type("v", target))
    assert done.note.startswith("metadata only")
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
    try:
        check(found, in_spark(lake))
    finally:
        spark.conf.unset("spark.sql.parquet.enableVectorizedReader")
    with DuckDBOracle(lake.url) as oracle:
        check(found, oracle.sql)
        # Files of DuckDB, and what it adds to the narrower column.
        oracle.execute(f"UPDATE t SET v = {found[4]} WHERE i = 2")
        found[2] = found[4]
        check(found, oracle.sql)
    check(found, in_spark(lake))
