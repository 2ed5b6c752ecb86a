"""Everything that one ALTER TABLE may ask for: of columns, layout of new files and properties."""

from __future__ import annotations

from shelduck.model.partition import ResetPartitioning, SetPartitioning
from shelduck.model.properties import PropertyChange
from shelduck.model.schema_change import SchemaChange
from shelduck.model.sorting import ResetSorting, SetSorting

LayoutChange = SetPartitioning | ResetPartitioning | SetSorting | ResetSorting
TableChange = SchemaChange | LayoutChange | PropertyChange
