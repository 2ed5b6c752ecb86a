"""Which rewrites a later commit may move to itself: rows only moved, so nobody notices.

DuckDB compacts a file with the columns of the snapshot in which the file began, so files must not
begin before their columns are shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from shelduck.model.changes.change import Entry, Verb
from shelduck.model.files.data_files import DataFile
from shelduck.model.tables.schema import TableId
from shelduck.model.tables.table import Snapshot

# Shelduck's rewrites also log a flush.
_REWRITTEN = {Verb.REWRITE_DELETE, Verb.INLINE_FLUSH}


def postponable(
    table: TableId,
    snapshots: Sequence[tuple[Snapshot, Sequence[Entry]]],
    files: Iterable[DataFile],
) -> dict[int, frozenset[int]]:
    """Return the snapshots whose rewrites of a table can be moved, and the files each one wrote.

    ``snapshots`` are in order, each with its log entries; ``files`` are the live files. The rewrite
    of a snapshot can be moved if the snapshot did nothing else to any table and all files that it
    wrote are unchanged. The snapshot before it must still exist, so that the sources have not
    expired.
    """
    live = {f.id: f for f in files}
    found: dict[int, frozenset[int]] = {}
    for (before, _), (this, entries) in pairwise(snapshots):
        verbs, about = {e.verb for e in entries}, {e.id for e in entries}
        is_rewrite = Verb.REWRITE_DELETE in verbs and verbs <= _REWRITTEN and about == {table}
        if this.id != before.id + 1 or not is_rewrite:
            continue
        written = frozenset(range(before.next_file_id, this.next_file_id))
        if all(n in live and _is_untouched(live[n], this) for n in written):
            found[this.id] = written
    return found


def _is_untouched(file: DataFile, since: Snapshot) -> bool:
    is_whole = file.partial_max is None and not file.dead_rows
    return is_whole and file.begin_snapshot == since.id
