"""Files that no snapshot needs: files that wait for deletion, and unknown files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from shelduck.catalog.commit import schedule
from shelduck.catalog.commit.schedule import ScheduledFile
from shelduck.catalog.databases.retry import write_with_retries
from shelduck.catalog.databases.store import Store
from shelduck.catalog.read.read import Connection
from shelduck.catalog.running.writers import at_work_since, remove_dead
from shelduck.catalog.schema.create import LakeInfo
from shelduck.model.files.place import Place, place_in, place_of_stranger, storage_path
from shelduck.model.text.names import is_write_directory, write_time
from shelduck.spark.files.s3_requests import Upload, abort_upload, unfinished_uploads
from shelduck.spark.files.storage import (
    Stored,
    delete_directory,
    delete_files,
    list_data_files,
    list_everything,
    other_paths,
)
from shelduck.spark.files.store_errors import told_of_storage

_DUCKDB = "ducklake-"
_WRITE_LENGTH = 36
# Snapshots and writes have the times of different machines.
_CLOCKS_DIFFER = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Cleaned:
    """Deleted files (or files that would be deleted), by absolute path, and those left alone."""

    files: tuple[str, ...]
    bytes: int = 0
    kept: tuple[str, ...] = ()


def clean_up(
    store: Store,
    lake: LakeInfo,
    before: datetime | None,
    *,
    table: str | None = None,
    adopted: bool = False,
    dry_run: bool = False,
) -> Cleaned:
    """Delete files that wait for deletion since before a time, all of them if it is None.

    Files first, then their rows: after an interruption, the next run finds the rest. A file that a
    snapshot names is never deleted, and a file that the lake did not write only with ``adopted``.
    ``table`` is the directory of the only table to check. Raises CorruptLake, and deletes nothing,
    if a file cannot be one of the lake's.
    """
    with store.read() as connection:
        every = schedule.scheduled_files(connection, lake, before)
        waiting = [f for f in every if table is None or f.path.startswith(table)]
        paths = {f: (f.path, *_other_paths(lake, f, adopted)) for f in waiting}
        used = schedule.paths_in_use(connection, lake, {p for some in paths.values() for p in some})
    gone = [f for f in waiting if used.isdisjoint(paths[f]) and (adopted or not f.is_adopted)]
    kept = tuple(f.path for f in waiting if f not in gone)
    places = [f.place or place_of_stranger(f.path) for f in gone]
    if gone and not dry_run:
        with told_of_storage(lake.data_path, "cleanup of old files"):
            delete_files(places)
            _remove_empty(f.place for f in gone if f.place is not None)
        write_with_retries(store, lambda connection: schedule.forget_scheduled(connection, gone))
    return Cleaned(tuple(f.path for f in gone), kept=kept)


def remove_orphans(
    store: Store,
    lake: LakeInfo,
    before: datetime,
    *,
    table: str | None = None,
    duckdb_files: bool = False,
    dry_run: bool = False,
) -> Cleaned:
    """Delete files of writes to this lake's tables that no catalog row names.

    A write's directory is checked as a whole: nothing in it may have changed since ``before``.
    Files that an active registered writer may have written are left alone, however old they are.
    Uploads that never ended, of which an object store keeps the parts, are aborted.
    Other directories are not this lake's. Files of DuckDB do not say to which lake they belong, so
    they are left alone unless ``duckdb_files`` is given. ``table`` is the directory of the only
    table to check. A table outside the data path is left alone. Raises CorruptLake, and deletes
    nothing, if a link leads to files.
    """
    with store.read() as connection:
        owned = schedule.owned_directories(connection, lake)
    places = [place for place in owned if table is None or place == table]
    places = [place for place in places if _is_inside(lake, place)]
    # Files are listed before the catalog is read, so a commit in between is already known.
    with told_of_storage(lake.data_path, "search for orphans"):
        listed = {place: list_everything(place) for place in places}
        begun = [(place, upload) for place in places for upload in unfinished_uploads(place)]
    busy, known = _not_orphans(store, lake, dry_run=dry_run)
    orphans: list[_Orphans] = []
    for place, found in listed.items():
        free = [entry for entry in found if not _may_be_at_work(entry.name, owned[place], busy)]
        orphans += _of_writes(place, free, owned[place], known, before)
        if duckdb_files:
            orphans += _of_duckdb(place, found, known, before)
    uploads = [
        upload
        for place, upload in begun
        if upload.begun < before and _is_ours(upload.path.removeprefix(place), owned[place], busy)
    ]
    if not dry_run:
        with told_of_storage(lake.data_path, "deletion of orphans"):
            _delete(lake, orphans, uploads)
    # Checksums are deleted with their files and are not counted.
    shown = tuple(p for part in orphans for p in part.files if not p.endswith(".crc"))
    shown += tuple(upload.path for upload in uploads)
    return Cleaned(shown, sum(part.bytes for part in orphans))


def _not_orphans(
    store: Store, lake: LakeInfo, *, dry_run: bool
) -> tuple[dict[str, datetime], set[str]]:
    """Return the tables with writers at work, and since when, and the paths that rows name.

    Both are read together: a writer that has ended by then has published its files.
    """

    def look(connection: Connection) -> tuple[dict[str, datetime], set[str]]:
        if not dry_run:
            # Otherwise one that wakes up could commit files that are about to be deleted.
            remove_dead(connection)
        return at_work_since(connection), schedule.known_paths(connection, lake)

    if dry_run:
        with store.read() as connection:
            return look(connection)
    return write_with_retries(store, look)


def _delete(lake: LakeInfo, orphans: Sequence[_Orphans], uploads: Sequence[Upload]) -> None:
    delete_files(_place(lake, path) for part in orphans for path in part.files)
    for part in orphans:
        if part.directory is not None:
            delete_directory(_place(lake, part.directory))
    for upload in uploads:
        abort_upload(_place(lake, upload.path), upload.id)


@dataclass(frozen=True, slots=True)
class _Orphans:
    """Unknown files of one write; ``directory`` is the write's if all of it is deleted."""

    files: tuple[str, ...]
    bytes: int
    directory: str | None = None


