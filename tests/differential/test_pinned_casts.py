"""Casts back to older types: both engines give the same value, and it is the one that was there."""

from __future__ import annotations

import datetime as dt
import math
import struct
from decimal import Decimal
from typing import Any

import duckdb
import pytest

from shelduck.errors import Unsupported
from shelduck.model.types.data_types import Text, ducklake_type
from shelduck.text.pins.pin_queries import DuckDBWords, SparkWords, cast_back

NUMBERS = {
    "boolean": ["true", "false"],
    "int8": [0, 1, 127, -128],
    "int32": [0, 1, 2, -1, 7, 128, 255, 256, 65536, 2**31 - 1, -(2**31), 16777217],
    "int64": [0, 1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 2**63 - 1025, 4294967295],
    "uint8": [0, 1, 255],
    "uint32": [0, 2**32 - 1, 2**31],
    "uint64": [0, 2**63, 2**64 - 1, 255],
    "float32": [0.0, 1.0, 1.5, -2.25, 0.1, 3e38, 2147483648.0, 9.223372036854775807e18, "NaN"],
    "float64": [0.0, 1.0, 1.5, 0.1, 1e300, 2147483647.0, 2147483648.0, 2.0**63, -(2.0**63), "NaN"],
    "decimal(9,2)": ["1.00", "1.50", "0.10", "9999999.99", "-7.25", "255.00"],
    "decimal(38,6)": ["1.000000", "0.100000", "12345678901234567890.123456", "0.000001"],
}
TEXTS = [
    *("12", "-5", "+1", " 12", "12\n", "", "1.5", "1.50", "1.505", "1e3", "1d", "0x1F", "007", "x"),
    *("99999999999", "NaN", "Infinity", "1e400", "true", "TRUE", "t", "2024-02-29", "2024-2-9"),
    *("2023-02-29", "2024-02-29 01:02:03", "2024-02-29 01:02:03.5", "2024-02-29T01:02:03"),
    *(
        "f79c3e09-677c-4bbd-a479-3f349cb785e7",
        "F79C3E09-677C-4BBD-A479-3F349CB785E7",
        "größe",
        "\u0661\u0662",
    ),
]
MOMENTS = {
    "date": ["0001-01-01", "1969-12-31", "2024-02-29", "9999-12-31"],
    "timestamp": [
        *("2024-02-29 00:00:00", "2024-02-29 12:00:00", "2024-02-29 12:00:00.5"),
        *("2024-02-29 12:00:00.000001", "1969-12-31 23:59:59.999", "1969-03-30 02:30:00"),
    ],
    "timestamp_s": ["2024-02-29 00:00:00", "1969-12-31 23:59:59"],
}
VALUES: dict[str, list[Any]] = {
    **NUMBERS,
    **MOMENTS,
    "varchar": TEXTS,
    "uuid": ["f79c3e09-677c-4bbd-a479-3f349cb785e7"],
}
OLDER = [*VALUES, "int16", "uint16", "decimal(5,1)", "decimal(18,0)", "timestamp_ms"]


class _Spark(SparkWords):
    def failure(self, told: str, value: str) -> str:
        return "NULL"


class _DuckDB(DuckDBWords):
    def failure(self, told: str, value: str) -> str:
        return "NULL"


SPARK, DUCKDB = _Spark(), _DuckDB()


def select(words, now, pairs):
    """A query with a row for each value of a type, and a column for each older type."""
    kind = words.type(ducklake_type(now))
    rows = ", ".join(
        f"({n}, CAST({words.text(str(v))} AS {kind}))" for n, v in enumerate(VALUES[now])
    )
    shown = ", ".join(f"{text} AS c{n}" for n, text in enumerate(pairs))
    return f"SELECT v.n, {shown} FROM (VALUES {rows}) AS v(n, x) ORDER BY v.n"


def supported(words, now):
    found = {}
    for then in OLDER:
        try:
            found[then] = cast_back(words, "v.x", ducklake_type(now), ducklake_type(then), "no ")
        except Unsupported:
            continue
    return found


def plain(value):
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value
    if isinstance(value, Decimal):
        return value.normalize()
    return str(value) if value is not None and type(value).__name__ == "UUID" else value


def same(old, value):
    """Whether a value means what the text in ``VALUES`` means."""
    text = str(old).lower()
    if isinstance(value, bool):
        return text in (
            str(value).lower(),
            str(int(value)),
            f"{int(value)}.0",
            f"{int(value)}.00",
            f"{int(value)}.000000",
        )
    if isinstance(value, dt.datetime):
        return dt.datetime.fromisoformat(text) == value
    if isinstance(value, dt.date):
        return dt.datetime.fromisoformat(text) == dt.datetime.combine(value, dt.time())
    if isinstance(value, str):
        return text in (value.lower(), value.lower().removesuffix(".0")) or value == "nan"
    if text in ("true", "false"):
        return int(value) == (text == "true")
    if Decimal(text) == Decimal(str(value)) or float(text) == float(value):
        return True
    return struct.unpack("f", struct.pack("f", float(text))) == (value,)


@pytest.mark.parametrize("now", VALUES)
def test_both_engines_cast_back_the_same_values(spark, now):
    ours, theirs = supported(SPARK, now), supported(DUCKDB, now)
    assert list(ours) == list(theirs)
    assert now in ours
    found = [
        tuple(map(plain, row)) for row in spark.sql(select(SPARK, now, ours.values())).collect()
    ]
    with duckdb.connect() as connection:
        rows = connection.execute(select(DUCKDB, now, theirs.values())).fetchall()
    assert [tuple(map(plain, row)) for row in rows] == found
    for old, (_, *values) in zip(VALUES[now], found, strict=True):
        for then, value in zip(ours, values, strict=True):
            assert value is None or same(old, value), (now, then, old, value)


def test_what_fits_is_shown_and_what_does_not_fails():
    with duckdb.connect() as connection:
        [row] = connection.execute(
            select(DUCKDB, "int32", [supported(DUCKDB, "int32")[t] for t in ("int8", "uint8")])
        ).fetchall()[4:5]
        text = cast_back(
            DuckDBWords(), "x", ducklake_type("varchar"), Text(length=3), "a was VARCHAR(3), not "
        )
        with pytest.raises(duckdb.InvalidInputException, match=r"a was VARCHAR\(3\), not abcd"):
            connection.execute(f"SELECT {text} FROM (VALUES ('abc'), ('abcd')) v(x)").fetchall()
    assert row == (4, 7, 7)


def test_pairs_that_the_engines_show_differently_are_refused():
    for now, then in (("float64", "varchar"), ("varchar", "timestamptz"), ("timestamptz", "date")):
        with pytest.raises(Unsupported, match="with the same meaning in Spark and DuckDB"):
            cast_back(SPARK, "x", ducklake_type(now), ducklake_type(then), "")
