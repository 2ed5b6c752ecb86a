"""DEFAULT expressions, from Spark's SQL to the catalog's text and back."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.tables.schema import Default
from shelduck.model.types.data_types import ducklake_type
from shelduck.text.ddl.defaults import expression_for_spark, read_default, value_at


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", "5"),
        ("-5", "-5"),
        ("+5", "5"),
        ("(5)", "5"),
        ("5L", "5"),
        ("1.5", "1.5"),
        ("1.50BD", "1.50"),
        ("1.5D", "1.5"),
        ("1e3", "1e3"),
        ("'my_default'", "my_default"),
        ('"double"', "double"),
        ("'it''s'", "it's"),
        (r"'it\'s \\ \n'", "it's \\ \n"),
        (r"r'a\n'", r"a\n"),
        ("'a' 'b'", "ab"),
        ("''", ""),
        ("'5'", "5"),
        ("TRUE", "true"),
        ("false", "false"),
        ("DATE '2024-01-01'", "2024-01-01"),
        ("TIMESTAMP '2024-01-01 00:00:00+02'", "2024-01-01 00:00:00+02"),
        ("timestamp_ntz'2024-01-01 00:00:00'", "2024-01-01 00:00:00"),
        ("X'0041'", r"\x00A"),
        ("CAST('2024-01-01' AS DATE)", "2024-01-01"),
        ("'2024-01-01'::date", "2024-01-01"),
        ("CAST('300' AS SMALLINT)", "300"),
        ("CAST('1.50' AS DECIMAL(5,2))", "1.50"),
    ],
)
def test_a_literal_is_the_text_of_its_value(text, value):
    assert read_default(text) == Default(value, literal=True)


@pytest.mark.parametrize("text", ["NULL", "null", "(NULL)"])
def test_null_is_no_default(text):
    assert read_default(text) is None


@pytest.mark.parametrize(
    ("text", "duckdb"),
    [
        ("current_timestamp()", "CURRENT_TIMESTAMP"),
        ("current_timestamp", "CURRENT_TIMESTAMP"),
        ("now()", "NOW()"),
        ("current_date()", "CURRENT_DATE"),
        ("uuid()", "UUID()"),
        ("rand()", "RANDOM()"),
        ("1 + 1", "1 + 1"),
        ("-(2 * 3)", "-(2 * 3)"),
        ("'a' || 'b'", "'a' || 'b'"),
    ],
)
def test_an_expression_is_kept_in_duckdb_sql(text, duckdb):
    assert read_default(text) == Default(duckdb, literal=False)


@pytest.mark.parametrize(
    ("duckdb", "spark"),
    [
        ("now()", "NOW()"),
        ("(1 + 1)", "(1 + 1)"),
        ("uuid()", "UUID()"),
        ("random()", "RAND()"),
        ("current_date", "CURRENT_DATE"),
        ("CAST('t' AS BOOLEAN)", "CAST('t' AS BOOLEAN)"),
        ("CAST('2024-01-01' AS \"DATE\")", "CAST('2024-01-01' AS DATE)"),
        (
            "CAST('2024-01-01 00:00:00' AS TIMESTAMP)",
            "CAST('2024-01-01 00:00:00' AS TIMESTAMP_NTZ)",
        ),
        ("('it''s ' || 'b')", r"('it\'s ' || 'b')"),
    ],
)
def test_an_expression_of_the_catalog_is_written_for_spark(duckdb, spark):
    assert expression_for_spark(duckdb) == spark


@pytest.mark.parametrize("text", ["a + 1", "upper(b)", "abc"])
def test_a_default_cannot_name_columns(text):
    with pytest.raises((InvalidRequest, Unsupported)):
        read_default(text)
    with pytest.raises(InvalidRequest, match="refers to the column 'abc'"):
        read_default("abc")


@pytest.mark.parametrize(
    "text",
    [
        "cast(1.7 as int)",  # 1 in Spark, 2 in DuckDB
        "CAST('1.7' AS INT) + 1 / 2",
        "unix_timestamp()",
        "hash(5)",
        "array(1, 2)",
        "(SELECT 1)",
        "foo(1)",
    ],
)
def test_what_may_differ_between_the_engines_is_refused(text):
    with pytest.raises(Unsupported, match="may have different meanings in Spark and DuckDB"):
        read_default(text)


@pytest.mark.parametrize("text", ["nextval('s')", "epoch_ms(now())", "hash(5)"])
def test_an_expression_that_spark_cannot_repeat_is_refused(text):
    with pytest.raises(Unsupported):
        expression_for_spark(text)


@pytest.mark.parametrize("text", ["X'0'", "1 +", "1; 2"])
def test_broken_defaults_are_named(text):
    with pytest.raises(InvalidRequest):
        read_default(text)


NOW = datetime(2024, 2, 29, 23, 30, 1, 500, timezone(timedelta(hours=-3)))


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("current_timestamp()", "timestamptz", "2024-02-29 23:30:01.000500-03:00"),
        ("current_timestamp", "timestamp", "2024-02-29 23:30:01.000500"),
        ("now()", "date", "2024-02-29"),
        ("current_date()", "date", "2024-02-29"),
        ("current_date", "timestamp", "2024-02-29 00:00:00"),
        ("current_timestamp()", "varchar", None),
        ("(1 + 2) * -3", "int32", "-9"),
        ("7 - 2", "int64", "5"),
        ("'a' || 'b' || 'c'", "varchar", "abc"),
        ("1 || 'b'", "varchar", None),
        ("1.5 + 2", "int32", None),
        ("uuid()", "varchar", None),
        ("rand() + 1", "float64", None),
    ],
)
def test_an_expression_has_one_value_for_rows_that_are_there(text, kind, value):
    default = read_default(text)
    assert not default.literal
    found = value_at(default, ducklake_type(kind), NOW)
    assert (found and found.text) == value
