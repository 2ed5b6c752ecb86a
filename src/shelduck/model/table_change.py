"""Everything that one ALTER TABLE may ask for: of the columns, and of the layout of new files."""

from __future__ import annotations

from shelduck.model.partition import ResetPartitioning, SetPartitioning
from shelduck.model.schema_change import SchemaChange
from shelduck.model.sorting import ResetSorting, SetSorting

LayoutChange = SetPartitioning | ResetPartitioning | SetSorting | ResetSorting
TableChange = SchemaChange | LayoutChange
