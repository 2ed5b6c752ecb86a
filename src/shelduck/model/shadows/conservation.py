"""A rewrite neither adds nor loses rows: its results hold the live rows of its sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shelduck.model.files.data_file import NewDataFile

_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class CountedFile:
    """A data file as the catalog counts it; ``rows`` is None if the catalog does not say."""

    path: str
    rows: int | None
    deleted: int


def unequal_rows(sources: Sequence[CountedFile], results: Sequence[NewDataFile]) -> str | None:
    """Return in words how results and sources differ in their rows, None if they do not.

    Counts of sources are the catalog's, those of results come from footers. Sources that the
    catalog does not count are not compared.
    """
    if any(s.rows is None for s in sources):
        return None
    rows, dead = sum(s.rows or 0 for s in sources), sum(s.deleted for s in sources)
    written = live_rows(results)
    if written == rows - dead:
        return None
    return (
        f"{len(sources)} data file(s) with {rows} rows, {dead} of them deleted, became"
        f" {len(results)} file(s) with {written} rows instead of {rows - dead} (from"
        f" {named([s.path for s in sources])})"
    )


def live_rows(files: Sequence[NewDataFile]) -> int:
    """Return how many rows of new files are live."""
    return sum(f.record_count - (f.deletes.delete_count if f.deletes else 0) for f in files)


def named(paths: Sequence[str]) -> str:
    """Return the first of some paths, and how many more there are."""
    more = len(paths) - _MOST_NAMED
    return ", ".join(paths[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
