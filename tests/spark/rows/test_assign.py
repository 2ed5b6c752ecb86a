"""Which rows a table takes, what becomes of them, and what is refused before or while they run."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from shelduck.engine.rows.assign import assign, failure_of
from shelduck.errors import InvalidRequest
from shelduck.model.tables.schema import Default, Field, Schema
from shelduck.model.tables.table_version import TableVersion
from tests.support.written import HandMadeLake, columns, table_version


def table_of(schema: Schema) -> TableVersion:
    return table_version(HandMadeLake(Path("/nowhere")), "t", schema)


def assigned(spark: Any, query: str, schema: Schema, **options: Any) -> list[tuple[Any, ...]]:
    frame = assign(spark.sql(query), table_of(schema), **options)
    return [tuple(row) for row in frame.collect()]


def refused(spark: Any, query: str, schema: Schema, **options: Any) -> list[str]:
    """The differences that one error names, before anything runs."""
    with pytest.raises(InvalidRequest) as caught:
        assign(spark.sql(query), table_of(schema), **options)
    first, *rest = str(caught.value).split("\n  - ")
    assert first == "the rows do not fit main.t:"
    return rest


def failed(spark: Any, query: str, schema: Schema) -> str:
    """What stops the job that computes the rows."""
    frame = assign(spark.sql(query), table_of(schema))
    with pytest.raises(PySparkException) as caught:
        frame.collect()
    found = failure_of(caught.value)
    assert found is not None
    return str(found)


def with_default(schema: Schema, name: str, default: Default) -> Schema:
    found: Field = schema.get((name,))
    return schema.replace((name,), replace(found, default=default))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "value", "stored"),
    [
        ("int64", "7Y", 7),
        ("int8", "7L", 7),
        ("int16", "7BD", 7),
        ("uint64", "18446744073709551615", 18446744073709551615),
        ("int128", "7", 7),
        ("decimal(5,2)", "7Y", Decimal("7.00")),
        ("decimal(5,2)", "1.500BD", Decimal("1.50")),
        ("decimal(38,0)", "12345678901234567890123456789012345678BD",
         Decimal(12345678901234567890123456789012345678)),
        ("decimal(38,18)", "1.5BD", Decimal("1.5")),
        ("double", "1.1F", 1.100000023841858),
        ("double", "1.1BD", 1.1),
        ("double", "9007199254740992L", 9007199254740992.0),
        ("float", "16777216", 16777216.0),
        ("float", "0.5BD", 0.5),
        ("timestamp_ntz", "DATE'2024-01-02'", datetime.fromisoformat("2024-01-02")),
        ("timestamp_ntz", "TIMESTAMP'2024-01-02T03:04:05Z'",
         datetime.fromisoformat("2024-01-02 03:04:05")),
        ("timestamp_ms", "TIMESTAMP_NTZ'2024-01-02T03:04:05.123'",
         datetime.fromisoformat("2024-01-02 03:04:05.123")),
        ("string", "CAST('x' AS CHAR(1))", "x"),
        ("uuid", "'F79C3E09-677C-4BBD-A479-3F349CB785E7'", "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
        ("time", "'24:00:00'", "24:00:00"),
        ("timetz", "'01:02:03+02:30'", "01:02:03+02:30"),
        ("json", "'not parsed'", "not parsed"),
        ("date", "NULL", None),
        ("int[]", "NULL", None),
        ("struct<a: int>", "NULL", None),
        ("uint8[]", "array(1, NULL)", [1, None]),
        ("int64[]", "array(1Y, NULL)", [1, None]),
        ("map<string, int8>", "map('k', 1L, 'n', NULL)", {"k": 1, "n": None}),
        ("map<uint8, string>", "map(1, 'x')", {1: "x"}),
        ("struct<a: int, b: string>", "named_struct('B', 'x', 'A', 1Y)", (1, "x")),
        ("struct<a: int, b: string>", "named_struct('a', 1)", (1, None)),
        ("struct<a: int, b: string>", "if(true, NULL, named_struct('a', 1))", None),
        ("array<struct<a: int, b: int>>", "array(named_struct('b', 1), NULL)", [(None, 1), None]),
    ],
)  # fmt: skip
def test_a_value_that_fits_is_stored_as_the_column_has_it(spark, kind, value, stored):
    assert assigned(spark, f"SELECT {value} c", columns(c=kind)) == [(stored,)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int8", "128"),
        ("int16", "-32769L"),
        ("int32", "2147483648BD"),
        ("uint8", "256"),
        ("uint8", "-1Y"),
        ("uint32", "-1"),
        ("uint64", "18446744073709551616"),
        ("uint64", "-1"),
        ("uint128", "-1BD"),
        ("decimal(5,2)", "1000"),
        ("decimal(5,2)", "1.005BD"),
        ("decimal(3,1)", "99.99BD"),
        ("float", "16777217"),
        ("double", "9007199254740993L"),
        ("double", "9223372036854775807L"),
        ("float", "2147483647"),
        ("timestamp_s", "TIMESTAMP_NTZ'2024-01-02T03:04:05.1'"),
        ("timestamp_ms", "TIMESTAMP_NTZ'2024-01-02T03:04:05.1234'"),
        ("uuid", "'f79c3e09'"),
        ("uuid", "'f79c3e09-677c-4bbd-a479-3f349cb785e7\n'"),
        ("time", "'1:02:03'"),
        ("time", "'01:02:03+02'"),
        ("timetz", "'01:02:03'"),
    ],
)
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_a_value_that_does_not_fit_fails_the_job_by_column(spark, ansi, kind, value):
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        # The rows come from a scan, so that Spark cannot compute them while it plans.
        message = failed(spark, f"SELECT {value} c FROM range(1)", columns(c=kind))
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")

    assert message.startswith("column c of main.t is ")
    assert ", got " in message


def test_a_value_inside_a_list_of_structs_is_checked_too(spark):
    message = failed(
        spark,
        "SELECT array(named_struct('x', 1), named_struct('x', 300 + id)) c FROM range(1)",
        columns(c="array<struct<x: uint8>>"),
    )

    assert (
        message
        == "column c.element.x of main.t is uint8, which holds numbers from 0 to 255, got 300"
    )


@pytest.mark.parametrize(
    ("kind", "value", "given", "needed"),
    [
        ("float", "1D", "double", "float32"),
        ("int32", "1F", "float", "int32"),
        ("int32", "1.5BD", "decimal(2,1)", "int32"),
        ("decimal(5,2)", "1D", "double", "decimal(5,2)"),
        ("int32", "'1'", "string", "int32"),
        ("string", "1", "int", "varchar"),
        ("date", "TIMESTAMP'2024-01-01T00:00:00Z'", "timestamp", "date"),
        ("boolean", "1", "int", "boolean"),
        ("binary", "'x'", "string", "blob"),
        ("uuid", "X'00'", "binary", "uuid"),
        ("string", "'x' COLLATE UTF8_LCASE", "string collate UTF8_LCASE", "varchar"),
    ],
)
def test_a_type_that_would_lose_values_is_refused_with_the_remedy(
    spark, kind, value, given, needed
):
    assert refused(spark, f"SELECT {value} c", columns(c=kind)) == [
        (
            f"column c: {given} cannot be stored as {needed}; cast it explicitly if that is"
            " what you want"
        )
    ]


def test_every_difference_is_told_in_one_error(spark):
    schema = columns(
        a="int32",
        b="int32 not null",
        s="struct<x: int, y: int>",
        l="int[]",
        g="geometry",
        i="interval",
    )
    unwritable = (
        "which Spark cannot write in a form that DuckLake's readers understand; write to this"
        " table with DuckDB"
    )
    query = "SELECT 'x' a, 1 extra, 2 EXTRA, named_struct('x', 'no', 'z', 1) s, map(1, 2) l"

    assert refused(spark, query, schema) == [
        "the table has no column extra",
        "column EXTRA is given twice",
        "column a: string cannot be stored as int32; cast it explicitly if that is what you want",
        "column b is missing: it is NOT NULL and has no default",
        "column s has no field z",
        (
            "column s.x: string cannot be stored as int32; cast it explicitly if that is what you"
            " want"
        ),
        "column l: map<int,int> cannot be stored as array<int32>",
        f"column g is geometry, {unwritable}",
        f"column i is interval, {unwritable}",
    ]


def test_columns_are_matched_by_name_without_case_and_put_in_order(spark):
    query = "SELECT 'x' AS NAME, 1 AS `Id.x`"

    assert assigned(spark, query, columns(**{"id.X": "int32", "name": "string"})) == [(1, "x")]


def test_columns_can_be_matched_by_their_place(spark):
    schema = columns(id="int32", name="string")

    assert assigned(spark, "SELECT 1 a, 'x' a", schema, by_position=True) == [(1, "x")]
    assert refused(spark, "SELECT 1", schema, by_position=True)[0] == (
        "the table has 2 columns, but 1 are given; name the columns, or pass all of them"
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("kind", "default", "stored"),
    [
        ("int32", Default("5"), 5),
        ("decimal(5,2)", Default("1.5"), Decimal("1.50")),
        ("boolean", Default("t"), True),
        ("double", Default("nan"), "nan"),
        ("string", Default("it's"), "it's"),
        ("binary", Default("a\\x00"), b"a\x00"),
        ("date", Default("2024-1-2"), date(2024, 1, 2)),
        ("timestamp_ntz", Default("2024-01-02 03:04"), datetime.fromisoformat("2024-01-02 03:04")),
        ("int64", Default("1 + 1", literal=False), 2),
        ("uint8", None, None),
    ],
)
def test_a_column_that_is_left_out_gets_its_default(spark, kind, default, stored):
    schema = columns(id="int32", c=kind)
    schema = with_default(schema, "c", default) if default else schema
    [(_, found)] = assigned(spark, "SELECT 1 id", schema)

    assert (str(found) if stored == "nan" else found) == stored


def test_an_instant_is_the_default_whatever_the_session_zone(spark):
    schema = columns(id="int32", c="timestamp")
    schema = with_default(schema, "c", Default("2024-01-01 00:00:00+02"))
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        frame = assign(spark.sql("SELECT 1 id"), table_of(schema))
        [(found,)] = frame.selectExpr("unix_seconds(c)").collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")

    assert found == 1704060000


def test_a_default_that_spark_cannot_write_is_among_the_differences(spark):
    schema = with_default(columns(id="int32", c="date"), "c", Default("infinity"))

    [problem] = refused(spark, "SELECT 1 id", schema)
    assert problem.startswith("column c is missing and its default fails")


def test_a_struct_field_that_is_left_out_gets_its_default(spark):
    schema = columns(s="struct<a: int, b: int>")
    b = schema.get(("s", "b"))
    schema = schema.replace(("s", "b"), replace(b, default=Default("5")))

    rows = assigned(spark, "SELECT named_struct('a', 1) s UNION ALL SELECT NULL", schema)
    assert rows == [((1, 5),), (None,)]


def test_a_null_in_a_not_null_column_fails_the_job(spark):
    query = "SELECT if(id = 3, NULL, id) c FROM range(5)"

    message = failed(spark, query, columns(c="int64 not null"))
    assert message == "column c of main.t is NOT NULL, got NULL"


def test_a_not_null_column_takes_what_is_never_null(spark):
    schema = columns(c="int64 not null", d="int32 not null")
    schema = with_default(schema, "d", Default("5"))

    assert assigned(spark, "SELECT id c FROM range(2)", schema) == [(0, 5), (1, 5)]
