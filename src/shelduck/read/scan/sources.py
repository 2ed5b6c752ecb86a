"""Where a scan gets its files: those of the plan, or those that somebody looks up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shelduck.model.files.data_file import DataFile
from shelduck.read.plan.scan import ScanGroup


@dataclass(frozen=True, slots=True)
class GroupSize:
    """How large a group is: its files, their bytes, and a path in each place where files are."""

    files: int
    bytes: int
    places: Iterable[str]


class FileSource:
    """The files that a plan names, of which nothing more is known.

    Spark asks while it plans a query, from any thread. Over Spark Connect, it is asked before.
    """

    knows_values = False
    """Whether `values` and `measured` have answers."""

    def parts(self, group: ScanGroup, filters: list[str]) -> Iterable[ScanGroup]:  # noqa: ARG002
        """Return the files that may hold a row that passes all filters, as parts of a group.

        ``filters`` are Spark's, on the group's read columns, as SQL texts.
        """
        return [group]

    def size(self, group: ScanGroup) -> GroupSize:
        """Return how large a group of the plan is."""
        total = sum(f.file_size_bytes for f in group.files)
        return GroupSize(len(group.files), total, (path for f in group.files for path in f.paths))

    def values(self, group: ScanGroup, files: Sequence[DataFile]) -> Mapping[int, tuple[Any, ...]]:
        """Return the values of a group's keys in files, by data file id.

        With them, Spark knows keys as partition columns.
        """
        raise NotImplementedError

    def measured(self, group: ScanGroup, measures: list[list[str]]) -> list[str | None] | None:
        """Return COUNT, MIN and MAX of a group's files as texts, None if they are not certain.

        ``measures`` are those of `shelduck.engine.bridge.relation.FileRelation`.
        """
        raise NotImplementedError

    def statistics(self, group: ScanGroup) -> list[list[str | None]]:
        """Return what the optimizer wants to know of a group, empty if nothing is known.

        The first row has the number of rows. Each other one has a name of the read schema, distinct
        values, NULLs, the lowest and the highest value, and the average and the greatest length.
        """
        raise NotImplementedError


PLANNED = FileSource()
