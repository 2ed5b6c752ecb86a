"""Law "Filters": what a filter finds is the same with everything left out early and with nothing.

Odd values of each type, in files of five writers, one value to a row group or file, so that bounds,
dictionaries, Bloom filters and the catalog's statistics all get to speak.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from functools import reduce
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as sf

import shelduck
from shelduck.ducklake.format import FORMATS
from tests.support.ducklakepy_oracle import oracle_at
from tests.support.lengths import long, one_by_one
from tests.support.no_bridge import without_bridge

COLUMNS = {
    "d": "DOUBLE",
    "f": "FLOAT",
    "s": "STRING",
    "i": "TIMESTAMP",
    "n": "TIMESTAMP_NTZ",
    "t": "DATE",
    "c": "DECIMAL(9, 2)",
    "w": "DECIMAL(20, 3)",
    "b": "BINARY",
}
IN_ARROW = {
    "d": pa.float64(),
    "f": pa.float32(),
    "s": pa.string(),
    "i": pa.timestamp("us", "UTC"),
    "n": pa.timestamp("us"),
    "t": pa.date32(),
    "c": pa.decimal128(9, 2),
    "w": pa.decimal128(20, 3),
    "b": pa.binary(),
}
INSTANTS = [
    dt.datetime(1, 1, 1),  # noqa: DTZ001 - of either kind
    dt.datetime(1582, 10, 15),  # noqa: DTZ001
    dt.datetime(1900, 1, 1, 0, 0, 0, 1),  # noqa: DTZ001
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001
    dt.datetime(1970, 1, 1),  # noqa: DTZ001
    dt.datetime(2262, 4, 11, 23, 47, 16, 854776),  # noqa: DTZ001
    dt.datetime(9999, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001
]
ODD = {
    "d": [float("nan"), -0.0, 0.0, float("-inf"), float("inf"), 1.5, -1.5, 5e-324, 1.7e308],
    "f": [float("nan"), -0.0, 0.0, float("-inf"), float("inf"), 1.5, -1.5, 2.0**-149, 16777216.0],
    "s": ["", "a", "a ", "a  ", "Z", "z", "ä", "\uff5e", "\U0001f600"],
    "i": [value.replace(tzinfo=dt.UTC) for value in INSTANTS],
    "n": INSTANTS,
    "t": [value.date() for value in INSTANTS],
    "c": [Decimal(v) for v in ("-9999999.99", "-0.01", "0.00", "0.01", "9999999.99")],
    "w": [Decimal(v) for v in ("-99999999999999999.999", "-0.001", "0.000", "9007199254740993.001",
                               "99999999999999999.999")],
    "b": [b"", b"\x00", b"a", b"a ", b"\x7f", b"\x80", b"\xff", b"\xff\x00"],
}  # fmt: skip
GROUPS = 9
WRITERS = ("shelduck", "duckdb", "pyarrow", "spark", "deltalake")


def _rows() -> pa.Table:
    """Three rows to a group: a value twice, and a null; one column is shifted against another."""
    places = [n for n in range(GROUPS) for _ in range(3)]
    made = {"k": pa.array(range(len(places)), pa.int64())}
    for shift, (name, values) in enumerate(ODD.items()):
        found = [values[(n + shift) % len(values)] for n in places]
        found = [None if at % 3 == 2 else v for at, v in enumerate(found)]
        made[name] = pa.array(found, IN_ARROW[name])
    return pa.table(made)


@pytest.fixture(scope="module")
def lake(tmp_path_factory, spark):
    """A table of these rows from each writer, a row group or a file for each value."""
    folder = tmp_path_factory.mktemp("filters")
    url, place = f"sqlite:///{folder}/lake.db", folder / "arrow.parquet"
    pq.write_table(_rows(), place, row_group_size=3)
    version = one_by_one([*FORMATS])[-1]
    with shelduck.connect(url, f"{folder}/data/", spark, ducklake_version=version) as made:
        made.sql("CALL set_option('data_inlining_row_limit', 0)")
        shape = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
        for writer in WRITERS[:-1]:
            made.sql(f"CREATE TABLE {writer} (k BIGINT, {shape})")
        made.table("pyarrow").add_files(str(place))
        rows = spark.read.parquet(str(place)).repartitionByRange(GROUPS, "k")
        made.table("shelduck").append(rows)
        made.table("spark").add_files(_written_by_spark(spark, rows, folder))
        deltalake.write_deltalake(
            str(folder / "delta"),
            _rows(),
            writer_properties=deltalake.WriterProperties(max_row_group_size=3),
        )
        made.import_delta(folder / "delta", "deltalake")
        with oracle_at(url, None, {"DATA_INLINING_ROW_LIMIT": 0}) as oracle:
            for n in range(GROUPS):
                chosen = f"read_parquet('{place}') WHERE k // 3 = {n}"
                oracle.execute(f"INSERT INTO duckdb SELECT * FROM {chosen}")
        yield made


def _written_by_spark(spark, rows, folder: Path) -> str:
    key = "spark.sql.parquet.outputTimestampType"
    before = spark.conf.get(key)
    spark.conf.set(key, "TIMESTAMP_MICROS")
    try:
        rows.write.parquet(f"{folder}/spark")
    finally:
        spark.conf.set(key, before)
    return f"{folder}/spark"


def _literal(name: str, value: object) -> str:
    match name:
        case "d" | "f":
            return f"CAST('{value}' AS {COLUMNS[name]})"
        case "b":
            assert isinstance(value, bytes)
            return f"X'{value.hex()}'"
        case "i":
            assert isinstance(value, dt.datetime)
            return f"TIMESTAMP '{value.replace(tzinfo=None).isoformat(' ')}Z'"
        case "n":
            assert isinstance(value, dt.datetime)
            return f"TIMESTAMP_NTZ '{value.isoformat(' ')}'"
        case "s":
            return f"'{value}'"
    return f"CAST('{value}' AS {COLUMNS[name]})"


@st.composite
def comparisons(draw) -> str:
    """One comparison of one column with its odd values."""
    name = draw(st.sampled_from(sorted(ODD)))
    value, other = (_literal(name, draw(st.sampled_from(ODD[name]))) for _ in range(2))
    shapes = [f"{name} {op} {value}" for op in ("=", "!=", "<", "<=", ">", ">=", "<=>")]
    shapes += [f"{name} IN ({value}, {other})", f"{name} NOT IN ({value}, {other})"]
    shapes += [f"{name} BETWEEN {value} AND {other}", f"{name} IS NULL", f"{name} IS NOT NULL"]
    shapes += [f"{value} < {name}"]
    if name == "s":
        shapes += [f"startswith(s, {value})", "s LIKE 'a%'", "s LIKE '% '", "s LIKE '\uff5e%'"]
    return draw(st.sampled_from(shapes))


FILTERS = st.recursive(
    comparisons(),
    lambda inner: st.one_of(
        inner.map(lambda p: f"NOT ({p})"),
        st.tuples(inner, inner).map(lambda p: f"({p[0]}) AND ({p[1]})"),
        st.tuples(inner, inner).map(lambda p: f"({p[0]}) OR ({p[1]})"),
        inner.map(lambda p: f"({p}) OR k = 77"),
    ),
    max_leaves=3,
)
# Plain comparisons with the numbers that footers and dictionaries get wrong.
KNOWN = [
    f"{name} {op} CAST('{value}' AS {COLUMNS[name]})"
    for name in ("d", "f")
    for value in ("nan", "-0.0", "0.0")
    for op in ("=", "<", "<=", ">", ">=")
] + ["d > 1 OR k = 77", "NOT (d <= 1)"]


def _differences(lake, writer: str, filters: list[str]) -> list[tuple[str, object, object]]:
    """The filters that find other rows where they are pushed down; two queries."""
    rows = lake.table(writer).read()
    told = [(sf.count("k"), sf.sum("k")) for _ in filters]
    pushed = [rows.where(text).agg(sf.lit(n), *told[n]) for n, text in enumerate(filters)]
    found = {n: (count, total) for n, count, total in reduce(_union, pushed).collect()}
    chosen = [sf.when(sf.expr(text), sf.col("k")) for text in filters]
    [expected] = rows.agg(*[f(c) for c in chosen for f in (sf.count, sf.sum)]).collect()
    wanted = {n: (expected[2 * n], expected[2 * n + 1]) for n in range(len(filters))}
    return [(filters[n], wanted[n], found[n]) for n in wanted if wanted[n] != found[n]]


def _miscounted(lake, writer: str, filters: list[str]) -> list[tuple[str, object, object]]:
    """The filters whose count, lowest and highest row the catalog gets wrong; two queries."""
    rows = lake.table(writer).read()
    told = (sf.count("*"), sf.min("k"), sf.max("k"))
    pushed = [rows.where(text).agg(sf.lit(n), *told) for n, text in enumerate(filters)]
    found = {n: tuple(values) for n, *values in reduce(_union, pushed).collect()}
    chosen = [sf.when(sf.expr(text), sf.col("k")) for text in filters]
    kinds = (sf.count, sf.min, sf.max)
    [expected] = rows.agg(*[f(c) for c in chosen for f in kinds]).collect()
    wanted = {n: tuple(expected[3 * n : 3 * n + 3]) for n in range(len(filters))}
    return [(filters[n], wanted[n], found[n]) for n in wanted if wanted[n] != found[n]]


def _union(one, other):
    return one.unionAll(other)


@pytest.fixture(params=["bridge", "public"])
def path_of_reading(request, monkeypatch):
    if request.param == "public":
        without_bridge(monkeypatch)
    return request.param


@pytest.mark.parametrize("writer", ["shelduck", "pyarrow"])
def test_comparisons_with_nan_and_zero_find_the_same_however_they_are_read(
    lake, writer, path_of_reading
):
    step = 2 if path_of_reading == "bridge" else 5
    assert _differences(lake, writer, KNOWN[::step]) == []


# Each example is a batch of filters: planning is what they cost.
BATCH = 25
FEW = 10
QUICK = settings(max_examples=1, derandomize=True, database=None)
LONG = settings(max_examples=long(40, 4), suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("writer", WRITERS)
def test_filters_find_the_same_with_and_without_what_is_left_out(lake, writer):
    @QUICK
    @given(filters=st.lists(FILTERS, min_size=FEW, max_size=FEW))
    def law(filters: list[str]) -> None:
        assert _differences(lake, writer, filters) == []
        assert _miscounted(lake, writer, filters) == []

    law()


@pytest.mark.slow
@pytest.mark.parametrize("writer", WRITERS)
def test_many_filters_find_the_same_with_and_without_what_is_left_out(
    lake, writer, path_of_reading
):
    @LONG
    @given(filters=st.lists(FILTERS, min_size=BATCH, max_size=BATCH))
    def law(filters: list[str]) -> None:
        assert _differences(lake, writer, filters) == []
        assert _miscounted(lake, writer, filters) == []

    law()
