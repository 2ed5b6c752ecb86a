"""What a table's columns lack to hold the rows of a DataFrame unchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.model.changes.schema_change import AddColumn, ChangeType, SchemaChange
from shelduck.model.tables.schema import Field, Kind, Path, Schema, path_text
from shelduck.model.types.data_types import DataType
from shelduck.spark.types import data_type_of, spark_type

Widens = Callable[[DataType, DataType], bool]


def schema_changes(columns: Schema, given: T.StructType, widens: Widens) -> list[SchemaChange]:
    """Return the columns and struct fields to add, and the types to widen, at any depth.

    Names are compared without case. A type is widened if ``widens`` allows it. If it does not, or
    if the column's type already holds the values, the type stays. Raises Unsupported for a new
    column of a type that DuckLake does not have.
    """
    return list(_members(columns.fields, given, (), widens))


def _members(
    fields: tuple[Field, ...], given: T.StructType, path: Path, widens: Widens
) -> Iterator[SchemaChange]:
    known = {f.name.lower(): f for f in fields}
    for member in given.fields:
        field = known.get(member.name.lower())
        place = (*path, member.name)
        if field is None:
            yield AddColumn(place, data_type_of(member.dataType, path_text(place)))
        else:
            yield from _below(field, member.dataType, (*path, field.name), widens)


def _below(field: Field, given: T.DataType, path: Path, widens: Widens) -> Iterator[SchemaChange]:
    if field.shape is Kind.STRUCT and isinstance(given, T.StructType):
        yield from _members(field.children, given, path, widens)
    elif field.shape is Kind.LIST and isinstance(given, T.ArrayType):
        yield from _below(field.children[0], given.elementType, (*path, "element"), widens)
    elif field.shape is Kind.MAP and isinstance(given, T.MapType):
        yield from _below(field.children[0], given.keyType, (*path, "key"), widens)
        yield from _below(field.children[1], given.valueType, (*path, "value"), widens)
    elif field.is_leaf and isinstance(given, T.AtomicType) and given != spark_type(field.type):
        wanted = data_type_of(given, path_text(path))
        if widens(field.type, wanted):
            yield ChangeType(path, wanted)
