"""The sort order of a table: expressions in DuckDB's SQL, by which new files are sorted.

It is not binding: readers never rely on it.
"""

from __future__ import annotations

from dataclasses import dataclass

from shelduck.errors import CorruptLake

_DIRECTIONS = {"ASC": False, "DESC": True}
_NULLS = {"NULLS FIRST": True, "NULLS LAST": False}


@dataclass(frozen=True, slots=True)
class SortKey:
    """One key: an expression over top-level columns, its direction and the position of NULL."""

    expression: str
    descending: bool = False
    nulls_first: bool = False

    @property
    def direction(self) -> str:
        """``ASC`` or ``DESC``."""
        return "DESC" if self.descending else "ASC"

    @property
    def null_order(self) -> str:
        """``NULLS_FIRST`` or ``NULLS_LAST``, as in the catalog."""
        return "NULLS_FIRST" if self.nulls_first else "NULLS_LAST"

    def __str__(self) -> str:
        return f"{self.expression} {self.direction} {self.null_order.replace('_', ' ')}"


@dataclass(frozen=True, slots=True)
class SetSorting:
    """Sort new files; existing files stay as they are."""

    keys: tuple[SortKey, ...]

    def __str__(self) -> str:
        return f"SET SORTED BY ({', '.join(map(str, self.keys))})"


@dataclass(frozen=True, slots=True)
class ResetSorting:
    """Stop sorting new files."""

    def __str__(self) -> str:
        return "RESET SORTED BY"


def parse_sort_key(text: str) -> SortKey:
    """Parse the ``str`` of a key, which is the form of `TableVersion.sort`."""
    parts = text.rsplit(" ", 3)
    nulls = " ".join(parts[2:])
    if len(parts) != 4 or parts[1] not in _DIRECTIONS or nulls not in _NULLS:
        raise CorruptLake(f"sort key {text!r} in the catalog has no direction or no order of NULLs")
    return SortKey(parts[0], _DIRECTIONS[parts[1]], _NULLS[nulls])
