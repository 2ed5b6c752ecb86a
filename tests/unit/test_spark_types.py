"""The mapping of types between DuckLake and Spark, each pair written out."""

from __future__ import annotations

import pytest
from pyspark.sql import types as T  # noqa: N812

from shelduck.engine.types import data_type_of, members_of, spark_type, struct_type
from shelduck.errors import Unsupported
from shelduck.model.tables.schema import new_schema
from shelduck.model.types.data_types import Member, ducklake_type, parse_type


@pytest.mark.parametrize(
    ("kind", "spark"),
    [
        ("boolean", "boolean"),
        ("int8", "tinyint"),
        ("int16", "smallint"),
        ("int32", "int"),
        ("int64", "bigint"),
        ("int128", "decimal(38,0)"),
        ("uint8", "smallint"),
        ("uint16", "int"),
        ("uint32", "bigint"),
        ("uint64", "decimal(20,0)"),
        ("uint128", "decimal(38,0)"),
        ("float32", "float"),
        ("float64", "double"),
        ("decimal(18,3)", "decimal(18,3)"),
        ("date", "date"),
        ("timestamp", "timestamp_ntz"),
        ("timestamp_s", "timestamp_ntz"),
        ("timestamp_ms", "timestamp_ntz"),
        ("timestamp_ns", "bigint"),
        ("timestamptz", "timestamp"),
        ("time", "string"),
        ("timetz", "string"),
        ("varchar", "string"),
        ("json", "string"),
        ("uuid", "string"),
        ("blob", "binary"),
        ("geometry", "binary"),
        ("variant", "variant"),
    ],
)
def test_a_ducklake_type_has_one_spark_type(kind, spark):
    assert spark_type(ducklake_type(kind)).simpleString() == spark


@pytest.mark.parametrize("kind", ["interval", "time_ns", "unknown"])
def test_a_type_that_spark_cannot_hold_is_refused_by_column(kind):
    with pytest.raises(
        Unsupported, match=f"column 'pause' is {kind}, which Spark does not support"
    ):
        spark_type(ducklake_type(kind), "pause")


def test_nested_types_keep_their_shape_and_allow_nulls():
    kind = parse_type("struct<a: int, l: array<map<string, uint8>>>")

    assert spark_type(kind) == T.StructType(
        [
            T.StructField("a", T.IntegerType(), nullable=True),
            T.StructField(
                "l",
                T.ArrayType(T.MapType(T.StringType(), T.ShortType(), True), True),
                nullable=True,
            ),
        ]
    )


def test_only_top_level_columns_are_not_null():
    inner = parse_type("struct<x: int not null>")
    schema = new_schema([Member("id", ducklake_type("int64"), nullable=False), Member("s", inner)])

    assert struct_type(schema) == T.StructType(
        [
            T.StructField("id", T.LongType(), nullable=False),
            T.StructField("s", T.StructType([T.StructField("x", T.IntegerType())])),
        ]
    )


@pytest.mark.parametrize(
    ("spark", "kind"),
    [
        (T.ByteType(), "int8"),
        (T.ShortType(), "int16"),
        (T.IntegerType(), "int32"),
        (T.LongType(), "int64"),
        (T.FloatType(), "float32"),
        (T.DoubleType(), "float64"),
        (T.DecimalType(5, 2), "decimal(5,2)"),
        (T.StringType(), "varchar"),
        (T.VarcharType(3), "varchar"),
        (T.CharType(3), "varchar"),
        (T.BinaryType(), "blob"),
        (T.BooleanType(), "boolean"),
        (T.DateType(), "date"),
        (T.TimestampType(), "timestamptz"),
        (T.TimestampNTZType(), "timestamp"),
        (T.VariantType(), "variant"),
    ],
)
def test_a_spark_type_has_one_ducklake_type(spark, kind):
    assert data_type_of(spark) == ducklake_type(kind)


@pytest.mark.parametrize(
    "spark",
    [
        T.NullType(),
        T.DayTimeIntervalType(),
        T.YearMonthIntervalType(),
        T.CalendarIntervalType(),
        T.StringType("UTF8_LCASE"),
    ],
)
def test_a_spark_type_without_a_place_in_a_lake_is_refused_by_column(spark):
    struct = T.StructType([T.StructField("s", T.StructType([T.StructField("x", spark)]))])

    with pytest.raises(Unsupported, match=r"column 's\.x' is .*, which has no DuckLake type"):
        members_of(struct)


def test_columns_of_a_dataframe_become_nullable_columns():
    struct = T.StructType(
        [
            T.StructField("id", T.LongType(), nullable=False),
            T.StructField("m", T.MapType(T.StringType(), T.ArrayType(T.DateType()))),
        ]
    )

    assert members_of(struct) == [
        Member("id", ducklake_type("int64"), nullable=True),
        Member("m", parse_type("map<string, array<date>>")),
    ]
