"""Showing a table to readers of other formats."""

from __future__ import annotations

from collections.abc import Callable

from shelduck.api.compaction import refuse_in_transaction
from shelduck.api.export_base import Place
from shelduck.api.table_delta import DeltaExportVerbs, delta_report
from shelduck.borders.iceberg.metadata import Published, newest_metadata, show_newest
from shelduck.borders.iceberg.survey import Survey, survey
from shelduck.borders.report import Exported, ExportReport
from shelduck.catalog import read as catalog_read
from shelduck.catalog.read_changes import touches
from shelduck.errors import InvalidRequest
from shelduck.operations.rows import TableRows


class ExportVerbs(DeltaExportVerbs):
    """Metadata of other formats over the same files; nothing is copied."""

    def plan_export(self, format: str) -> ExportReport:  # noqa: A002 - the word for it
        """Return what an export meets, without writing: print it.

        It names what readers of the other format cannot show or show otherwise, and each file that
        must be written anew first, with the reason.

        Args:
            format: ``"delta"`` or ``"iceberg"``.
        """
        plan = _REPORTS.get(format.lower())
        if plan is None:
            known = ", ".join(repr(name) for name in _REPORTS)
            raise InvalidRequest(f"there is no export to {format!r}; there is {known}")
        if self._unit is not None:
            raise InvalidRequest(
                "plan_export() looks at what is committed; run it outside of the transaction"
            )
        return plan(self._rows())

    def export_iceberg(
        self, path: Place, *, rewrite: bool = False, format_version: int | None = None
    ) -> Exported:
        """Write Iceberg metadata over the table's files into a directory.

        Readers are pointed at the directory, or at the metadata file that is returned. The files
        stay where they are and stay the lake's: what its maintenance deletes, readers miss. Later
        exports to the same directory add snapshots, which have the lake's ids.

        Args:
            path: A directory or URL outside of the lake's data path.
            rewrite: Write files anew that readers would misread, and flush rows that the catalog
                keeps, before the export.
            format_version: 2 or 3; the lowest that shows the whole table when None.

        Raises:
            Unsupported: files must be written anew first; the message is the report.
            AlreadyExists: the directory has the metadata of another table or another writer.
            InvalidRequest: the path lies inside the lake, or PyIceberg is not installed.
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
            raise InvalidRequest(
                f"{error.name!r} is not installed: pip install 'shelduck[iceberg]'"
            ) from error
        return export(self._state.spark, found, location, before)

    def _is_shown(self, found: Survey, before: Published) -> bool:
        """Tell whether an export would show what was exported before."""
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
                f"{location} has version {before.version} already, and Iceberg never goes back to"
                f" {format_version}; export to another directory"
            )
        lowest = survey(rows, format_version)
        return lowest if lowest.version >= before.version else survey(rows, before.version)


def _iceberg_report(rows: TableRows) -> ExportReport:
    return survey(rows).report


_REPORTS: dict[str, Callable[[TableRows], ExportReport]] = {
    "delta": delta_report,
    "iceberg": _iceberg_report,
}
