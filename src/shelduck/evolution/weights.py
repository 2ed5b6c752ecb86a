"""Which operation is light and which is heavy, and why: the table of facts.

A light operation is one short commit of metadata, however large the table is. A heavy operation
must change bytes, which a job does. Types have a separate table, `shelduck.model.types.promotions`.
"""

from __future__ import annotations

from dataclasses import dataclass

from shelduck.model.changes.modify import ArrangementChange, RewriteOlderFiles
from shelduck.model.changes.schema_change import (
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
from shelduck.model.tables.partition import (
    ResetPartitioning,
    ResetSorting,
    SetPartitioning,
    SetSorting,
)
from shelduck.model.tables.properties import SetProperties, UnsetProperties
from shelduck.model.tables.schema import Field
from shelduck.model.types.promotions import Verdict, promotion
from shelduck.planning.shadows import verdict_on


@dataclass(frozen=True, slots=True)
class Weight:
    """Whether a change needs new bytes, and the reason in words for people."""

    is_heavy: bool
    reason: str

    def __str__(self) -> str:
        return "heavy" if self.is_heavy else "light"


_BY_ID = Weight(False, "metadata only: columns are found by id")
_NEW_FILES = Weight(False, "applies to new files; existing files stay as they are")
_PROPERTY = Weight(False, "a property of the table")
_NOT_NULL = Weight(False, "metadata only, after a check that no row holds NULL")

REFOLDING = Weight(True, "rows that differ only in this key become one; a job combines them")

REMAKING = Weight(
    True,
    "its types, values or rows would change; a job rebuilds it for the same snapshot",
)

WEIGHTS: dict[type, Weight] = {
    AddColumn: Weight(False, "files without the new id are read with its initial default"),
    DropColumn: _BY_ID,
    RenameColumn: _BY_ID,
    MoveColumn: _BY_ID,
    SetComment: _BY_ID,
    SetDefault: _BY_ID,
    SetNullable: _BY_ID,
    SetPartitioning: _NEW_FILES,
    ResetPartitioning: _NEW_FILES,
    SetSorting: _NEW_FILES,
    ResetSorting: _NEW_FILES,
    SetProperties: _PROPERTY,
    UnsetProperties: _PROPERTY,
    RewriteOlderFiles: Weight(True, "a job rewrites the existing files in the layout of the table"),
}
"""All changes except type changes, by their class."""

Simple = SchemaChange | ArrangementChange | SetProperties | UnsetProperties | RewriteOlderFiles


def weight_of(change: Simple) -> Weight:
    """Return the weight of a change other than a type change."""
    if isinstance(change, SetNullable) and not change.nullable:
        return _NOT_NULL
    return WEIGHTS[type(change)]


def weight_of_conversion(change: ChangeType, column: Field) -> Weight | None:
    """Return the weight of a type change, None if old values may stay as they are.

    ``column`` is the whole column that changes, or that contains the change.
    """
    if change.using is not None:
        return converting("an expression computes the values")
    found = verdict_on(column, change)
    return converting(found.reason) if found.verdict is Verdict.CONVERT else None


def converting(why: str) -> Weight:
    """Return the weight of a conversion by a job."""
    return Weight(
        True,
        f"{why}; a job rewrites the files, for all converted columns at once, while the table"
        " stays in use",
    )


def weight_of_promotion(old: Field, new: Field) -> Weight:
    """Return what happens to the values, by the table of facts about promotions."""
    known = {leaf.id: leaf.type for leaf in old.leaves()}
    found = (promotion(known[leaf.id], leaf.type) for leaf in new.leaves() if leaf.id in known)
    told = dict.fromkeys(
        f"{one.verdict.value}: {one.reason}" for one in found if one.verdict is not Verdict.SAME
    )
    return Weight(False, "; ".join(told) or "no type changes")
