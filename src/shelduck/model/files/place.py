"""Where a file is: a known directory and a path below it, in one spelling.

Paths of a catalog are raw: nothing in them is encoded, so ``%2B`` is always three characters of a
name. A path with a scheme is the scheme, the bucket or host, and a raw key. It looks like a URI but
must never be parsed as one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from shelduck.errors import CorruptLake, InvalidRequest
from shelduck.model.text.names import require_characters

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/(?:/([^/]*)(?:/|$))?(.*)", re.DOTALL)
_ODD = re.compile(r"(?:^|/)\.{0,2}/|(?:^|/)\.{1,2}$")
# Names of the same storage.
_STORAGE = {"s3a": "s3", "s3n": "s3"}


@dataclass(frozen=True, slots=True)
class Place:
    """A file or directory below ``root``: what may be deleted.

    ``root`` ends in '/'. ``key`` is the path below it: no part of it is empty, ``.`` or ``..``, or
    ends in a blank. `below` makes a Place from any spelling. Raises CorruptLake for anything else.
    """

    root: str
    key: str

    def __post_init__(self) -> None:
        if not self.root.endswith("/") or normal(self.root) != self.root:
            raise CorruptLake(f"{self.root!r} is not the normalized path of a directory")
        if not self.key or any(_is_unsafe(part) for part in self.key.split("/")):
            raise CorruptLake(f"{self.key!r} is not the path of a file inside {self.root}")

    def __str__(self) -> str:
        return self.root + self.key

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.key.rpartition("/")[2]


class SealedPath(str):
    """The path of an encrypted file, which also holds its key: 16 bytes in base64.

    No text of the path shows the key. Behind a directory, it is still the path of that file.
    """

    __slots__ = ("key",)
    key: str

    def __new__(cls, path: str, key: str) -> Self:
        """Return a path with its key."""
        made = super().__new__(cls, path)
        made.key = key
        return made

    def __radd__(self, directory: str) -> Self:
        """Return the path below a directory."""
        return type(self)(directory + str(self), self.key)


def key_of(path: str) -> str | None:
    """Return the key of a file, None for one that is not encrypted."""
    return path.key if isinstance(path, SealedPath) else None


def same_file(path: str, name: str) -> str:
    """Return another name of a file, or of a copy of its bytes: it has the same key."""
    return SealedPath(name, path.key) if isinstance(path, SealedPath) else name


def place_below(root: str, path: str) -> Place:
    """Return the place that ``path`` means below ``root``; CorruptLake if it leaves ``root``."""
    return Place(normal(root), _below(root, path))


def place_in(root: str, path: str) -> Place | None:
    """Return the place of an absolute path if it is below ``root``, else None."""
    here, there = normal(root), normal(path)
    if storage_path(there).startswith(storage_path(here)) and not there.endswith("/"):
        return Place(here, storage_path(there)[len(storage_path(here)) :])
    return None


def place_of_stranger(path: str) -> Place:
    """Return the place of a file that the lake did not write, wherever it is.

    Raises CorruptLake if the path is not absolute or not in its plain spelling.
    """
    if normal(path) != path or not is_absolute(path):
        raise CorruptLake(f"{path!r} is not an absolute, normalized path")
    directory, slash, name = path.rpartition("/")
    return Place(directory + slash, name)


def require_path(path: str) -> None:
    """Raise InvalidRequest for a text that no file system takes for a path."""
    require_characters(path, "the path", by="no path")


def require_allowed(place: str, roots: tuple[str, ...] | None, what: str) -> None:
    """Raise InvalidRequest for a path that is below none of these directories; None allows all."""
    if roots is not None and not any(is_below(place, root) for root in roots):
        raise InvalidRequest(
            f"{what} is in none of the allowed places {', '.join(map(repr, roots))}; if it belongs"
            " to the lake, add its directory to allow of connect"
        )


def joined(base: str, path: str) -> str:
    """Return ``path`` below the directory ``base``; CorruptLake if it leaves ``base``.

    A path that is already plain, like all paths that writers make, costs next to nothing.
    """
    return base + (_below(base, path) if _ODD.search(path) else path)


def is_absolute(path: str) -> bool:
    """Return whether a path begins at the root of a file system, or has a scheme."""
    return path.startswith("/") or _ADDRESS.match(path) is not None


def normal(path: str) -> str:
    """Return an absolute path in its plain spelling: without ``.``, ``..`` and ``//``.

    A scheme is in lower case, and a local path has none. If the path ends in '/', so does the
    result.
    """
    scheme, host, key = split_address(path)
    if scheme:
        head = f"{scheme}://{host}/"
    else:
        head, key = "/" * key.startswith("/"), key.removeprefix("/")
    if not _ODD.search(key):
        return head + key
    parts: list[str] = []
    for part in key.split("/"):
        if part == ".." and parts:
            parts.pop()
        elif part not in ("", ".", ".."):
            parts.append(part)
    is_directory = bool(parts) and key.rpartition("/")[2] in ("", ".", "..")
    return head + "/".join(parts) + "/" * is_directory


def storage_path(path: str) -> str:
    """Return a text that is equal for all spellings of one absolute path, apart from links."""
    scheme, host, key = split_address(path)
    if scheme in _STORAGE:
        return normal(f"{_STORAGE[scheme]}://{host}/{key}")
    return normal(path)


def is_below(path: str, root: str) -> bool:
    """Return whether a path is below the directory ``root``, which ends in '/', however spelled."""
    return storage_path(path).startswith(storage_path(root))


def split_address(path: str) -> tuple[str, str, str]:
    """Return the scheme in lower case, the bucket or host, and the raw key of a path.

    A local path is all key: scheme and host are empty, with or without ``file:``.
    """
    match = _ADDRESS.match(path)
    if match is None:
        return "", "", path
    if match[1].lower() == "file":
        return "", "", "/" + path[len("file:") :].lstrip("/")
    return match[1].lower(), match[2] or "", match[3]


def _below(root: str, path: str) -> str:
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if not parts:
                raise CorruptLake(f"the path {path!r} in the catalog leads out of {root}")
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts) + "/" * (path.endswith("/") and bool(parts))


def _is_unsafe(part: str) -> bool:
    # File systems that drop blanks at the end of a name would find another file.
    return part in ("", ".", "..") or part != part.rstrip() or "\0" in part
