"""Verbs of tables with a key model, and of their rollups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from shelduck.errors import InvalidRequest
from shelduck.jobs.jobs import SchemaChangeJob, submit_rollups
from shelduck.model.tables.keys import Aggregation, KeyModel, KeySpec
from shelduck.model.tables.rollup import Measure, MeasureSpec, RollupSpec
from shelduck.operations.done import Done
from shelduck.rollups.rollup_shape import refresh, refresh_all
from shelduck.rollups.rollup_tables import drop_rollup
from shelduck.rows.keyed import folded_done, folds, refuse_rollup
from shelduck.work.handle import TableHandle
from shelduck.work.hooks import carry_out_rows
from shelduck.work.lookup import rows_of
from shelduck.work.results import Result, Staged
from shelduck.work.unit import UnitOfWork, carry_out, refuse_in_transaction


class KeyVerbs(TableHandle, in_parts=True):
    """Folding, and rollups."""

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

    def add_rollup(
        self,
        name: str,
        columns: Sequence[str],
        aggregates: Mapping[str, str | tuple[str, str]] | None = None,
        *,
        timeout: int | None = None,
    ) -> SchemaChangeJob:
        """Return the job that builds a rollup: call its `SchemaChangeJob.wait`.

            table.add_rollup("by_city", ["city"], {"cost": ("sum", "cost"), "n": "count"}).wait()

        From then on every write of Shelduck updates it in the same snapshot, and queries are
        answered from it if that is less work. All readers see it as the table ``t$name``.

        Args:
            name: The name of the rollup.
            columns: Columns of this table. In a DUPLICATE table, the rollup is sorted by them or,
                with ``aggregates``, rows are grouped by them. A UNIQUE rollup has all keys, in
                another order; an AGGREGATE rollup may leave some out.
            aggregates: For tables that keep all rows: the new columns, each ``"count"`` or a pair
                of ``sum``, ``min``, ``max`` or ``count`` and the column to combine.
            timeout: Seconds after which the job is cancelled; by default a day.

        Raises:
            InvalidRequest, NotFound: the rollup could not be kept up to date, or would be useless.
            AlreadyExists: the name is taken, or the table has an open job.
        """
        refuse_in_transaction(self._unit, "making a rollup")
        made = tuple(_measure(n, how) for n, how in (aggregates or {}).items())
        view = self._view()
        table = view.workspace.table(self.name)
        refuse_rollup(table)
        spec = RollupSpec(name, tuple(columns), made)
        return submit_rollups(view, table, [spec], timeout)

    def drop_rollup(self, name: str) -> Result:
        """Drop a rollup; older snapshots still show it. NotFound lists the existing ones."""

        def stage(unit: UnitOfWork) -> None:
            drop_rollup(unit, unit.workspace.table(self.name), name)

        return carry_out(self._state, self._unit, stage)

    def refresh_rollups(self) -> Result:
        """Update all rollups that another writer left outdated, in one snapshot.

        The next write of Shelduck does this too; until then, queries read the table itself.
        """
        if self._unit is not None:
            refresh(self._unit, self._unit.workspace.table(self.name))
            return Staged()
        return refresh_all(self._state, self.name)


def _measure(name: str, how: str | tuple[str, str]) -> MeasureSpec:
    word, column = (how, None) if isinstance(how, str) else how
    found = next((m for m in Measure if m.value == str(word).upper()), None)
    if found is None or (column is None and found is not Measure.COUNT):
        raise InvalidRequest(
            f'aggregate {name!r} must be "count" or a pair such as ("sum", "cost"), not {how!r}'
        )
    return MeasureSpec(name, found, column)


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
