"""Faults of a lake in words, and the repair of those that need no decision."""

from __future__ import annotations

from dataclasses import dataclass

from shelduck.model.files.data_file import ColumnStats
from shelduck.model.tables.schema import TableId
from shelduck.model.types.data_types import Leaf


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


@dataclass(frozen=True, slots=True)
class CorrectedStats:
    """Statistics of a column in a file, as the catalog has them and as the footer has them."""

    table: TableId
    data_file_id: int
    leaf: Leaf
    seen: ColumnStats
    true: ColumnStats


@dataclass(frozen=True, slots=True)
class RepairCatalog:
    """Mend rows of the catalog where nothing can be lost.

    ``rows``: keep one of rows that are equal, raise counters that would give an id twice, and name
    the columns of tables for inlined rows as the lake's version does; the commit looks for them
    itself.
    """

    rows: bool = True
    statistics: tuple[CorrectedStats, ...] = ()
