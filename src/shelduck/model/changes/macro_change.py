"""Changes of macros, and of comments on columns of views."""

from __future__ import annotations

from dataclasses import dataclass

from shelduck.model.tables.view import MacroVersion, ViewVersion


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
