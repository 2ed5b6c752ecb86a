"""Key models as in Apache Doris: which rows of a table count as one row, and what they become.

DUPLICATE keeps all rows, sorted by its key. UNIQUE keeps the last row of each key. AGGREGATE keeps
one row of each key, with its other columns combined. Loads do this on write, so every snapshot is
correct for every reader.

The model is a property of the table, by column ids: it has a history, and DuckDB ignores it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from shelduck.errors import InvalidRequest
from shelduck.model.tables.schema import Field, FieldId, Kind, Schema
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import quote_name
from shelduck.model.text.stored import Stored, record
from shelduck.model.types.data_types import FLOATS, SIGNED, UNSIGNED, Decimal

KEYS = "shelduck.keys"
"""The property that holds the model of a table."""
DELETE_SIGN = "__DORIS_DELETE_SIGN__"
"""The column of a load that says which of its keys are deleted, with Doris' name."""


_UNORDERED = ("json", "variant", "geometry")


class KeyModel(Enum):
    """How a table combines rows of the same key; the catalog keeps the values."""

    DUPLICATE = "DUPLICATE"
    UNIQUE = "UNIQUE"
    AGGREGATE = "AGGREGATE"


class Aggregation(Enum):
    """How values of rows with the same key are combined.

    SUM, MIN and MAX ignore NULL, and are NULL if there is no other value. REPLACE takes the last
    value, REPLACE_IF_NOT_NULL the last value that is not NULL. The catalog keeps the values.
    """

    SUM = "SUM"
    MIN = "MIN"
    MAX = "MAX"
    REPLACE = "REPLACE"
    REPLACE_IF_NOT_NULL = "REPLACE_IF_NOT_NULL"

    @property
    def replaces(self) -> bool:
        """True if the order of rows matters, so that groups of groups give another result."""
        return self in (Aggregation.REPLACE, Aggregation.REPLACE_IF_NOT_NULL)


@dataclass(frozen=True, slots=True)
class KeySpec:
    """A key model as people write it, with the names of columns.

    ``distributed_by`` are Doris' bucket columns. Their rules apply, but they arrange no files.
    ``buckets`` is their number or AUTO, which is only shown.
    """

    model: KeyModel
    columns: tuple[str, ...]
    aggregations: tuple[tuple[str, Aggregation], ...] = ()
    sequence: str | None = None
    distributed_by: tuple[str, ...] = ()
    buckets: str | None = None


@dataclass(frozen=True, slots=True)
class TableKeys:
    """The key model of a table: its key columns in order, and how each other column is combined.

    ``sequence`` is the column that decides which row of a key is the last, whatever the order of
    rows. Without it, the row that comes last is the last.
    """

    model: KeyModel
    columns: tuple[FieldId, ...]
    aggregations: tuple[tuple[FieldId, Aggregation], ...] = ()
    sequence: FieldId | None = None
    distributed_by: tuple[FieldId, ...] = ()
    buckets: str | None = None

    @property
    def folds(self) -> bool:
        """True if there is at most one row of each key."""
        return self.model is not KeyModel.DUPLICATE

    def aggregation(self, column: FieldId) -> Aggregation | None:
        """Return how a column of an AGGREGATE table is combined, None for a key."""
        return next((how for i, how in self.aggregations if i == column), None)

    def key_fields(self, columns: Schema) -> list[Field]:
        """Return the key columns in their order."""
        return [f for i in self.columns if (f := columns.by_id(i)) is not None]

    def renumbered(self, old: FieldId, new: FieldId) -> TableKeys:
        """Return the model after a column was replaced by one with another id."""

        def now(number: FieldId) -> FieldId:
            return new if number == old else number

        return replace(
            self,
            columns=tuple(map(now, self.columns)),
            aggregations=tuple((now(i), how) for i, how in self.aggregations),
            sequence=None if self.sequence is None else now(self.sequence),
            distributed_by=tuple(map(now, self.distributed_by)),
        )


_STORED: Stored[TableKeys] = Stored("key model", record(TableKeys))


def table_keys(table: TableVersion) -> TableKeys | None:
    """Return the key model of a table, None for a table without one.

    Raises NewerFormat, naming the table, if only a newer Shelduck understands it.
    """
    return keys_in(table.properties, table.full_name)


def keys_in(properties: Mapping[str, str], table: str) -> TableKeys | None:
    """Return the key model in the properties of a table, None if there is none."""
    return _STORED.known(properties[KEYS], table) if KEYS in properties else None


def folds(table: TableVersion) -> bool:
    """Return whether a table has at most one row of each key."""
    keys = table_keys(table)
    return keys is not None and keys.folds


def with_keys(properties: Mapping[str, str], keys: TableKeys | None) -> dict[str, str]:
    """Return the properties of a table with this key model."""
    return _STORED.put(properties, KEYS, keys)


