"""Verbs over the rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from shelduck.api.answering import read_any
from shelduck.api.evolving import evolved
from shelduck.api.handle import TableHandle
from shelduck.api.keyed import is_plain, load
from shelduck.api.results import Result, Staged
from shelduck.api.row_work import carry_out_rows
from shelduck.api.unit import UnitOfWork, carry_out, counted
from shelduck.errors import Conflict, InvalidRequest, OutcomeUnknown
from shelduck.jobs.writer import Writer
from shelduck.operations.append import append_rows
from shelduck.operations.done import Done, discard
from shelduck.operations.inlining import inline_limit
from shelduck.operations.load import Loaded
from shelduck.planning.shadows import fits_published
from shelduck.spark.session import DataFrame


class RowVerbs(TableHandle):
    """Reading and writing rows."""

    def read(
        self,
        *,
        version: int | None = None,
        timestamp: str | datetime | None = None,
        columns: Sequence[str] | None = None,
        rollups: bool = True,
    ) -> DataFrame:
        """Return the rows as a DataFrame, with the columns that the table had at that snapshot.

        The rows stay those of one snapshot whatever happens to the table. Every column is nullable.
        Queries of the newest rows are answered from a rollup where that is less work.

        Args:
            version: A snapshot id, as in `Committed.snapshot` and `history`.
            timestamp: The last snapshot at or before it; text without an offset is UTC.
            columns: The top-level columns to read, all when None.
            rollups: Whether a rollup may answer; in SQL the hint ``/*+ NO_ROLLUP */`` says no.

        Raises:
            NotFound: the table, a column or the snapshot does not exist.
            InvalidRequest: both ``version`` and ``timestamp`` are given.
            Unsupported: a file or type cannot be read right; the message names the way out.
        """
        return read_any(
            self._state,
            self._view(),
            self.name,
            version=version,
            timestamp=timestamp,
            columns=columns,
            rollups=rollups,
        )

    def append(
        self,
        df: DataFrame,
        *,
        by_position: bool = False,
        merge_schema: bool = False,
        delete_sign: str | None = None,
    ) -> Result:
        """Append rows. Columns go by name; missing ones get their default, extra ones are an error.

        In a UNIQUE or AGGREGATE table rows of the same key take the place of those that are there,
        or are combined with them; of several in ``df`` the last one is the last in its order.

        Args:
            df: The rows. docs/types.md says which types a column takes; nothing is cut or rounded.
            by_position: Take columns by their place instead; struct fields always go by name.
            merge_schema: Add columns and struct fields that the table lacks, and widen types where
                the rows are wider, in the same snapshot.
            delete_sign: A column of ``df``, of a UNIQUE table, that is true where the row of that
                key is to be deleted. One called ``__DORIS_DELETE_SIGN__`` is found by itself.

        Raises:
            InvalidRequest: columns or types do not fit, told before any work; or a value does not
                (NULL in a NOT NULL column, overflow), told while writing. The table is unchanged.
            Unsupported: the table has a type, partition key or sort order that Spark cannot write.
            Conflict: the columns changed while rows were written; append again.
            OutcomeUnknown: look for the rows before appending them again.
        """
        if delete_sign is not None:
            self._require_frame(df, "append to")
            return self._load(
                df, by_position=by_position, merge_schema=merge_schema, delete_sign=delete_sign
            )
        return self._append(df, by_position=by_position, merge_schema=merge_schema)

    def append_values(self, df: DataFrame, *, by_position: bool = False) -> Result:
        """Append the rows of a VALUES list: Spark cuts even two into tasks, each with a file."""
        return self._append(df, by_position=by_position, in_one_task=True)

    def _append(
        self,
        df: DataFrame,
        *,
        by_position: bool = False,
        in_one_task: bool = False,
        merge_schema: bool = False,
    ) -> Result:
        self._require_frame(df, "append to")
        if merge_schema and by_position:
            raise InvalidRequest(
                f"append to {self.name}: a schema is merged by names of columns, not by_position"
            )
        planned, alter = self._version(), None
        if not is_plain(planned):
            return self._load(
                df, by_position=by_position, merge_schema=merge_schema, in_one_task=in_one_task
            )
        if merge_schema:
            planned, alter = evolved(planned, df.schema)
        if self._unit is not None:
            writer = self._unit.writer
        else:
            writer = Writer(self._state.store, self._state.leases)
        try:
            done = append_rows(
                self._state.spark,
                df,
                planned,
                by_position=by_position,
                in_one_task=in_one_task,
                show_progress=self._state.show_progress,
                inline_limit=0 if self._unit or alter else inline_limit(self._state.store, planned),
                register=writer.register,
            )
            return self._commit_append(replace(done, alter=alter), writer)
        finally:
            if self._unit is None:
                writer.give_up()

    def _load(
        self,
        df: DataFrame,
        *,
        by_position: bool = False,
        merge_schema: bool = False,
        delete_sign: str | None = None,
        in_one_task: bool = False,
    ) -> Result:
        def prepare(unit: UnitOfWork) -> Loaded:
            return load(
                self._state,
                unit,
                self.name,
                df,
                by_position=by_position,
                merge_schema=merge_schema,
                delete_sign=delete_sign,
                in_one_task=in_one_task,
            )

        return carry_out_rows(self._state, self._unit, prepare, again=True)

    def _commit_append(self, done: Done, writer: Writer | None = None) -> Result:
        if done.is_nothing:
            return Staged() if self._unit else carry_out(self._state, None, lambda _unit: None)
        planned = done.table if done.alter is None else done.alter.table

        def stage(unit: UnitOfWork) -> None:
            current = unit.workspace.table(self.name)
            is_same = current.columns == planned.columns
            if current.id != planned.id or not (
                is_same or fits_published(planned, current.columns)
            ):
                raise Conflict(
                    f"table {self.name} changed its columns while rows were written for it;"
                    " nothing was appended: append again"
                )
            alter = None if done.alter is None else replace(done.alter, table=current)
            unit.writer = writer or unit.writer
            unit.stage(replace(done, alter=alter))

        if self._unit is not None:
            self._unit.own(done)
            carry_out(self._state, self._unit, stage)
            return Staged(**counted(done.counts))
        try:
            return carry_out(self._state, None, stage)
        except OutcomeUnknown:
            raise
        except BaseException:
            discard(planned, done.paths)
            raise
