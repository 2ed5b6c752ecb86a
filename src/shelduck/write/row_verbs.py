"""Verbs that read rows of a table and append some: which version, which columns, in which form."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from shelduck.engine.session import DataFrame, SparkSession, StructType
from shelduck.errors import InvalidRequest
from shelduck.lake.lookup import TableHandle, as_of_today, rows_of, version_at
from shelduck.lake.results import Result, TableName
from shelduck.lake.unit import UnitOfWork
from shelduck.model.changes.evolution import evolution_of
from shelduck.read.scan.expect import as_expected, expected_columns, expected_members
from shelduck.read.scan.matching import origins_of, with_virtual
from shelduck.read.scan.scan_frames import Origin
from shelduck.read.table_rows import TableRows, table_rows
from shelduck.write.appending import Manner, append
from shelduck.write.hooks import hooks_of
from shelduck.write.schema_evolution import require_by_name


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

        The DataFrame stays on one snapshot whatever happens to the table, as long as the files
        exist; if they were cleaned up, CorruptLake names the missing file. Every column is
        nullable. Queries of the newest rows are answered from a rollup if that is less work.

        Args:
            version: A snapshot id, as in `Committed.snapshot` and `history`.
            timestamp: The last snapshot at or before it; without an offset, in the session's time
                zone.
            columns: The top-level columns to read; by default all.
            schema: ``"current"`` reads the rows of an older snapshot with the current columns:
                under their new names and types, without dropped ones, and with added ones as their
                initial default.
            expect: The columns that the caller expects, as a StructType or as Spark's DDL text.
                Exactly these are returned, in this order. All differences from the table in name,
                type or nullability are listed in one error.
            adapt: With ``expect``, promote types if every value stays the same, accept NOT NULL
                columns as nullable, and read columns that the table lacks as their default
                (``CURRENT_DEFAULT`` in the field's metadata) or NULL.
            rollups: Whether a rollup may answer; in SQL, the hint ``/*+ NO_ROLLUP */`` forbids it.

        Raises:
            NotFound: the table, a column or the snapshot does not exist.
            InvalidRequest: both ``version`` and ``timestamp`` are given, or the table does not have
                the expected columns.
            Unsupported: a file or type cannot be read correctly, or a current column was converted
                after that snapshot; the message says what to do.
        """
        what = Reading(version, timestamp, columns, schema, expect, adapt, rollups)
        return read_any(self._view(), self.name, what)

    def append(
        self,
        df: DataFrame,
        *,
        by_position: bool = False,
        evolve: str | Collection[str] | None = None,
        rescue: str | None = None,
        merge_schema: bool = False,
        delete_sign: str | None = None,
        expect: StructType | str | None = None,
    ) -> Result:
        """Append rows by column name; missing columns get their default, extra ones are refused.

        In a UNIQUE or AGGREGATE table, rows replace existing rows of the same key or are combined
        with them; of several in ``df``, the last one in its order counts as the last.

        Args:
            df: The rows. docs/types.md lists the types that a column accepts; no value is truncated
                or rounded.
            by_position: Match columns by position instead; struct fields always match by name.
            evolve: What the rows may change in the columns of the table, in the same snapshot:
                ``"add"`` adds columns and struct fields that the table does not have, ``"widen"``
                makes types wider, ``"all"`` does both. A list combines words; by default, and with
                ``"none"``, the columns stay. See docs/guides/evolving-loads.md.
            rescue: A column for values that do not fit: for each row a JSON object of these values
                under their names, NULL if all fit. It is added if the table does not have it.
            merge_schema: Spark's name for ``evolve="all"``.
            delete_sign: For a UNIQUE table, the column of ``df`` that is true if the row of that
                key is to be deleted. A column ``__DORIS_DELETE_SIGN__`` is used automatically.
            expect: The columns that the writer was built for, as in `read`. The rows are committed
                only if the table has them then: wider types are accepted, and columns that nobody
                must give.

        Raises:
            InvalidRequest: columns or types do not fit, found before any work; or a value does not
                (NULL in a NOT NULL column, overflow), found while writing. The table is unchanged.
                With ``evolve``, the message has the ALTER TABLE that would help, and its cost.
            Unsupported: the table has a type, partition key or sort order that Spark cannot write.
            Conflict: while rows were written, one of their columns was dropped, or they no longer
                fit: the message has both schemas. Rows are adapted to other changes of the table.
            OutcomeUnknown: look for the rows before appending them again.
        """
        self._require_frame(df, "append to")
        expects = expected_members(expect)
        evolution = evolution_of(evolve, rescue, merges=merge_schema, expects=expects)
        require_by_name(f"append to {self.name}", evolution, by_position=by_position)
        how = Manner(by_position, evolution, delete_sign)
        return append(self._state, self._unit, self.name, df, how)


@dataclass(frozen=True, slots=True)
class Reading:
    """What to read of a table, and how; see `Table.read`."""

    version: int | None = None
    timestamp: str | datetime | None = None
    columns: Sequence[str] | None = None
    schema: str = "snapshot"
    expect: StructType | str | None = None
    adapt: bool = False
    rollups: bool = True
    virtual: Collection[str] = ()


def read_any(unit: UnitOfWork, name: TableName, what: Reading) -> DataFrame:
    """Return a table's rows as the unit sees them, or as of a snapshot.

    Queries of what the unit sees may be answered otherwise, as `Hooks.chooser` says.
    """
    if what.schema not in ("snapshot", "current"):
        raise InvalidRequest(f"schema must be 'snapshot' or 'current', not {what.schema!r}")
    choose = None
    if what.version is None and what.timestamp is None:
        rows = rows_of(unit, name, needs_all=False)
        if what.rollups:
            choosers = (hooks.chooser for hooks in hooks_of(rows.table) if hooks.chooser)
            choose = next((chooser(unit, rows) for chooser in choosers), None)
    else:
        table = version_at(unit.state, name, what.version, what.timestamp)
        if what.schema == "current":
            table = as_of_today(unit, table)
        rows = table_rows(unit.state.store, table, unit.state.layouts, lists=unit.state.lists)
    known = {name.lower() for name in rows.table.columns.names}
    virtual = [name for name in what.virtual if name not in known]
    if virtual:
        return virtual_frame(unit.state.spark, rows, virtual)
    if what.expect is None:
        return rows.frame(unit.state.spark, what.columns, choose=choose)
    if what.columns is not None:
        raise InvalidRequest(
            "pass either expect or columns, not both: expect already lists the columns"
        )
    return as_expected(
        lambda columns: rows.frame(unit.state.spark, columns, choose=choose),
        rows.table,
        expected_columns(what.expect),
        adapt=what.adapt,
    )


def virtual_frame(spark: SparkSession, rows: TableRows, names: Sequence[str]) -> DataFrame:
    """Return the rows of a table with some of its virtual columns."""
    origins = origins_of(names)
    frame = rows.frame(spark, origins=origins)
    paths = {file.id: file.path for file in rows.files if Origin.FILE_ID in origins}
    return with_virtual(frame, rows.table.columns.names, names, paths)
