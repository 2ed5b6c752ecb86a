"""Parquet files by path, directory or pattern, on local disks or storage of ``pyarrow.fs``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import PurePosixPath

import pyarrow.fs

from shelduck.errors import InvalidRequest
from shelduck.spark.files.file_systems import filesystem
from shelduck.spark.files.storage import local_path

_THREADS = 16
_PATTERN = re.compile(r"[*?\[]")


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
    with ThreadPoolExecutor(_THREADS) as pool:
        parts = list(pool.map(_find, places))
    found = {file.path: file for part in parts for file in part}
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
    files, name = filesystem(directory)
    base = name.rstrip("/")
    prefix = directory.rstrip("/")
    selected = pyarrow.fs.FileSelector(base or "/", allow_not_found=True, recursive=True)
    for info in _files_of(files.get_file_info(selected)):
        inside = info.path[len(base) :].lstrip("/")
        if hidden or _is_shown(inside):
            yield FoundFile(f"{prefix}/{inside}", info.size)


def _files_of(infos: Iterable[pyarrow.fs.FileInfo]) -> Iterator[pyarrow.fs.FileInfo]:
    return (info for info in infos if info.is_file)


def _is_shown(inside: str) -> bool:
    path = PurePosixPath(inside)
    hidden = any(p.startswith((".", "_")) and "=" not in p for p in path.parts)
    return path.suffix == ".parquet" and not hidden
