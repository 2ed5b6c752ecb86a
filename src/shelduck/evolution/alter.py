"""ALTER TABLE: what the changes amount to, and what they would cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.change import AlterTable
from shelduck.model.schema import FieldId, Schema
from shelduck.model.schema_change import (
    AddColumn,
    ChangeType,
    SchemaChange,
    SchemaDraft,
    SetNullable,
    apply_changes,
)
from shelduck.model.table import TableVersion
from shelduck.sql.lexer import name_of, tokenize


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


def plan_alter(table: TableVersion, changes: Sequence[SchemaChange]) -> AlterPlan:
    """Return the plan of these changes on that table version; no I/O.

    Raises what `apply_changes` raises, and Unsupported for a change that would leave the table
    partitioned or sorted by a column that is gone, before anything happened.
    """
    if not changes:
        raise InvalidRequest(f"ALTER TABLE {table.full_name} names no change")
    before = SchemaDraft(table.columns, table.max_column_id + 1, dict(table.comments))
    after = apply_changes(before, changes, table.full_name)
    _refuse_lost_keys(table, after.columns)
    same = after.columns == before.columns and after.comments == before.comments
    change = None
    if not same:
        change = AlterTable(
            table,
            after.columns,
            after.comments,
            after.unsafe_bounds,
            excludes_inserts=bool(after.must_hold_no_null),
        )
    steps = tuple(AlterStep(str(c), "light", _reason(c)) for c in changes)
    return AlterPlan(table.full_name, steps, change, after.must_hold_no_null)


def _refuse_lost_keys(table: TableVersion, after: Schema) -> None:
    """Refuse what DuckDB could not insert after: partition keys go by id, sort keys by name."""
    for key in table.partition:
        column = table.columns.by_id(key.column_id)
        if column is not None and after.by_id(column.id) is None:
            raise Unsupported(
                f"cannot drop {column.name!r} of {table.full_name}: the table is partitioned by it;"
                " ALTER TABLE … RESET PARTITIONED BY in DuckDB first"
            )
    sort_names = set().union(*map(_names_in, table.sort))
    for column in table.columns:
        now = after.by_id(column.id)
        keeps_name = now is not None and now.name.lower() == column.name.lower()
        if column.name.lower() in sort_names and not keeps_name:
            raise Unsupported(
                f"cannot drop or rename {column.name!r} of {table.full_name}: the table is sorted"
                " by it; ALTER TABLE … RESET SORTED BY in DuckDB first"
            )


def _names_in(sort_key: str) -> set[str]:
    """Return every name in a key (``upper(c) ASC NULLS LAST``) in lower case."""
    expression = sort_key.rsplit(" ", 3)[0]
    return {name_of(token).lower() for token in tokenize(expression) if token.may_name}


def _reason(change: SchemaChange) -> str:
    if isinstance(change, AddColumn):
        return "files that lack the new id read its initial default"
    if isinstance(change, ChangeType):
        return "readers widen the values of old files"
    if isinstance(change, SetNullable) and not change.nullable:
        return "metadata only, after a check that no row holds NULL"
    return "metadata only: columns are found by id"
