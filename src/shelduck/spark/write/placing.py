"""Moving files from the directory of their write to those of their partitions.

DuckDB compacts files of one partition only if all of them are in the directory that it would have
chosen itself; otherwise its database ends with an internal error. So once a write is complete, its
files are moved there one by one. The name of a file says which write it comes from.
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

    ``write`` is the name of the write's directory, which is removed afterwards. If a move fails,
    the files that were already moved are deleted.
    """
    if not files:
        return ()
    targets = [f"{where}{write}-{n}.parquet" for n, where in enumerate(directories)]
    with ThreadPoolExecutor(_THREADS) as pool:
        moves = [
            pool.submit(carry_file, path + file.path, path + target)
            for file, target in zip(files, targets, strict=True)
        ]
    if any(move.exception() for move in moves):
        delete_files(place_below(path, target) for target in targets)
    for move in moves:
        move.result()
    delete_directory(place_below(path, write))
    return tuple(replace(f, path=t) for f, t in zip(files, targets, strict=True))


def directory_beside(path: str, source: str) -> str:
    """Return the directory of a data file below ``path``, the table's; '' for one elsewhere."""
    below = source.removeprefix(path) if source.startswith(path) else ""
    return below[: below.rfind("/") + 1]
