"""Showing a table to readers of other formats."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from shelduck.catalog.read import read as catalog_read
from shelduck.catalog.read.feed_files import touches
from shelduck.catalog.read.table_facts import column_versions
from shelduck.catalog.schema.lake_schema import absolute_data_path
from shelduck.errors import InvalidRequest, Unsupported, missing_extra
from shelduck.files.verb import FlushVerbs, UpkeepVerbs
from shelduck.formats.delta.delta_export import export_to_delta, published
from shelduck.formats.delta.delta_schema import words_of
from shelduck.formats.delta.delta_survey import DeltaSurvey, survey_for_delta
from shelduck.formats.delta.log import State
from shelduck.formats.iceberg.iceberg_metadata import (
    PublishedMetadata,
    newest_metadata,
    show_newest,
)
from shelduck.formats.iceberg.iceberg_survey import IcebergSurvey, survey_for_iceberg
from shelduck.formats.report import Exported, ExportReport
from shelduck.lake.results import Staged
from shelduck.lake.unit import refuse_in_transaction
from shelduck.model.files.place import is_below
from shelduck.model.shadows.type_changes import earlier_types
from shelduck.model.tables.properties import forgotten_at
from shelduck.read.table_rows import TableRows, table_rows

Place = str | os.PathLike[str]


Found = TypeVar("Found", DeltaSurvey, IcebergSurvey)


class ExportVerbs(FlushVerbs, UpkeepVerbs):
    """Metadata of other formats over the same files; nothing is copied."""

    def _rows(self) -> TableRows:
        if self._state.info.encrypted:
            raise Unsupported(
                f"cannot export {self.name}: readers of other formats do not get the keys of an"
                " encrypted lake; copy the rows to another lake"
            )
        return table_rows(self._state.store, self._version(), self._state.layouts)

    def _surveyed(self, look: Callable[[], Found], *, rewrite: bool) -> Found:
        """Return a survey by ``look``; with ``rewrite``, of flushed rows and rewritten files.

        Raises Unsupported if a file cannot be rewritten.
        """
        found = look()
        if not rewrite or found.report.is_ready:
            return found
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

    def export_delta(self, path: Place, *, rewrite: bool = False) -> Exported:
        """Write a Delta log over the table's files into a directory.

        Point readers at the directory. It shows the newest snapshot of the table; each later export
        to it that changes something adds a version, and readers of older versions are not
        disturbed. The files stay in place and belong to the lake: when its maintenance deletes
        them, older versions become unreadable.

        Args:
            path: A directory or URL outside of the lake's data path.
            rewrite: Before the export, rewrite files that readers would misread, and flush rows
                that the catalog keeps.

        Raises:
            Unsupported: files must be rewritten first, and the message is the report; or Delta has
                no type for any column.
            AlreadyExists: the directory has a Delta table that is not an export of this table, or
                that another writer has changed.
            InvalidRequest: the path is inside the lake.
            Conflict: another export to the directory came first; export again.
        """
        refuse_in_transaction(self._unit, "export_delta()")
        location = self._location(path)
        before = published(location, self._version())
        found = self._surveyed(lambda: self._delta_survey(before), rewrite=rewrite)
        return export_to_delta(self._state.spark, found, location, before)

    def _delta_survey(self, before: State | None) -> DeltaSurvey:
        found = survey_for_delta(self._rows(), None if before is None else before.metadata.mode)
        if not any(found.narrow.values()):
            # No file has an older type, so the history is left out.
            return found
        table = found.table
        versions = self._state.store.ask(column_versions, table.id)
        forgotten = forgotten_at(table.properties)
        types = earlier_types(table.columns, versions, at=table.snapshot.id, forgotten_at=forgotten)
        earlier = {
            leaf: words_of(had, found.types[leaf].type)
            for leaf, had in types.items()
            if leaf in found.types
        }
        return replace(found, earlier=earlier)

    def plan_export(self, format: str) -> ExportReport:  # noqa: A002 - the word for it
        """Return a report of what an export would do, without writing; print it.

        It lists what readers of the other format cannot show or show differently, and each file
        that must be rewritten first, with the reason.

        Args:
            format: ``"delta"`` or ``"iceberg"``.
        """
        plan = _REPORTS.get(format.lower())
        if plan is None:
            known = ", ".join(repr(name) for name in _REPORTS)
            raise InvalidRequest(f"cannot export to {format!r}; use one of {known}")
        if self._unit is not None:
            raise InvalidRequest(
                "plan_export() sees only committed data; run it outside of the transaction"
            )
        return plan(self._rows())

    def export_iceberg(
        self, path: Place, *, rewrite: bool = False, format_version: int | None = None
    ) -> Exported:
        """Write Iceberg metadata over the table's files into a directory.

        Point readers at the directory, or at the metadata file that is returned. The files stay in
        place and belong to the lake: when its maintenance deletes them, older exports become
        unreadable. Later exports to the same directory add snapshots, which have the lake's ids.

        Args:
            path: A directory or URL outside of the lake's data path.
            rewrite: Before the export, rewrite files that readers would misread, and flush rows
                that the catalog keeps.
            format_version: 2 or 3; by default the lowest that shows the whole table.

        Raises:
            Unsupported: files must be rewritten first; the message is the report.
            AlreadyExists: the directory has the metadata of another table or another writer.
            InvalidRequest: the path is inside the lake, or PyIceberg is not installed.
            Conflict: another export to the directory came first; export again.
        """
        refuse_in_transaction(self._unit, "export_iceberg()")
        location = self._location(path)
        found = self._surveyed(lambda: self._iceberg(location, format_version), rewrite=rewrite)
        found.report.require_ready()
        before = newest_metadata(location, found.table)
        if before is not None and self._is_shown(found, before):
            show_newest(location, before)
            return Exported(before.path, before.snapshot, len(found.rows.files), found.report)
        try:
            from shelduck.formats.iceberg.iceberg_export import export_to_iceberg  # noqa: PLC0415 - optional extra
        except ModuleNotFoundError as error:
            raise InvalidRequest(missing_extra(error.name, "iceberg")) from error
        return export_to_iceberg(self._state.spark, found, location, before)

    def _is_shown(self, found: IcebergSurvey, before: PublishedMetadata) -> bool:
        """Tell whether an export would show the same as the last one."""
        if before.version != found.version:
            return False
        last, now = before.snapshot, found.table.snapshot.id
        logged = self._state.store.ask(catalog_read.logged, last + 1, now)
        return last == now or not touches(logged, found.table, last + 1, now)

    def _iceberg(self, location: str, format_version: int | None) -> IcebergSurvey:
        rows = self._rows()
        before = newest_metadata(location, rows.table)
        if before is None:
            return survey_for_iceberg(rows, format_version)
        if format_version is not None and format_version < before.version:
            raise InvalidRequest(
                f"{location} already has format version {before.version}, and Iceberg cannot go"
                f" back to {format_version}; export to another directory"
            )
        lowest = survey_for_iceberg(rows, format_version)
        return (
            lowest if lowest.version >= before.version else survey_for_iceberg(rows, before.version)
        )


_REPORTS: dict[str, Callable[[TableRows], ExportReport]] = {
    "delta": lambda rows: survey_for_delta(rows).report,
    "iceberg": lambda rows: survey_for_iceberg(rows).report,
}
