"""Rows that a branch deleted in files that it shares with its source, told by positions alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyarrow import compute

from shelduck.lake.lookup import rows_of
from shelduck.lake.results import TableName
from shelduck.lake.unit import UnitOfWork
from shelduck.model.tables.table_version import TableVersion
from shelduck.read.table_rows import table_rows
from shelduck.write.changes.edits import deleted
from shelduck.write.deletes.delete_files import write_delete_files
from shelduck.write.deletes.position_files import FILE, POSITION, collected_positions
from shelduck.write.hooks import stage_rows

_NONE = pa.array([], pa.int64())


@dataclass(frozen=True, slots=True)
class TableFiles:
    """A table at one snapshot, and the ids of some of its files by path."""

    table: TableVersion
    files: Mapping[str, int]

    def positions(self, unit: UnitOfWork) -> dict[str, pa.Array]:
        """Return the deleted positions of the files by path."""
        state = unit.state
        rows = table_rows(state.store, self.table, state.layouts)
        known = rows.files_of(self.files.values())
        some = [file for file in known.values() if file.delete_file is not None]
        found = collected_positions(state.spark, some, self.table) if some else {}
        return {path: found.get(number, _NONE) for path, number in self.files.items()}


def deleted_by_branch(
    unit: UnitOfWork, ours: Sequence[TableFiles], theirs: Sequence[TableFiles]
) -> pa.Table | None:
    """Return positions that the branch deleted in files of the source; None if both deleted one.

    Each side is its state at the base, and now. The columns are as `write_delete_files` takes them.
    """
    gone = []
    for side in (ours, theirs):
        then, now = (state.positions(unit) for state in side)
        gone.append({path: _without(now[path], then[path]) for path in now})
    if any(len(found) > len(_without(found, gone[0][path])) for path, found in gone[1].items()):
        return None
    files = ours[1].files
    numbers = [pa.repeat(pa.scalar(files[p], pa.int64()), len(f)) for p, f in gone[1].items()]
    columns = [pa.concat_arrays([_NONE, *each]) for each in (numbers, gone[1].values())]
    return pa.table(columns, names=[FILE, POSITION])


def _without(some: pa.Array, others: pa.Array) -> pa.Array:
    return some.filter(compute.invert(compute.is_in(some, others)))


def delete_at(unit: UnitOfWork, table: TableVersion, positions: pa.Table) -> None:
    """Stage that rows leave a table, by their positions in files."""
    rows = rows_of(unit, TableName.of(table), writes=True, deletes=True)
    register = unit.writer.register
    dead = write_delete_files(unit.state.spark, positions, rows, rows.table, register=register)
    stage_rows(unit, deleted(rows, dead, ()))