def _of_writes(
    place: str,
    found: Sequence[Stored],
    uuids: Iterable[str],
    known: set[str],
    before: datetime,
) -> list[_Orphans]:
    writes: dict[str, list[Stored]] = defaultdict(list)
    for entry in found:
        for name in _may_name_write(entry.name):
            if any(is_write_directory(name, unique) for unique in uuids):
                writes[name].append(entry)
                break
    orphans = []
    for top, entries in writes.items():
        if any(entry.changed >= before for entry in entries):
            continue
        files = [entry for entry in entries if not entry.is_directory]
        unknown = [f for f in files if not _is_known(place, f.name, known)]
        is_whole = len(unknown) == len(files)
        if unknown or is_whole:
            orphans.append(
                _Orphans(
                    tuple(place + f.name for f in unknown),
                    sum(f.size for f in unknown),
                    place + top if is_whole else None,
                )
            )
    return orphans


def _may_be_at_work(name: str, uuids: Iterable[str], busy: Mapping[str, datetime]) -> bool:
    """Return whether a write made a file or directory while a writer was registered."""
    for unique in busy.keys() & set(uuids):
        for write in _may_name_write(name):
            if is_write_directory(write, unique):
                return write_time(write) + _CLOCKS_DIFFER >= busy[unique]
    return False


def _is_ours(name: str, uuids: Iterable[str], busy: Mapping[str, datetime]) -> bool:
    """Return whether an upload is of a write to a table of this lake that is not at work."""
    unique = list(uuids)
    is_write = any(is_write_directory(w, u) for w in _may_name_write(name) for u in unique)
    return is_write and not _may_be_at_work(name, unique, busy)


def _may_name_write(name: str) -> tuple[str, str]:
    """Return two names that may be a file's write: its directory, or the start of its own name."""
    return name.partition("/")[0], name.rpartition("/")[2].removeprefix(".")[:_WRITE_LENGTH]


def _is_known(place: str, name: str, known: set[str]) -> bool:
    """Return whether the catalog knows a file, or the file whose checksum it is."""
    directory, slash, last = name.rpartition("/")
    if last.startswith(".") and last.endswith(".crc"):
        last = last.removeprefix(".").removesuffix(".crc")
    return storage_path(place + directory + slash + last) in known


def _of_duckdb(
    place: str, found: Sequence[Stored], known: set[str], before: datetime
) -> list[_Orphans]:
    unknown = [
        entry
        for entry in found
        if not entry.is_directory
        and entry.changed < before
        and entry.name.rpartition("/")[2].startswith(_DUCKDB)
        and entry.name.endswith((".parquet", ".puffin"))
        and storage_path(place + entry.name) not in known
    ]
    return [_Orphans((place + entry.name,), entry.size) for entry in unknown]


def _remove_empty(gone: Iterable[Place]) -> None:
    """Remove directories of writes in which no data file is left."""
    for directory in {_write_of(place) for place in gone}:
        if directory is not None and not list_data_files(str(directory)):
            delete_directory(directory)


def _write_of(place: Place) -> Place | None:
    """Return the directory of the write that made a file; it may contain partitions."""
    parts = place.key.split("/")[:-1]
    # Here, the table's digits are taken from the directory itself.
    depth = next((n for n in range(len(parts), 0, -1) if "=" not in parts[n - 1]), 0)
    name = parts[depth - 1] if depth else ""
    return Place(place.root, "/".join(parts[:depth])) if is_write_directory(name, name) else None


def _other_paths(lake: LakeInfo, file: ScheduledFile, adopted: bool) -> tuple[str, ...]:
    """Return the other paths of an adopted file that may be deleted: links may lead to it."""
    return other_paths(file.path, lake.data_path) if adopted and file.is_adopted else ()


def _is_inside(lake: LakeInfo, directory: str) -> bool:
    return place_in(lake.data_path, directory.rstrip("/")) is not None


def _place(lake: LakeInfo, path: str) -> Place:
    """Return the place of a file or directory that was listed below the data path."""
    place = place_in(lake.data_path, path)
    assert place is not None
    return place
