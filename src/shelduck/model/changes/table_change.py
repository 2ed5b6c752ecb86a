"""Everything that one ALTER TABLE may change: columns, arrangement of new files, properties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shelduck.model.changes.modify import Restatement
from shelduck.model.changes.schema_change import SchemaChange
from shelduck.model.tables.partition import ResetPartitioning, SetPartitioning
from shelduck.model.tables.properties import PropertyChange
from shelduck.model.tables.sorting import ResetSorting, SetSorting


@dataclass(frozen=True, slots=True)
class RewriteOlderFiles:
    """Rewrite the existing files in the table's layout after the other changes of the statement."""

    def __str__(self) -> str:
        return "REWRITE"


ArrangementChange = SetPartitioning | ResetPartitioning | SetSorting | ResetSorting
TableChange = SchemaChange | ArrangementChange | PropertyChange | Restatement | RewriteOlderFiles


def names_rollup(changes: Sequence[TableChange]) -> bool:
    """Return whether one of the changes is for a rollup."""
    return any(getattr(change, "rollup", None) is not None for change in changes)
