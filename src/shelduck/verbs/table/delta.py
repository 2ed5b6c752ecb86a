"""Showing a table to readers of Delta."""

from __future__ import annotations

from dataclasses import replace

from shelduck.borders.delta.export import Published, export, published
from shelduck.borders.delta.survey import Survey, survey
from shelduck.borders.delta.type_changes import words_of
from shelduck.borders.report import Exported, ExportReport
from shelduck.catalog.read.upkeep import column_versions
from shelduck.model.tables.properties import forgotten_at
from shelduck.operations.read.rows import TableRows
from shelduck.planning.type_changes import earlier_types
from shelduck.verbs.table.export_base import ExportBase, Place
from shelduck.work.compaction import refuse_in_transaction


class DeltaExportVerbs(ExportBase):
    """A Delta log over the same files; nothing is copied."""

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
        found = self._delta_survey(before)
        if rewrite and not found.report.is_ready:
            found = self._made_ready(found, lambda: self._delta_survey(before))
        return export(self._state.spark, found, location, before)

    def _delta_survey(self, before: Published | None) -> Survey:
        found = survey(self._rows(), None if before is None else before.mode)
        if not any(found.narrow.values()):
            # No file has an older type, so the history is not told.
            return found
        table = found.table
        with self._state.store.read() as connection:
            versions = column_versions(connection, table.id)
        forgotten = forgotten_at(table.properties)
        types = earlier_types(table.columns, versions, at=table.snapshot.id, forgotten_at=forgotten)
        earlier = {
            leaf: words_of(had, found.types[leaf].type)
            for leaf, had in types.items()
            if leaf in found.types
        }
        return replace(found, earlier=earlier)


def delta_report(rows: TableRows) -> ExportReport:
    """Return the report of an export to Delta."""
    return survey(rows).report
