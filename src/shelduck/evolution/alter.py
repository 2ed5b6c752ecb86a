"""ALTER TABLE: what the changes amount to, and what they would cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from shelduck.errors import InvalidRequest
from shelduck.evolution.layout import (
    LayoutDraft,
    apply_layout,
    follow,
    layout_of,
    refuse_lost_keys,
)
from shelduck.model.change import AlterTable
from shelduck.model.promotions import Verdict, promotion
from shelduck.model.properties import PropertyChange, apply_properties
from shelduck.model.schema import Field, FieldId
from shelduck.model.schema_change import (
    AddColumn,
    ChangeType,
    SchemaDraft,
    SetNullable,
    apply_changes,
)
from shelduck.model.table import TableVersion
from shelduck.model.table_change import LayoutChange, TableChange


@dataclass(frozen=True, slots=True)
class AlterStep:
    """One schema change of a plan: its text, why it is light, and what it touches."""

    change: str
    weight: str
    reason: str
    files_to_rewrite: int = 0
    bytes_to_rewrite: int = 0


@dataclass(frozen=True, slots=True)
class AlterPlan:
    """What an ALTER would do; printing it shows every step.

    ``change`` is None when nothing changes. ``checks_null`` are columns whose rows have to be shown
    to hold no NULL before the commit.
    """

    table: str
    steps: tuple[AlterStep, ...]
    change: AlterTable | None
    checks_null: frozenset[FieldId]

    def __str__(self) -> str:
        lines = [f"ALTER TABLE {self.table}: {len(self.steps)} change(s) in one snapshot"]
        for number, step in enumerate(self.steps, 1):
            lines.append(f"  {number}. {step.change}")
            lines.append(f"     {step.weight}: {step.reason}")
            lines.append(
                f"     files to rewrite: {step.files_to_rewrite}, bytes: {step.bytes_to_rewrite}"
            )
        return "\n".join(lines)


def plan_alter(table: TableVersion, changes: Sequence[TableChange]) -> AlterPlan:
    """Return the plan of these changes, in order, on that table version; no I/O.

    Raises what `apply_changes` and `apply_layout` raise, and Unsupported for a change that would
    leave the table partitioned or sorted by a column that is gone, before anything happened.
    """
    name = table.full_name
    if not changes:
        raise InvalidRequest(f"ALTER TABLE {name} names no change")
    before = SchemaDraft(
        table.columns, table.max_column_id + 1, dict(table.comments), table.properties
    )
    after, layout = before, layout_of(table)
    steps: list[AlterStep] = []
    for change in changes:
        known = after
        if isinstance(change, LayoutChange):
            layout = apply_layout(layout, change, after.columns, name)
        elif isinstance(change, PropertyChange):
            after = replace(after, properties=apply_properties(after.properties, change, name))
        else:
            after = apply_changes(after, [change], name)
            layout = follow(layout, change, known.columns)
        steps.append(AlterStep(str(change), "light", _reason(change, known, after)))
    refuse_lost_keys(table, layout, after.columns)
    return AlterPlan(name, tuple(steps), _change(table, after, layout), after.must_hold_no_null)


def altered(table: TableVersion, change: AlterTable) -> TableVersion:
    """Return a table version with the columns, comments and properties that a change gives it."""
    ids = {f.id: f.name for f in change.columns.walk()}
    return replace(
        table,
        columns=change.columns,
        comments=dict(change.comments),
        properties=table.properties if change.properties is None else dict(change.properties),
        max_column_id=max(table.max_column_id, *ids),
        first_names=ids | table.first_names,
    )


def _change(table: TableVersion, after: SchemaDraft, layout: LayoutDraft) -> AlterTable | None:
    sort = layout.sort_texts
    same_layout = layout.partition == table.partition and sort == table.sort
    same_properties = after.properties == table.properties
    same_columns = after.columns == table.columns and after.comments == table.comments
    if same_columns and same_layout and same_properties:
        return None
    return AlterTable(
        table,
        after.columns,
        after.comments,
        after.unsafe_bounds,
        excludes_inserts=bool(after.must_hold_no_null),
        partition=None if layout.partition == table.partition else layout.partition,
        sort=None if sort == table.sort else sort,
        properties=None if same_properties else dict(after.properties),
    )


def _reason(change: TableChange, before: SchemaDraft, after: SchemaDraft) -> str:
    if isinstance(change, PropertyChange):
        return "a property of the table"
    if isinstance(change, LayoutChange):
        return "for files to come; those that exist stay as they are"
    if isinstance(change, AddColumn):
        return "files that lack the new id read its initial default"
    if isinstance(change, ChangeType):
        return _promotions(before.columns.get(change.path), after.columns.get(change.path))
    if isinstance(change, SetNullable) and not change.nullable:
        return "metadata only, after a check that no row holds NULL"
    return "metadata only: columns are found by id"


def _promotions(old: Field, new: Field) -> str:
    """Return what becomes of the values, by the table of facts about promotions."""
    known = {leaf.id: leaf.type for leaf in old.leaves()}
    found = (promotion(known[leaf.id], leaf.type) for leaf in new.leaves() if leaf.id in known)
    told = dict.fromkeys(
        f"{one.verdict.value}: {one.reason}" for one in found if one.verdict is not Verdict.SAME
    )
    return "; ".join(told) or "no type changes"
