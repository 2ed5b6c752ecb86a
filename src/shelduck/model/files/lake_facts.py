"""Facts that maintenance asks about a lake: counts and bytes for each table, never single files."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from shelduck.model.tables.options import TableOptions
from shelduck.model.tables.schema import TableId

FULL = 8
"""So many files of similar size, in one partition, are combined."""
STEP = 8
"""The files of a tier are up to so many times larger than those of the tier below it."""
TIERS = tuple(4 * STEP**n for n in reversed(range(5)))
"""Files of one tier are smaller than the target size divided by its number; smallest first.

From a quarter of the target size on, a file is large enough.
"""
LAYOUTS = 16
"""Files of a table may have so many different layouts."""


@dataclass(frozen=True, slots=True)
class Tier:
    """Small files of a table: ``full`` counts the partitions that have `FULL` files of this tier.

    ``files`` and ``bytes`` count all files below ``below`` bytes in partitions that have two or
    more of them.
    """

    below: int
    full: int = 0
    files: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class LayoutFiles:
    """The live files with one layout; ``newest`` is the largest id of them."""

    id: int
    files: int
    bytes: int
    newest: int


@dataclass(frozen=True, slots=True)
class TableFacts:
    """A table: what the catalog keeps of it, and how many files may be worth a rewrite."""

    id: TableId
    schema: str
    name: str
    options: TableOptions = field(default_factory=TableOptions)
    is_changing: bool = False
    """A worker runs a job of a schema change."""
    kept: int = 0
    """Rows in the catalog itself, in all versions."""
    kept_deletes: int = 0
    """Deleted positions of files in the catalog itself."""
    small: tuple[Tier, ...] = ()
    """Files without a delete file."""
    small_with_deletes: tuple[Tier, ...] = ()
    """Files with a delete file."""
    worn: int = 0
    """Files of which the option rewrite_delete_threshold says that a rewrite pays."""
    worn_bytes: int = 0
    layouts: tuple[LayoutFiles, ...] = ()
    """The contents of files, if there are more than `LAYOUTS` layouts."""


@dataclass(frozen=True, slots=True)
class LakeFacts:
    """The facts that belong to no table.

    ``expired`` counts snapshots past their age, ``scheduled`` files that may be deleted;
    ``searched`` says when somebody last looked for orphans.
    """

    expired: int = 0
    scheduled: int = 0
    searched: datetime | None = None
