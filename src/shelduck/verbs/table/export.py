"""Showing a table to readers of other formats."""

from __future__ import annotations

from collections.abc import Callable

from shelduck.borders.iceberg.metadata import Published, newest_metadata, show_newest
from shelduck.borders.iceberg.survey import Survey, survey
from shelduck.borders.report import Exported, ExportReport
from shelduck.catalog.read import read as catalog_read
from shelduck.catalog.read.changes import touches
from shelduck.errors import InvalidRequest, missing_extra
from shelduck.operations.read.rows import TableRows
from shelduck.verbs.table.delta import DeltaExportVerbs, delta_report
from shelduck.verbs.table.export_base import Place
from shelduck.work.compaction import refuse_in_transaction


class ExportVerbs(DeltaExportVerbs):
    """Metadata of other formats over the same files; nothing is copied."""

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
        found = self._iceberg(location, format_version)
        if rewrite and not found.report.is_ready:
            found = self._made_ready(found, lambda: self._iceberg(location, format_version))
        found.report.require_ready()
        before = newest_metadata(location, found.table)
        if before is not None and self._is_shown(found, before):
            show_newest(location, before)
            return Exported(before.path, before.snapshot, len(found.rows.files), found.report)
        try:
            from shelduck.borders.iceberg.export import export  # noqa: PLC0415 - optional extra
        except ModuleNotFoundError as error:
            raise InvalidRequest(missing_extra(error.name, "iceberg")) from error
        return export(self._state.spark, found, location, before)

    def _is_shown(self, found: Survey, before: Published) -> bool:
        """Tell whether an export would show the same as the last one."""
        if before.version != found.version:
            return False
        last, now = before.snapshot, found.table.snapshot.id
        with self._state.store.read() as connection:
            logged = catalog_read.logged(connection, last + 1, now)
        return last == now or not touches(logged, found.table, last + 1, now)

    def _iceberg(self, location: str, format_version: int | None) -> Survey:
        rows = self._rows()
        before = newest_metadata(location, rows.table)
        if before is None:
            return survey(rows, format_version)
        if format_version is not None and format_version < before.version:
            raise InvalidRequest(
                f"{location} already has format version {before.version}, and Iceberg cannot go"
                f" back to {format_version}; export to another directory"
            )
        lowest = survey(rows, format_version)
        return lowest if lowest.version >= before.version else survey(rows, before.version)


def _iceberg_report(rows: TableRows) -> ExportReport:
    return survey(rows).report


_REPORTS: dict[str, Callable[[TableRows], ExportReport]] = {
    "delta": delta_report,
    "iceberg": _iceberg_report,
}
