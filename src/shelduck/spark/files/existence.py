"""Whether files exist at their paths, complete."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.fs

from shelduck.spark.files.file_systems import filesystem
from shelduck.spark.files.storage import local_path

_THREADS = 16
# If there are more files than this in one directory, the directory is listed instead.
_FEW = 16


def absent_files(files: Iterable[tuple[str, int]]) -> list[str]:
    """Return in words what is wrong with files, given by path and size: gone, or another size.

    One request to the storage for each file, or for each directory with many of them.
    """
    by_directory: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for path, size in files:
        by_directory[path.rpartition("/")[0]].append((path, size))
    looks = [
        part
        for directory, inside in by_directory.items()
        for part in (
            [inside] if len(inside) > _FEW and not local_path(directory) else _ones(inside)
        )
    ]
    if not looks:
        return []
    with ThreadPoolExecutor(min(_THREADS, len(looks))) as pool:
        return [told for found in pool.map(_wrong, looks) for told in found]


def _ones(files: Sequence[tuple[str, int]]) -> list[list[tuple[str, int]]]:
    return [[file] for file in files]


def _wrong(files: Sequence[tuple[str, int]]) -> list[str]:
    sizes = _sizes(files)
    found = []
    for path, size in files:
        there = sizes.get(path)
        if there is None:
            found.append(f"{path} is missing")
        elif there != size:
            found.append(f"{path} has {there} bytes instead of {size}")
    return found


def _sizes(files: Sequence[tuple[str, int]]) -> Mapping[str, int]:
    """Return the sizes of the existing files."""
    first = files[0][0]
    plain = local_path(first)
    if plain is not None and len(files) == 1:
        place = Path(plain)
        return {first: place.stat().st_size} if place.is_file() else {}
    store, name = filesystem(first)
    if len(files) == 1:
        info = store.get_file_info(name)
        return {first: info.size} if info.is_file else {}
    directory = first.rpartition("/")[0]
    selector = pyarrow.fs.FileSelector(name.rpartition("/")[0], allow_not_found=True)
    return {
        f"{directory}/{info.base_name}": info.size
        for info in store.get_file_info(selector)
        if info.is_file
    }
