"""Files by path, directory or pattern, on disks or in stores, and whether given files exist."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow.fs

from shelduck.engine.files.storage import files_below, filesystem, in_threads, local_path
from shelduck.errors import InvalidRequest

_PATTERN = re.compile(r"[*?\[]")
# If there are more files than this in one directory, the directory is listed instead.
_FEW = 16


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file by its absolute path, and its size in bytes."""

    path: str
    size: int


def find_parquet(places: Sequence[str]) -> list[FoundFile]:
    """Return the files at the places, each once, by path.

    A place is a file, a directory (its ``.parquet`` files at any depth, without hidden ones), or a
    pattern with ``*``, ``?``, ``[...]`` and ``**``. Local paths become absolute. Raises
    InvalidRequest for a place without files, and for a file that Spark cannot open.
    """
    found = {file.path: file for part in in_threads(_find, places) for file in part}
    for path in found:
        if ":" in path.rpartition("/")[2] and local_path(path) is not None:
            # Its checksum would be ``.a:b.crc``, which Hadoop takes for a URI with the scheme
            # ``.a``.
            raise InvalidRequest(
                f"Spark cannot open {path} because its name contains a colon; rename the file"
            )
    return [found[path] for path in sorted(found)]


def _find(place: str) -> list[FoundFile]:
    plain = local_path(place)
    if plain is not None:
        # Not expanded and not resolved: DuckDB must find the file under the same path.
        place = os.path.abspath(plain)  # noqa: PTH100 - Path.resolve would follow links
    files, name = filesystem(place)
    info = files.get_file_info(name.rstrip("/"))
    if info.is_file:
        return [FoundFile(place, info.size)]
    if info.type == pyarrow.fs.FileType.Directory:
        found = list(_below(place))
    else:
        found = _by_pattern(place) if _PATTERN.search(place) else []
    if not found:
        raise InvalidRequest(f"there is no Parquet file at {place}")
    return found


def _by_pattern(place: str) -> list[FoundFile]:
    fixed = place[: _first_wildcard(place)].rpartition("/")[0]
    wanted = re.compile(_regex(place))
    return [f for f in _below(fixed or "/", hidden=True) if wanted.fullmatch(f.path)]


def _first_wildcard(place: str) -> int:
    match = _PATTERN.search(place)
    assert match is not None
    return match.start()


def _regex(pattern: str) -> str:
    """Return the regular expression of a glob; ``*`` stays inside a directory, ``**`` does not."""
    out: list[str] = []
    for part in re.findall(r"\*\*/|\*\*|\*|\?|\[[^\]/]+\]|.", pattern, re.DOTALL):
        if part == "**/":
            out.append("(?:[^/]+/)*")
        elif part == "**":
            out.append(".*")
        elif part in ("*", "?"):
            out.append("[^/]*" if part == "*" else "[^/]")
        elif part.startswith("[") and len(part) > 1:
            out.append("[^" + part[2:] if part[1] == "!" else part)
        else:
            out.append(re.escape(part))
    return "".join(out)


def _below(directory: str, *, hidden: bool = False) -> Iterator[FoundFile]:
    """Yield the files below a directory; by default only ``.parquet`` files that are not hidden."""
    for file in files_below(directory, hidden=hidden):
        yield FoundFile(f"{directory.rstrip('/')}/{file.name}", file.size)


def absent_files(files: Iterable[tuple[str, int]]) -> list[str]:
    """Return in words what is wrong with files, given by path and size: gone, or another size.

    One request to the storage for each file, or for each directory with many of them.
    """
    by_directory: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for path, size in files:
        by_directory[path.rpartition("/")[0]].append((path, size))
    looks: list[list[tuple[str, int]]] = []
    for directory, inside in by_directory.items():
        is_listed = len(inside) > _FEW and not local_path(directory)
        looks += [inside] if is_listed else [[file] for file in inside]
    if not looks:
        return []
    return [told for found in in_threads(_wrong, looks) for told in found]


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
