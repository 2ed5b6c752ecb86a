"""Making files begin in the snapshot that shows their columns, so that DuckDB compacts them.

DuckDB 1.5 writes a compacted file with the columns of the snapshot in which its source began. Files
that were converted for columns that nobody saw yet began too early. If a rewrite wrote them, the
rewrite moves to a later snapshot; the others are copied, with their deletes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from shelduck.catalog.databases.store import Store
from shelduck.catalog.read import read
from shelduck.catalog.read import table_facts as read_upkeep
from shelduck.catalog.read.table_facts import described
from shelduck.engine.files.storage import copy_files
from shelduck.files.compact import Survey
from shelduck.lake.done import Counts, Done, discard
from shelduck.model.changes.change import (
    Entry,
    PostponedRewrites,
    RewriteFiles,
    RewrittenFile,
    Verb,
)
from shelduck.model.files.data_file import DataFile, NewDataFile, deletes_seen
from shelduck.model.files.place import same_file
from shelduck.model.tables.schema import TableId
from shelduck.model.tables.table_version import Snapshot, TableVersion
from shelduck.write.parquet.clustering import directory_beside
from shelduck.write.parquet.write import fresh_name

# Shelduck's rewrites also log a flush.
_REWRITTEN = {Verb.REWRITE_DELETE, Verb.INLINE_FLUSH}


@dataclass(frozen=True, slots=True)
class Renewal:
    """Changes that let all files begin in the next snapshot: moved rewrites, copied files."""

    postponed: PostponedRewrites
    copies: Done


def renew(store: Store, found: Survey, since: int) -> Renewal:
    """Copy files that no rewrite after the snapshot ``since`` wrote, or that changed since.

    Five statements, however many files there are. Nothing is committed.
    """
    table = found.table
    with store.read() as connection:
        logged = read.logged(connection, since, table.snapshot.id)
        lots = postponable(table.id, logged, found.rows.files)
        results = frozenset[int]().union(*lots.values())
        ended = read_upkeep.ended_in(connection, table.id, lots)
        early = [f for f in found.rows.files if f.id not in results]
        known = described(connection, table.id, early, found.partitions)
    postponed = PostponedRewrites(frozenset(lots), ended, results)
    return Renewal(postponed, _copied(table, early, known))


def _copied(table: TableVersion, files: Sequence[DataFile], known: Sequence[NewDataFile]) -> Done:
    if not files:
        return Done(table)
    write = fresh_name(table)
    copies = tuple(_placed(table, write, n, file) for n, file in enumerate(known))
    pairs = [pair for old, new in zip(known, copies, strict=True) for pair in _pairs(old, new)]
    paths = tuple(target for _, target in pairs)
    try:
        copy_files((source, table.path + target) for source, target in pairs)
    except BaseException:
        discard(table, paths)
        raise
    sources = tuple(RewrittenFile(f.id, deletes_seen(f)) for f in files)
    change = RewriteFiles(table, sources, copies, keeps_history=False)
    size = sum(f.file_size_bytes for f in copies)
    return Done(table, (change,), paths, Counts(files=len(copies), bytes=size))


def _placed(table: TableVersion, write: str, number: int, file: NewDataFile) -> NewDataFile:
    """Return the path of a copy: a partition's files stay in its directory, as DuckDB requires."""
    name = f"{write}/{number}.parquet"
    if file.partition_id is not None:
        name = f"{directory_beside(table.path, file.path)}{write}-{number}.parquet"
    deletes = file.deletes
    if deletes is not None:
        dead = same_file(deletes.path, f"{write}/{number}-deletes.parquet")
        deletes = replace(deletes, path=dead)
    return replace(file, path=same_file(file.path, name), deletes=deletes)


def _pairs(old: NewDataFile, new: NewDataFile) -> list[tuple[str, str]]:
    pairs = [(old.path, new.path)]
    if old.deletes is not None and new.deletes is not None:
        pairs.append((old.deletes.path, new.deletes.path))
    return pairs


def postponable(
    table: TableId, snapshots: Sequence[tuple[Snapshot, Sequence[Entry]]], files: Iterable[DataFile]
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
