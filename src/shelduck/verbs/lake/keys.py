"""Key models for `Lake.create_table`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from shelduck.errors import InvalidRequest
from shelduck.model.tables.keys import Aggregation, KeyModel, KeySpec


def duplicate(*columns: str) -> KeySpec:
    """Keep all rows, sorted by these columns."""
    return KeySpec(KeyModel.DUPLICATE, _names(columns))


def unique(*columns: str, sequence: str | None = None) -> KeySpec:
    """Keep the last row of each key.

    By default that is the row loaded last; with ``sequence``, the one with the greatest value in
    that column, whatever the order of loads.
    """
    return KeySpec(KeyModel.UNIQUE, _names(columns), sequence=sequence)


def aggregate(*columns: str) -> KeySpec:
    """Keep one row of each key; its other columns are combined as ``aggregates`` says."""
    return KeySpec(KeyModel.AGGREGATE, _names(columns))


def with_aggregates(
    keys: KeySpec | None, aggregates: Mapping[str, str] | None, table: str
) -> KeySpec | None:
    """Return a key model with the aggregations of its other columns."""
    if not aggregates:
        return keys
    if keys is None:
        raise InvalidRequest(f"aggregates of {table} need keys=shelduck.aggregate(…)")
    return replace(
        keys, aggregations=tuple((name, aggregation(how)) for name, how in aggregates.items())
    )


def aggregation(text: str) -> Aggregation:
    """Return the aggregation of this name."""
    found = next((a for a in Aggregation if a.value == str(text).upper()), None)
    if found is None:
        known = ", ".join(a.value.lower() for a in Aggregation)
        raise InvalidRequest(f"unknown aggregation {text!r}; use one of {known}")
    return found


def _names(columns: tuple[str, ...]) -> tuple[str, ...]:
    if not columns or not all(isinstance(name, str) for name in columns):
        raise InvalidRequest(f"a key must be one or more column names, not {columns!r}")
    return columns
