"""Verbs over the rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from shelduck.api.answering import Reading, read_any
from shelduck.api.appending import Manner, append
from shelduck.api.handle import TableHandle
from shelduck.api.results import Result
from shelduck.errors import InvalidRequest
from shelduck.spark.session import DataFrame, StructType


class RowVerbs(TableHandle):
    """Reading and writing rows."""

    def read(
        self,
        *,
        version: int | None = None,
        timestamp: str | datetime | None = None,
        columns: Sequence[str] | None = None,
        schema: str = "snapshot",
        expect: StructType | str | None = None,
        adapt: bool = False,
        rollups: bool = True,
    ) -> DataFrame:
        """Return the rows as a DataFrame, with the columns that the table had at that snapshot.

        The rows, columns and names stay those of one snapshot whatever happens to the table, as
        long as its files are there; what was cleaned up fails with Spark's error that names the
        file. Every column is nullable. Queries of the newest rows are answered from a rollup where
        that is less work.

        Args:
            version: A snapshot id, as in `Committed.snapshot` and `history`.
            timestamp: The last snapshot at or before it; text without an offset is UTC.
            columns: The top-level columns to read, all when None.
            schema: ``"current"`` reads the rows of an older snapshot with the columns of today:
                under their new names and types, without those that were dropped, and with those
                that were added as their initial default.
            expect: The columns that the caller reads, as a StructType or as Spark's DDL text:
                exactly they are returned, in this order. What differs from the table in name, type
                or nullability is told in one error.
            adapt: With ``expect``, promote types where every value stays the same, take what is
                NOT NULL for nullable, and read columns that the table has not as their default
                (``CURRENT_DEFAULT`` in the field's metadata) or NULL.
            rollups: Whether a rollup may answer; in SQL the hint ``/*+ NO_ROLLUP */`` says no.

        Raises:
            NotFound: the table, a column or the snapshot does not exist.
            InvalidRequest: both ``version`` and ``timestamp`` are given; or the table is not what
                is expected of it.
            Unsupported: a file or type cannot be read right, or a column of today was converted
                since that snapshot; the message names the way out.
        """
        what = Reading(version, timestamp, columns, schema, expect, adapt, rollups)
        return read_any(self._state, self._view(), self.name, what)

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
            Conflict: while rows were written, a column of theirs was dropped, or they came not to
                fit: the message has both schemas. Other changes of the table are followed.
            OutcomeUnknown: look for the rows before appending them again.
        """
        how = Manner(by_position, merge_schema, delete_sign)
        return self._append(df, how)

    def append_values(self, df: DataFrame, *, by_position: bool = False) -> Result:
        """Append the rows of a VALUES list: Spark cuts even two into tasks, each with a file."""
        return self._append(df, Manner(by_position, in_one_task=True))

    def _append(self, df: DataFrame, how: Manner) -> Result:
        self._require_frame(df, "append to")
        if how.merge_schema and how.by_position:
            raise InvalidRequest(
                f"append to {self.name}: a schema is merged by names of columns, not by_position"
            )
        return append(self._state, self._unit, self.name, df, how)
