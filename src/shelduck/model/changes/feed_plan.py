"""The files to read for a change feed: which rows were inserted and deleted, snapshot by snapshot.

A row was inserted in the snapshot that is stored with it, or else in the snapshot where its file
begins. It was deleted in the first snapshot for which a delete file or the catalog says so, or else
in the snapshot where its file ends. Compaction moves rows and changes none, so files that it begins
and ends are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from shelduck.errors import Unsupported
from shelduck.model.changes.change import COMPACTIONS, DELETES, INSERTS, MOVES, Entry, Verb
from shelduck.model.files.data_file import SNAPSHOT_FIELD, DataFile, DeleteFile
from shelduck.model.tables.schema import TableId

_REWRITES = COMPACTIONS - {Verb.MERGE_ADJACENT}


def has_snapshots(file: DataFile) -> bool:
    """Return whether each row of a file stores the snapshot in which it was inserted."""
    assert file.layout is not None
    return file.layout.has_field(SNAPSHOT_FIELD)


@dataclass(frozen=True, slots=True)
class Span:
    """The snapshots ``first`` to ``last``, both included.

    Files from the id ``next_file_id`` on were written after the snapshot before the first.
    """

    first: int
    last: int
    next_file_id: int


@dataclass(frozen=True, slots=True)
class FeedDeletes:
    """A delete file, and the first snapshot that sees it.

    If its rows do not say in which snapshot each was deleted, it was this one.
    """

    file: DeleteFile
    begin_snapshot: int


@dataclass(frozen=True, slots=True)
class FeedFile:
    """A data file whose rows were partly inserted or deleted in the range.

    ``deletes`` are all delete files of it that some snapshot of the range, or the one before it,
    sees, oldest first; ``positions`` are those that the catalog itself lists as deleted, with the
    snapshot. ``file`` itself has no deletes.
    """

    file: DataFile
    end_snapshot: int | None = None
    deletes: tuple[FeedDeletes, ...] = ()
    positions: tuple[tuple[int, int], ...] = ()

    @property
    def knows_snapshots(self) -> bool:
        """True if each row of the file stores the snapshot in which it was inserted."""
        return has_snapshots(self.file)


@dataclass(frozen=True, slots=True)
class FeedSnapshots:
    """The effect of the snapshots of a range on the rows of one table.

    ``moved``: rows only moved to other files. ``rewritten``: files that begin or end there were
    compacted. ``mixed``: rows were inserted and deleted, so some of them may be updates.
    """

    moved: frozenset[int] = frozenset()
    rewritten: frozenset[int] = frozenset()
    mixed: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """Files by what is read from them; rows count if their snapshot is in ``span``.

    ``born``: rows that were inserted. ``born_partly``: the same, but some were deleted before
    anybody saw them. ``ended``: all rows that were still live were deleted in the snapshot of that
    number. ``thinned``: rows at deleted positions were deleted. ``sources`` say which positions, of
    all files but those of ``born``.
    """

    span: Span
    snapshots: FeedSnapshots
    born: tuple[DataFile, ...] = ()
    born_partly: tuple[DataFile, ...] = ()
    ended: tuple[tuple[DataFile, int], ...] = ()
    thinned: tuple[DataFile, ...] = ()
    sources: Mapping[int, FeedFile] = field(default_factory=dict)


def classify(snapshots: Iterable[tuple[int, Sequence[Entry]]], table: TableId) -> FeedSnapshots:
    """Return what snapshots, each with its log entries, did to the rows of a table.

    Raises Unsupported if a snapshot both compacted files and changed rows of the table, because
    nothing says which of its files hold new rows.
    """
    moved, rewritten, mixed = set(), set(), set()
    for number, entries in snapshots:
        verbs = {e.verb for e in entries if e.id == table}
        moves = verbs & MOVES
        changes = verbs & (INSERTS | DELETES)
        if Verb.INLINE_FLUSH in verbs:
            # A flush logs this for deletes that were already in the catalog.
            changes -= {Verb.DELETED_FROM_TABLE}
        if verbs & _REWRITES:
            rewritten.add(number)
            if changes:
                raise Unsupported(
                    f"snapshot {number} both compacted files and changed rows of the table, which"
                    " cannot be distinguished; read the changes before it and after it"
                )
        if moves and not changes:
            moved.add(number)
        # A writer that logged nothing may have done anything.
        if not entries or (verbs & INSERTS and verbs & DELETES):
            mixed.add(number)
    return FeedSnapshots(frozenset(moved), frozenset(rewritten), frozenset(mixed))


def plan_changes(span: Span, snapshots: FeedSnapshots, files: Iterable[FeedFile]) -> ChangePlan:
    """Return what to read for the changes in a span of snapshots."""
    born: list[DataFile] = []
    born_partly: list[DataFile] = []
    ended: list[tuple[DataFile, int]] = []
    thinned: list[DataFile] = []
    sources: dict[int, FeedFile] = {}
    for found in files:
        if _has_births(found, span, snapshots):
            if _has_still_births(found):
                born_partly.append(found.file)
                sources[found.file.id] = found
            else:
                born.append(found.file)
        end = found.end_snapshot
        if end is not None and span.first <= end <= span.last and end not in snapshots.rewritten:
            ended.append((seen_before(found, end), end))
            sources[found.file.id] = found
        if _has_deaths(found, span):
            thinned.append(found.file)
            sources[found.file.id] = found
    return ChangePlan(
        span, snapshots, tuple(born), tuple(born_partly), tuple(ended), tuple(thinned), sources
    )


def _has_births(found: FeedFile, span: Span, snapshots: FeedSnapshots) -> bool:
    begin = found.file.begin_snapshot
    if begin in snapshots.rewritten:
        return False
    if found.knows_snapshots:
        newest = found.file.partial_max
        # A file that came from another table has rows that are older there.
        return begin <= span.last and (newest is None or max(newest, begin) >= span.first)
    return span.first <= begin <= span.last


def _has_still_births(found: FeedFile) -> bool:
    """Return whether rows of the file may have been deleted in the snapshot that inserted them."""
    if found.knows_snapshots:
        return bool(found.deletes or found.positions)
    begin = found.file.begin_snapshot
    return any(d.begin_snapshot <= begin for d in found.deletes) or any(
        snapshot <= begin for _, snapshot in found.positions
    )


def _has_deaths(found: FeedFile, span: Span) -> bool:
    # A delete file may begin long before its last deletes, but its id shows when it was written.
    late = any(d.file.id is not None and d.file.id >= span.next_file_id for d in found.deletes)
    return late or any(span.first <= at <= span.last for _, at in found.positions)


def seen_before(found: FeedFile, end: int) -> DataFile:
    """Return the file with the deletes that the snapshot before ``end`` saw."""
    before = [d for d in found.deletes if d.begin_snapshot < end]
    newest = max(before, key=lambda d: d.begin_snapshot, default=None)
    return found.file._replace(
        delete_file=newest.file if newest is not None else None,
        inlined_deletes=tuple(position for position, at in found.positions if at < end),
    )
