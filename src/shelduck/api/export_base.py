"""What exports to every format share."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Protocol, TypeVar

from shelduck.api.results import Staged
from shelduck.api.table_flush import FlushVerbs
from shelduck.api.table_upkeep import UpkeepVerbs
from shelduck.borders.report import ExportReport
from shelduck.catalog.create import absolute_data_path
from shelduck.errors import InvalidRequest, Unsupported
from shelduck.operations.rows import TableRows, table_rows

Place = str | os.PathLike[str]


class _Surveyed(Protocol):
    """What the surveys of all formats have."""

    @property
    def report(self) -> ExportReport: ...


Found = TypeVar("Found", bound=_Surveyed)


class ExportBase(FlushVerbs, UpkeepVerbs):
    """A table as exports look at it, and where they may write."""

    def _rows(self) -> TableRows:
        return table_rows(self._state.store, self._version(), self._state.layouts)

    def _made_ready(self, found: Found, look: Callable[[], Found]) -> Found:
        """Flush rows and write files anew as the survey's report asks; return what is there then.

        ``look`` surveys the table; Unsupported when a file cannot be written anew.
        """
        if found.report.inlined_rows:
            flushed = self.flush_inlined_data()
            if not isinstance(flushed, Staged) and flushed.note:
                raise Unsupported(
                    f"{found.report}\nBut its rows stay in the catalog: {flushed.note}"
                )
        # What was flushed may be in columns of older days.
        found = look()
        if found.report.rewrites:
            self._write_anew(found.report)
            found = look()
        return found

    def _write_anew(self, report: ExportReport) -> None:
        """Write the files anew that the report names; Unsupported when that cannot be done."""
        try:
            self.rewrite([f.file_id for f in report.rewrites])
        except Unsupported as error:
            raise Unsupported(
                f"{report}\nBut Shelduck cannot write these files anew: {error}"
            ) from error

    def _location(self, path: Place) -> str:
        location = absolute_data_path(os.fspath(path))
        inside = self._state.info.data_path
        if location.startswith(inside):
            raise InvalidRequest(
                f"{location} lies below the lake's data path {inside}, which only the lake writes"
                " to; export to another directory"
            )
        return location.rstrip("/")
