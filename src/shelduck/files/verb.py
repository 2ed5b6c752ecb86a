"""Maintenance of one table: its files joined, and rows of the catalog moved into files.

Bins of files are rewritten and committed lot by lot.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf

from shelduck.engine.named_errors import unknown_columns
from shelduck.errors import Conflict, InvalidRequest, NotFound, OutcomeUnknown, Unsupported
from shelduck.files.candidates import files_holding, survey_small, survey_some, survey_worn
from shelduck.files.compact import Derived, Report, RewrittenBin, Survey, survey, write_bins
from shelduck.lake.done import Done, discard, discard_unpublished
from shelduck.lake.lookup import TableHandle
from shelduck.lake.results import Committed, Compacted, Result, Staged, TableName
from shelduck.lake.state import LakeState, Writer
from shelduck.lake.unit import UnitOfWork, refuse_in_transaction
from shelduck.model.files.compaction import MIN_FILES, Bin, SmallFiles, batches
from shelduck.model.tables.options import option_text
from shelduck.model.tables.table_version import TableVersion, why_not_written
from shelduck.read.scan.matching import Condition, Where
from shelduck.read.table_rows import table_rows
from shelduck.write.changes.flush_rows import flush_table
from shelduck.write.hooks import carry_out_rows
from shelduck.write.progress import bin_progress

Parts = Sequence[RewrittenBin]


def rewrite(
    state: LakeState,
    found: Survey,
    bins: Sequence[Bin],
    *,
    what: str,
    dry_run: bool,
    must: bool = False,
    derived: Derived | None = None,
) -> Compacted:
    """Write the bins and commit them in lots, each a snapshot; ``what`` is its message.

    If another commit deleted from or rewrote the files of a bin, the bin is dropped and its new
    files are removed; the other bins are committed. A table with columns that Shelduck cannot write
    is left alone, and the result says why; with ``must``, Unsupported is raised instead.
    """
    name = TableName.of(found.table)
    files, size = sum(len(b.files) for b in bins), sum(b.bytes for b in bins)
    why = why_not_written(found.table.columns, found.table.full_name) if bins else None
    if why is not None and must:
        raise Unsupported(why)
    if why is not None:
        return Compacted(name, bytes=size, skipped=files, dry_run=dry_run, note=why)
    if dry_run or not bins:
        return Compacted(name, files, size, len(bins), dry_run=dry_run)
    landed: list[RewrittenBin] = []
    snapshots: list[int] = []
    with bin_progress(state.spark, name, bins, what, show=state.show_progress) as report:
        for lot in batches(bins):
            message = f"{what} {name}"
            written = _written(state, found, lot, message=message, report=report, derived=derived)
            for snapshot, parts in written:
                snapshots.append(snapshot)
                landed.extend(parts)
    done = sum(len(part.bin.files) for part in landed)
    return Compacted(
        name,
        files=done,
        bytes=sum(part.bin.bytes for part in landed),
        new_files=sum(part.done.counts.files for part in landed),
        new_bytes=sum(part.done.counts.bytes for part in landed),
        snapshots=tuple(snapshots),
        skipped=files - done,
    )


def _written(
    state: LakeState,
    found: Survey,
    lot: Sequence[Bin],
    *,
    message: str,
    report: Report | None,
    derived: Derived | None,
) -> list[tuple[int, Parts]]:
    """Write a lot and commit it; a writer is registered for it, so that a job waits for one lot."""
    writer = Writer(state.store, state.leases)
    try:
        writer.register(found.table)
        written = write_bins(state.spark, found.rows, lot, report=report, derived=derived)

        def commit(parts: Parts) -> int:
            unit = UnitOfWork(state, state.commit_info(message))
            unit.writer, unit.borrows_writer = writer, True
            # If not all of them are committed together, the others follow.
            unit.writer_stays = len(parts) < len(written)
            return _commit(unit, parts)

        return land(written, commit)
    finally:
        writer.give_up()


def land(parts: Parts, commit: Callable[[Parts], int]) -> list[tuple[int, Parts]]:
    """Commit the parts together or, if one of them loses to another commit, one by one.

    ``commit`` returns the snapshot. The files of parts that are not committed are removed.
    """
    try:
        return [(commit(parts), parts)]
    except OutcomeUnknown:
        raise
    except Conflict:
        found: list[tuple[int, Parts]] = []
        for part in parts:
            with suppress(Conflict):
                found.append((commit([part]), [part]))
        _discard_lost(parts, [part for _, landed in found for part in landed])
        return found
    except Exception:
        # Not after Ctrl-C: the commit may have succeeded.
        for part in parts:
            discard(part.done.table, part.done.paths)
        raise


def _discard_lost(parts: Parts, landed: Parts) -> None:
    """Remove the files of parts that were not committed: parts may share a directory."""
    table = parts[0].done.table
    published = {table.path + path for part in landed for path in part.done.paths}
    discard_unpublished(table, [path for part in parts for path in part.done.paths], published)


def _commit(unit: UnitOfWork, parts: Parts) -> int:
    table = parts[0].done.table
    changes = tuple(change for part in parts for change in part.done.changes)
    unit.stage(Done(table, changes))
    landed = unit.commit()
    assert isinstance(landed, Committed)
    return landed.snapshot


class UpkeepVerbs(TableHandle, in_parts=True):
    """Fewer and smaller files for the same rows. Readers and the change feed see no difference."""

    def compact(
        self,
        *,
        where: Condition | Where | None = None,
        target_file_size: int | str | None = None,
        min_files: int = MIN_FILES,
        max_files: int | None = None,
        max_bytes: int | str | None = None,
        min_file_size: int | str | None = None,
        max_file_size: int | str | None = None,
        dry_run: bool = False,
    ) -> Compacted:
        """Combine small files, partition by partition, with the table's newest columns.

        Rows keep their ids and their snapshots. Files with deleted rows are left to
        `rewrite_deletes`. If older snapshots show what the new files lack (a dropped column,
        another type), the old files stay until those snapshots expire. Each lot of about 8 GB is
        one commit. Files that other commits change in the meantime are skipped.

        Args:
            where: Only files that hold a row for which this is true.
            target_file_size: Bytes, or text such as ``"128MB"``; by default the option of that
                name. Files of three quarters of it are large enough.
            min_files: Combine at least this many files into one.
            max_files: Rewrite at most this many files in this call.
            max_bytes: Rewrite at most this much in this call; bytes, or text such as ``"10GB"``.
            min_file_size: Leave smaller files alone; as ``target_file_size``.
            max_file_size: Leave files of this size and larger ones alone; likewise.
            dry_run: Only report what would be done.

        Raises:
            InvalidRequest: inside a transaction, or for a size that cannot be parsed.
            Unsupported: a file cannot be read correctly.
        """
        refuse_in_transaction(self._unit, "compact()")
        if min_files < 1 or (max_files is not None and max_files < 1):
            raise InvalidRequest("min_files and max_files must be at least 1")
        table = self._version()
        if target_file_size is None:
            target_file_size = table.options.target_file_size
        wanted = SmallFiles(
            bytes_of("target_file_size", target_file_size),
            min_files,
            max_files,
            _sizes(min_file_size, max_file_size),
            _limit("max_bytes", max_bytes),
        )
        found, bins = survey_small(self._state, table, wanted, self._holding(table, where))
        return rewrite(self._state, found, bins, what="compact", dry_run=dry_run)

    def rewrite_deletes(
        self,
        delete_threshold: float | None = None,
        *,
        max_bytes: int | str | None = None,
        max_file_size: int | str | None = None,
        dry_run: bool = False,
    ) -> Compacted:
        """Rewrite files with many deleted rows, without those rows.

        Row ids stay the same. Older snapshots keep the old files until they expire.

        Args:
            delete_threshold: The fraction of deleted rows, 0 to 1, from which on a file is
                rewritten; by default the option rewrite_delete_threshold (0.95). 0 rewrites every
                file with a deleted row.
            max_bytes: Rewrite at most this much in this call; bytes, or text such as ``"10GB"``.
            max_file_size: Leave files of this size and larger ones alone; likewise.
            dry_run: Only report what would be done.
        """
        refuse_in_transaction(self._unit, "rewrite_deletes()")
        table = self._version()
        options = table.options
        threshold = options.rewrite_delete_threshold
        if delete_threshold is not None:
            threshold = float(option_text("rewrite_delete_threshold", delete_threshold)[1])
        found = survey_worn(self._state, table, threshold)
        bins = found.dead(
            threshold,
            options.target_file_size,
            below=_limit("max_file_size", max_file_size),
            max_bytes=_limit("max_bytes", max_bytes),
        )
        return rewrite(self._state, found, bins, what="rewrite deletes of", dry_run=dry_run)

    def rewrite(self, files: Collection[int] | None = None, *, dry_run: bool = False) -> Compacted:
        """Rewrite files with the current columns, types and defaults.

        Rows keep their ids. Older snapshots keep the old files until they expire. Each lot of about
        8 GB is one commit. Files that other commits change in the meantime are skipped.

        Args:
            files: Ids of data files, from `Table.files`; by default all.
            dry_run: Only report what would be done.

        Raises:
            NotFound: the newest snapshot has no file of such an id that can be rewritten.
            InvalidRequest: inside a transaction.
            Unsupported: a column has a type that Shelduck does not write.
        """
        refuse_in_transaction(self._unit, "rewrite()")
        table = self._version()
        if files is None:
            found = survey(self._state, table)
        else:
            found = survey_some(self._state, table, set(files))
        known = {f.id for f in found.rows.files}
        chosen = known if files is None else set(files)
        if chosen - known:
            raise NotFound(
                f"the newest snapshot of {found.table.full_name} has no data file"
                f" {min(chosen - known)} whose rows have ids; look at Table.files()",
                about="file",
            )
        bins = found.chosen(chosen, found.table.options.target_file_size)
        return rewrite(self._state, found, bins, what="rewrite", dry_run=dry_run, must=True)

    def _holding(self, table: TableVersion, where: Condition | Where | None) -> set[int] | None:
        """Return the files that hold a row for which a condition is true, None without one."""
        if where is None:
            return None
        state = self._state
        rows = table_rows(state.store, table, state.layouts, lists=state.lists)
        with unknown_columns():
            return files_holding(
                state.spark, rows, where if isinstance(where, Where) else Where(where)
            )


def _sizes(least: int | str | None, most: int | str | None) -> tuple[int, float]:
    low = 0 if least is None else bytes_of("min_file_size", least)
    return low, _limit("max_file_size", most)


def _limit(name: str, value: int | str | None) -> float:
    return inf if value is None else bytes_of(name, value)


def bytes_of(name: str, value: int | str) -> int:
    """Return the bytes of an argument, read as the option target_file_size is."""
    try:
        return int(option_text("target_file_size", value)[1])
    except InvalidRequest as error:
        told = str(error).replace("option target_file_size", name)
        raise InvalidRequest(told) from error


class FlushVerbs(TableHandle):
    """Flushing."""

    def flush_inlined_data(self) -> Result:
        """Move rows and deletes from the catalog itself into files.

        Small inserts and deletes stay in the catalog (option ``data_inlining_row_limit``), which is
        fast while there are few of them. All snapshots read the same as before. If there is nothing
        to move, no snapshot is made. Rows with a column of a type that Shelduck cannot write stay
        where they are, and the result's ``note`` says so; DuckDB can flush them.

        Raises:
            Conflict: another commit changed the rows; flush again.
        """
        refuse_in_transaction(self._unit, "a flush")

        note = ""

        def prepare(unit: UnitOfWork) -> Done:
            nonlocal note
            table = unit.workspace.table(self.name)
            register = unit.writer.register
            done = flush_table(self._state.spark, self._state.store, table, register=register)
            note = done.note
            return done

        result = carry_out_rows(self._state, None, prepare, again=True)
        return result if isinstance(result, Staged) else replace(result, note=note)
