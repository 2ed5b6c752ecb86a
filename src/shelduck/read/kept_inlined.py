"""What this process has read and keeps: rows of the catalog, their frames, layouts of files.

They are used while the lake's newest snapshot is the one at which they were read. The next snapshot
asks the catalog only for changes. Older snapshots read their rows again, because a flush moves rows
to files at all snapshots.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from shelduck.catalog.read import read
from shelduck.catalog.read.holdings import Holdings
from shelduck.catalog.read.inlined_rows import inlined_since
from shelduck.engine.bridge import engine_for
from shelduck.engine.bridge.classic import again
from shelduck.engine.session import DataFrame, SparkSession
from shelduck.model.files.data_file import DataFile, InlinedRows
from shelduck.model.files.layout import Layout
from shelduck.model.tables.schema import Field, TableId
from shelduck.model.tables.table_version import Mark, TableVersion
from shelduck.read.scan.scan_frames import Origin, frame_of_inlined

Chosen = tuple[tuple[Field, ...], tuple[Origin, ...]]

_MOST_TABLES = 100
_MOST_FRAMES = 8


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

    def fill(
        self,
        files: Sequence[DataFile],
        read_footers: Callable[[list[str], list[int]], list[Layout]],
    ) -> list[DataFile]:
        """Return the files with their layouts; read the footers of files with unknown layouts."""
        missing = [f for f in files if f.layout is None and f.id not in self._known]
        if missing:
            found = read_footers([f.path for f in missing], [f.file_size_bytes for f in missing])
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
