"""Rows under the names that a table has now, and the columns that they need in addition.

Values that no column can take are kept beside them, in the rescue column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.rows import store_rules
from shelduck.engine.rows.conversions import converted, fitted, lost, needs_fit
from shelduck.engine.types import data_type_of, spark_type
from shelduck.errors import Unsupported
from shelduck.model.changes.evolution import Evolution
from shelduck.model.changes.retype import conversion_verdict
from shelduck.model.changes.schema_change import AddColumn, ChangeType, SchemaChange
from shelduck.model.tables.keys import table_keys
from shelduck.model.tables.schema import Field, FieldId, Kind, Path, Schema, path_text
from shelduck.model.tables.table_version import TableVersion, is_writable
from shelduck.model.text.names import quote_name
from shelduck.model.types.data_types import FLOATS, DataType, Leaf, members_of, shared_parts
from shelduck.model.types.promotions import Verdict, common_type, promotion

Widens = Callable[[DataType, DataType], bool]
_MICROSECONDS = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
_JSON = {
    # By default, Spark writes milliseconds, and a session may ask for NULLs.
    "timestampFormat": f"{_MICROSECONDS}XXX",
    "timestampNTZFormat": _MICROSECONDS,
    "ignoreNullFields": "true",
}


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
        assert isinstance(wanted, Leaf)
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


Split = tuple[Column, Column]
"""The part of a value that a column takes, and its rest, which is NULL if there is none."""


def rescue_rows(
    df: DataFrame, table: TableVersion, name: str, keep: Sequence[str] = ()
) -> tuple[DataFrame, FieldId]:
    """Return rows that fit a table, and its column ``name``, which then has what did not fit.

    Columns are found by name without case. ``keep`` are the last columns of ``df``, which do not
    belong to the table. No Spark job runs. A row without a value that the table needs, of a key or
    of a NOT NULL column, fails the write.
    """
    rescue = table.columns.get((name,), table.full_name)
    given = df.schema.fields[: len(df.columns) - len(keep)]
    lowered = [member.name.lower() for member in given]
    if len(set(lowered)) < len(lowered):
        # Store assignment names the column that comes twice.
        return df, rescue.id
    source = df.toDF(*(f"c{n}" for n in range(len(given))), *keep)
    fitting: list[Column] = []
    rests: list[Column] = []
    for n, member in enumerate(given):
        field, value = table.columns.find((member.name,)), F.col(f"c{n}")
        if field is None:
            rests += [value.alias(member.name)] if _can_rescue(member.dataType) else []
        elif _fits(member.dataType, field):
            fitting.append(value.alias(member.name))
        else:
            new, rest = _split(value, member.dataType, field)
            why = _why_needed(table, field)
            if why is not None:
                told = F.concat(F.lit(f"{why}, got "), rest.cast(T.StringType()))
                failure = store_rules.fail(told, spark_type(field.type, field.name))
                new = F.when(rest.isNotNull(), failure).otherwise(new)
            fitting.append(new.alias(member.name))
            rests.append(rest.alias(member.name))
    kept = [F.col(n) for n in keep]
    return source.select(*fitting, _told(rests).alias(rescue.name), *kept), rescue.id


def _why_needed(table: TableVersion, field: Field) -> str | None:
    """Return why a value of a column cannot be rescued, None if it can."""
    keys, name = table_keys(table), f"column {quote_name(field.name)} of {table.full_name}"
    if keys is not None and keys.folds and field.id in (*keys.columns, keys.sequence):
        return f"{name} is {field.type} and part of the key, so no value of it can be rescued"
    return None if field.nullable else f"{name} is {field.type} NOT NULL"


def _told(rests: Sequence[Column]) -> Column:
    nothing = F.lit(None).cast(T.StringType())
    if not rests:
        return nothing
    return F.when(_any(rests), F.to_json(F.struct(*rests), _JSON)).otherwise(nothing)


def _any(rests: Sequence[Column]) -> Column:
    return reduce(or_, [rest.isNotNull() for rest in rests])


def _can_rescue(given: T.DataType) -> bool:
    """Return whether values can be distinguished from NULL: those of no type are all NULL."""
    return not isinstance(given, T.NullType)


def _fits(given: T.DataType, target: Field) -> bool:
    """Return whether store assignment takes every value, or names what is wrong with the column."""
    if isinstance(given, T.NullType):
        return True
    if target.is_leaf:
        assert not isinstance(target.shape, Kind)
        return _fits_leaf(given, target.shape)
    if target.shape is Kind.STRUCT and isinstance(given, T.StructType):
        children = [(target.child(m.name), m.dataType) for m in given.fields]
        return all(child is not None and _fits(kind, child) for child, kind in children)
    if target.shape is Kind.LIST and isinstance(given, T.ArrayType):
        return _fits(given.elementType, target.children[0])
    if target.shape is Kind.MAP and isinstance(given, T.MapType):
        key, value = target.children
        return _fits(given.keyType, key) and _fits(given.valueType, value)
    return False


def _fits_leaf(given: T.DataType, leaf: Leaf) -> bool:
    if not is_writable(leaf):
        return True
    if needs_fit(leaf) or store_rules.refusal(given, leaf) is not None:
        return False
    # Store assignment rounds: a value of which digits would be lost is rescued.
    is_exact = str(leaf) not in FLOATS or promotion(data_type_of(given), leaf).is_light
    return is_exact and store_rules.is_plain_cast(given, leaf)


def _split(value: Column, given: T.DataType, target: Field) -> Split:
    if _fits(given, target):
        return value, _nothing(given)
    if target.is_leaf:
        return _leaf(value, given, target)
    if target.shape is Kind.STRUCT and isinstance(given, T.StructType):
        return _struct(value, given, target)
    if target.shape is Kind.LIST and isinstance(given, T.ArrayType):
        kind, child = given.elementType, target.children[0]
        rest = F.transform(value, lambda x: _split(x, kind, child)[1])
        new = F.transform(value, lambda x: _split(x, kind, child)[0])
        return new, F.when(F.exists(rest, lambda x: x.isNotNull()), rest)
    if target.shape is Kind.MAP and isinstance(given, T.MapType):
        return _map(value, given, target)
    return _none_of(value, target)


def _leaf(value: Column, given: T.DataType, target: Field) -> Split:
    leaf = target.shape
    assert not isinstance(leaf, Kind)
    try:
        source = data_type_of(given)
    except Unsupported:
        return _none_of(value.cast(T.StringType()), target)
    if conversion_verdict(source, leaf).verdict is Verdict.REFUSED:
        return _none_of(value, target)
    new = converted(value, source, leaf)
    if needs_fit(leaf):
        new = fitted(new, leaf)
    return new, F.when(new.isNull(), value)


def _struct(value: Column, given: T.StructType, target: Field) -> Split:
    parts: list[Column] = []
    rests: list[Column] = []
    for member in given.fields:
        part, child = value.getField(member.name), target.child(member.name)
        if child is None:
            rests += [part.alias(member.name)] if _can_rescue(member.dataType) else []
        elif _fits(member.dataType, child):
            parts.append(part.alias(member.name))
        else:
            new, rest = _split(part, member.dataType, child)
            parts.append(new.alias(member.name))
            rests.append(rest.alias(member.name))
    new = F.when(value.isNotNull(), F.struct(*parts))
    if not rests:
        return new, _nothing(T.StringType())
    return new, F.when(_any(rests), F.struct(*rests))


def _map(value: Column, given: T.MapType, target: Field) -> Split:
    """Split the values; if the type of the keys differs, the map is kept or rescued as a whole."""
    key, child = target.children
    if not _fits(given.keyType, key):
        return _whole(value, given, target)
    kind = given.valueType
    new = F.transform_values(value, lambda _, v: _split(v, kind, child)[0])
    rests = F.transform_values(value, lambda _, v: _split(v, kind, child)[1])
    rests = F.map_filter(_written(rests, given), lambda _, v: v.isNotNull())
    return new, F.when(F.size(rests) > 0, rests)


def _whole(value: Column, given: T.MapType, target: Field) -> Split:
    text = _written(value, given)
    held, wanted = data_type_of(given), target.type
    if not _knows(held, wanted) or conversion_verdict(held, wanted).verdict is Verdict.REFUSED:
        return _none_of(text, target)
    is_lost = lost(value, held, wanted)
    return F.when(~is_lost, converted(value, held, wanted)), F.when(is_lost, text)


def _knows(given: DataType, wanted: DataType) -> bool:
    """Return whether a type has every field of structs inside another."""
    pairs = shared_parts(given, wanted)
    if pairs is None:
        return True
    has_all = len(pairs) == len(members_of(given))
    return has_all and all(_knows(kind.type, other.type) for kind, other in pairs)


def _written(value: Column, given: T.MapType) -> Column:
    """Return a map with texts as keys, as JSON needs them."""
    if isinstance(given.keyType, T.StringType):
        return value
    if isinstance(given.keyType, T.AtomicType):
        return F.transform_keys(value, lambda k, _: k.cast(T.StringType()))
    return F.transform_keys(value, lambda k, _: F.to_json(F.struct(k.alias("key")), _JSON))


def _none_of(value: Column, target: Field) -> Split:
    return F.lit(None).cast(spark_type(target.type, target.name)), value


def _nothing(kind: T.DataType) -> Column:
    return F.lit(None).cast(kind)
