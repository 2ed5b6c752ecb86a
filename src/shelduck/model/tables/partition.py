"""Partitioning: the transforms of DuckLake, their columns, and directory names.

A transform is stored as text: ``identity``, ``year``, ``month``, ``day``, ``hour`` (calendar
fields: a month is 1 to 12), ``epoch_year`` to ``epoch_hour`` (how many have begun since 1970) or
``bucket(N)``. Every file of a table holds one value of each key.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, count
from urllib.parse import quote

from shelduck.errors import CorruptLake, InvalidRequest, Unsupported
from shelduck.model.tables.schema import Field, FieldId, Kind, Schema
from shelduck.model.tables.table_version import PartitionColumn
from shelduck.model.text.intervals import whole_number
from shelduck.model.text.names import quote_name
from shelduck.model.types.temporal import TIMESTAMP_NAMES

IDENTITY = "identity"
BUCKET = "bucket"
CALENDAR = ("year", "month", "day", "hour")
COUNTS = tuple(f"epoch_{unit}" for unit in CALENDAR)
NULL_DIRECTORY = "__HIVE_DEFAULT_PARTITION__"
_MOST_BUCKETS = 2**31 - 1
_BUCKET = re.compile(r"bucket\((\d+)\)")
_NEVER_KEYS = frozenset({"geometry", "variant", "unknown", "null"})
_CLOCKS = ("time", "timetz")
_DIRECTIONS = {"ASC": False, "DESC": True}
_NULLS = {"NULLS FIRST": True, "NULLS LAST": False}


@dataclass(frozen=True, slots=True)
class Transform:
    """How to compute a key from a column: ``kind`` is a word above, ``buckets`` the N of bucket."""

    kind: str = IDENTITY
    buckets: int = 0

    def __str__(self) -> str:
        return f"bucket({self.buckets})" if self.kind == BUCKET else self.kind


@dataclass(frozen=True, slots=True)
class PartitionBy:
    """One partition key as it is requested: the name of a top-level column, and its transform."""

    column: str
    transform: Transform = Transform()

    def __str__(self) -> str:
        name = quote_name(self.column)
        if self.transform.kind == IDENTITY:
            return name
        count = f"{self.transform.buckets}, " if self.transform.kind == BUCKET else ""
        return f"{self.transform.kind}({count}{name})"


@dataclass(frozen=True, slots=True)
class SetPartitioning:
    """Partition new files; existing files stay as they are."""

    keys: tuple[PartitionBy, ...]

    def __str__(self) -> str:
        return f"SET PARTITIONED BY ({', '.join(map(str, self.keys))})"


@dataclass(frozen=True, slots=True)
class ResetPartitioning:
    """Stop partitioning new files."""

    def __str__(self) -> str:
        return "RESET PARTITIONED BY"


def parse_transform(text: str) -> Transform:
    """Return the transform that the catalog's text means; Unsupported for a later version's."""
    match = _BUCKET.fullmatch(text)
    count = whole_number(match[1]) if match else None
    if count and count <= _MOST_BUCKETS:
        return Transform(BUCKET, count)
    if text in (IDENTITY, *CALENDAR, *COUNTS):
        return Transform(text)
    raise Unsupported(
        f"the partition transform {text!r} is not supported: Shelduck has identity, year, month,"
        " day, hour, these behind epoch_, and bucket(N); write to this table with the version of"
        " DuckDB that made it"
    )


def resolve_keys(
    keys: Sequence[PartitionBy], columns: Schema, table: str
) -> tuple[PartitionColumn, ...]:
    """Return the keys by column id.

    Raises NotFound for a column that does not exist, InvalidRequest for a key that is given twice
    or a transform that does not suit the column's type.
    """
    if not keys:
        raise InvalidRequest(
            f"SET PARTITIONED BY of {table} needs at least one key; to remove the partitioning,"
            " use RESET PARTITIONED BY"
        )
    found: list[PartitionColumn] = []
    for key in keys:
        column = columns.get((key.column,), table)
        why = refusal(column, key.transform)
        if why:
            raise InvalidRequest(f"cannot partition {table} by {key}: {why}")
        made = PartitionColumn(column.id, str(key.transform))
        if made in found:
            raise InvalidRequest(f"cannot partition {table} by {key} twice")
        found.append(made)
    return tuple(found)


def refusal(column: Field, transform: Transform) -> str | None:
    """Return why a column cannot be a key with a transform, None if it can."""
    if isinstance(column.shape, Kind) or str(column.shape) in _NEVER_KEYS:
        return f"a column of type {column.type} cannot be a partition key"
    if transform.kind == BUCKET and not 0 < transform.buckets <= _MOST_BUCKETS:
        return f"the number of buckets must be from 1 to {_MOST_BUCKETS}"
    if transform.kind not in (*CALENDAR, *COUNTS):
        return None
    name = str(column.shape)
    if name == "timestamptz_ns" and transform.kind in CALENDAR:
        return f"use epoch_{transform.kind} for a column of type {column.type}"
    if name in TIMESTAMP_NAMES or (name == "date" and transform.kind != "hour"):
        return None
    if name in _CLOCKS and transform.kind == "hour":
        return None
    return f"{transform.kind} does not apply to a column of type {column.type}"


def named_keys(partition: Sequence[PartitionColumn], columns: Schema) -> list[PartitionBy]:
    """Return the keys of a table by the current names of its columns."""
    named = [(columns.by_id(FieldId(key.column_id)), key.transform) for key in partition]
    return [PartitionBy(f.name, parse_transform(text)) for f, text in named if f is not None]


def field_name(key: PartitionBy) -> str:
    """Return the name that Iceberg gives to a partition field, in lower case."""
    kind = key.transform.kind
    suffix = {IDENTITY: "", BUCKET: f"_bucket_{key.transform.buckets}"}.get(kind, f"_{kind}")
    return f"{key.column}{suffix}".lower()


def partition_directory(keys: Sequence[PartitionBy], values: Sequence[str | None]) -> str:
    """Return the directory of a partition below the table's, ending in '/', as DuckDB names it.

    DuckDB compacts files of one partition only if they are in one directory.
    """
    return "".join(
        f"{quote(name, safe='')}={NULL_DIRECTORY if value is None else quote(value, safe='')}/"
        for name, value in zip(directory_keys(keys), values, strict=True)
    )


def directory_keys(keys: Sequence[PartitionBy]) -> list[str]:
    """Return the text before the ``=`` in the directory of each key, as DuckDB names them.

    It is the column's name for ``identity``, and otherwise the transform's name. If that is already
    taken, the column's name is added to it, and then a number.
    """
    found: dict[str, str] = {}
    for key in keys:
        name = key.column if key.transform.kind == IDENTITY else key.transform.kind
        longer = f"{name}_{key.column}"
        names = chain((name, longer), (f"{longer}_{n}" for n in count(2)))
        name = next(n for n in names if n.lower() not in found)
        found[name.lower()] = name
    return list(found.values())


@dataclass(frozen=True, slots=True)
class SortKey:
    """One key: an expression over top-level columns, its direction and the position of NULL."""

    expression: str
    descending: bool = False
    nulls_first: bool = False

    @property
    def direction(self) -> str:
        """``ASC`` or ``DESC``."""
        return "DESC" if self.descending else "ASC"

    @property
    def null_order(self) -> str:
        """``NULLS_FIRST`` or ``NULLS_LAST``, as in the catalog."""
        return "NULLS_FIRST" if self.nulls_first else "NULLS_LAST"

    def __str__(self) -> str:
        return f"{self.expression} {self.direction} {self.null_order.replace('_', ' ')}"


@dataclass(frozen=True, slots=True)
class SetSorting:
    """Sort new files; existing files stay as they are."""

    keys: tuple[SortKey, ...]

    def __str__(self) -> str:
        return f"SET SORTED BY ({', '.join(map(str, self.keys))})"


@dataclass(frozen=True, slots=True)
class ResetSorting:
    """Stop sorting new files."""

    def __str__(self) -> str:
        return "RESET SORTED BY"


def parse_sort_key(text: str) -> SortKey:
    """Parse the ``str`` of a key, which is the form of `TableVersion.sort`."""
    parts = text.rsplit(" ", 3)
    nulls = " ".join(parts[2:])
    if len(parts) != 4 or parts[1] not in _DIRECTIONS or nulls not in _NULLS:
        raise CorruptLake(f"sort key {text!r} in the catalog has no direction or no order of NULLs")
    return SortKey(parts[0], _DIRECTIONS[parts[1]], _NULLS[nulls])
