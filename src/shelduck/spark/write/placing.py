"""The files of a write in the directories of their partitions.

DuckDB compacts files of one partition only if all of them are in the directory that it would have
chosen itself; otherwise its database ends with an internal error. Where the bridge writes, tasks
write there. Other files are moved there one by one, once the write is complete. The name of a file
says which write it comes from.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from shelduck.model.files.data_files import NewDataFile
from shelduck.model.files.place import place_below
from shelduck.spark.files.storage import carry_file, delete_directory, delete_files

_THREADS = 16


def place_files(
    path: str, write: str, files: Sequence[NewDataFile], directories: Sequence[str]
) -> tuple[NewDataFile, ...]:
    """Move the files of a write into directories below ``path``, the table's; all or none.

    Files that are there stay. ``write`` is the name of the write's directory, which is removed
    afterwards. If a move fails, the files that were already moved are deleted.
    """
    targets = [
        file.path if _directory(file.path) == where else f"{where}{write}-{n}.parquet"
        for n, (file, where) in enumerate(zip(files, directories, strict=True))
    ]
    placed = tuple(replace(f, path=t) for f, t in zip(files, targets, strict=True))
    moved = [(f.path, t) for f, t in zip(files, targets, strict=True) if f.path != t]
    if not moved:
        return placed
    with ThreadPoolExecutor(_THREADS) as pool:
        moves = [pool.submit(carry_file, path + old, path + new) for old, new in moved]
    if any(move.exception() for move in moves):
        delete_files(place_below(path, new) for _, new in moved)
    for move in moves:
        move.result()
    below = f"{write}/"
    delete_files(place_below(path, old) for old, _ in moved if not old.startswith(below))
    if any(old.startswith(below) for old, _ in moved):
        delete_directory(place_below(path, write))
    return placed


def directory_beside(path: str, source: str) -> str:
    """Return the directory of a data file below ``path``, the table's; '' for one elsewhere."""
    return _directory(source.removeprefix(path) if source.startswith(path) else "")


def _directory(path: str) -> str:
    return path[: path.rfind("/") + 1]
