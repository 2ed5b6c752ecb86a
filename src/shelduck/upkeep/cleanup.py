"""Files that no snapshot needs any more, and that wait for deletion."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from shelduck.catalog.commit import schedule
from shelduck.catalog.commit.schedule import ScheduledFile
from shelduck.catalog.databases.store import Store, write_with_retries
from shelduck.catalog.schema.lake_schema import LakeInfo
from shelduck.catalog.upkeep.known_files import KnownFiles
from shelduck.engine.files import storage
from shelduck.engine.stores.store_errors import told_of_storage
from shelduck.lake.results import FilesDeleted
from shelduck.model.files.place import Place, is_below, place_of_stranger, storage_path
from shelduck.model.text.names import is_write_directory
from shelduck.write.progress import counted

# Files that are looked up, deleted and forgotten together.
LOT = 10_000


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which of the waiting files are deleted."""

    before: datetime | None
    """Those that wait since before this time, all if it is None."""
    table: str | None = None
    """Those below this directory."""
    adopted: bool = False
    """Also those that the lake did not write."""


def clean_up(
    store: Store,
    lake: LakeInfo,
    chosen: Chosen,
    *,
    dry_run: bool = False,
    show: bool | None = False,
) -> FilesDeleted:
    """Delete files that wait for deletion, in lots: each is looked up, deleted and forgotten.

    Files first, then their rows: after an interruption, the next run finds the rest. A file that a
    snapshot names is never deleted, and a file that the lake did not write only if ``adopted``. The
    rows of files are read once, so a file that lost its row since then is kept until the next run.
    Raises CorruptLake, and deletes nothing, if a file cannot be one of the lake's.
    """
    waiting = sum(map(len, _lots(store, lake, chosen)))
    used = KnownFiles(lake, waiting=False)
    if waiting:
        used.read_all(store)
    lots = counted(_lots(store, lake, chosen), "deleting old files", waiting, size=len, show=show)
    gone: list[str] = []
    kept: list[str] = []
    for lot in lots:
        unused = _unused(store, lake, used, lot, chosen)
        if unused and not dry_run:
            _delete(store, lake, unused)
        gone += [f.path for f in unused]
        left = set(unused)
        kept += [f.path for f in lot if f not in left]
    return FilesDeleted(tuple(gone), kept=tuple(kept), dry_run=dry_run)


def _lots(store: Store, lake: LakeInfo, chosen: Chosen) -> Iterator[list[ScheduledFile]]:
    last = -1
    while True:
        with store.read() as connection:
            found = schedule.scheduled_files(connection, lake, chosen.before, after=last, most=LOT)
        lot = [f for f in found if chosen.table is None or is_below(f.path, chosen.table)]
        if lot:
            yield lot
        if len(found) < LOT:
            return
        last = found[-1].id


def _unused(
    store: Store, lake: LakeInfo, used: KnownFiles, lot: Sequence[ScheduledFile], chosen: Chosen
) -> list[ScheduledFile]:
    """Return the files of a lot that may be deleted."""
    paths = {
        f: [storage_path(p) for p in (f.path, *_other_paths(lake, f, chosen.adopted))] for f in lot
    }
    with store.read() as connection:
        # Others may have added a waiting file to a table since.
        used.read_newer(connection)
    named = used.among({p for some in paths.values() for p in some})
    return [f for f in lot if named.isdisjoint(paths[f]) and (chosen.adopted or not f.is_adopted)]


def _delete(store: Store, lake: LakeInfo, gone: Sequence[ScheduledFile]) -> None:
    with told_of_storage(lake.data_path, "cleanup of old files"):
        storage.delete_files([f.place or place_of_stranger(f.path) for f in gone])
        _remove_empty(f.place for f in gone if f.place is not None)
    write_with_retries(store, lambda connection: schedule.forget_scheduled(connection, gone))


def _remove_empty(gone: Iterable[Place]) -> None:
    """Remove directories of writes in which no data file is left."""
    for directory in {_write_of(place) for place in gone}:
        if directory is not None and not storage.list_data_files(str(directory)):
            storage.delete_directory(directory)


def _write_of(place: Place) -> Place | None:
    """Return the directory of the write that made a file; it may contain partitions."""
    parts = place.key.split("/")[:-1]
    # Here, the table's digits are taken from the directory itself.
    depth = next((n for n in range(len(parts), 0, -1) if "=" not in parts[n - 1]), 0)
    name = parts[depth - 1] if depth else ""
    return Place(place.root, "/".join(parts[:depth])) if is_write_directory(name, name) else None


def _other_paths(lake: LakeInfo, file: ScheduledFile, adopted: bool) -> tuple[str, ...]:
    """Return the other paths of an adopted file that may be deleted: links may lead to it."""
    return storage.other_paths(file.path, lake.data_path) if adopted and file.is_adopted else ()
