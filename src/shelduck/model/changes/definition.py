"""Definitions: of a kind of change, of a column that is added or redefined, and of macros."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.tables.keys import Aggregation
from shelduck.model.tables.schema import NO_DEFAULT, Default, Field, Kind, Path, path_text
from shelduck.model.tables.view import MacroVersion, ViewVersion
from shelduck.model.text.names import quote_text
from shelduck.model.types.data_types import DataType
from shelduck.model.types.literals import canonical_text, fitted


@dataclass(frozen=True, slots=True)
class Weight:
    """Whether a change needs new bytes, and the reason in words for people."""

    is_heavy: bool
    reason: str

    def __str__(self) -> str:
        return "heavy" if self.is_heavy else "light"


@dataclass(frozen=True, slots=True)
class Clause:
    """One kind of change: its name in the texts of jobs, its weight, what it does.

    ``weight`` is None where the table decides, ``apply`` where it does not change columns.
    """

    stored: str
    weight: Weight | None = None
    apply: Callable[..., Any] | None = None


@dataclass(frozen=True, slots=True)
class Position:
    """Where a column goes: first, or after another column beside it."""

    after: str | None = None

    def __str__(self) -> str:
        return f"AFTER {path_text((self.after,))}" if self.after else "FIRST"


@dataclass(frozen=True, slots=True)
class Definition:
    """A column by its path, with its full definition; ``default`` None is NULL.

    ``key`` and ``aggregation`` are for tables with a key model.
    """

    path: Path
    type: DataType
    default: Default | None = None
    nullable: bool = True
    comment: str | None = None
    position: Position | None = None
    key: bool = False
    aggregation: Aggregation | None = None

    @property
    def name(self) -> str:
        """The column's own name."""
        return self.path[-1]

    @property
    def text(self) -> str:
        """Return the definition as ALTER TABLE writes it."""
        text = f"{path_text(self.path)} {self.type}"
        if self.key:
            text += " KEY"
        if self.aggregation is not None:
            text += f" {self.aggregation.value}"
        if not self.nullable:
            text += " NOT NULL"
        if self.default is not None:
            text += f" DEFAULT {self.default}"
        if self.comment is not None:
            text += f" COMMENT {quote_text(self.comment)}"
        return f"{text} {self.position}" if self.position else text


@dataclass(frozen=True, slots=True)
class CreateMacro:
    """Create a macro; its id is provisional."""

    macro: MacroVersion


@dataclass(frozen=True, slots=True)
class DropMacro:
    """Drop a macro."""

    macro: MacroVersion


@dataclass(frozen=True, slots=True)
class CommentViewColumns:
    """Set comments on columns of a view, by the names that its query gives them; None for none."""

    view: ViewVersion
    comments: tuple[tuple[str, str | None], ...]


MacroChange = CreateMacro | DropMacro


def is_same_default(column: Field, one: Default | None, other: Default | None) -> bool:
    """Return whether two defaults of a column are the same value or the same expression."""
    if one is None or other is None or isinstance(column.shape, Kind):
        return one == other
    if not (one.literal and other.literal):
        return one == other
    try:
        return canonical_text(column.shape, one.text) == canonical_text(column.shape, other.text)
    except InvalidRequest:
        return one == other


def with_default(column: Field, default: Default | None, table: str) -> Field:
    """Return a new column with its default, checked; a literal is also the initial default."""
    if default is None:
        return column
    checked = checked_default(default, column, (column.name,), table)
    initial = checked.text if checked.literal else None
    return replace(column, default=checked, initial_default=initial)


def checked_default(default: Default, column: Field, path: Path, table: str) -> Default:
    """Return a default as it is stored, or raise InvalidRequest or Unsupported."""
    if not column.is_leaf:
        raise Unsupported(
            f"cannot set a default for {path_text(path)} of {table}, which is {column.type}:"
            " DuckLake supports no defaults for structs, lists and maps; set the default of a"
            " field of the struct, or leave it NULL"
        )
    if not default.literal:
        return default
    if default.text == NO_DEFAULT:
        raise Unsupported(
            f"the text {NO_DEFAULT!r} cannot be the default of {path_text(path)} of {table}:"
            " DuckLake writes it for columns without a default"
        )
    try:
        return Default(canonical_text(column.leaf, fitted(column.leaf, default.text)))
    except InvalidRequest as error:
        raise InvalidRequest(
            f"cannot set the default {default.text!r} of {path_text(path)} of {table}: {error}"
        ) from error
