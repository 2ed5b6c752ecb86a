"""All changes that an ALTER TABLE knows: `CLAUSES` has a row for each.

Two of Doris are here: MODIFY COLUMN redefines a whole column, ORDER BY the order of all columns.
Each of them stands for simpler changes, which depend on the table.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from shelduck.errors import InvalidRequest, NotFound
from shelduck.model.changes.constraining import CONSTRAINT_CLAUSES, ConstraintChange
from shelduck.model.changes.definition import Clause, Definition, Position, Weight, is_same_default
from shelduck.model.changes.schema_change import (
    SCHEMA_CLAUSES,
    ChangeType,
    MoveColumn,
    SchemaChange,
    SetComment,
    SetNullable,
    of_rollup,
)
from shelduck.model.changes.storing import STORAGE_CLAUSES, StorageChange
from shelduck.model.tables.partition import (
    ResetPartitioning,
    ResetSorting,
    SetPartitioning,
    SetSorting,
)
from shelduck.model.tables.properties import PropertyChange, SetProperties, UnsetProperties
from shelduck.model.tables.schema import Field, FieldId, Schema, path_text
from shelduck.model.types.data_types import DataType, Primitive, Struct, shared_parts, type_text

_TEXT = Primitive("varchar")
ArrangementChange = SetPartitioning | ResetPartitioning | SetSorting | ResetSorting


@dataclass(frozen=True, slots=True)
class ModifyColumn(Definition):
    """Redefine a column: its type and position may change, and NOT NULL may be dropped.

    A part that is left out has a meaning: without NOT NULL the column accepts NULL, without DEFAULT
    it has none. But a comment stays if it is left out. With ``rollup``, the column moves inside
    that rollup.
    """

    rollup: str | None = None

    def __str__(self) -> str:
        return f"MODIFY COLUMN {self.text}{of_rollup('FROM', self.rollup)}"


@dataclass(frozen=True, slots=True)
class OrderColumns:
    """Put all columns of a table, or of its ``rollup``, into this order."""

    names: tuple[str, ...]
    rollup: str | None = None

    def __str__(self) -> str:
        names = ", ".join(path_text((n,)) for n in self.names)
        return f"ORDER BY ({names}){of_rollup('FROM', self.rollup)}"


Restatement = ModifyColumn | OrderColumns


def expanded(
    change: Restatement, columns: Schema, comments: dict[FieldId | None, str], table: str
) -> list[SchemaChange]:
    """Return the simple changes that a redefinition means for these columns.

    Raises NotFound for a column that does not exist, and InvalidRequest for something that only an
    explicit ALTER COLUMN may change, or if nothing changes.
    """
    if isinstance(change, OrderColumns):
        return _moves(change, columns, table)
    old = columns.get(change.path, table)
    _refuse_loss(change, old, table)
    found: list[SchemaChange] = []
    if change.type != old.type or type_text(change.type) != type_text(old.type):
        found.append(ChangeType(change.path, change.type))
    if change.nullable and not old.nullable:
        found.append(SetNullable(change.path, nullable=True))
    if change.comment is not None and change.comment != comments.get(old.id):
        found.append(SetComment(change.path, change.comment))
    if change.position is not None:
        found.append(MoveColumn(change.path, change.position))
    # If a text type is redefined as text, perhaps only its length was meant to change.
    if not found and not any(leaf.type == _TEXT for leaf in old.leaves()):
        raise InvalidRequest(
            f"{change} changes nothing in {table}: the column already has this definition"
        )
    return found


def _refuse_loss(change: ModifyColumn, old: Field, table: str) -> None:
    here = f"{path_text(change.path)} of {table}"
    if old.nullable and not change.nullable:
        raise InvalidRequest(
            f"cannot change {here} from nullable to NOT NULL with MODIFY COLUMN; use ALTER COLUMN"
            f" {path_text(change.path)} SET NOT NULL, which checks the rows first"
        )
    if not is_same_default(old, change.default, old.default):
        before = "no default" if old.default is None else f"the default {old.default}"
        raise InvalidRequest(
            f"cannot change the default of {here} with MODIFY COLUMN: it has {before}; repeat"
            f" that, or use ALTER COLUMN {path_text(change.path)} SET DEFAULT or DROP DEFAULT"
        )

    _refuse_lost_fields(old.type, change.type, here)


def _refuse_lost_fields(old: DataType, new: DataType, here: str) -> None:
    """Raise InvalidRequest unless the fields of structs stay in order, with new ones after them."""
    if isinstance(old, Struct) and isinstance(new, Struct):
        names = [m.name.lower() for m in old.members]
        if names != [m.name.lower() for m in new.members[: len(names)]]:
            raise InvalidRequest(
                f"cannot drop, rename or reorder the fields of {here} with MODIFY COLUMN,"
                " which can only add fields at the end; use DROP COLUMN, RENAME COLUMN, or"
                " ALTER COLUMN … FIRST or AFTER"
            )
    for one, other in shared_parts(old, new) or ():
        inside = f"{one.name} in" if isinstance(old, Struct) else f"{one.name}s of"
        _refuse_lost_fields(one.type, other.type, f"{inside} {here}")


def _moves(change: OrderColumns, columns: Schema, table: str) -> list[SchemaChange]:
    known = {f.name.lower(): f.name for f in columns}
    wanted = [name.lower() for name in change.names]
    for name in change.names:
        if name.lower() not in known:
            raise NotFound.named("column", name, list(known.values()), where=table)
    twice = [name for name, count in Counter(wanted).items() if count > 1]
    if twice:
        raise InvalidRequest(f"ORDER BY lists column {twice[0]!r} of {table} twice")
    missing = [name for lowered, name in known.items() if lowered not in wanted]
    if missing:
        raise InvalidRequest(
            f"ORDER BY must list all columns of {table}, but {missing[0]!r} is missing"
        )
    found: list[SchemaChange] = []
    before: str | None = None
    for name in wanted:
        found.append(MoveColumn((known[name],), Position(before)))
        before = known[name]
    return found


@dataclass(frozen=True, slots=True)
class RewriteOlderFiles:
    """Rewrite the existing files in the table's layout after the other changes of the statement."""

    def __str__(self) -> str:
        return "REWRITE"


TableChange = (
    SchemaChange
    | ArrangementChange
    | PropertyChange
    | ConstraintChange
    | StorageChange
    | Restatement
    | RewriteOlderFiles
)

_NEW_FILES = Weight(False, "applies to new files; existing files stay as they are")
_PROPERTY = Weight(False, "a property of the table")
_OF_TABLE = {
    ModifyColumn: Clause("modify_column"),
    OrderColumns: Clause("order_columns"),
    SetPartitioning: Clause("set_partitioning", _NEW_FILES),
    ResetPartitioning: Clause("reset_partitioning", _NEW_FILES),
    SetSorting: Clause("set_sorting", _NEW_FILES),
    ResetSorting: Clause("reset_sorting", _NEW_FILES),
    SetProperties: Clause("set_properties", _PROPERTY),
    UnsetProperties: Clause("unset_properties", _PROPERTY),
    RewriteOlderFiles: Clause(
        "rewrite", Weight(True, "a job rewrites the existing files in the layout of the table")
    ),
}
CLAUSES: dict[type, Clause] = SCHEMA_CLAUSES | CONSTRAINT_CLAUSES | STORAGE_CLAUSES | _OF_TABLE
"""All that the code knows of each kind of change of a table."""
