"""Files that nobody needs: those that wait for deletion, and what writes left that never landed.

The files of a lake are listed in order, and looked up lot by lot. So a search holds one lot, the
files that it deletes, and eight bytes for each file that the catalog knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache

from shelduck import clock
from shelduck.catalog.commit import schedule
from shelduck.catalog.commit.schedule import ScheduledFile
from shelduck.catalog.databases.store import Store, write_with_retries
from shelduck.catalog.read.read import Connection
from shelduck.catalog.running.writers import at_work_since, remove_dead
from shelduck.catalog.schema.lake_schema import LakeInfo
from shelduck.catalog.upkeep.known_files import KnownFiles
from shelduck.engine.files.s3_requests import Upload, abort_upload, unfinished_uploads
from shelduck.engine.files.storage import (
    StoredFile,
    delete_directory,
    delete_files,
    list_data_files,
    list_everything,
    other_paths,
)
from shelduck.engine.stores.store_errors import told_of_storage
from shelduck.lake.results import FilesDeleted
from shelduck.model.files.place import Place, is_below, place_in, place_of_stranger, storage_path
from shelduck.model.text.names import is_write_directory, write_time
from shelduck.write.progress import counted

# Files that are looked up, deleted and forgotten together.
WAITING_LOT = 10_000


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
            _delete_scheduled(store, lake, unused)
        gone += [f.path for f in unused]
        left = set(unused)
        kept += [f.path for f in lot if f not in left]
    return FilesDeleted(tuple(gone), kept=tuple(kept), dry_run=dry_run)


def _lots(store: Store, lake: LakeInfo, chosen: Chosen) -> Iterator[list[ScheduledFile]]:
    last = -1
    while True:
        found = store.ask(
            schedule.scheduled_files, lake, chosen.before, after=last, most=WAITING_LOT
        )
        lot = [f for f in found if chosen.table is None or is_below(f.path, chosen.table)]
        if lot:
            yield lot
        if len(found) < WAITING_LOT:
            return
        last = found[-1].id


def _unused(
    store: Store, lake: LakeInfo, used: KnownFiles, lot: Sequence[ScheduledFile], chosen: Chosen
) -> list[ScheduledFile]:
    """Return the files of a lot that may be deleted."""
    paths = {
        f: [storage_path(p) for p in (f.path, *_other_paths(lake, f, chosen.adopted))] for f in lot
    }
    # Others may have added a waiting file to a table since.
    store.ask(used.read_newer)
    named = used.among({p for some in paths.values() for p in some})
    return [f for f in lot if named.isdisjoint(paths[f]) and (chosen.adopted or not f.is_adopted)]


def _delete_scheduled(store: Store, lake: LakeInfo, gone: Sequence[ScheduledFile]) -> None:
    with told_of_storage(lake.data_path, "cleanup of old files"):
        delete_files([f.place or place_of_stranger(f.path) for f in gone])
        _remove_empty(f.place for f in gone if f.place is not None)
    write_with_retries(store, lambda connection: schedule.forget_scheduled(connection, gone))


def _remove_empty(gone: Iterable[Place]) -> None:
    """Remove directories of writes in which no data file is left."""
    for directory in {_directory_of_write(place) for place in gone}:
        if directory is not None and not list_data_files(str(directory)):
            delete_directory(directory)


def _directory_of_write(place: Place) -> Place | None:
    """Return the directory of the write that made a file; it may contain partitions."""
    parts = place.key.split("/")[:-1]
    # Here, the table's digits are taken from the directory itself.
    depth = next((n for n in range(len(parts), 0, -1) if "=" not in parts[n - 1]), 0)
    name = parts[depth - 1] if depth else ""
    return Place(place.root, "/".join(parts[:depth])) if is_write_directory(name, name) else None


def _other_paths(lake: LakeInfo, file: ScheduledFile, adopted: bool) -> tuple[str, ...]:
    """Return the other paths of an adopted file that may be deleted: links may lead to it."""
    return other_paths(file.path, lake.data_path) if adopted and file.is_adopted else ()


_LOT = 20_000
_DUCKDB = "ducklake-"
_WRITE_LENGTH = 36
# Snapshots and writes have the times of different machines.
_CLOCKS_DIFFER = timedelta(hours=1)


def remove_orphans(
    store: Store,
    lake: LakeInfo,
    before: datetime,
    *,
    table: str | None = None,
    duckdb_files: bool = False,
    dry_run: bool = False,
) -> FilesDeleted:
    """Delete files of writes to this lake's tables that no catalog row names.

    A write is checked as a whole: it must have begun, and nothing of it may have changed, since
    ``before``; the first is by the clock of the writer, the second by that of the storage.
    Files that an active registered writer may have written are left alone, however old they are.
    Uploads that never ended, of which an object store keeps the parts, are aborted.
    Other directories are not this lake's. Files of DuckDB do not say to which lake they belong, so
    they are left alone unless ``duckdb_files`` is given. ``table`` is the directory of the only
    table to check. A table outside the data path is left alone. Raises CorruptLake, and deletes
    nothing, if a link leads to files.
    """
    known = KnownFiles(lake, waiting=True)
    owned = store.ask(schedule.owned_directories, lake)
    # Other writers do not wait for this: inside the lock, only newer rows are read.
    known.read_all(store)
    search = _Search(store, lake, known, before, duckdb_files, dry_run)
    with told_of_storage(lake.data_path, "search for orphans"):
        for place, uuids in owned.items():
            if table in (None, place) and place_in(lake.data_path, place.rstrip("/")) is not None:
                search.look(place, uuids)
    orphans = search.orphans()
    files = [orphan for orphan in orphans if not orphan.is_directory]
    if not dry_run:
        with told_of_storage(lake.data_path, "deletion of orphans"):
            _delete(lake, orphans, search.uploads)
    # Checksums are deleted with their files and are not counted.
    shown = tuple(f.path for f in files if not f.path.endswith(".crc"))
    shown += tuple(upload.path for upload in search.uploads)
    return FilesDeleted(shown, sum(f.size for f in files), dry_run=dry_run)


@dataclass(frozen=True, slots=True)
class _Orphan:
    """A file or directory that may be an orphan; ``write`` is the name of its write, or ''."""

    place: str
    name: str
    size: int
    write: str
    is_directory: bool

    @property
    def path(self) -> str:
        return self.place + self.name

    @property
    def named(self) -> str:
        """The path under which the catalog would name the file, or that whose checksum it is."""
        directory, slash, last = self.name.rpartition("/")
        if last.startswith(".") and last.endswith(".crc"):
            last = last.removeprefix(".").removesuffix(".crc")
        return storage_path(self.place + directory + slash + last)


@dataclass(slots=True)
class _Search:
    """A search through the directories of tables, and what it has found so far."""

    store: Store
    lake: LakeInfo
    known: KnownFiles
    before: datetime
    duckdb_files: bool
    dry_run: bool
    uploads: list[Upload] = field(default_factory=list)
    _unknown: list[_Orphan] = field(default_factory=list)
    # Writes that are not old enough, by the directory of the table and their names.
    _young: set[tuple[str, str]] = field(default_factory=set)

    def look(self, place: str, uuids: Iterable[str]) -> None:
        """Search the directory of tables with these uuids."""
        unique = tuple(uuids)
        lot: list[_Orphan] = []
        for entry in list_everything(place):
            found = self._old(place, entry, unique)
            if found is not None:
                lot.append(found)
            if len(lot) == _LOT:
                self._look_up(lot, unique)
                lot = []
        begun = list(unfinished_uploads(place))
        busy = self._look_up(lot, unique)
        self.uploads += [
            upload
            for upload in begun
            if upload.begun < self.before
            and (write := _write_of(upload.path.removeprefix(place), unique))
            and not _may_be_at_work(write, unique, busy)
        ]

    def orphans(self) -> list[_Orphan]:
        """Return what no row of the catalog names, of writes that are old enough as a whole."""
        return [o for o in self._unknown if (o.place, o.write) not in self._young]

    def _old(self, place: str, entry: StoredFile, uuids: Sequence[str]) -> _Orphan | None:
        """Return what may be an orphan, None if it is too young or of somebody else."""
        write = _write_of(entry.name, uuids)
        if write and max(entry.changed, _begun(write)) >= self.before:
            self._young.add((place, write))
            return None
        is_duckdb = self.duckdb_files and _is_duckdb(entry) and entry.changed < self.before
        if not write and not is_duckdb:
            return None
        return _Orphan(place, entry.name, entry.size, write, entry.is_directory)

    def _look_up(self, lot: Sequence[_Orphan], uuids: Sequence[str]) -> Mapping[str, datetime]:
        """Remember the files of a lot that no row names; a write that landed has rows by now."""
        busy, known = self._not_orphans({orphan.named for orphan in lot})
        landed = {(orphan.place, orphan.write) for orphan in lot if orphan.named in known}
        for orphan in lot:
            if orphan.is_directory and (orphan.place, orphan.write) in landed:
                continue
            if orphan.write and _may_be_at_work(orphan.write, uuids, busy):
                self._young.add((orphan.place, orphan.write))
            elif orphan.named not in known:
                self._unknown.append(orphan)
        return busy

    def _not_orphans(self, paths: set[str]) -> tuple[Mapping[str, datetime], set[str]]:
        """Return the tables with writers at work, and since when, and which paths rows name.

        Both are read together: a writer that has ended by then has published its files.
        """

        def look(connection: Connection) -> tuple[Mapping[str, datetime], set[str]]:
            now = clock.now()
            if not self.dry_run:
                # Otherwise one that wakes up could commit files that are about to be deleted.
                remove_dead(connection, now)
            busy = at_work_since(connection, now)
            self.known.read_newer(connection)
            return busy, self.known.among(paths)

        if self.dry_run:
            return self.store.ask(look)
        return write_with_retries(self.store, look)


def _delete(lake: LakeInfo, orphans: Sequence[_Orphan], uploads: Sequence[Upload]) -> None:
    delete_files(_place(lake, o.path) for o in orphans if not o.is_directory)
    for orphan in orphans:
        # With the directory of a write, all below it is gone.
        if orphan.is_directory and orphan.name == orphan.write and _is_empty(orphan.path):
            delete_directory(_place(lake, orphan.path))
    for upload in uploads:
        abort_upload(_place(lake, upload.path), upload.id)


def _is_empty(directory: str) -> bool:
    return all(entry.is_directory for entry in list_everything(directory))


def _write_of(name: str, uuids: Sequence[str]) -> str:
    """Return the write that made a file or directory: its directory, or the start of its name."""
    first, own = name.partition("/")[0], name.rpartition("/")[2].removeprefix(".")
    for write in (first, own[:_WRITE_LENGTH]):
        if any(_is_of(write, unique) for unique in uuids):
            return write
    return ""


# Files of one write follow each other in a listing.
_is_of = lru_cache(maxsize=1024)(is_write_directory)
_begun = lru_cache(maxsize=1024)(write_time)


def _may_be_at_work(write: str, uuids: Sequence[str], busy: Mapping[str, datetime]) -> bool:
    """Return whether a write began while a writer was registered that is still at work."""
    since = [busy[u] for u in uuids if u in busy and is_write_directory(write, u)]
    return any(write_time(write) + _CLOCKS_DIFFER >= moment for moment in since)


def _is_duckdb(entry: StoredFile) -> bool:
    name = entry.name.rpartition("/")[2]
    is_data = name.startswith(_DUCKDB) and name.endswith((".parquet", ".puffin"))
    return is_data and not entry.is_directory


def _place(lake: LakeInfo, path: str) -> Place:
    """Return the place of a file or directory that was listed below the data path."""
    place = place_in(lake.data_path, path)
    assert place is not None
    return place
