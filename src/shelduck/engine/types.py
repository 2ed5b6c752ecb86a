"""Spark's types for DuckLake's, and back; docs/types.md is the same table for people.

Single values and rows of the catalog (defaults, path values, inlined rows) travel as *carriers*
that Spark's types cannot change: days and microseconds as numbers, so that years before Christ,
infinities and the session's time zone do not matter.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal as Number

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.errors import CorruptLake, InvalidRequest, Unsupported
from shelduck.model.tables.schema import Field
from shelduck.model.text.names import quote_text
from shelduck.model.types.data_types import (
    FLOATS,
    DataType,
    Decimal,
    Leaf,
    List,
    Map,
    Member,
    Primitive,
    Struct,
    Text,
    type_text,
)
from shelduck.model.types.literals import blob_bytes, bound, float_value
from shelduck.model.types.temporal import MICROSECONDS, NANOSECONDS, ZONELESS
from shelduck.text.ddl.defaults import expression_for_spark

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


Carrier = bool | int | float | str | bytes | Number | T.VariantVal | None

_TEXTS = ("varchar", "json", "time", "timetz")
_NULL = b"\0"
"""The value of a variant that is null."""


def carrier(leaf: Leaf, value: object, where: str) -> Carrier:
    """Return the carrier of a catalog's value (DuckDB text, or bytes of a blob) for Spark.

    Raises CorruptLake, naming ``where``, for something that is not a value of the type, and
    Unsupported if Spark has no such type.
    """
    name = str(leaf)
    found: Carrier
    if value is None or (isinstance(value, bytes) and name != "variant"):
        return value
    text = str(value)
    if name in _TEXTS:
        return text
    if name == "variant":
        found = _variant(value if isinstance(value, bytes) else blob_bytes(text) or b"")
        if found is not None and found.value == _NULL:
            # As in files, and in DuckDB.
            return None
    elif name == "blob":
        found = blob_bytes(text)
    elif name in FLOATS:
        found = _float(leaf, text)
    else:
        found = bound(leaf, text)
    if found is None:
        try:
            spark_type(leaf)
        except Unsupported as error:
            raise Unsupported(f"{where}: {error}") from error
        raise CorruptLake(f"{where} holds {text!r}, which is not a value of type {leaf}")
    return found


def carrier_type(data_type: DataType) -> T.DataType:
    """Return the Spark type of the carriers of a type."""
    if isinstance(data_type, Struct):
        return T.StructType(
            [T.StructField(m.name, carrier_type(m.type)) for m in data_type.members]
        )
    if isinstance(data_type, List):
        return T.ArrayType(carrier_type(data_type.element))
    if isinstance(data_type, Map):
        return T.MapType(carrier_type(data_type.key), carrier_type(data_type.value))
    name = str(data_type)
    if name == "date":
        return T.IntegerType()
    if name in MICROSECONDS:
        return T.LongType()
    if name == "float32":
        return T.DoubleType()
    return spark_type(data_type)


def decoded(carried: SparkColumn, data_type: DataType) -> SparkColumn:
    """Return the value of ``data_type`` that a carrier represents."""
    if spark_type(data_type) == carrier_type(data_type):
        return carried
    if isinstance(data_type, Struct):
        parts = [decoded(carried.getField(m.name), m.type).alias(m.name) for m in data_type.members]
        return F.when(carried.isNotNull(), F.struct(*parts))
    if isinstance(data_type, List):
        return F.transform(carried, lambda x: decoded(x, data_type.element))
    if isinstance(data_type, Map):
        return F.map_from_entries(
            F.transform(
                F.map_entries(carried),
                lambda e: F.struct(
                    decoded(e.getField("key"), data_type.key).alias("key"),
                    decoded(e.getField("value"), data_type.value).alias("value"),
                ),
            )
        )
    name = str(data_type)
    if name == "date":
        return F.date_from_unix_date(carried)
    if name == "timestamptz":
        return F.timestamp_micros(carried)
    if name == "float32":
        return carried.cast(T.FloatType())
    return micros_to_ntz(carried)


def literal(text: str | None, data_type: DataType) -> SparkColumn:
    """Return a constant by its DuckLake text; None is NULL."""
    if text is None or isinstance(data_type, Struct | List | Map):
        return F.lit(None).cast(spark_type(data_type))
    found = carrier(data_type, text, "a default")
    if isinstance(found, bytes):
        return F.lit(bytearray(found)).cast(spark_type(data_type))
    # As text, because Spark's literals of Python numbers have at most 64 bits.
    if isinstance(found, Number):
        carried = F.lit(f"{found:f}")
    elif isinstance(found, int) and not isinstance(found, bool):
        carried = F.lit(str(found))
    else:
        carried = F.lit(found)
    return decoded(carried.cast(carrier_type(data_type)), data_type)


def text_to_value(text: SparkColumn, leaf: Leaf) -> SparkColumn:
    """Return the value of a column of canonical texts, or of hexadecimal digits for bytes."""
    name = str(leaf)
    if name == "blob":
        return F.unhex(text)
    if name == "timestamptz":
        # The canonical text ends in +00, which Spark reads as the offset only if written in full.
        return F.concat(text, F.lit(":00")).cast(T.TimestampType())
    if name in NANOSECONDS:
        raise InvalidRequest(f"cannot read a {name} column from the path of a file, such as ts=...")
    return text.cast(spark_type(leaf))


def exists_default(leaf: Leaf, text: str) -> str:
    """Return SQL for EXISTS_DEFAULT, which Spark fills in for files without the column."""
    name = str(leaf)
    if name in _TEXTS:
        return quote_text(text)
    if name == "timestamptz":
        return f"TIMESTAMP '{text}:00'"
    if name in ZONELESS:
        return f"TIMESTAMP_NTZ '{text}'"
    if name in NANOSECONDS:
        return f"{carrier(leaf, text, 'a default')!r}L"
    return f"CAST('{text}' AS {spark_type(leaf).simpleString()})"


def literal_text(leaf: Leaf, text: str) -> str:
    """Return SQL for the constant of a canonical text, for timestamps that Spark can write."""
    found = carrier(leaf, text, "a default")
    return f"X'{found.hex()}'" if isinstance(found, bytes) else exists_default(leaf, text)


def default_sql(field: Field) -> str | None:
    """Return the Spark SQL of what new rows get in a column, None without a default.

    Raises Unsupported for an expression that Spark may understand differently or not at all.
    """
    if field.default is None:
        return None
    if not field.default.literal:
        return expression_for_spark(field.default.text)
    return literal_text(field.leaf, field.default.text)


def micros_to_ntz(micros: SparkColumn) -> SparkColumn:
    """Return the timestamp without a time zone of microseconds since 1970, in any session."""
    start = F.lit("1970-01-01 00:00:00").cast(T.TimestampNTZType())
    return F.timestamp_add("MICROSECOND", micros, start)


def _variant(data: bytes) -> T.VariantVal | None:
    """Return the variant whose metadata and value these bytes are, None if they are none."""
    if data[:1] == b"" or data[0] & 0x0F != 1:
        return None
    width = (data[0] >> 6) + 1
    names = int.from_bytes(data[1 : 1 + width], "little")
    offsets = 1 + width * (names + 2)
    end = offsets + int.from_bytes(data[offsets - width : offsets], "little")
    return T.VariantVal(data[end:], data[:end]) if offsets <= end < len(data) else None


def _float(leaf: Leaf, text: str) -> float | None:
    try:
        return float_value(leaf, text)
    except InvalidRequest:
        return None
