"""Statements about macros."""

from __future__ import annotations

from dataclasses import dataclass

from shelduck.model.tables.macro import MacroKind, MacroParameter
from shelduck.sql.tokens.parts import SchemaName, TableName


@dataclass(frozen=True, slots=True)
class MacroText:
    """One form of a new macro: its parameters, and the text of its expression or query."""

    parameters: tuple[MacroParameter, ...]
    text: str


@dataclass(frozen=True, slots=True)
class CreateMacro:
    """CREATE MACRO; the forms differ in their number of parameters."""

    name: TableName
    kind: MacroKind
    forms: tuple[MacroText, ...]
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True, slots=True)
class DropMacro:
    """DROP MACRO, or DROP MACRO TABLE."""

    name: TableName
    kind: MacroKind
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ShowMacros:
    """SHOW MACROS, also IN a schema and LIKE a pattern."""

    schema: SchemaName | None = None
    like: str | None = None
