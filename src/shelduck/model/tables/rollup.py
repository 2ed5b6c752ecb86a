"""Rollups: tables that hold the result of a query over one base table; every write keeps them.

A rollup of a table ``t`` is the ordinary table ``t$name``. A property of the rollup says, by column
ids, what it holds of its base; a property of the base has the names of its rollups.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from uuid import UUID, uuid5

from shelduck.errors import InvalidRequest
from shelduck.model.tables.keys import Aggregation, TableKeys
from shelduck.model.tables.schema import FieldId
from shelduck.model.tables.table_version import Feature, TableVersion
from shelduck.model.text.stored import Stored, each, record

ROLLUP = "shelduck.rollup"
"""The property of a rollup that says what it holds of which base."""
ROLLUPS = "shelduck.rollups"
"""The property of a base that names its rollups."""


class Measure(Enum):
    """How a column of a rollup is computed from all rows of one of its keys.

    COUNT counts values that are not NULL, or rows if it has no column. The others mean the same as
    in `Aggregation`. The catalog keeps the values.
    """

    SUM = "SUM"
    MIN = "MIN"
    MAX = "MAX"
    COUNT = "COUNT"
    REPLACE = "REPLACE"
    REPLACE_IF_NOT_NULL = "REPLACE_IF_NOT_NULL"

    @property
    def aggregation(self) -> Aggregation:
        """Return how measures of parts are combined into that of the whole."""
        return Aggregation.SUM if self is Measure.COUNT else Aggregation(self.value)


@dataclass(frozen=True, slots=True)
class MeasureSpec:
    """One measure as people write it: ``name`` is the name of the rollup's column.

    ``column`` is None for COUNT(*).
    """

    name: str
    measure: Measure
    column: str | None = None


@dataclass(frozen=True, slots=True)
class RollupSpec:
    """A rollup as people write it.

    ``columns`` are the columns of the base that it holds, keys first; ``duplicate_keys`` are those
    by which it is sorted, None for the first ones. With ``measures``, which only DUPLICATE tables
    need, it holds one row for each combination of values of ``columns``.
    """

    name: str
    columns: tuple[str, ...]
    measures: tuple[MeasureSpec, ...] = ()
    duplicate_keys: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class RollupColumn:
    """One column of a rollup: ``source`` is the base's column, None for COUNT(*).

    ``measure`` is None for a value that is copied as it is.
    """

    id: FieldId
    source: FieldId | None
    measure: Measure | None = None


@dataclass(frozen=True, slots=True)
class Rollup:
    """What a rollup holds of its base; ``base`` is the uuid of the base."""

    base: str
    name: str
    columns: tuple[RollupColumn, ...]


@dataclass(frozen=True, slots=True)
class AddRollup:
    """Add a rollup to a table; ``source`` is another rollup from which it may be made."""

    spec: RollupSpec
    source: str | None = None


@dataclass(frozen=True, slots=True)
class DropRollup:
    """Drop a rollup of a table."""

    name: str


RollupChange = AddRollup | DropRollup


@dataclass(frozen=True, slots=True)
class _Listed:
    """The rollups that a base has."""

    names: tuple[str, ...]


def _of_names(found: list[str]) -> dict[str, list[str]]:
    """Return version 1 of a list of names, which contained nothing else before."""
    return {"names": found}


STORED_ROLLUP: Stored[Rollup] = Stored(
    "rollup definition", record(Rollup, columns=each(record(RollupColumn), by="id"))
)
_STORED_NAMES: Stored[_Listed] = Stored("rollup list", record(_Listed), _of_names)


def rollup_of(table: TableVersion) -> Rollup | None:
    """Return the rollup that a table is, None if it is not a rollup.

    Raises NewerFormat, naming the table, if only a newer Shelduck understands it.
    """
    text = table.properties.get(ROLLUP)
    return None if text is None else STORED_ROLLUP.known(text, table.full_name)


def definition_of(table: TableVersion) -> Rollup:
    """Return the rollup that a table certainly is."""
    rollup = rollup_of(table)
    assert rollup is not None
    return rollup


def keeps_rows(rollup: Rollup, own: TableKeys | None, base: TableKeys | None) -> bool:
    """Return whether a rollup has one row for each row of its base.

    ``own`` and ``base`` are the key models of the two tables. Measures do not decide this, because
    a rollup of keys alone combines rows too. A rollup with one row per key keeps the rows of its
    base only if its keys tell those rows apart.
    """
    if own is None or not own.folds:
        return all(c.measure is None for c in rollup.columns)
    if base is None or not base.folds:
        return False
    return {c.source for c in rollup.columns if c.id in own.columns} >= {*base.columns}


def rollup_names(table: TableVersion) -> tuple[str, ...]:
    """Return the names of a base's rollups; raises NewerFormat as `rollup_of` does."""
    text = table.properties.get(ROLLUPS)
    return () if text is None else _STORED_NAMES.known(text, table.full_name).names


def refuse_rollup(table: TableVersion) -> None:
    """Raise InvalidRequest for a rollup: users can change only its base."""
    rollup = rollup_of(table) if Feature.IS_ROLLUP in table.features else None
    if rollup is not None:
        base = table.name.removesuffix(rollup_table("", rollup.name))
        raise InvalidRequest(
            f"cannot change {table.full_name}: it is rollup {rollup.name} of {base} and follows its"
            f" changes; change {base}, or use DROP ROLLUP {rollup.name}"
        )


def is_followed(table: TableVersion) -> bool:
    """Return whether a table has rollups, or is one."""
    return bool(rollup_names(table)) or rollup_of(table) is not None


def with_rollup(properties: Mapping[str, str], rollup: Rollup) -> dict[str, str]:
    """Return the properties of a rollup."""
    return dict(properties) | {ROLLUP: STORED_ROLLUP.write(rollup, properties.get(ROLLUP))}


def with_rollup_names(properties: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    """Return the properties of a base with these rollups."""
    return _STORED_NAMES.put(properties, ROLLUPS, _Listed(names) if names else None)


def rollup_table(base: str, name: str) -> str:
    """Return the name of the table that is a rollup."""
    return f"{base}${name}"


def uuid_of_job(base: str, job: int, name: str) -> str:
    """Return the uuid of the table that a job makes for a rollup of a base with that uuid.

    It follows from the job, so that files are found even if no attempt of the job has landed.
    """
    return str(uuid5(UUID(base), f"{name} of job {job}"))


def uuid_of_next(rollup: str) -> str:
    """Return the uuid of the table that replaces a rollup with that uuid, for the same reason."""
    return str(uuid5(UUID(rollup), "next"))
