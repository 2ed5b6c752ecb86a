"""Which files are rewritten together: small ones, and those with many deleted rows.

A bin is a set of files whose rows go into one new file. They are neighbours in the table's order
and belong to one partition. This module also decides whether older snapshots can do without the
sources.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf

from shelduck.model.files.data_file import DataFile, NameMapping
from shelduck.model.tables.schema import FieldId

MIN_FILES = 2
# A file of at least this part of the target size is not rewritten to make it larger.
_ENOUGH = 0.75
# How much is written before a commit, so that most of a long run is kept if it stops.
_BIN_COUNT = 64
_BIN_BYTES = 8 << 30


@dataclass(frozen=True, slots=True)
class Partition:
    """Where a file belongs: the partition spec with which it was written, and its values."""

    id: int | None = None
    values: tuple[str | None, ...] = ()


NO_PARTITION = Partition()


@dataclass(frozen=True, slots=True)
class ColumnVersion:
    """One version of one column, as in the catalog's row; ``end`` is None for the newest."""

    id: FieldId
    type: str
    parent: FieldId | None
    initial_default: str | None
    begin: int
    end: int | None


@dataclass(frozen=True, slots=True)
class Bin:
    """Files whose rows go into one file.

    ``keeps_history``: older snapshots will read the result instead of the sources.
    """

    files: tuple[DataFile, ...]
    partition: Partition = NO_PARTITION
    keeps_history: bool = False

    @property
    def bytes(self) -> int:
        """The size of the sources."""
        return _size(self.files)

    @property
    def rows(self) -> int:
        """The number of rows of the sources, including deleted ones."""
        return sum(f.record_count or 0 for f in self.files)


@dataclass(frozen=True, slots=True)
class SmallFiles:
    """Which small files are combined: those below three quarters of ``target`` bytes.

    They have at least the first and less than the second of ``sizes``, in bytes. A bin has at least
    ``min_files`` files; ``max_files`` and ``max_bytes`` limit the files of all bins together.
    """

    target: int
    min_files: int = MIN_FILES
    max_files: int | None = None
    sizes: tuple[int, float] = (0, inf)
    max_bytes: float = inf

    @property
    def is_limited(self) -> bool:
        """Whether not all that is worth it may be combined."""
        return self.max_files is not None or self.max_bytes < inf

    @property
    def most(self) -> float:
        """How many files may be combined."""
        return inf if self.max_files is None else self.max_files

    @property
    def range(self) -> tuple[int, int]:
        """The sizes of files that can be combined; the second is excluded."""
        return self.sizes[0], ceil(min(self.sizes[1], self.target * _ENOUGH))

    def is_full(self, bins: Collection[Bin], files: Iterable[DataFile]) -> bool:
        """Return whether other files than those could hardly add to the bins."""
        if not bins:
            return False
        counted = sum(len(one.files) for one in bins)
        return counted > self.most - self.min_files or _size(files) >= 2 * self.max_bytes


def small_file_bins(
    files: Iterable[DataFile],
    partitions: Mapping[int, Partition],
    history: History,
    wanted: SmallFiles,
) -> list[Bin]:
    """Return bins of small files without deleted rows, each at most the target size.

    Bins whose sources older snapshots need come last.
    """
    low, high = wanted.range
    small = [f for f in files if low <= f.file_size_bytes < high and not f.dead_rows]
    packed = _packed(small, partitions, history, wanted.target)
    found = [b for b in packed if len(b.files) >= wanted.min_files]
    return _limited(found, wanted.most, wanted.max_bytes, wanted.min_files)


def dead_row_bins(
    files: Iterable[DataFile],
    partitions: Mapping[int, Partition],
    threshold: float,
    target: int,
    *,
    below: float = inf,
    max_bytes: float = inf,
) -> list[Bin]:
    """Return bins of files with at least the part ``threshold`` of their rows deleted.

    Takes only files below ``below`` bytes; ``max_bytes`` limits the files of all bins together.
    Older snapshots always need the sources.
    """
    worth = [
        f
        for f in files
        if (dead := f.dead_rows)
        and dead >= threshold * (f.record_count or dead)
        and f.file_size_bytes < below
    ]
    return _limited(chosen_bins(worth, partitions, target), inf, max_bytes, 1)


def chosen_bins(
    files: Iterable[DataFile], partitions: Mapping[int, Partition], target: int
) -> list[Bin]:
    """Return bins of these files; older snapshots keep the sources."""
    return _packed(list(files), partitions, None, target)


def batches(bins: Iterable[Bin], most: int = _BIN_COUNT) -> Iterable[list[Bin]]:
    """Yield bins in lots that are committed one by one, so that finished work is kept.

    A lot has at most ``most`` bins. Either all bins of a lot leave history to their results or none
    does: DuckLake commits the two kinds differently.
    """
    lot: list[Bin] = []
    size = 0
    for one in bins:
        differs = bool(lot) and lot[0].keeps_history != one.keeps_history
        if lot and (differs or len(lot) == most or size + one.bytes > _BIN_BYTES):
            yield lot
            lot, size = [], 0
        lot.append(one)
        size += one.bytes
    if lot:
        yield lot


