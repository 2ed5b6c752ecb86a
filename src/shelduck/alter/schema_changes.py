"""Schema changes as Python values: what `Table.alter` and `Table.plan_alter` take.

Paths are dotted: ``"s.f"`` is a struct's field, ``"l.element.f"`` and ``"m.value.f"`` go through
lists and maps. Types are written as in Spark SQL (``"bigint"``, ``"array<string>"``); DuckLake's
and DuckDB's words are understood too.
"""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from collections.abc import Mapping
from typing import Literal

from shelduck.errors import InvalidRequest
from shelduck.model.changes.constraining import AddConstraint, DropConstraint, ValidateConstraint
from shelduck.model.changes.definition import Position
from shelduck.model.changes.modify import ModifyColumn, OrderColumns, RewriteOlderFiles
from shelduck.model.changes.schema_change import (
    AddColumn,
    ChangeType,
    DropColumn,
    DuplicateKeys,
    MoveColumn,
    RenameColumn,
    SetComment,
    SetDefault,
    SetNullable,
)
from shelduck.model.changes.storing import AddIndex, DropIndex, SetEncoding
from shelduck.model.tables.column_storage import encoding_named
from shelduck.model.tables.constraints import ConstraintKind
from shelduck.model.tables.partition import (
    ResetPartitioning,
    ResetSorting,
    SetPartitioning,
    SetSorting,
)
from shelduck.model.tables.properties import SetProperties, UnsetProperties
from shelduck.model.tables.schema import Default
from shelduck.model.text.names import split_name
from shelduck.model.types.data_types import declared_type
from shelduck.model.types.literals import blob_text
from shelduck.text.ddl.column_clauses import written_expression
from shelduck.text.ddl.partitioning import partition_keys
from shelduck.text.ddl.sorting import sort_keys

Value = (
    str | int | float | bool | bytes | decimal.Decimal | dt.date | dt.datetime | dt.time | uuid.UUID
)


def add_column(
    path: str,
    type: str,  # noqa: A002 - the word that everybody expects
    *,
    default: Value | None = None,
    nullable: bool = True,
    comment: str | None = None,
    first: bool = False,
    after: str | None = None,
) -> AddColumn:
    """Add a column or a struct field; existing rows read ``default``, or NULL without one.

    Args:
        path: The new column's name, or a struct's path and the new field's name.
        type: As in Spark SQL.
        default: What existing rows read, and new rows get when a write leaves the column out.
        nullable: False needs a default, and a top-level column.
        comment: Kept with the column.
        first: Put it before its siblings. Without ``first`` and ``after`` it goes to the end.
        after: The sibling to put it after.
    """
    return AddColumn(
        split_name(path),
        declared_type(type),
        default=_default(default),
        nullable=nullable,
        comment=comment,
        position=_position(first, after),
    )


def drop_column(path: str, *, if_exists: bool = False, cascade: bool = False) -> DropColumn:
    """Drop a column or a struct field. A new column of the name has another id, and no old data.

    `Table.undrop_column` brings the old one back while files hold it.

    Args:
        path: The column's name, or the path of a struct's field.
        if_exists: Do nothing if there is no such column; otherwise that is NotFound.
        cascade: Drop views that read the column; otherwise they refuse the change.
    """
    return DropColumn(split_name(path), if_exists, cascade=cascade)


def rename_column(path: str, new_name: str) -> RenameColumn:
    """Rename a column or a struct field; files stay as they are.

    Args:
        path: The present name, or the path of a struct's field.
        new_name: One name, not a path.
    """
    return RenameColumn(split_name(path), new_name)


def change_type(
    path: str,
    type: str,  # noqa: A002 - the word that everybody expects
    *,
    using: str | None = None,
    on_error: Literal["fail", "null"] = "fail",
    on_duplicate_keys: Literal["refuse", "keep newest"] | None = None,
) -> ChangeType:
    """Change the type of a column, struct field, ``element``, ``key`` or ``value``.

    Where ``type`` holds every value of the old one, only metadata changes. Otherwise a job converts
    the values of the column. A struct's type is matched field by field: new fields are
    added, missing ones dropped.

    Args:
        path: Dotted.
        type: As in Spark SQL.
        using: A Spark SQL expression over the table's columns that makes the new values.
        on_error: What a value that cannot be converted becomes: an error, or NULL.
        on_duplicate_keys: For a key of a UNIQUE or AGGREGATE table: whether rows whose keys become
            equal are an error, or folded as a load does. By default, only SUM, MIN and MAX fold.
    """
    if on_error not in ("fail", "null"):
        raise InvalidRequest(f"on_error must be 'fail' or 'null', not {on_error!r}")
    if on_duplicate_keys not in (None, "refuse", "keep newest"):
        told = f"'refuse' or 'keep newest', not {on_duplicate_keys!r}"
        raise InvalidRequest(f"on_duplicate_keys must be {told}")
    folds = None if on_duplicate_keys is None else DuplicateKeys(on_duplicate_keys.upper())
    return ChangeType(split_name(path), declared_type(type), using, on_error == "null", folds)


def modify_column(
    path: str,
    type: str,  # noqa: A002 - the word that everybody expects
    *,
    nullable: bool = True,
    default: Value | None = None,
    comment: str | None = None,
    first: bool = False,
    after: str | None = None,
) -> ModifyColumn:
    """Redefine a column, as Doris' MODIFY COLUMN does.

    Its type and its place may change, and NOT NULL may be dropped.

    Args:
        path: The column's name.
        type: As in Spark SQL; a type that does not hold all values is converted by a job.
        nullable: False only for a column that is NOT NULL already.
        default: Must be the present default.
        comment: None keeps the present one.
        first: Put it before its siblings. Without ``first`` and ``after`` it stays where it is.
        after: The sibling to put it after.
    """
    position = _position(first, after)
    given = _default(default)
    return ModifyColumn(split_name(path), declared_type(type), given, nullable, comment, position)


