"""A fault of a lake, in words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem: in which table, with what, what is wrong, and what you can do.

    ``table`` is the full name of a table of the lake, or empty for the catalog as a whole. ``kind``
    is ``value``, ``interval``, ``row``, ``reference``, ``number``, ``log``, ``names``, ``table``,
    ``file``, ``footer``, ``statistics``, ``rows``, ``rollup``, ``job``, ``writer``, ``maintainer``
    or ``orphan``. ``repair`` says what a repair does about it, and is empty if you must decide.
    """

    table: str
    kind: str
    object: str
    wrong: str
    remedy: str
    repair: str = ""

    @property
    def is_repairable(self) -> bool:
        """True if a repair needs no decision."""
        return bool(self.repair)

    def __str__(self) -> str:
        return f"{self.object}: {self.wrong}; {self.remedy}"
