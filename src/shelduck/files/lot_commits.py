"""Bins of files, rewritten and committed lot by lot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from shelduck.errors import Conflict, OutcomeUnknown, Unsupported
from shelduck.files.compact import Derived, Report, RewrittenBin, Survey, write_bins
from shelduck.lake.done import Done, discard, discard_unpublished
from shelduck.lake.results import Committed, Compacted, TableName
from shelduck.lake.state import LakeState, Writer
from shelduck.lake.unit import UnitOfWork
from shelduck.model.files.compaction import Bin, batches
from shelduck.model.tables.table_version import why_not_written
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
