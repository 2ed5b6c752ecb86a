"""What exports to every format share."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Protocol, TypeVar

from shelduck.borders.report import ExportReport
from shelduck.catalog.schema.create import absolute_data_path
from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.files.place import is_below
from shelduck.operations.read.rows import TableRows, table_rows
from shelduck.verbs.table.upkeep import UpkeepVerbs
from shelduck.work.results import Staged
from shelduck.work.table_flush import FlushVerbs

Place = str | os.PathLike[str]


class _Surveyed(Protocol):
    """What the surveys of all formats have."""

    @property
    def report(self) -> ExportReport: ...


Found = TypeVar("Found", bound=_Surveyed)


class ExportBase(FlushVerbs, UpkeepVerbs):
    """A table as exports see it, and where they may write."""

    def _rows(self) -> TableRows:
        return table_rows(self._state.store, self._version(), self._state.layouts)

    def _made_ready(self, found: Found, look: Callable[[], Found]) -> Found:
        """Flush rows and rewrite files as the survey's report asks; return a new survey.

        ``look`` surveys the table. Raises Unsupported if a file cannot be rewritten.
        """
        if found.report.inlined_rows:
            flushed = self.flush_inlined_data()
            if not isinstance(flushed, Staged) and flushed.note:
                raise Unsupported(f"{found.report}\nBut rows stay in the catalog: {flushed.note}")
        # Flushed rows may have outdated columns.
        found = look()
        if found.report.rewrites:
            self._write_anew(found.report)
            found = look()
        return found

    def _write_anew(self, report: ExportReport) -> None:
        """Rewrite the files that the report lists; raises Unsupported if that is impossible."""
        try:
            self.rewrite([f.file_id for f in report.rewrites])
        except Unsupported as error:
            raise Unsupported(
                f"{report}\nBut Shelduck cannot rewrite these files: {error}"
            ) from error

    def _location(self, path: Place) -> str:
        location = absolute_data_path(os.fspath(path))
        inside = self._state.info.data_path
        if is_below(location, inside):
            raise InvalidRequest(
                f"{location} is below the lake's data path {inside}, which only the lake writes"
                " to; export to another directory"
            )
        return location.rstrip("/")
