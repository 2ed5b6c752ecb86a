"""Schema changes as values: what ALTER TABLE asks for, and its effect on a schema.

`SCHEMA_CLAUSES` says what each change does. The SQL front end, the Python API and ``plan_alter``
build and read the same values.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from operator import attrgetter

from shelduck.errors import AlreadyExists, InvalidRequest, Unsupported
from shelduck.model.changes.definition import Clause, Definition, Position, Weight, checked_default
from shelduck.model.changes.retype import Retyping
from shelduck.model.tables.properties import Properties
from shelduck.model.tables.schema import (
    Default,
    Field,
    FieldId,
    Kind,
    Path,
    Schema,
    comments_below,
    in_places,
    new_field,
    path_text,
    require_free_name,
)
from shelduck.model.text.names import quote_text, require_storable
from shelduck.model.types.data_types import DataType


@dataclass(frozen=True, slots=True)
class AddColumn(Definition):
    """Add a column or a struct field; existing rows read ``default``.

    With ``rollup``, it is added to that rollup of the table too. ``initial`` is the value that a
    default which is an expression had when somebody asked for the column.
    """

    if_not_exists: bool = False
    rollup: str | None = None
    initial: Default | None = None

    def __str__(self) -> str:
        return f"ADD COLUMN {self.text}{of_rollup('TO', self.rollup)}"


@dataclass(frozen=True, slots=True)
class DropColumn:
    """Drop a column or a struct field; no other one gets its id.

    With ``rollup``, only that rollup of the table loses it. ``cascade`` drops views that read it;
    without it, such a view refuses the change.
    """

    path: Path
    if_exists: bool = False
    rollup: str | None = None
    cascade: bool = False

    def __str__(self) -> str:
        words = " CASCADE" if self.cascade else ""
        return f"DROP COLUMN {path_text(self.path)}{of_rollup('FROM', self.rollup)}{words}"


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """Rename a column or a struct field; it keeps its id and its data."""

    path: Path
    new_name: str

    def __str__(self) -> str:
        return f"RENAME COLUMN {path_text(self.path)} TO {path_text((self.new_name,))}"


class DuplicateKeys(Enum):
    """What becomes of rows whose keys become equal; the catalog keeps the values."""

    REFUSE = "REFUSE"
    KEEP_NEWEST = "KEEP NEWEST"


@dataclass(frozen=True, slots=True)
class ChangeType:
    """Change a type; a struct type is matched member by member by name.

    ``using`` is a Spark SQL expression that computes the new values. ``on_error_null``: values that
    the new type cannot hold become NULL. ``on_duplicate_keys`` is for a key of a table that folds
    rows; without it, they are folded only if no value is lost but to SUM, MIN and MAX.
    """

    path: Path
    type: DataType
    using: str | None = None
    on_error_null: bool = False
    on_duplicate_keys: DuplicateKeys | None = None

    def __str__(self) -> str:
        text = f"ALTER COLUMN {path_text(self.path)} TYPE {self.type}"
        text += f" USING {self.using}" if self.using else ""
        text += " ON ERROR NULL" if self.on_error_null else ""
        how = self.on_duplicate_keys
        return text if how is None else f"{text} ON DUPLICATE KEYS {how.value}"


@dataclass(frozen=True, slots=True)
class ChangeTypeBack(ChangeType):
    """Give a column the type, the ids and the values back that it had before a job converted it.

    Only an undo has it, with what it knows of the column. Other versions of Shelduck that would
    convert each value again do not know it, and leave the job alone.
    """


@dataclass(frozen=True, slots=True)
class SetDefault:
    """Set the default of new rows, or remove it with None; existing rows keep their values."""

    path: Path
    default: Default | None

    def __str__(self) -> str:
        if self.default is None:
            return f"ALTER COLUMN {path_text(self.path)} DROP DEFAULT"
        return f"ALTER COLUMN {path_text(self.path)} SET DEFAULT {self.default}"


@dataclass(frozen=True, slots=True)
class SetNullable:
    """Allow NULL in a top-level column, or forbid it."""

    path: Path
    nullable: bool

    def __str__(self) -> str:
        return f"ALTER COLUMN {path_text(self.path)} {'DROP' if self.nullable else 'SET'} NOT NULL"


@dataclass(frozen=True, slots=True)
class MoveColumn:
    """Change the position of a column among its siblings."""

    path: Path
    position: Position

    def __str__(self) -> str:
        return f"ALTER COLUMN {path_text(self.path)} {self.position}"


@dataclass(frozen=True, slots=True)
class SetComment:
    """Comment a column, or the table if ``path`` is empty; None removes the comment."""

    path: Path
    comment: str | None

    def __str__(self) -> str:
        what = f"COLUMN {path_text(self.path)}" if self.path else "TABLE"
        text = "NULL" if self.comment is None else quote_text(self.comment)
        return f"COMMENT ON {what} IS {text}"


SchemaChange = (
    AddColumn
    | DropColumn
    | RenameColumn
    | ChangeType
    | ChangeTypeBack
    | SetDefault
    | SetNullable
    | MoveColumn
    | SetComment
)


@dataclass(frozen=True, slots=True)
class SchemaDraft:
    """A schema while changes are applied to it.

    ``next_id`` is the first column id that the table has never used. ``unsafe_bounds`` are the
    leaves whose min/max texts a promotion made invalid; ``must_hold_no_null`` are the columns that
    became NOT NULL and whose rows must be checked before the commit. ``emptied`` are the structs,
    None for the table, that lost their last field, and which one that was.
    """

    columns: Schema
    next_id: int
    comments: dict[FieldId | None, str]
    properties: Properties = field(default_factory=dict)
    unsafe_bounds: frozenset[FieldId] = frozenset()
    must_hold_no_null: frozenset[FieldId] = frozenset()
    emptied: dict[FieldId | None, Path] = field(default_factory=dict)


def apply_change(draft: SchemaDraft, change: SchemaChange, table: str) -> SchemaDraft:
    """Return the draft after one of several changes; `refuse_empty` judges the last one.

    Raises NotFound, AlreadyExists, InvalidRequest or Unsupported, naming ``table`` and the column.
    """
    clause = SCHEMA_CLAUSES.get(type(change))
    if clause is None or clause.apply is None:
        raise InvalidRequest(
            f"cannot alter {table}: expected a change such as add_column(...) or"
            f" drop_column(...), got {change!r}"
        )
    return clause.apply(draft, change, table)  # type: ignore[no-any-return]


def refuse_empty(draft: SchemaDraft, table: str) -> None:
    """Raise InvalidRequest for a table or struct without fields: later changes added none."""
    for parent, path in draft.emptied.items():
        found = None if parent is None else draft.columns.by_id(parent)
        if (parent is None and not draft.columns.fields) or (found and not found.children):
            whole = f"field of {path_text(path[:-1])}" if parent else "column"
            raise InvalidRequest(
                f"cannot drop {path_text(path)}: it is the last {whole} of {table}"
            )


def _add(draft: SchemaDraft, change: AddColumn, table: str) -> SchemaDraft:
    parent = _parent(draft.columns, change.path, table)
    siblings = parent.children if parent else draft.columns.fields
    if draft.columns.find(change.path) is not None:
        if change.if_not_exists:
            return draft
        raise AlreadyExists.named("column", path_text(change.path), table)
    made = new_field(change.path[-1], change.type, draft.next_id, nullable=change.nullable)
    if change.default is not None:
        made = replace(made, default=checked_default(change.default, made, change.path, table))
        initial = change.default if change.default.literal else change.initial
        if initial is None:
            raise Unsupported(
                f"cannot add column {path_text(change.path)} to {table} with the default"
                f" {change.default.text}: existing rows need one value, which only constants,"
                " current_timestamp() and current_date() give; add the column with a literal"
                " default, then SET DEFAULT"
            )
        held = checked_default(initial, made, change.path, table)
        made = replace(made, initial_default=held.text)
    if not change.nullable and (parent or change.default is None):
        raise InvalidRequest(
            f"cannot add column {path_text(change.path)} as NOT NULL to {table}: existing rows"
            " would hold NULL; give a literal DEFAULT (and only top-level columns can be NOT"
            " NULL)"
        )
    used = sum(1 for _ in made.walk())
    placed = _placed(siblings, made, change.position, table)
    told: dict[FieldId | None, str]
    told = {} if change.comment is None else {made.id: change.comment}
    return replace(
        draft,
        columns=_with_siblings(draft.columns, change.path[:-1], placed),
        next_id=draft.next_id + used,
        comments=draft.comments | comments_below(made, change.type) | told,
    )


def _drop(draft: SchemaDraft, change: DropColumn, table: str) -> SchemaDraft:
    if change.if_exists and draft.columns.find(change.path) is None:
        return draft
    found = draft.columns.get(change.path, table)
    parent = _parent(draft.columns, change.path, table)
    siblings = parent.children if parent else draft.columns.fields
    emptied = draft.emptied
    if len(siblings) == 1:
        emptied = {**emptied, (parent.id if parent else None): change.path}
    gone = {f.id for f in found.walk()}
    return replace(
        draft,
        columns=draft.columns.replace(change.path, None),
        comments={k: v for k, v in draft.comments.items() if k not in gone},
        emptied=emptied,
    )


def _rename(draft: SchemaDraft, change: RenameColumn, table: str) -> SchemaDraft:
    found = draft.columns.get(change.path, table)
    _parent(draft.columns, change.path, table)
    if not change.new_name:
        raise InvalidRequest(
            f"cannot rename column {path_text(change.path)} of {table}: the new name is empty"
        )
    require_storable("column", change.new_name)
    require_free_name(change.new_name, table)
    other = draft.columns.find((*change.path[:-1], change.new_name))
    if other is not None and other.id != found.id:
        raise AlreadyExists.named("column", change.new_name, table)
    return _put(draft, change.path, replace(found, name=change.new_name))


def _change_type(draft: SchemaDraft, change: ChangeType, table: str) -> SchemaDraft:
    found = draft.columns.get(change.path, table)
    retyping = Retyping(draft.next_id, table, draft.properties)
    made = retyping.field(found, change.type, change.path)
    return replace(
        _put(draft, change.path, made),
        next_id=retyping.next_id,
        unsafe_bounds=draft.unsafe_bounds | retyping.unsafe_bounds,
    )


def _set_default(draft: SchemaDraft, change: SetDefault, table: str) -> SchemaDraft:
    found = draft.columns.get(change.path, table)
    default = change.default
    if default is not None:
        default = checked_default(default, found, change.path, table)
    return _put(draft, change.path, replace(found, default=default))


def _set_nullable(draft: SchemaDraft, change: SetNullable, table: str) -> SchemaDraft:
    found = draft.columns.get(change.path, table)
    if len(change.path) > 1:
        raise Unsupported(
            f"cannot change NOT NULL of {path_text(change.path)} of {table}: it is nested, and"
            " DuckLake supports NOT NULL only for top-level columns"
        )
    if found.nullable == change.nullable:
        return draft
    checked = draft.must_hold_no_null - {found.id}
    if not change.nullable:
        checked |= {found.id}
    draft = replace(draft, must_hold_no_null=checked)
    return _put(draft, change.path, replace(found, nullable=change.nullable))


def _move(draft: SchemaDraft, change: MoveColumn, table: str) -> SchemaDraft:
    found = draft.columns.get(change.path, table)
    parent = _parent(draft.columns, change.path, table)
    siblings = parent.children if parent else draft.columns.fields
    rest = tuple(f for f in siblings if f.id != found.id)
    if change.position.after and change.position.after.lower() == found.name.lower():
        raise InvalidRequest(f"cannot move column {path_text(change.path)} of {table} after itself")
    placed = _placed(rest, found, change.position, table)
    return replace(draft, columns=_with_siblings(draft.columns, change.path[:-1], placed))


def _set_comment(draft: SchemaDraft, change: SetComment, table: str) -> SchemaDraft:
    key = draft.columns.get(change.path, table).id if change.path else None
    comments = {k: v for k, v in draft.comments.items() if k != key}
    if change.comment is not None:
        comments[key] = change.comment
    return replace(draft, comments=comments)


_BY_ID = Weight(False, "metadata only: columns are found by id")

SCHEMA_CLAUSES: dict[type, Clause] = {
    AddColumn: Clause(
        "add_column",
        Weight(False, "files without the new id are read with its initial default"),
        _add,
    ),
    DropColumn: Clause("drop_column", _BY_ID, _drop),
    RenameColumn: Clause("rename_column", _BY_ID, _rename),
    ChangeType: Clause("change_type", apply=_change_type),
    ChangeTypeBack: Clause("change_type_back"),
    SetDefault: Clause("set_default", _BY_ID, _set_default),
    # The weight of DROP NOT NULL; `alter_plan` knows that SET NOT NULL looks at all rows.
    SetNullable: Clause("set_nullable", _BY_ID, _set_nullable),
    MoveColumn: Clause("move_column", _BY_ID, _move),
    SetComment: Clause("set_comment", _BY_ID, _set_comment),
}
"""All that the code knows of each kind of change of columns."""


def of_rollup(word: str, rollup: str | None) -> str:
    """Return the end of a clause for a rollup: the word, TO or FROM, and its name."""
    return "" if rollup is None else f" {word} {path_text((rollup,))}"


def _parent(schema: Schema, path: Path, table: str) -> Field | None:
    if len(path) == 1:
        return None
    parent = schema.get(path[:-1], table)
    if parent.shape is not Kind.STRUCT:
        raise InvalidRequest(
            f"{path_text(path[:-1])} of {table} is {parent.type}: only structs have fields to add,"
            " drop or rename"
        )
    return parent


def _with_siblings(schema: Schema, parent: Path, siblings: tuple[Field, ...]) -> Schema:
    if not parent:
        return schema.with_fields(siblings)
    found = schema.get(parent)
    return schema.replace(parent, replace(found, children=siblings))


def _put(draft: SchemaDraft, path: Path, made: Field) -> SchemaDraft:
    return replace(draft, columns=draft.columns.replace(path, made))


def _placed(
    siblings: tuple[Field, ...], made: Field, position: Position | None, table: str
) -> tuple[Field, ...]:
    """Return the siblings with ``made`` in its position."""
    if position is None:
        last = max(map(attrgetter("order"), siblings), default=0)
        return (*siblings, replace(made, order=max(made.id, last + 1)))
    at = 0
    if position.after is not None:
        lowered = position.after.lower()
        names = [f.name.lower() for f in siblings]
        if lowered not in names:
            raise InvalidRequest(
                f"cannot place a column after {position.after!r}, which does not exist in {table}"
            )
        at = names.index(lowered) + 1
    return in_places([*siblings[:at], made, *siblings[at:]])
