"""Verbs of tables with a key model, and of their rollups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shelduck.api.compaction import refuse_in_transaction
from shelduck.api.handle import TableHandle
from shelduck.api.jobs import SchemaChangeJob, submit_rollups
from shelduck.api.keyed import folded_done, folds, refuse_rollup
from shelduck.api.lookup import rows_of
from shelduck.api.results import Result, Staged
from shelduck.api.rollup_shape import refresh, refresh_all
from shelduck.api.rollup_tables import drop_rollup
from shelduck.api.row_work import carry_out_rows
from shelduck.api.unit import UnitOfWork, carry_out
from shelduck.errors import InvalidRequest
from shelduck.model.rollup import Measure, MeasureSpec, RollupSpec
from shelduck.operations.done import Done


class KeyVerbs(TableHandle):
    """Folding, and rollups."""

    def fold(self) -> Result:
        """Make one row of those with the same key that other writers put into the table.

        Every write of Shelduck does so first. Nothing to fold makes no snapshot.

        Raises:
            InvalidRequest: the table has no UNIQUE or AGGREGATE KEY.
            Conflict: another commit changed the rows meanwhile, again and again.
        """

        def prepare(unit: UnitOfWork) -> Done:
            rows = rows_of(self._state, unit, self.name, writes=True)
            if not folds(rows.table):
                raise InvalidRequest(
                    f"{rows.table.full_name} has no UNIQUE or AGGREGATE KEY: there is nothing to"
                    " fold"
                )
            return folded_done(self._state, unit, rows)

        return carry_out_rows(self._state, self._unit, prepare, again=True)

    def add_rollup(
        self,
        name: str,
        columns: Sequence[str],
        aggregates: Mapping[str, str | tuple[str, str]] | None = None,
        *,
        timeout: int | None = None,
    ) -> SchemaChangeJob:
        """Return the job that makes a rollup: call its `SchemaChangeJob.wait`.

            table.add_rollup("by_city", ["city"], {"cost": ("sum", "cost"), "n": "count"}).wait()

        From then on every write of Shelduck keeps it, in the same snapshot, and queries are
        answered from it where that is less work. It is the table ``t$name`` for everybody.

        Args:
            name: Of the rollup.
            columns: Of this table. In a DUPLICATE table they are the order that the rollup is
                sorted in, or, with ``aggregates``, what rows are grouped by. A UNIQUE rollup has
                all keys, in another order; an AGGREGATE one may leave some out.
            aggregates: For tables that keep all rows: the new columns, each ``"count"`` or the name
                of ``sum``, ``min``, ``max`` or ``count`` and the column that it is of.
            timeout: Seconds after which the job gives up, a day when None.

        Raises:
            InvalidRequest, NotFound: the rollup could not be kept right, or would be of no use.
            AlreadyExists: the name is taken, or another job changes the table.
        """
        refuse_in_transaction(self._unit, "making a rollup")
        made = tuple(_measure(n, how) for n, how in (aggregates or {}).items())
        view = self._view()
        table = view.workspace.table(self.name)
        refuse_rollup(table)
        spec = RollupSpec(name, tuple(columns), made)
        return submit_rollups(self._state, view, table, [spec], timeout)

    def drop_rollup(self, name: str) -> Result:
        """Drop a rollup; older snapshots still show it. Raises NotFound, naming those there are."""

        def stage(unit: UnitOfWork) -> None:
            drop_rollup(unit, unit.workspace.table(self.name), name)

        return carry_out(self._state, self._unit, stage)

    def refresh_rollups(self) -> Result:
        """Make all rollups right that another writer left behind, in one snapshot.

        The next write of Shelduck does so too; until then queries are answered from the table.
        """
        if self._unit is not None:
            refresh(self._state, self._unit, self._unit.workspace.table(self.name))
            return Staged()
        return refresh_all(self._state, self.name)


def _measure(name: str, how: str | tuple[str, str]) -> MeasureSpec:
    word, column = (how, None) if isinstance(how, str) else how
    found = next((m for m in Measure if m.value == str(word).upper()), None)
    if found is None or (column is None and found is not Measure.COUNT):
        raise InvalidRequest(
            f'the aggregate {name!r} is "count", or ("sum", "cost") and the like, not {how!r}'
        )
    return MeasureSpec(name, found, column)
