"""The rows of a table as a reader sees them: files, their deletes, and inlined rows.

This process keeps what it has read: rows of the catalog, their frames, layouts of files.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import TypeVar

from shelduck.catalog.databases.store import Store
from shelduck.catalog.read import read
from shelduck.catalog.read.files.data_files import FEW, few_data_files, files_at_once
from shelduck.catalog.read.holdings import Holdings, holdings_of
from shelduck.catalog.read.inlined_rows import inlined_since
from shelduck.catalog.read.queries import chunks
from shelduck.engine.bridge import engine_for
from shelduck.engine.bridge.classic import again
from shelduck.engine.files.layouts import read_layouts
from shelduck.engine.files.listing import absent_files
from shelduck.engine.session import DataFrame, SparkSession
from shelduck.errors import CorruptLake
from shelduck.model.changes.staged_rows import StagedRows
from shelduck.model.files.data_file import (
    DataFile,
    DeletesSeen,
    InlinedRows,
    Layout,
    NameMapping,
    counted_rows,
    deletes_seen,
    live_rows,
)
from shelduck.model.shadows.conservation import named
from shelduck.model.tables.schema import Field, FieldId, TableId
from shelduck.model.tables.table_version import Mark, TableVersion
from shelduck.read.file_lists import FileLists
from shelduck.read.listed_files import PART, LargeTable, LaterFiles, ListedFiles, MakePlan
from shelduck.read.plan.scan import ScanPlan, plan_scan
from shelduck.read.pruning import Pruner
from shelduck.read.scan.rollup_rule import Chooser
from shelduck.read.scan.scan_frames import Local, Origin, frame_of_inlined, read_rows
from shelduck.read.sought_files import SoughtFiles

Found = TypeVar("Found")
# Files of this size are so rare that their sizes are compared with the storage.
_HUGE = 16 * 2**30
_MOST_TABLES = 100
_MOST_FRAMES = 8


@dataclass(frozen=True)
class TableRows:
    """Where the rows of one table version are; ``files`` have their layouts.

    The files of a large table are `LaterFiles`, of which scans look up only those that they need.
    ``kept`` may have a DataFrame of the inlined rows.
    """

    store: Store
    table: TableVersion
    files: Sequence[DataFile]
    mappings: Mapping[int, NameMapping]
    inlined: tuple[InlinedRows, ...]
    unsafe_bounds: frozenset[FieldId] = frozenset()
    kept: KeptRows | None = None

    @property
    def is_empty(self) -> bool:
        """True if neither a file nor the catalog has rows, deleted ones included."""
        return not self.files and not any(part.rows for part in self.inlined)

    @property
    def large(self) -> LargeTable | None:
        """The files of a large table."""
        return self.files.table if isinstance(self.files, LaterFiles) else None

    @property
    def examples(self) -> Sequence[DataFile]:
        """Files of each kind that there is: some of a large table, else all."""
        return self.files if self.large is None else self.large.examples

    @property
    def bytes(self) -> int:
        """The size of all files."""
        if self.large is not None:
            return self.large.bytes
        return sum(f.file_size_bytes for f in self.files)

    @property
    def held(self) -> int | None:
        """How many rows the files hold, deleted ones included; None if that is not known."""
        return counted_rows(self.files) if self.large is None else None

    def live_rows(self) -> int | None:
        """Return how many rows of the files are not deleted; None if that is not known."""
        if self.large is not None:
            return self.large.live_rows()
        return live_rows(self.files)

    def seen(self) -> Iterable[tuple[int, DeletesSeen]]:
        """Return the id of each file and its deletes."""
        if self.large is not None:
            return self.large.seen()
        return ((f.id, deletes_seen(f)) for f in self.files)

    def files_of(self, ids: Collection[int]) -> dict[int, DataFile]:
        """Return files by id."""
        if isinstance(self.files, LaterFiles):
            return self.files.of(ids)
        return {f.id: f for f in self.files if f.id in ids}

    def by_layout(
        self, look: Callable[[DataFile, NameMapping | None], Found]
    ) -> tuple[dict[int, Found], dict[int, int]]:
        """Check one file of each layout: tables have few layouts, and many files.

        Returns the results by the number of a layout, and the number of each file by its id.
        """
        found: dict[int, Found] = {}
        number_of: dict[int, int] = {}
        numbers: dict[object, int] = {}
        for file in self.files:
            # Most files share the same object, which is faster to find than an equal one.
            same, alike = (id(file.layout), file.mapping_id), (file.layout, file.mapping_id)
            if same not in numbers:
                numbers[same] = numbers.setdefault(alike, len(found))
            number = numbers[same]
            if number not in found:
                names = None if file.mapping_id is None else self.mappings[file.mapping_id]
                found[number] = look(file, names)
            number_of[file.id] = number
        return found, number_of

    def frame(
        self,
        spark: SparkSession,
        columns: Sequence[str] | None = None,
        origins: Sequence[Origin] = (),
        choose: Chooser | None = None,
    ) -> DataFrame:
        """Return the rows with the chosen columns, followed by the origin of each row.

        ``choose`` may answer a query from a rollup.
        """
        snapshots = Origin.SNAPSHOT_ID in origins
        if engine_for(spark).has_jvm:
            plan, pruner = self._scan(columns, snapshots=snapshots)
        else:
            make = self._planner(columns, snapshots=snapshots)
            plan, pruner = make(self.files, self.mappings), self._pruner
        return read_rows(
            spark,
            plan,
            pruner,
            inlined=self.inlined,
            local=self._local(spark),
            origins=origins,
            choose=choose,
        )

    def _local(self, spark: SparkSession) -> Local | None:
        kept = self.kept
        # Statements also read some of the rows.
        if kept is None or self.inlined is not kept.rows:
            return None
        return partial(kept.frame, spark)

    def decided(self, found: DataFrame) -> Decided | None:
        """Return what the catalog knows about the rows of these files that a condition chooses.

        ``found`` are the rows of a frame of the files, with all columns, for which the condition is
        true. None if it is more than filters on one scan.
        """
        texts = engine_for(found.sparkSession).whole_condition(found)
        if not texts:
            return None
        plan, pruner = self._scan(None)
        if len(plan.groups) != 1:
            return None
        [group] = plan.groups
        is_useless = self.large is not None and not pruner.asked(group, texts).columns
        if group.snapshot_column is not None or is_useless:
            return None
        whole: list[DataFile] = []
        partly: list[DataFile] = []
        for part in pruner.parts(group, texts):
            counted = [f for f in part.files if f.record_count is not None]
            certain = pruner.certain(part, texts, counted)
            for file in part.files:
                (whole if file.id in certain else partly).append(file)
        if self.large is not None:
            self.large.as_seen([*whole, *partly])
        return Decided(tuple(whole), tuple(partly))

    @cached_property
    def _pruner(self) -> Pruner:
        return Pruner(self.store, self.table, self.unsafe_bounds)

    def _scan(
        self, columns: Sequence[str] | None, *, snapshots: bool = False
    ) -> tuple[ScanPlan, Pruner]:
        """Return a plan, whose groups have examples for large tables, and the files for it."""
        make = self._planner(columns, snapshots=snapshots)
        if self.large is None:
            return make(self.files, self.mappings), self._pruner
        return self.large.scan(make, self.table, self.unsafe_bounds)

    def _planner(self, columns: Sequence[str] | None, *, snapshots: bool) -> MakePlan:
        return partial(plan_scan, self.table, columns=columns, snapshots=snapshots)


@dataclass(frozen=True, slots=True)
class Decided:
    """Files of which a condition chooses every row, and those of which it may choose some."""

    whole: tuple[DataFile, ...]
    partly: tuple[DataFile, ...]


def table_rows(
    store: Store,
    table: TableVersion,
    layouts: LayoutMemory,
    staged: StagedRows | None = None,
    lists: FileLists | None = None,
    *,
    memory: KeptInlined | None = None,
    at_once: bool = False,
) -> TableRows:
    """Find the rows of a table version, and those that a transaction staged on top of it.

    With ``lists``, the files of a large table are looked up when a query needs them. ``memory``
    keeps the rows of the catalog for the next reader. ``at_once`` asks for a few files and what
    belongs to them in one statement; all tables of Shelduck must exist.
    """
    files: list[DataFile] = []
    mappings: dict[int, NameMapping] = {}
    kept = NOTHING_KEPT
    memory = memory or KeptInlined()
    if table.id >= 0:
        with store.read() as connection:
            seen = memory.snapshot_of(table.id)
            large = lists if staged is None else None
            few = None
            if at_once and not (large is not None and large.has(table)):
                most = FEW if large is None else min(FEW, large.listed_from)
                few = files_at_once(connection, table, at_most=most, seen=seen)
            found: LargeTable | list[DataFile] | None
            found, known = few or (None, holdings_of(connection, table.id, seen))
            if found is None and large is not None:
                found = _listed(connection, store, table, known, large)
            if isinstance(found, LargeTable):
                kept = memory.rows(connection, table, known)
                _require_sizes(table, found.larger_than(_HUGE))
                later = LaterFiles(found)
                return TableRows(store, table, later, found.mappings, kept.rows, kept=kept)
            files = read.data_files(connection, table, known) if found is None else found
            mappings = read.name_mappings(connection, (f.mapping_id for f in files))
            kept = memory.rows(connection, table, known)
    _require_sizes(table, files)
    unsafe: frozenset[FieldId] = frozenset()
    inlined = kept.rows
    if staged is not None:
        unsafe = staged.unsafe_bounds
        files = staged.over(table, files)
        mappings |= staged.mappings()
        inlined = tuple(staged.over_inlined(table, inlined))
    filled = layouts.fill(files, table.full_name)
    return TableRows(store, table, tuple(filled), mappings, inlined, unsafe, kept=kept)


def some_rows(
    store: Store, table: TableVersion, layouts: LayoutMemory, ids: Iterable[int]
) -> TableRows:
    """Find some files of a table version by id, without rows in the catalog itself.

    Files that another commit has merged since are left out.
    """
    files: list[DataFile] = []
    mappings: dict[int, NameMapping] = {}
    for some in chunks(ids, PART):
        with store.read() as connection:
            found = read.data_files(connection, table, ids=some)
            mappings |= read.name_mappings(connection, (f.mapping_id for f in found))
        files += found
    _require_sizes(table, files)
    filled = layouts.fill(files, table.full_name)
    return TableRows(store, table, tuple(filled), mappings, ())


def _listed(
    connection: read.Connection,
    store: Store,
    table: TableVersion,
    known: Holdings,
    lists: FileLists,
) -> LargeTable | list[DataFile] | None:
    """Return the files of a large table or of a small one; None if all must be looked at."""
    outline = lists.known_outline(table, known)
    if outline is None and not lists.has(table):
        files = few_data_files(connection, table, known, at_most=lists.listed_from)
        if files is not None:
            return files
    outline = outline or lists.outline(connection, table, known)
    if outline is not None:
        return SoughtFiles(store, connection, table, known=known, lists=lists, outline=outline)
    found = lists.of(connection, table)
    if found is None:
        return None
    return ListedFiles(store, connection, table, known=known, lists=lists, files=found)


def _require_sizes(table: TableVersion, files: Sequence[DataFile]) -> None:
    """Raise CorruptLake for a file that is much smaller than the catalog says.

    Spark would plan a task for each part of it that does not exist.
    """
    huge = [(f.path, f.file_size_bytes) for f in files if f.file_size_bytes > _HUGE]
    wrong = absent_files(huge)
    if wrong:
        raise CorruptLake(
            f"data files of {table.full_name} are not those of the catalog: {named(wrong)}; restore"
            " them, or correct file_size_bytes in ducklake_data_file"
        )


Chosen = tuple[tuple[Field, ...], tuple[Origin, ...]]


@dataclass
class KeptRows:
    """Rows of one table at one snapshot, and DataFrames of them."""

    mark: Mark
    rows: tuple[InlinedRows, ...]
    frames: dict[Chosen, tuple[SparkSession, DataFrame]] = field(default_factory=dict)

    def frame(
        self, spark: SparkSession, columns: Sequence[Field], origins: Sequence[Origin]
    ) -> DataFrame:
        """Return the rows as `frame_of_inlined` does; Spark computes them once."""
        chosen = tuple(columns), tuple(origins)
        known = self.frames.get(chosen)
        if known is not None and known[0] is spark:
            return again(known[1])
        made = frame_of_inlined(spark, self.rows, columns, origins)
        kept = engine_for(spark).kept(made)
        if kept is None:
            return made
        if len(self.frames) >= _MOST_FRAMES:
            self.frames.clear()
        self.frames[chosen] = spark, kept
        return again(kept)


NOTHING_KEPT = KeptRows((-1, datetime.min.replace(tzinfo=UTC), 0, 0, 0), ())


class KeptInlined:
    """The rows of several tables of one lake; threads may share it."""

    def __init__(self) -> None:
        self._kept: dict[TableId, KeptRows] = {}

    def snapshot_of(self, table: TableId) -> int:
        """Return the snapshot at which rows of a table were read, -1 if they were not."""
        kept = self._kept.get(table)
        return -1 if kept is None else kept.mark[0]

    def rows(self, connection: read.Connection, table: TableVersion, known: Holdings) -> KeptRows:
        """Return the rows of the catalog at a table's snapshot; no statement if they are kept."""
        mark = table.snapshot.mark
        is_newest = known.newest == mark
        kept = self._kept.get(table.id)
        if kept is not None and is_newest and kept.mark == mark:
            return kept
        rows = None
        # If there were none, asking for all is as quick.
        if kept is not None and kept.rows and is_newest and kept.mark in known.marks:
            rows = inlined_since(connection, table, known, kept.rows, kept.mark[0])
        if rows is None:
            rows = read.inlined_rows(connection, table, known)
        found = KeptRows(mark, tuple(rows))
        if is_newest:
            if len(self._kept) >= _MOST_TABLES:
                self._kept.clear()
            self._kept[table.id] = found
        return found


class LayoutMemory:
    """Layouts by data file id, for one lake; threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[int, Layout] = {}
        self._unrecorded: dict[int, Layout] = {}

    def fill(self, files: Sequence[DataFile], table: str) -> list[DataFile]:
        """Return the files with their layouts; read the footers of files with unknown layouts."""
        missing = [f for f in files if f.layout is None and f.id not in self._known]
        if missing:
            paths, sizes = [f.path for f in missing], [f.file_size_bytes for f in missing]
            found = read_layouts(paths, sizes, table=table)
            learned = {f.id: layout for f, layout in zip(missing, found, strict=True)}
            with self._lock:
                self._known.update(learned)
                self._unrecorded.update(learned)
        return [f if f.layout is not None else f._replace(layout=self._known[f.id]) for f in files]

    def unrecorded(self) -> Mapping[int, Layout]:
        """Return the layouts that the catalog does not have yet."""
        with self._lock:
            return dict(self._unrecorded)

    def mark_recorded(self, learned: Mapping[int, Layout]) -> None:
        """Remove these from the layouts to record."""
        with self._lock:
            for file_id in learned:
                self._unrecorded.pop(file_id, None)
