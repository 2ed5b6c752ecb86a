"""Values as text for people."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck.model.types.data_types import DataType, Leaf, List, Map, Primitive, Struct
from shelduck.spark.rows.nested_conversions import converted_parts

_TEXT = Primitive("varchar")
_BYTES = Primitive("blob")


def shown(value: Column, data_type: DataType) -> Column:
    """Return values as text: bytes in hexadecimal, at any depth, all others as Spark casts them."""
    readable = _without_bytes(data_type)
    if readable != data_type:
        value = converted_parts(value, data_type, readable, _in_hexadecimal)
    return value.cast("string")


def _in_hexadecimal(value: Column, _source: Leaf, _target: Leaf) -> Column:
    return F.concat(F.lit("X'"), F.hex(value), F.lit("'"))


def _without_bytes(data_type: DataType) -> DataType:
    match data_type:
        case Struct(members):
            return Struct(tuple(replace(m, type=_without_bytes(m.type)) for m in members))
        case List(element):
            return List(_without_bytes(element))
        case Map(key, value):
            return Map(_without_bytes(key), _without_bytes(value))
        case _:
            return _TEXT if data_type == _BYTES else data_type
