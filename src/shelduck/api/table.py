"""A table of a lake: read it, change its rows, change its shape."""

from __future__ import annotations

from shelduck.api.metadata_tables import MetadataVerbs
from shelduck.api.table_adoption import AdoptVerbs
from shelduck.api.table_changes import ChangeVerbs
from shelduck.api.table_edits import EditVerbs
from shelduck.api.table_export import ExportVerbs
from shelduck.api.table_keys import KeyVerbs
from shelduck.api.table_restore import RestoreVerbs
from shelduck.api.table_shape import ShapeVerbs
from shelduck.api.table_streams import StreamVerbs
from shelduck.api.table_upkeep import UpkeepVerbs
from shelduck.api.table_widening import WideningVerbs
from shelduck.catalog import read as catalog_read
from shelduck.model.schema import Schema
from shelduck.model.table import Snapshot
from shelduck.spark.session import StructType
from shelduck.spark.types import struct_type


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

    Every call looks at the newest snapshot (inside a transaction: at the transaction's, and at what
    it has written), so an object never grows stale. Calls that write either commit one snapshot and
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
