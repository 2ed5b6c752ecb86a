"""Values of one type made into another: those that survive, and those that are told to be lost."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck.engine.rows.conversions import converted
from shelduck.engine.types import spark_type
from shelduck.model.types.data_types import ducklake_type

LOST = object()
UUID = "f79c3e09-677c-4bbd-a479-3f349cb785e7"
DAY = dt.date(2024, 2, 29)
# Source, target, and for each value (as text of the source) what it becomes.
CASES = [
    ("int64", "int8", {"127": 127, "-128": -128, "128": LOST}),
    ("int64", "uint8", {"255": 255, "-1": LOST, "256": LOST}),
    ("int64", "float64", {"9007199254740992": 2.0**53, "9007199254740993": LOST}),
    ("uuid", "blob", {UUID: bytes.fromhex(UUID.replace("-", ""))}),
    ("int64", "boolean", {"0": False, "1": True, "2": LOST}),
    ("boolean", "int32", {"true": 1, "false": 0}),
    ("float64", "int32", {"3.0": 3, "3.5": LOST, "NaN": LOST, "3000000000.0": LOST}),
    ("float64", "float32", {"0.5": 0.5, "0.1": LOST, "NaN": "nan", "Infinity": float("inf")}),
    (
        "float64",
        "decimal(18,2)",
        {"1.25": Decimal("1.25"), "1.1": Decimal("1.10"), "1.005": LOST, "NaN": LOST, "1e20": LOST}
        | {"-0.0": Decimal("0.00"), "1e13": Decimal("1E+13"), "Infinity": LOST, "-1e17": LOST}
        | {t: Decimal(t) for t in ("9999999999999.99", "12345678901234.56")},
    ),
    ("float64", "decimal(4,0)", {"9999": Decimal(9999), "10000": LOST, "2.5": LOST}),
    ("decimal(9,2)", "int32", {"7.00": 7, "7.50": LOST}),
    ("decimal(9,2)", "decimal(4,2)", {"99.99": Decimal("99.99"), "100.00": LOST}),
    ("decimal(9,2)", "float64", {"1.25": 1.25}),
    (
        "varchar",
        "int32",
        {"11": 11, " -5 ": -5, "zz": LOST, "": LOST, "1.5": LOST, "2147483648": LOST}
        | {"007": 7, "+7": 7, "7.0": LOST, "1e2": LOST, "-0": 0},
    ),
    ("varchar", "uint8", {"255": 255, "-1": LOST}),
    ("varchar", "decimal(5,2)", {"1.25": Decimal("1.25"), "1.255": LOST, "1000": LOST}),
    ("varchar", "float64", {"1.5": 1.5, "1e3": 1000.0, "x": LOST}),
    ("varchar", "boolean", {"true": True, "no": False, "maybe": LOST}),
    (
        "varchar",
        "date",
        {
            **dict.fromkeys(("2024-02-29", "24-02-29", "20240229", "240229"), DAY),
            **dict.fromkeys(("2024/02/29", "24/2/29"), DAY),
            **dict.fromkeys(("2024-2-29", " 2024-02-29 "), DAY),
            **dict.fromkeys(("2023-02-29", "29.02.2024", "2024-02-29x", ""), LOST),
            **dict.fromkeys(("2024-2-9T", "2024-2-9 x", "2024-02-", "2024-123"), LOST),
            **dict.fromkeys(("12024-2-9", "+2024-2-9", "-2024-2-9", "0000-01-01"), LOST),
            **dict.fromkeys(("2024-02-2T", "00000101", "0000/1/1"), LOST),
        },
    ),
    (
        "varchar",
        "timestamp",
        {"2024-02-29 01:02:03.5": dt.datetime(2024, 2, 29, 1, 2, 3, 500000), "x": LOST},  # noqa: DTZ001
    ),
    ("varchar", "timestamp_s", {"2024-02-29 01:02:03.5": LOST}),
    ("varchar", "uuid", {UUID.upper(): UUID, "x": LOST}),
    ("varchar", "time", {"01:02:03.5": "01:02:03.5", "25:00:00": LOST}),
    ("varchar", "json", {'{"a": 1}': '{"a": 1}', "{a": LOST}),
    ("json", "varchar", {'{"a": 1}': '{"a": 1}'}),
    ("int32", "varchar", {"-7": "-7"}),
    ("boolean", "varchar", {"true": "true"}),
    ("decimal(9,2)", "varchar", {"1.50": "1.50"}),
    ("date", "varchar", {"2024-02-29": "2024-02-29"}),
    ("date", "json", {"2024-02-29": '"2024-02-29"'}),
    ("float64", "json", {"1.5": "1.5", "NaN": LOST}),
    ("int32", "date", {"20240229": DAY, "20230229": LOST, "7": LOST, "-1": LOST}),
    ("timestamp", "date", {"2024-02-29 23:59:59": DAY}),
    ("timestamp", "timestamp_s", {"2024-02-29 01:02:03.5": LOST}),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("target", ["decimal(18,2)", "decimal(38,0)", "decimal(9,9)"])
@pytest.mark.usefixtures("compiled")
def test_doubles_become_decimals_as_by_casts_there_and_back(spark, target):
    """The quick way over digits in doubles, and the plain one, on all magnitudes."""
    scale = int(target.rstrip(")").rpartition(",")[2])
    rows = spark.range(0, 50_000, 1, 2).select(
        (F.rand(7) * F.pow(F.lit(10.0), F.pmod("id", F.lit(19)) - 2)).alias("x")
    )
    rows = rows.select(F.explode(F.array("x", F.round("x", scale), -F.round("x", 1))).alias("x"))
    plain = F.col("x").try_cast(target)
    plain = F.when(plain.try_cast("double") == F.col("x"), plain)
    quick = converted(F.col("x"), ducklake_type("float64"), ducklake_type(target))
    found = rows.select("x", quick.alias("quick"), plain.alias("plain"))

    assert found.where(~F.col("quick").eqNullSafe(F.col("plain"))).take(3) == []
    assert found.where("quick IS NOT NULL").count() > 2_500


@pytest.mark.parametrize(("source", "target", "values"), CASES)
def test_what_becomes_of_each_value(spark, source, target, values):
    given, wanted = ducklake_type(source), ducklake_type(target)
    texts = spark.createDataFrame([(t,) for t in [*values, None]], "t string")
    rows = texts.select(
        F.col("t"), converted(F.col("t").cast(spark_type(given)), given, wanted).alias("made")
    )

    assert rows.schema["made"].dataType == spark_type(wanted)
    found = {text: LOST if made is None else made for text, made in rows.collect()}
    assert found.pop(None) is LOST
    plain = {k: "nan" if v is not LOST and v != v else v for k, v in found.items()}  # noqa: PLR0124
    assert plain == values
