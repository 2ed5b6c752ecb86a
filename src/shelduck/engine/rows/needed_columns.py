"""Rows under the names that a table has now, and the columns that they need in addition."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.types import data_type_of, spark_type
from shelduck.errors import Unsupported
from shelduck.model.changes.evolution import Evolution
from shelduck.model.changes.schema_change import AddColumn, ChangeType, SchemaChange
from shelduck.model.tables.schema import Field, FieldId, Kind, Path, Schema, path_text
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.types.data_types import DataType, List, Map, Struct
from shelduck.model.types.promotions import common_type, promotion

Widens = Callable[[DataType, DataType], bool]


@dataclass(frozen=True, slots=True)
class NeededChange:
    """A column or field of rows that the table does not have, or that has another type there.

    ``field`` is None if the table does not have it.
    """

    path: Path
    field: Field | None
    given: T.DataType
    comment: str | None = None

    @property
    def type(self) -> DataType:
        """The type that a lake has for the values; Unsupported if there is none."""
        return data_type_of(self.given, path_text(self.path))

    @property
    def change(self) -> AddColumn | ChangeType:
        """The need of a table that is to hold all values: a new column, or another type.

        Raises Unsupported if a lake has no type for the values.
        """
        if self.field is None:
            return AddColumn(self.path, self.type, comment=self.comment)
        return ChangeType(self.path, self.wider or self.type)

    @property
    def wider(self) -> DataType | None:
        """The type that holds the values of the table and of the rows; None if there is none."""
        assert self.field is not None
        if isinstance(self.field.shape, Kind) or not isinstance(self.given, T.AtomicType):
            return None
        wanted = self.type
        assert not isinstance(wanted, Struct | List | Map)
        return common_type(self.field.shape, wanted)


def differences(columns: Schema, given: T.StructType) -> Iterator[NeededChange]:
    """Yield what rows have and a table has not, at any depth; names are compared without case.

    The column keeps its type if that type holds the given one.
    """
    return _members(columns.fields, given, ())


def schema_changes(
    columns: Schema, given: T.StructType, evolution: Evolution, widens: Widens
) -> list[SchemaChange]:
    """Return the columns and struct fields to add, and the types to widen, at any depth.

    A type is widened if ``widens`` allows it; otherwise it stays. Raises Unsupported for a new
    column of a type that DuckLake does not have, unless there is a rescue column for its values.
    """
    found: list[SchemaChange] = []
    for difference in differences(columns, given):
        field = difference.field
        if field is None:
            if evolution.adds and (evolution.rescue is None or _has_type(difference)):
                found.append(difference.change)
        elif evolution.widens:
            wider = difference.wider
            if wider is not None and widens(field.type, wider):
                found.append(ChangeType(difference.path, wider))
    return found


def _has_type(difference: NeededChange) -> bool:
    try:
        return difference.type is not None
    except Unsupported:
        return False


def _members(fields: tuple[Field, ...], given: T.StructType, path: Path) -> Iterator[NeededChange]:
    known = {f.name.lower(): f for f in fields}
    for member in given.fields:
        field = known.get(member.name.lower())
        if field is None:
            told = member.metadata.get("comment")
            yield NeededChange((*path, member.name), None, member.dataType, told)
        else:
            yield from _below(field, member.dataType, (*path, field.name))


def _below(field: Field, given: T.DataType, path: Path) -> Iterator[NeededChange]:
    if field.shape is Kind.STRUCT and isinstance(given, T.StructType):
        yield from _members(field.children, given, path)
    elif field.shape is Kind.LIST and isinstance(given, T.ArrayType):
        yield from _below(field.children[0], given.elementType, (*path, "element"))
    elif field.shape is Kind.MAP and isinstance(given, T.MapType):
        yield from _below(field.children[0], given.keyType, (*path, "key"))
        yield from _below(field.children[1], given.valueType, (*path, "value"))
    elif not isinstance(given, T.NullType) and not _holds(field, given, path):
        yield NeededChange(path, field, given)


def _holds(field: Field, given: T.DataType, path: Path) -> bool:
    if not field.is_leaf:
        return False
    if given == spark_type(field.type):
        return True
    try:
        return promotion(data_type_of(given, path_text(path)), field.type).is_light
    except Unsupported:
        return False


@dataclass(frozen=True)
class NamedRows:
    """Rows for a table, and the version of it to whose columns they refer.

    Columns are found by position or, without case, by name; ``apart`` may be a column of ``df``
    that is not a column of the table.
    """

    df: DataFrame
    planned: TableVersion
    by_position: bool = False
    apart: str | None = None

    @property
    def given(self) -> frozenset[FieldId]:
        """Return the columns of the table that have values."""
        return frozenset(f.id for f in self._meant().values())

    def under(self, now: TableVersion, replaced: Mapping[FieldId, FieldId]) -> NamedRows:
        """Return the rows under the names that their columns have in a later version.

        ``replaced`` are columns that others have replaced since then. Columns that no longer exist
        keep their names.
        """
        if now.columns == self.planned.columns:
            return replace(self, planned=now)
        meant, found = self._meant(), []
        for place, given in enumerate(self.df.schema):
            # By a unique name: rows whose columns are found by position may have a name twice.
            column, name = F.col(f"c{place}"), given.name
            before = meant.get(place)
            number = None if before is None else replaced.get(before.id, before.id)
            after = None if number is None else now.columns.by_id(number)
            if before is not None and after is not None:
                wanted, name = _renamed(given.dataType, before, after), after.name
                column = column if wanted == given.dataType else column.cast(wanted)
            found.append(column.alias(name))
        numbered = self.df.toDF(*(f"c{n}" for n in range(len(found))))
        return NamedRows(numbered.select(*found), now, apart=self.apart)

    def _meant(self) -> dict[int, Field]:
        """Return the columns of the table by the positions of the rows' columns."""
        columns = self.planned.columns
        apart = (self.apart or "").lower()
        own = [(n, c) for n, c in enumerate(self.df.columns) if c.lower() != apart]
        if self.by_position:
            return {n: f for (n, _), f in zip(own, columns.fields, strict=False)}
        return {n: f for n, c in own if (f := columns.find((c,))) is not None}


def _renamed(kind: T.DataType, before: Field, after: Field) -> T.DataType:
    """Return a type with the current names of its struct fields; a cast uses their positions."""
    if isinstance(kind, T.StructType):
        members = []
        for member in kind.fields:
            old = before.child(member.name)
            new = None if old is None else next((c for c in after.children if c.id == old.id), None)
            if old is not None and new is not None:
                inner = _renamed(member.dataType, old, new)
                members.append(T.StructField(new.name, inner, member.nullable))
            else:
                members.append(member)
        return T.StructType(members)
    parts = list(zip(before.children, after.children, strict=False))
    if isinstance(kind, T.ArrayType) and len(parts) == 1:
        return T.ArrayType(_renamed(kind.elementType, *parts[0]), kind.containsNull)
    if isinstance(kind, T.MapType) and len(parts) == 2:
        key, value = (
            _renamed(k, *p) for k, p in zip((kind.keyType, kind.valueType), parts, strict=True)
        )
        return T.MapType(key, value, kind.valueContainsNull)
    return kind
