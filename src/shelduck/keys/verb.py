"""The verb of tables with a key model, and key models as Python values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from shelduck.errors import InvalidRequest
from shelduck.keys.unique_keys import folded_done
from shelduck.lake.done import Done
from shelduck.lake.lookup import TableHandle, rows_of
from shelduck.lake.results import Result
from shelduck.lake.unit import UnitOfWork
from shelduck.model.tables.keys import Aggregation, KeyModel, KeySpec, folds
from shelduck.write.hooks import carry_out_rows


class KeyVerbs(TableHandle, in_parts=True):
    """Folding."""

    def fold(self) -> Result:
        """Combine rows of the same key that other writers put into the table.

        Every write of Shelduck does this first. If there is nothing to fold, no snapshot is made.

        Raises:
            InvalidRequest: the table has no UNIQUE or AGGREGATE KEY.
            Conflict: other commits kept changing the rows.
        """

        def prepare(unit: UnitOfWork) -> Done:
            rows = rows_of(unit, self.name, writes=True)
            if not folds(rows.table):
                raise InvalidRequest(
                    f"cannot fold {rows.table.full_name}: it has no UNIQUE or AGGREGATE KEY"
                )
            return folded_done(unit, rows)

        return carry_out_rows(self._state, self._unit, prepare, again=True)


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


def with_aggregates(keys: KeySpec | None, aggregates: Mapping[str, str], table: str) -> KeySpec:
    """Return a key model with the aggregations of its other columns."""
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
