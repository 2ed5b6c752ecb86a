"""Everything that one ALTER TABLE may ask for: of columns, layout of new files and properties."""

from __future__ import annotations

from dataclasses import dataclass

from shelduck.model.definition import Position
from shelduck.model.modify import ModifyColumn, OrderColumns, Restatement
from shelduck.model.partition import PartitionBy, ResetPartitioning, SetPartitioning, Transform
from shelduck.model.properties import PropertyChange, SetProperties, UnsetProperties
from shelduck.model.schema import Default
from shelduck.model.schema_change import (
    AddColumn,
    ChangeType,
    DropColumn,
    MoveColumn,
    RenameColumn,
    SchemaChange,
    SetComment,
    SetDefault,
    SetNullable,
)
from shelduck.model.shadow import Conversion
from shelduck.model.sorting import ResetSorting, SetSorting, SortKey
from shelduck.model.types import Decimal, List, Map, Member, Primitive, Struct


@dataclass(frozen=True, slots=True)
class RewriteOlderFiles:
    """Write the files that exist anew, as the table is after the changes beside this one."""

    def __str__(self) -> str:
        return "REWRITE"


LayoutChange = SetPartitioning | ResetPartitioning | SetSorting | ResetSorting
TableChange = SchemaChange | LayoutChange | PropertyChange | Restatement | RewriteOlderFiles
PARTS_OF_CHANGES: tuple[type, ...] = (
    *(AddColumn, DropColumn, RenameColumn, ChangeType, SetDefault, SetNullable, MoveColumn),
    *(SetComment, ModifyColumn, OrderColumns, Position, Default, Conversion),
    *(SetPartitioning, ResetPartitioning, PartitionBy, Transform),
    *(SetSorting, ResetSorting, SortKey, SetProperties, UnsetProperties, RewriteOlderFiles),
    *(Primitive, Decimal, Struct, List, Map, Member),
)
"""All that changes and conversions are made of."""