def order_columns(*names: str) -> OrderColumns:
    """Put all columns of the table into this order."""
    return OrderColumns(tuple(split_name(n)[0] for n in names))


def rewrite_files() -> RewriteOlderFiles:
    """Rewrite existing files by a job, with the current columns, types, defaults and layout.

    Together with `set_partitioning` or `set_sorting`, the new layout already applies. Together with
    `add_index` or `set_encoding`, only their columns are written again.
    """
    return RewriteOlderFiles()


def add_index(name: str, *columns: str) -> AddIndex:
    """Give columns, by their paths, Bloom filters in new files, by which readers skip row groups.

    With `rewrite_files`, a job gives older files theirs.
    """
    return AddIndex(name, tuple(map(split_name, columns)))


def drop_index(name: str) -> DropIndex:
    """Write no Bloom filters of an index any more."""
    return DropIndex(name)


def set_encoding(path: str, encoding: Literal["DICTIONARY", "PLAIN"]) -> SetEncoding:
    """Set how new files encode the values of a column: without dictionaries if it is PLAIN."""
    return SetEncoding(split_name(path), encoding_named(encoding))


def set_default(path: str, default: Value) -> SetDefault:
    """Set the value that new rows get when a write leaves the column out.

    Args:
        path: The column's name, or the path of a struct's field.
        default: The value; existing rows keep theirs. It is checked against the column's type.
    """
    return SetDefault(split_name(path), _default(default))


def drop_default(path: str) -> SetDefault:
    """Remove the default of new rows; existing rows keep their values."""
    return SetDefault(split_name(path), None)


def set_not_null(path: str) -> SetNullable:
    """Forbid NULL in a top-level column; refused when a row holds NULL."""
    return SetNullable(split_name(path), nullable=False)


def drop_not_null(path: str) -> SetNullable:
    """Allow NULL in a top-level column."""
    return SetNullable(split_name(path), nullable=True)


def move_column(path: str, *, first: bool = False, after: str | None = None) -> MoveColumn:
    """Move a column, or a field inside its struct; files stay as they are.

    Args:
        path: The column's name, or the path of a struct's field.
        first: Put it before its siblings.
        after: The sibling to put it after.

    Raises InvalidRequest without ``first`` and ``after``, and with both.
    """
    position = _position(first, after)
    if position is None:
        raise InvalidRequest(f"move_column({path!r}) needs first=True or after='…'")
    return MoveColumn(split_name(path), position)


def set_comment(path: str | None, comment: str | None) -> SetComment:
    """Comment a column or the table.

    Args:
        path: The column's name, the path of a nested field, or None for the table.
        comment: The text; None removes the comment.
    """
    return SetComment(split_name(path) if path else (), comment)


def set_partitioning(*keys: str) -> SetPartitioning:
    """Partition new files, by ``"region"``, ``"bucket(16, id)"``, ``"year(ts)"``, ``"days(ts)"``.

    A file then holds rows of one value of each key. Existing files stay as they are. ``year``,
    ``month``, ``day`` and ``hour`` are calendar fields (a day is 1 to 31); ``months``, ``days`` and
    ``hours`` take all fields down to theirs.
    """
    return SetPartitioning(partition_keys(keys))


def reset_partitioning() -> ResetPartitioning:
    """Stop partitioning new files; existing files stay as they are."""
    return ResetPartitioning()


def set_sorting(*keys: str) -> SetSorting:
    """Sort the rows of new files by ``"ts DESC"``, ``"upper(name)"``; NULL goes last by default.

    Existing files stay as they are.
    """
    return SetSorting(sort_keys(keys))


def reset_sorting() -> ResetSorting:
    """Stop sorting the rows of new files."""
    return ResetSorting()


def set_properties(values: Mapping[str, str]) -> SetProperties:
    """Set properties of the table, such as ``{"delta.enableTypeWidening": "true"}``."""
    return SetProperties(tuple(values.items()))


def unset_properties(*keys: str, if_exists: bool = False) -> UnsetProperties:
    """Remove properties of the table; one that is not set is NotFound unless ``if_exists``."""
    return UnsetProperties(keys, if_exists)


def add_constraint(name: str, condition: str, *, validate: bool = True) -> AddConstraint:
    """Add a CHECK constraint, which every row that Shelduck writes must satisfy.

    Args:
        name: Another than those of the table's other constraints.
        condition: Spark's SQL over columns of one row. A row for which it is NULL satisfies it.
        validate: Whether rows that are there must satisfy it; otherwise `validate_constraint` may
            check them later.
    """
    written = written_expression(condition, "a condition", may_tell_time=True)
    return AddConstraint(ConstraintKind.CHECK, name, written, validates=validate)


def validate_constraint(name: str) -> ValidateConstraint:
    """Check the rows that were there before a CHECK constraint was added without validation."""
    return ValidateConstraint(name)


def drop_constraint(name: str, *, if_exists: bool = False) -> DropConstraint:
    """Drop a constraint; without ``if_exists``, one that does not exist is NotFound."""
    return DropConstraint(name, if_exists)


def _position(first: bool, after: str | None) -> Position | None:
    if first and after:
        raise InvalidRequest("pass first=True or after='…', not both")
    return Position(after) if first or after else None


def _default(value: Value | None) -> Default | None:
    return None if value is None else Default(_text(value))


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return blob_text(value)
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, (dt.date, dt.time)):
        return value.isoformat()
    return str(value)