def resolve_keys(spec: KeySpec, columns: Schema, table: str) -> TableKeys:
    """Return the key model of a new table with these columns.

    Raises NotFound for a column that does not exist, and InvalidRequest if the model does not allow
    the request: keys come first in their order, their values must have an order, and only columns
    of AGGREGATE that are not keys are combined.
    """
    keys = [columns.get((name,), table) for name in spec.columns]
    if not keys and not (spec.distributed_by or spec.buckets):
        raise InvalidRequest(f"{spec.model.value} KEY of {table} lists no column")
    for place, field in enumerate(keys):
        here = f"key column {quote_name(field.name)} of {table}"
        if field in keys[:place]:
            raise InvalidRequest(f"{here} is listed twice")
        if place and field.order < keys[place - 1].order:
            raise InvalidRequest(
                f"{here} is out of order; list the keys in the order of the columns"
            )
    given = {columns.get((name,), table).id: how for name, how in spec.aggregations}
    found = TableKeys(
        spec.model,
        tuple(f.id for f in keys),
        tuple((f.id, given[f.id]) for f in columns if f.id in given),
        None if spec.sequence is None else columns.get((spec.sequence,), table).id,
        tuple(columns.get((name,), table).id for name in spec.distributed_by),
        spec.buckets,
    )
    check_keys(found, columns, table)
    return found


def check_keys(keys: TableKeys, columns: Schema, table: str) -> None:
    """Raise InvalidRequest if columns do not fit a key model."""
    for field in keys.key_fields(columns):
        refuse_as_key(field, table)
    check_order(keys, columns, table)
    for field in columns:
        if field.id not in keys.columns:
            check_aggregation(keys, field, table)
        elif keys.aggregation(field.id) is not None:
            raise InvalidRequest(
                f"key column {quote_name(field.name)} of {table} cannot have an aggregation type"
            )
    if keys.sequence is not None:
        _check_sequence(keys, columns, table)


def check_order(keys: TableKeys, columns: Schema, table: str) -> None:
    """Raise InvalidRequest if the keys do not come before all other columns."""
    there = {f.id for f in keys.key_fields(columns)}
    front = [f.id for f in columns][: len(there)]
    if set(front) != there:
        value = next(f for f in columns if f.id not in keys.columns)
        raise InvalidRequest(
            f"invalid column order of {table}: value should be after key, but"
            f" {quote_name(value.name)} stands before the last key; the keys are"
            f" {', '.join(quote_name(f.name) for f in keys.key_fields(columns))}"
        )


def may_be_key(field: Field) -> bool:
    """Return whether values of a column can be compared exactly."""
    name = str(field.shape)
    return not isinstance(field.shape, Kind) and name not in (*_UNORDERED, *FLOATS)


def refuse_as_key(field: Field, table: str) -> None:
    """Raise InvalidRequest for a column whose values cannot be compared exactly."""
    name = str(field.shape)
    if isinstance(field.shape, Kind) or name in _UNORDERED:
        raise InvalidRequest(
            f"column {quote_name(field.name)} of {table} is {field.type} and cannot be a key; key"
            " columns are numbers, text, dates, timestamps, booleans and binary"
        )
    if name in FLOATS:
        raise InvalidRequest(
            f"column {quote_name(field.name)} of {table} is {field.type}: float or double cannot be"
            " used as a key; use DECIMAL"
        )


def check_aggregation(keys: TableKeys, field: Field, table: str) -> None:
    """Raise InvalidRequest if a column that is not a key cannot be combined in this way."""
    how, here = keys.aggregation(field.id), f"column {quote_name(field.name)} of {table}"
    if keys.model is not KeyModel.AGGREGATE:
        if how is not None:
            raise InvalidRequest(
                f"cannot assign aggregation method {how.value} on {here}: {keys.model.value} KEY"
                " tables do not aggregate"
            )
        return
    if how is None:
        raise InvalidRequest(
            f"{here} is not a key of the AGGREGATE KEY table and needs an aggregation type; use"
            f" one of {', '.join(a.value for a in Aggregation)}"
        )
    if not _fits(how, field):
        raise InvalidRequest(
            f"aggregate type {how.value} is not compatible with {here}, which is {field.type}"
        )


def require_zero(how: Aggregation | None, field: Field, table: str) -> None:
    """Raise InvalidRequest for a default that each row would add to a SUM."""
    default = field.default
    if how is not Aggregation.SUM or default is None:
        return
    if not default.literal or default.text.strip("+-0.") != "":
        raise InvalidRequest(
            f"the default value of {quote_name(field.name)} of {table} with SUM aggregation"
            f" function must be zero, not {default}"
        )


def _fits(how: Aggregation, field: Field) -> bool:
    if how.replaces:
        return True
    if isinstance(field.shape, Kind):
        return False
    name = str(field.shape)
    if isinstance(field.shape, Decimal) or name in (*SIGNED, *UNSIGNED, *FLOATS):
        return True
    is_ordered = name not in ("boolean", "blob", "json", "variant", "geometry", "uuid")
    return is_ordered and how is not Aggregation.SUM


def _check_sequence(keys: TableKeys, columns: Schema, table: str) -> None:
    field = columns.by_id(keys.sequence or 0)
    if keys.model is not KeyModel.UNIQUE or field is None or field.id in keys.columns:
        raise InvalidRequest(
            f"the sequence column of {table} must be a column of a UNIQUE KEY table and not one of"
            " its keys"
        )
    name = str(field.shape)
    if name not in (*SIGNED, *UNSIGNED, "date") and not name.startswith("timestamp"):
        raise InvalidRequest(
            f"sequence column {quote_name(field.name)} of {table} is {field.type}; it must be an"
            " integer, a date or a timestamp"
        )


def names_of(columns: Schema, ids: Sequence[FieldId]) -> list[str]:
    """Return the names of columns by their ids."""
    return [f.name for i in ids if (f := columns.by_id(i)) is not None]
