"""Adopting files that others wrote."""

from __future__ import annotations

import os
from collections.abc import Sequence

from shelduck.api.appending import land
from shelduck.api.keyed import refuse_rollup
from shelduck.api.results import Result
from shelduck.api.rollup_shape import refresh_by_id
from shelduck.api.table_rows import RowVerbs
from shelduck.catalog.adoptions import live_paths
from shelduck.errors import InvalidRequest
from shelduck.model.change import AppendFiles
from shelduck.model.rollup import rollup_names
from shelduck.model.table import TableVersion
from shelduck.operations.adopt import AdoptRules, adopt_files
from shelduck.operations.done import Counts, Done

Place = str | os.PathLike[str]


class AdoptVerbs(RowVerbs):
    """Files that exist, without a copy."""

    def add_files(
        self,
        paths: Place | Sequence[Place],
        *,
        allow_missing: bool = False,
        ignore_extra_columns: bool = False,
        hive_partitioning: bool | None = None,
    ) -> Result:
        """Make Parquet files that exist part of the table, where they lie; nothing is copied.

        Columns are matched by name, whatever the case, in every file before any is added. From now
        on the files must stay as they are. Shelduck never deletes them, DuckDB may: its
        ``merge_adjacent_files`` and ``cleanup_old_files`` take them for the lake's own.

        Args:
            paths: Files, directories (their ``.parquet`` files at any depth) and patterns with
                ``*``, ``?``, ``[...]`` and ``**``.
            allow_missing: Read columns that a file lacks as their default, or NULL.
            ignore_extra_columns: Leave columns out that the table has not.
            hive_partitioning: Whether ``column=value`` directories give columns: where the names
                are columns (None), never, or in every path.

        Raises:
            InvalidRequest: there is no such file, or files do not fit; all that does not is listed.
            AlreadyExists: a file is part of the table already.
            Conflict: the columns changed meanwhile; nothing was added.
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
        """Commit files that are added; rollups, which were not asked, catch up behind it."""
        result = land(self._state, self._unit, done)
        if self._unit is None and rollup_names(done.table.properties):
            refresh_by_id(self._state, done.table)
        return result

    def _known_paths(self, table: TableVersion) -> set[str]:
        """Return the paths of adopted files that are part of the table, staged ones too."""
        staged = self._unit.workspace.staged_rows(table) if self._unit is not None else None
        known = {f.path for f in staged.files if f is not None} if staged else set()
        if table.id >= 0:
            with self._state.store.read() as connection:
                known |= live_paths(connection, table)
        return known
