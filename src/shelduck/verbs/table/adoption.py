"""Adopting files that others wrote."""

from __future__ import annotations

import os
from collections.abc import Sequence

from shelduck.catalog.commit.adoptions import live_paths
from shelduck.errors import InvalidRequest
from shelduck.model.changes.change import AppendFiles
from shelduck.model.tables.rollup import rollup_names
from shelduck.model.tables.table import TableVersion
from shelduck.operations.done import Counts, Done
from shelduck.operations.upkeep.adopt import AdoptRules, adopt_files
from shelduck.rollups.shape import refresh_by_id
from shelduck.verbs.table.rows import RowVerbs
from shelduck.work.results import Result
from shelduck.work.rows.appending import land
from shelduck.work.rows.keyed import refuse_rollup

Place = str | os.PathLike[str]


class AdoptVerbs(RowVerbs):
    """Adopting existing files without a copy."""

    def add_files(
        self,
        paths: Place | Sequence[Place],
        *,
        allow_missing: bool = False,
        ignore_extra_columns: bool = False,
        hive_partitioning: bool | None = None,
    ) -> Result:
        """Make existing Parquet files part of the table, in place; nothing is copied.

        Columns are matched by name, ignoring case, in every file before any is added. From then on
        the files must not change. Shelduck never deletes them, but DuckDB may: its
        ``merge_adjacent_files`` and ``cleanup_old_files`` treat them as the lake's own.

        Args:
            paths: Files, directories (their ``.parquet`` files at any depth) and patterns with
                ``*``, ``?``, ``[...]`` and ``**``.
            allow_missing: Read columns that a file lacks as their default, or NULL.
            ignore_extra_columns: Ignore columns that the table does not have.
            hive_partitioning: Whether ``column=value`` directories are columns: if the names are
                columns of the table (None), never (False), or in every path (True).

        Raises:
            InvalidRequest: a file does not exist or does not fit; all of these are listed.
            AlreadyExists: a file is already part of the table.
            Conflict: another commit changed the columns; nothing was added.
        """
        places = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        if not places:
            raise InvalidRequest(f"add_files to {self.name} needs a file, directory or pattern")
        rules = AdoptRules(allow_missing, ignore_extra_columns, hive_partitioning)
        planned = self._version()
        refuse_rollup(planned)
        files = adopt_files(
            self._state.spark,
            planned,
            [os.fspath(place) for place in places],
            rules,
            known=self._known_paths(planned),
            own_path=self._state.info.data_path,
            show_progress=self._state.show_progress,
        )
        if not files:
            return land(self._state, self._unit, Done(planned))
        counts = Counts(
            inserted=sum(f.record_count for f in files),
            files=len(files),
            bytes=sum(f.file_size_bytes for f in files),
        )
        return self._followed(Done(planned, (AppendFiles(planned.id, files, planned),), (), counts))

    def _followed(self, done: Done) -> Result:
        """Commit added files; rollups, which the commit does not update, catch up afterwards."""
        result = land(self._state, self._unit, done)
        if self._unit is None and rollup_names(done.table):
            refresh_by_id(self._state, done.table)
        return result

    def _known_paths(self, table: TableVersion) -> set[str]:
        """Return the paths of adopted files that are part of the table, including staged ones."""
        staged = self._unit.workspace.staged_rows(table) if self._unit is not None else None
        known = {f.path for f in staged.files if f is not None} if staged else set()
        if table.id >= 0:
            with self._state.store.read() as connection:
                known |= live_paths(connection, table)
        return known
