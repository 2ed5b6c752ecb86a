"""Macros that a transaction created or dropped, on top of its base snapshot; no I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shelduck.model.changes.macro_change import CreateMacro, DropMacro, MacroChange
from shelduck.model.tables.macro import MacroVersion


class StagedMacros:
    """The macros that a transaction changed; ids of new ones are below 0."""

    def __init__(self) -> None:
        self._created: dict[int, MacroVersion] = {}
        self._dropped: dict[int, MacroVersion] = {}

    def copied(self) -> StagedMacros:
        """Return a copy that later changes do not affect."""
        other = StagedMacros()
        other._created = dict(self._created)
        other._dropped = dict(self._dropped)
        return other

    def over(self, present: Sequence[MacroVersion]) -> list[MacroVersion]:
        """Return all macros; ``present`` are the base snapshot's."""
        return [*(m for m in present if m.id not in self._dropped), *self._created.values()]

    def create(self, macro: MacroVersion) -> None:
        """Stage a new macro."""
        self._created[macro.id] = macro

    def drop(self, macro: MacroVersion) -> None:
        """Stage the drop of a macro; one of the transaction itself leaves no trace."""
        if self._created.pop(macro.id, None) is None:
            self._dropped[macro.id] = macro

    def changes(self) -> Iterator[MacroChange]:
        """Yield what a commit must contain."""
        for macro in self._dropped.values():
            yield DropMacro(macro)
        for macro in self._created.values():
            yield CreateMacro(macro)
