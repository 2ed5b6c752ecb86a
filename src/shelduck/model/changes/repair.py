"""Repairs of a catalog that a commit makes without a decision."""

from __future__ import annotations

from dataclasses import dataclass

from shelduck.model.files.data_files import ColumnStats
from shelduck.model.tables.schema import TableId
from shelduck.model.types.data_types import Leaf


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
