"""What a view is pinned to: the columns that a table had in a snapshot."""

from __future__ import annotations

from dataclasses import dataclass

from shelduck.model.tables.schema import SnapshotId, TableId
from shelduck.model.text.stored import NUMBER, Stored, record

PINNED = "shelduck.pinned"
"""The key of the tag of a pinned view."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A table, and the snapshot whose columns a view shows."""

    table_id: TableId
    snapshot: SnapshotId


STORED_PIN: Stored[Pin] = Stored(
    "pin", record(Pin, table=NUMBER.called("table_id"), snapshot=NUMBER)
)
