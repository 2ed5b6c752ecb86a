"""Which files maintenance looks at: the catalog chooses them, and only these become objects."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from shelduck.catalog.read import table_facts as read_upkeep
from shelduck.catalog.read.queries import chunks
from shelduck.engine.session import SparkSession
from shelduck.files.compact import Past, Survey, survey_of
from shelduck.lake.state import LakeState
from shelduck.model.files.compaction import Bin, Partition, SmallFiles
from shelduck.model.files.data_file import DataFile, NameMapping
from shelduck.model.tables.table_version import TableVersion
from shelduck.read.listed_files import PART
from shelduck.read.scan.matching import Where
from shelduck.read.scan.scan_frames import Origin
from shelduck.read.table_rows import TableRows, some_rows
from shelduck.write.parquet.write import file_ids

# So many files are looked at first if few are wanted; then as many again, and so on.
_PAGE = 1_000
LOOKED_UP = 10_000
"""So many files become objects for somebody who only asks what a compaction would do."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """Files that would become ``new_files``; ``is_about`` says that only sums of them are known."""

    files: int
    bytes: int
    new_files: int
    is_about: bool = False


def survey_small(
    state: LakeState, table: TableVersion, wanted: SmallFiles, among: Collection[int] | None = None
) -> tuple[Survey, list[Bin]]:
    """Find small files that are worth combining, ``among`` those with these ids, and their bins.

    Only small files are looked up. With a limit, they are looked up page by page, oldest first,
    until they fill it. Each page is read in a transaction of its own; the commit finds out if a
    file has changed since.
    """
    found = _Found(state, table)
    if among is not None:
        found.add(sorted(among))
        survey = found.survey()
        return survey, survey.small(wanted)
    last, most = -1, _PAGE if wanted.is_limited else PART
    while True:
        ids = state.store.ask(read_upkeep.small_files, table, wanted.range, after=last, most=most)
        found.add(ids)
        is_last = len(ids) < most
        if is_last or wanted.is_limited:
            survey = found.survey()
            bins = survey.small(wanted)
            if is_last or wanted.is_full(bins, found.files):
                return survey, bins
            most = 2 * most
        last = ids[-1]


def survey_worn(state: LakeState, table: TableVersion, threshold: float) -> Survey:
    """Find the files with at least the part ``threshold`` of their rows deleted."""
    ids = state.store.ask(read_upkeep.worn_files, table, threshold)
    return survey_some(state, table, ids)


def survey_some(state: LakeState, table: TableVersion, ids: Collection[int]) -> Survey:
    """Find files by id; those that the snapshot does not see are left out."""
    found = _Found(state, table)
    found.add(sorted(ids))
    return found.survey()


def outlook(
    state: LakeState, table: TableVersion, *, reads_footers: bool
) -> tuple[Outlook, Outlook] | None:
    """Return what combining small files would do, and rewriting those with many deleted rows.

    Files are looked up if there are up to `LOOKED_UP` of a kind; of more, the catalog tells sums.
    None if footers must be read for it and may not.
    """
    target, threshold = table.options.target_file_size, table.options.rewrite_delete_threshold
    wanted = SmallFiles(target)
    ids: set[int] = set()
    with state.store.read() as connection:
        small = read_upkeep.small_sums(connection, table, wanted.range, target)
        worn = read_upkeep.worn_sums(connection, table, threshold)
        if not reads_footers and _is_looked_up(small):
            ids |= set(read_upkeep.small_files(connection, table, wanted.range))
        if not reads_footers and _is_looked_up(worn):
            ids |= set(read_upkeep.worn_files(connection, table, threshold))
        if ids and not read_upkeep.know_layouts(connection, ids):
            return None
    found = [Outlook(s.files, s.bytes, s.new, is_about=bool(s.files)) for s in (small, worn)]
    if _is_looked_up(small):
        found[0] = _outlook(survey_small(state, table, wanted)[1])
    if _is_looked_up(worn):
        found[1] = _outlook(survey_worn(state, table, threshold).dead(threshold, target))
    return found[0], found[1]


def _is_looked_up(sums: read_upkeep.FileCounts) -> bool:
    return sums.files > 0 and sums.looked_at <= LOOKED_UP


def _outlook(bins: Sequence[Bin]) -> Outlook:
    files, size = sum(len(b.files) for b in bins), sum(b.bytes for b in bins)
    return Outlook(files, size, len(bins))


def files_holding(spark: SparkSession, rows: TableRows, where: Where) -> set[int]:
    """Return the files in which the condition is true for a row; reads its columns."""
    frame = replace(rows, inlined=()).frame(spark, origins=(Origin.FILE_ID,))
    return file_ids(where.rows(frame))


class _Found:
    """Files that were looked up so far, and what must be known about them."""

    def __init__(self, state: LakeState, table: TableVersion) -> None:
        self._state, self._table = state, table
        self.files: list[DataFile] = []
        self._mappings: dict[int, NameMapping] = {}
        self._partitions: dict[int, Partition] = {}
        self._past = state.store.ask(Past.of, table)

    def add(self, ids: Collection[int]) -> None:
        """Look up files by id."""
        rows = some_rows(self._state.store, self._table, self._state.layouts, ids)
        self.files += rows.files
        self._mappings |= rows.mappings
        for some in chunks([f.id for f in rows.files if f.partition_id is not None], PART):
            found = self._state.store.ask(read_upkeep.partitions, self._table, some)
            self._partitions |= found

    def survey(self) -> Survey:
        """Return the survey of the files so far."""
        rows = TableRows(self._state.store, self._table, tuple(self.files), self._mappings, ())
        return survey_of(rows, self._partitions, self._past.history(self._mappings))
