"""Spark's types for DuckLake's, and back; docs/types.md is the same table for people."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.errors import Unsupported
from shelduck.model.tables.schema import Field
from shelduck.model.types.data_types import (
    DataType,
    Decimal,
    List,
    Map,
    Member,
    Primitive,
    Struct,
    Text,
    type_text,
)

_TO_SPARK: dict[str, T.DataType] = {
    "boolean": T.BooleanType(),
    "int8": T.ByteType(),
    "int16": T.ShortType(),
    "int32": T.IntegerType(),
    "int64": T.LongType(),
    "int128": T.DecimalType(38, 0),
    "uint8": T.ShortType(),
    "uint16": T.IntegerType(),
    "uint32": T.LongType(),
    "uint64": T.DecimalType(20, 0),
    "uint128": T.DecimalType(38, 0),
    "float32": T.FloatType(),
    "float64": T.DoubleType(),
    "date": T.DateType(),
    "timestamp": T.TimestampNTZType(),
    "timestamp_s": T.TimestampNTZType(),
    "timestamp_ms": T.TimestampNTZType(),
    "timestamp_ns": T.LongType(),
    "timestamptz_ns": T.LongType(),
    "timestamptz": T.TimestampType(),
    "time": T.StringType(),
    "timetz": T.StringType(),
    "varchar": T.StringType(),
    "json": T.StringType(),
    "uuid": T.StringType(),
    "blob": T.BinaryType(),
    "geometry": T.BinaryType(),
    "variant": T.VariantType(),
    "null": T.NullType(),
}
_FROM_SPARK: dict[type[T.DataType], Primitive] = {
    T.BooleanType: Primitive("boolean"),
    T.ByteType: Primitive("int8"),
    T.ShortType: Primitive("int16"),
    T.IntegerType: Primitive("int32"),
    T.LongType: Primitive("int64"),
    T.FloatType: Primitive("float32"),
    T.DoubleType: Primitive("float64"),
    T.DateType: Primitive("date"),
    T.TimestampType: Primitive("timestamptz"),
    T.TimestampNTZType: Primitive("timestamp"),
    T.BinaryType: Primitive("blob"),
    T.VariantType: Primitive("variant"),
}


def kind_text(data_type: DataType) -> str:
    """Return a type in Spark's words; one that Spark does not have in DuckLake's."""
    try:
        return spark_type(data_type).simpleString()
    except Unsupported:
        return str(data_type)


def spark_type(data_type: DataType, column: str = "") -> T.DataType:
    """Return the Spark type that holds the values of ``data_type``; nested values may be null.

    Raises Unsupported, naming ``column``, for a type that Spark does not have.
    """
    if isinstance(data_type, Struct):
        told = [None if m.comment is None else {"comment": m.comment} for m in data_type.members]
        kinds = [spark_type(m.type, column) for m in data_type.members]
        parts = zip(data_type.members, kinds, told, strict=True)
        return T.StructType([T.StructField(m.name, kind, True, how) for m, kind, how in parts])
    if isinstance(data_type, List):
        return T.ArrayType(spark_type(data_type.element, column))
    if isinstance(data_type, Map):
        return T.MapType(spark_type(data_type.key, column), spark_type(data_type.value, column))
    if isinstance(data_type, Decimal):
        return T.DecimalType(data_type.precision, data_type.scale)
    found = _TO_SPARK.get(data_type.name)
    if found is None:
        raise Unsupported(
            f"{_subject(column)} is {data_type}, which Spark does not"
            " support; leave the column out, or read it with DuckDB"
        )
    return found


def struct_type(schema: Iterable[Field]) -> T.StructType:
    """Return a table's columns as Spark sees them, NOT NULL at the top level only."""
    found = [T.StructField(f.name, spark_type(f.type, f.name), f.nullable) for f in schema]
    return T.StructType(found)


def data_type_of(spark: T.DataType, column: str = "") -> DataType:
    """Return the type in which a lake stores values of a Spark type.

    Raises Unsupported, naming ``column``, for a type that DuckLake does not have.
    """
    if isinstance(spark, T.StructType):
        return Struct(tuple(members_of(spark, column)))
    if isinstance(spark, T.ArrayType):
        return List(data_type_of(spark.elementType, column))
    if isinstance(spark, T.MapType):
        return Map(data_type_of(spark.keyType, column), data_type_of(spark.valueType, column))
    if isinstance(spark, T.CharType | T.VarcharType):
        return Text(length=spark.length)
    if isinstance(spark, T.DecimalType):
        return Decimal(spark.precision, spark.scale)
    if isinstance(spark, T.StringType) and spark.collation == "UTF8_BINARY":
        return Primitive("varchar")
    found = _FROM_SPARK.get(type(spark))
    if found is None:
        raise Unsupported(
            f"{_subject(column)} is {spark.simpleString()}, which has no DuckLake type; cast it to"
            " a type of docs/types.md first"
        )
    return found


def members_of(struct: T.StructType, column: str = "") -> list[Member]:
    """Return the columns of a DataFrame's schema with their comments; all of them nullable.

    If a DataFrame holds no null now, later rows may still hold one, so NOT NULL is never taken
    over.
    """
    return [
        Member(
            f.name,
            data_type_of(f.dataType, f"{column}.{f.name}" if column else f.name),
            comment=f.metadata.get("comment"),
        )
        for f in struct.fields
    ]


def same_type(one: T.DataType, other: T.DataType) -> bool:
    """Return whether two Spark types differ at most in which parts may be null."""
    if isinstance(one, T.StructType) and isinstance(other, T.StructType):
        return one.names == other.names and all(
            same_type(a.dataType, b.dataType) for a, b in zip(one.fields, other.fields, strict=True)
        )
    if isinstance(one, T.ArrayType) and isinstance(other, T.ArrayType):
        return same_type(one.elementType, other.elementType)
    if isinstance(one, T.MapType) and isinstance(other, T.MapType):
        return same_type(one.keyType, other.keyType) and same_type(one.valueType, other.valueType)
    return one == other


def _subject(column: str) -> str:
    return f"column {column!r}" if column else "the column"


def field_type(field: Field) -> str:
    """Return a field's type as Spark names it."""
    if isinstance(field.shape, Text):
        return type_text(field.shape).lower()
    return kind_text(field.type)
