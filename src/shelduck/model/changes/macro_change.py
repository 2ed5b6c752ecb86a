"""What a commit can do to macros."""

from __future__ import annotations

from dataclasses import dataclass

from shelduck.model.tables.macro import MacroVersion


@dataclass(frozen=True, slots=True)
class CreateMacro:
    """Create a macro; its id is provisional."""

    macro: MacroVersion


@dataclass(frozen=True, slots=True)
class DropMacro:
    """Drop a macro."""

    macro: MacroVersion


MacroChange = CreateMacro | DropMacro