class History:
    """The loss of the remaining older snapshots if new files replaced some files."""

    def __init__(
        self,
        versions: Iterable[ColumnVersion],
        snapshots: Sequence[int],
        deleted_from: Iterable[int] = (),
        mappings: Mapping[int, NameMapping] | None = None,
    ) -> None:
        """``snapshots`` are the ids of the remaining ones; ``deleted_from`` are files with deletes.

        A file is in ``deleted_from`` if any remaining snapshot may see its deletes.
        """
        every = list(versions)
        now = {_kept(v): v for v in every if v.end is None}
        current = {v.id for v in now.values()}
        # The snapshots in which the current columns became visible, for the first time or again.
        follows = {(_kept(v), v.end) for v in every}
        comes = {v.begin for v in every if _kept(v) in now and (_kept(v), v.begin) not in follows}
        self._shaped = sorted(comes)
        ordered = sorted(snapshots)
        self._deleted_from = frozenset(deleted_from)
        self._mappings = mappings or {}
        self._changed: dict[FieldId, int] = {}
        self._dropped: dict[FieldId, int] = {}
        for version in every:
            last = _last_in(ordered, version)
            if last is not None and _kept(version) not in now:
                where = self._changed if version.id in current else self._dropped
                where[version.id] = max(last, where.get(version.id, last))

    def is_of_one_shape(self, files: Iterable[DataFile]) -> bool:
        """Return whether files began with the same set of the current columns and types.

        DuckDB 1.5 rewrites a compacted file with the columns of the snapshot in which its oldest
        source began, and loses the other columns of newer sources.
        """
        return len({bisect_right(self._shaped, f.begin_snapshot) for f in files}) < 2

    def allows(self, file: DataFile) -> bool:
        """Return whether a file with the newest columns can replace ``file`` in all snapshots.

        It cannot if rows of ``file`` were deleted, or if an older snapshot shows a column that only
        ``file`` has, or a column with another type or another default.
        """
        if file.id in self._deleted_from:
            return False
        if any(last >= file.begin_snapshot for last in self._changed.values()):
            return False
        shown = {i for i, last in self._dropped.items() if last >= file.begin_snapshot}
        if not shown:
            return True
        held = _held(file, self._mappings)
        return held is not None and not held & shown


def _kept(version: ColumnVersion) -> tuple[object, ...]:
    return version.id, version.type.lower(), version.parent, version.initial_default


def _last_in(snapshots: Sequence[int], version: ColumnVersion) -> int | None:
    """Return the last remaining snapshot that shows a column version, None if there is none."""
    if version.end is None:
        return snapshots[-1] if snapshots and snapshots[-1] >= version.begin else None
    at = bisect_left(snapshots, version.end) - 1
    return snapshots[at] if at >= 0 and snapshots[at] >= version.begin else None


def _held(file: DataFile, mappings: Mapping[int, NameMapping]) -> set[FieldId] | None:
    """Return the columns that a file has, None if only their positions identify them."""
    if file.mapping_id is not None:
        mapping = mappings[file.mapping_id]
        open_names = list(mapping.names)
        found: set[FieldId] = set()
        while open_names:
            name = open_names.pop()
            found.add(name.field_id)
            open_names.extend(name.children)
        return found
    if file.layout is None or any(f.id is None for f in file.layout.fields):
        return None
    return {FieldId(f.id) for f in file.layout.walk() if f.id is not None}


def _packed(
    files: Sequence[DataFile],
    partitions: Mapping[int, Partition],
    history: History | None,
    target: int,
) -> list[Bin]:
    groups: dict[tuple[Partition, bool], list[DataFile]] = defaultdict(list)
    for file in sorted(files, key=lambda f: (f.begin_snapshot, f.id)):
        keeps = history is not None and history.allows(file)
        groups[partitions.get(file.id, NO_PARTITION), not keeps].append(file)
    bins: list[Bin] = []
    for (partition, loses), members in groups.items():
        for part in _filled(members, target):
            keeps = history is not None and not loses and history.is_of_one_shape(part)
            bins.append(Bin(part, partition, keeps))
    return sorted(bins, key=lambda b: (not b.keeps_history, b.files[0].id))


def _filled(files: Sequence[DataFile], target: int) -> Iterable[tuple[DataFile, ...]]:
    """Yield runs of neighbours within ``target`` bytes, as few and as even as possible.

    They are even because bins are written in parallel, and the largest one takes longest.
    """
    left = _size(files)
    run: list[DataFile] = []
    size = 0
    for file in files:
        goal = left / max(1, -(-left // target))
        more = file.file_size_bytes
        if run and (size + more > target or size + more / 2 > goal):
            yield tuple(run)
            left -= size
            run, size = [], 0
        run.append(file)
        size += more
    if run:
        yield tuple(run)


def _limited(bins: Sequence[Bin], max_files: float, max_bytes: float, min_files: int) -> list[Bin]:
    """Return the bins, or the first files of them, that are within both limits."""
    found: list[Bin] = []
    for one in bins:
        part: list[DataFile] = []
        for file in one.files:
            if max_files < 1 or file.file_size_bytes > max_bytes:
                break
            part.append(file)
            max_files, max_bytes = max_files - 1, max_bytes - file.file_size_bytes
        if len(part) < min_files:
            max_files, max_bytes = max_files + len(part), max_bytes + _size(part)
            continue
        found.append(Bin(tuple(part), one.partition, one.keeps_history))
    return found


def _size(files: Iterable[DataFile]) -> int:
    return sum(f.file_size_bytes for f in files)
