"""The registry of all kinds of changes, in the order in which a commit writes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shelduck.catalog.commit.kinds import (
    appends,
    columns,
    definitions,
    deletes,
    flush,
    repairs,
    rewrites,
    tables,
)
from shelduck.catalog.commit.kinds.kind import Kind
from shelduck.catalog.commit.work import Work
from shelduck.model.changes.change import Change

# Schemas come before their contents, and tables before their rows. ALTER comes first among the
# changes of tables: only ALTER can still find a conflict, and new files are laid out by its
# partitioning. Rows end before new ones begin. Files that hold older rows come last: they are
# compared with the columns and the deletes that this commit leaves.
KINDS: tuple[Kind, ...] = (
    definitions.SCHEMAS,
    columns.KIND,
    tables.KIND,
    definitions.VIEWS,
    definitions.MACROS,
    deletes.KIND,
    appends.KIND,
    rewrites.KIND,
    flush.KIND,
    repairs.KIND,
)

_BY_CLASS = {each: kind for kind in KINDS for each in kind.takes}


def kinds_of(changes: Sequence[Change]) -> list[Kind]:
    """Return the kinds of some changes, in the order of writing."""
    found = {type(change) for change in changes}
    return [kind for kind in KINDS if not found.isdisjoint(kind.takes)]


def fold(changes: Iterable[Change]) -> Work:
    """Return what the changes amount to, in order: the last change of each table wins.

    A table that is created and dropped leaves no trace, nor do files of a dropped table.
    """
    work = Work()
    for change in changes:
        _BY_CLASS[type(change)].fold(work, change)
    passing = [table.id for table in work.tables.values() if table.created and table.dropped]
    for number in passing:
        del work.tables[number]
    return work
