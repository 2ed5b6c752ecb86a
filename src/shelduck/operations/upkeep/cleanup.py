"""Files that no snapshot needs any more, and that wait for deletion."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from shelduck.catalog.commit import schedule
from shelduck.catalog.commit.schedule import ScheduledFile
from shelduck.catalog.databases.retry import write_with_retries
from shelduck.catalog.databases.store import Store
from shelduck.catalog.schema.create import LakeInfo
from shelduck.model.files.place import Place, is_below, place_of_stranger
from shelduck.model.text.names import is_write_directory
from shelduck.spark.files.storage import (
    delete_directory,
    delete_files,
    list_data_files,
    other_paths,
)
from shelduck.spark.stores.store_errors import told_of_storage


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
        waiting = [f for f in every if table is None or is_below(f.path, table)]
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
