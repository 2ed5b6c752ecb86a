"""A table of a lake: read it, change its rows, change its shape."""

from __future__ import annotations

from shelduck.catalog.read import read as catalog_read
from shelduck.model.tables.schema import Schema
from shelduck.model.tables.table import Snapshot
from shelduck.spark.session import StructType
from shelduck.spark.types import struct_type
from shelduck.verbs.table.adoption import AdoptVerbs
from shelduck.verbs.table.edits import EditVerbs
from shelduck.verbs.table.export import ExportVerbs
from shelduck.verbs.table.keys import KeyVerbs
from shelduck.verbs.table.metadata_tables import MetadataVerbs
from shelduck.verbs.table.restore import RestoreVerbs
from shelduck.verbs.table.shape import ShapeVerbs
from shelduck.verbs.table.streams import StreamVerbs
from shelduck.verbs.table.upkeep import UpkeepVerbs
from shelduck.verbs.table.widening import WideningVerbs
from shelduck.work.table_changes import ChangeVerbs


class Table(
    EditVerbs,
    ExportVerbs,
    AdoptVerbs,
    ChangeVerbs,
    KeyVerbs,
    MetadataVerbs,
    RestoreVerbs,
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

    def history(self) -> list[Snapshot]:
        """Return the snapshots that changed this table, newest first."""
        table = self._version()
        with self._state.store.read() as connection:
            return catalog_read.table_history(connection, table)
