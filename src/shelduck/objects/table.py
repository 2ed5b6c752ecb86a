"""A table of a lake: read it, change its rows, change its shape."""

from __future__ import annotations

from shelduck.alter.verb import RollupVerbs, ShapeVerbs
from shelduck.catalog.read import read as catalog_read
from shelduck.engine.session import StructType
from shelduck.engine.types import struct_type
from shelduck.files.verb import UpkeepVerbs
from shelduck.formats.adopt import AdoptVerbs
from shelduck.formats.export_verbs import ExportVerbs
from shelduck.jobs.widening import WideningVerbs
from shelduck.keys.verb import KeyVerbs
from shelduck.lake.results import Snapshots, require_limit
from shelduck.lake.table_changes import ChangeVerbs
from shelduck.model.tables.schema import Schema
from shelduck.model.text.names import html_table, html_text, quote_name
from shelduck.model.types.data_types import type_text
from shelduck.objects.metadata_tables import MetadataVerbs
from shelduck.objects.restore import RestoreVerbs
from shelduck.streams.verb import StreamVerbs
from shelduck.write.edit_verbs import EditVerbs


class Table(
    EditVerbs,
    ExportVerbs,
    AdoptVerbs,
    ChangeVerbs,
    KeyVerbs,
    MetadataVerbs,
    RestoreVerbs,
    RollupVerbs,
    ShapeVerbs,
    StreamVerbs,
    UpkeepVerbs,
    WideningVerbs,
):
    """One table by name.

    Every call uses the newest snapshot (inside a transaction, its snapshot and its own changes), so
    an object never becomes stale. Calls that write either commit one snapshot and
    return `Committed`, or, inside a transaction, return `Staged`.
    """

    @property
    def schema(self) -> StructType:
        """The columns as Spark knows them."""
        return struct_type(self._version().columns)

    @property
    def columns(self) -> Schema:
        """The columns with their ids, DuckLake types and defaults."""
        return self._version().columns

    def history(self, *, limit: int | None = None, before: int | None = None) -> Snapshots:
        """Return the snapshots that changed this table, newest first.

        Args:
            limit: At most so many.
            before: Only older ones than this snapshot, such as the last one of the page before.
        """
        require_limit(limit)
        table = self._version()
        found = self._state.store.ask(catalog_read.table_history, table, limit=limit, before=before)
        return Snapshots(found)

    def _repr_html_(self) -> str:
        """Return the columns; the name alone if the catalog does not answer."""
        try:
            table = self._version()
        except Exception:  # noqa: BLE001 - a notebook shows the object, not its error
            return html_text(repr(self))
        rows = [
            (
                *(f.id, quote_name(f.name), type_text(f.type), "yes" if f.nullable else "no"),
                f.default.text if f.default else None,
                table.comments.get(f.id),
            )
            for f in table.columns
        ]
        names = ("id", "column", "type", "nullable", "default", "comment")
        return html_table(names, rows, table.full_name)
