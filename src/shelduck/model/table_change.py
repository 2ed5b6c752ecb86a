"""Everything that one ALTER TABLE may ask for: of columns, layout of new files and properties."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from shelduck.model.definition import Position
from shelduck.model.keys import Aggregation
from shelduck.model.modify import Restatement
from shelduck.model.partition import PartitionBy, ResetPartitioning, SetPartitioning, Transform
from shelduck.model.properties import PropertyChange
from shelduck.model.schema import Default
from shelduck.model.schema_change import SchemaChange
from shelduck.model.shadow import Conversion
from shelduck.model.sorting import ResetSorting, SetSorting, SortKey
from shelduck.model.types import DataType, Member


@dataclass(frozen=True, slots=True)
class RewriteOlderFiles:
    """Write the files that exist anew, as the table is after the changes beside this one."""

    def __str__(self) -> str:
        return "REWRITE"


LayoutChange = SetPartitioning | ResetPartitioning | SetSorting | ResetSorting
TableChange = SchemaChange | LayoutChange | PropertyChange | Restatement | RewriteOlderFiles
PARTS_OF_CHANGES: tuple[type, ...] = (
    *(*get_args(TableChange), *get_args(DataType), Member, Aggregation),
    *(Position, Default, Conversion, PartitionBy, Transform, SortKey),
)
"""All that changes and conversions are made of."""
