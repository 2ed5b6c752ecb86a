"""Directories and bytes of data files, on local disks and storage of ``pyarrow.fs``.

Only this module lists, sizes, copies, moves and deletes files. It deletes only a
`Place`, so a path of the catalog can be deleted only if it is known to be below a directory.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import pyarrow.fs
from pyarrow import ArrowInvalid

from shelduck import clock
from shelduck.engine.files.s3_requests import delete_objects, object_pages
from shelduck.engine.stores.homes import S3, home_of
from shelduck.errors import CorruptLake, Unsupported
from shelduck.model.files.place import Place, normal, require_path, split_address
from shelduck.model.files.storage_settings import StorageSettings

Found = TypeVar("Found")

TAIL = 64 * 1024
_THREADS = 16
_ATTEMPTS = 5
_ATTEMPTS_OF_CHECKS = 2
_CONNECT_SECONDS = 10.0
_ANSWER_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Listed:
    """One file of a directory: its path below it and its size in bytes."""

    name: str
    size: int

    @property
    def base_name(self) -> str:
        """Return its name without directories."""
        return self.name.rpartition("/")[2]


def in_threads(act: Callable[..., Found], *items: Iterable[Any]) -> list[Found]:
    """Return what ``map`` yields, in order; several calls wait for a storage at the same time."""
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(act, *items))


def local_path(path: str) -> str | None:
    """Return the plain path of a local file or directory, None for other storage."""
    scheme, _, key = split_address(path)
    return None if scheme else key


def list_data_files(directory: str) -> list[Listed]:
    """Return the Parquet files below a directory, by path; none if it does not exist."""
    return sorted(files_below(directory), key=lambda file: file.name)


def files_below(directory: str, *, hidden: bool = False) -> Iterator[Listed]:
    """Yield the files below a directory; by default only Parquet files that are not hidden."""
    files, name = filesystem(directory)
    root = name.rstrip("/")
    selector = pyarrow.fs.FileSelector(root or "/", recursive=True, allow_not_found=True)
    for info in files.get_file_info(selector):
        inside = info.path.removeprefix(root).lstrip("/")
        if info.is_file and (hidden or _is_shown(inside)):
            yield Listed(inside, info.size)


def _is_shown(path: str) -> bool:
    """Return whether a file is Parquet's, and neither it nor a directory unfinished work."""
    is_hidden = any(p.startswith((".", "_")) and "=" not in p for p in path.split("/"))
    return path.endswith(".parquet") and not is_hidden


def delete_directory(directory: Place) -> None:
    """Delete a directory and everything in it. Do nothing if it does not exist.

    Raises CorruptLake if a link below the root leads to it.
    """
    plain = _unlinked(directory)
    if plain is not None:
        if plain.is_symlink():
            raise _linked(directory)
        shutil.rmtree(plain, ignore_errors=True)
        return
    files, name = filesystem(str(directory))
    with contextlib.suppress(FileNotFoundError):
        files.delete_dir(name)


def delete_file(place: Place) -> None:
    """Delete a file; a missing file is ignored.

    Raises CorruptLake if a link below the root leads to its directory.
    """
    _delete(place, _unlinked(place))


def delete_files(places: Iterable[Place]) -> None:
    """Delete files, several in parallel or in one request; missing files are ignored.

    The checksums that Spark puts beside local files are deleted with them. Raises CorruptLake,
    before any file is deleted, if a link below the root leads to the directory of one.
    """
    chosen = list(places)
    if not chosen:
        return
    # All paths are checked before the first file is deleted.
    plain = in_threads(_unlinked, chosen)
    if len(chosen) > 1 and not any(plain):
        chosen = delete_objects(chosen)
        plain = [None] * len(chosen)
    in_threads(_delete_with_checksum, chosen, plain)


def other_paths(path: str, root: str) -> tuple[str, ...]:
    """Return the other paths of a local file once links are followed, below ``root`` too."""
    plain, home = local_path(path), local_path(root)
    if plain is None:
        return ()
    directory, slash, name = plain.rpartition("/")
    real = os.path.realpath(directory) + slash + name
    if home is None:
        return (real,)
    real_home = os.path.realpath(home) + "/"
    below = real.removeprefix(real_home) if real.startswith(real_home) else None
    return (real,) if below is None else (real, normal(home) + below)


def _unlinked(place: Place) -> Path | None:
    """Return the local path of a place, None if it is not local; CorruptLake behind a link."""
    plain = local_path(place.root)
    if plain is None:
        return None
    # The path of the root may contain links: only the owner of the machine makes these.
    target = os.path.join(os.path.realpath(plain), place.key)  # noqa: PTH118
    directory = os.path.dirname(target)  # noqa: PTH120
    if os.path.realpath(directory) != directory:
        raise _linked(place)
    return Path(target)


def _linked(place: Place) -> CorruptLake:
    return CorruptLake(
        f"a symbolic link below {place.root} leads to {place.key!r}, so the files may belong to"
        " somebody else and nothing was deleted; replace the link with the directory itself"
    )


def _delete(place: Place, plain: Path | None) -> None:
    if plain is not None:
        plain.unlink(missing_ok=True)
        return
    files, name = filesystem(str(place))
    with contextlib.suppress(FileNotFoundError):
        files.delete_file(name)


def _delete_with_checksum(place: Place, plain: Path | None) -> None:
    _delete(place, plain)
    if plain is not None:
        plain.with_name(f".{plain.name}.crc").unlink(missing_ok=True)


def carry_file(source: str, target: str) -> None:
    """Give a file another path, and create missing directories; on a local disk it is moved.

    An object store only copies. Whoever deletes the directory of the source deletes what is left in
    it, with one request for many files.
    """
    plain = local_path(target)
    if plain is None:
        copy_file(source, target)
        return
    old = local_path(source)
    assert old is not None
    Path(plain).parent.mkdir(parents=True, exist_ok=True)
    Path(old).rename(plain)


def copy_file(source: str, target: str) -> None:
    """Make a second file with the bytes of a first, and create missing directories.

    Files of a lake never change, so on a local disk that supports links it is a link. Object stores
    copy by themselves; nothing passes through this process.
    """
    new, old = local_path(target), local_path(source)
    make_directory(target.rpartition("/")[0])
    if new is None or old is None:
        filesystem(target)[0].copy_file(filesystem(source)[1], filesystem(target)[1])
        return
    try:
        os.link(old, new)
    except OSError:
        shutil.copyfile(old, new)


def copy_files(pairs: Iterable[tuple[str, str]]) -> None:
    """Copy files as `copy_file` does, in parallel, each from its first path to its second."""
    in_threads(lambda pair: copy_file(*pair), pairs)


def make_directory(directory: str) -> None:
    """Make a directory and its parents; nothing on object stores, which have no directories."""
    files, name = filesystem(directory)
    if files.type_name != "s3":
        # In an object store, files imply their directories.
        files.create_dir(name, recursive=True)


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file or directory by its path below another one, its bytes, and its last change."""

    name: str
    size: int
    changed: datetime
    is_directory: bool


def list_everything(directory: str) -> Iterator[StoredFile]:
    """Yield all files and directories below a directory, including hidden ones; none without it.

    On S3 with boto3, and on local disks, they come a few at a time. Directories that a storage only
    infers from its files are left out. If a file system gives no time, a file counts as changed
    just now.
    """
    plain = local_path(directory)
    if plain is not None:
        yield from _walk(plain, "")
        return
    pages = object_pages(directory)
    if pages is not None:
        for page in pages:
            for name, size, changed in page:
                yield StoredFile(name.rstrip("/"), size, changed, name.endswith("/"))
        return
    files, name = filesystem(directory)
    root = name.rstrip("/")
    selector = pyarrow.fs.FileSelector(root, recursive=True, allow_not_found=True)
    now = clock.now()
    for info in files.get_file_info(selector):
        if info.is_file or info.mtime is not None:
            yield StoredFile(
                info.path.removeprefix(root).lstrip("/"),
                info.size or 0,
                now if info.mtime is None else info.mtime.astimezone(UTC),
                not info.is_file,
            )


def _walk(root: str, below: str) -> Iterator[StoredFile]:
    """Yield what is in a local directory; what disappears meanwhile is left out."""
    try:
        entries = list(os.scandir(os.path.join(root, below)))  # noqa: PTH118
    except FileNotFoundError:
        return
    for entry in entries:
        with contextlib.suppress(FileNotFoundError):
            found, is_directory = entry.stat(), entry.is_dir()
            changed = datetime.fromtimestamp(found.st_mtime, UTC)
            size = 0 if is_directory else found.st_size
            yield StoredFile(below + entry.name, size, changed, is_directory)
            if is_directory:
                yield from _walk(root, f"{below}{entry.name}/")


def list_of_write(directory: str, write: str) -> list[str]:
    """Return the names of the files of a write in ``directory``, which ends in '/'.

    They begin with the name of the write. On S3 with boto3, other files there cost no request.
    """
    pages = object_pages(directory + write)
    if pages is not None:
        return [write + name for page in pages for name, _, _ in page]
    return [name for name in list_names(directory) if name.startswith(write)]


def list_names(directory: str) -> list[str]:
    """Return the names of the entries of a directory, none if there is no such directory."""
    files, name = filesystem(directory)
    selector = pyarrow.fs.FileSelector(name.rstrip("/"), allow_not_found=True)
    return [info.base_name for info in files.get_file_info(selector)]


def read_text(path: str) -> str:
    """Return the text of a small file."""
    files, name = filesystem(path)
    with files.open_input_file(name) as file:
        return bytes(file.readall()).decode()


def write_bytes(path: str, content: bytes) -> None:
    """Write a file, and make its directory; a crash may leave a part of it."""
    make_directory(path.rpartition("/")[0])
    files, name = filesystem(path)
    with files.open_output_stream(name) as stream:
        stream.write(content)


def write_text(path: str, text: str) -> None:
    """Write a small file completely or not at all, even if there is a crash.

    If others write it at the same time, one of the texts is left.
    """
    plain = local_path(path)
    if plain is None:
        # An object store shows an object only once it is completely written.
        files, name = filesystem(path)
        with files.open_output_stream(name) as stream:
            stream.write(text.encode())
        return
    with _part_of(Path(plain), text) as part:
        part.replace(plain)


def write_new_text(path: str, text: str) -> None:
    """Write a small file that must not exist yet, completely or not at all.

    Raises FileExistsError if it exists. pyarrow has no such operation for object stores, so a file
    that another writer begins at the same moment is not detected.
    """
    plain = local_path(path)
    if plain is None:
        files, name = filesystem(path)
        if files.get_file_info(name).type != pyarrow.fs.FileType.NotFound:
            raise FileExistsError(path)
        write_text(path, text)
        return
    with _part_of(Path(plain), text) as part:
        # Unlike a rename, a link never replaces a file.
        os.link(part, plain)


@contextlib.contextmanager
def _part_of(target: Path, text: str) -> Iterator[Path]:
    """Yield a complete file beside a file that is to have its text, under a name of its own."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.{uuid.uuid4()}.part")
    try:
        with part.open("x") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        yield part
    finally:
        part.unlink(missing_ok=True)


def filesystem(path: str, *, is_check: bool = False) -> tuple[pyarrow.fs.FileSystem, str]:
    """Return the file system of a path, and the name of the path there.

    Both can be sent to the executors. A check gets its answer soon: it does not wait for a storage
    that is busy. Raises Unsupported for an unknown scheme, and InvalidRequest for a text that no
    file system takes for a path.
    """
    require_path(path)
    scheme, host, key = split_address(path)
    if not scheme:
        return _local(), key
    attempts = _ATTEMPTS_OF_CHECKS if is_check else _ATTEMPTS
    files, base = _remote(scheme, host, home_of(path).settings, attempts)
    return files, f"{base}/{key}"


@lru_cache(maxsize=1)
def _local() -> pyarrow.fs.FileSystem:
    return pyarrow.fs.LocalFileSystem()


@lru_cache(maxsize=64)
def _remote(
    scheme: str, host: str, settings: StorageSettings, attempts: int
) -> tuple[pyarrow.fs.FileSystem, str]:
    """Return the file system of a bucket or host, and the prefix of its keys."""
    if scheme in S3:
        return _s3(host, settings, attempts), host
    try:
        files, base = pyarrow.fs.FileSystem.from_uri(f"{scheme}://{host}/")
    except ArrowInvalid as error:
        raise Unsupported(f"there is no file system for {scheme}://{host}: {error}") from error
    return files, base.rstrip("/")


def _s3(bucket: str, settings: StorageSettings, attempts: int) -> pyarrow.fs.FileSystem:
    given: dict[str, Any] = {
        "access_key": settings.access_key,
        "secret_key": settings.secret_key,
        "session_token": settings.session_token,
        "anonymous": bool(settings.anonymous),
        "force_virtual_addressing": settings.path_style is False,
        # A small file is one request instead of three.
        "allow_delayed_open": True,
        "connect_timeout": _CONNECT_SECONDS,
        "request_timeout": _ANSWER_SECONDS,
        "retry_strategy": pyarrow.fs.AwsStandardS3RetryStrategy(max_attempts=attempts),
    }
    if settings.endpoint:
        scheme, _, address = settings.endpoint.rpartition("://")
        given |= {"endpoint_override": address, "scheme": scheme or "https"}
        given["region"] = settings.region or "us-east-1"
    else:
        given["region"] = _region(bucket, settings)
    return pyarrow.fs.S3FileSystem(**given)


def _region(bucket: str, settings: StorageSettings) -> str | None:
    """Return where a bucket of Amazon is; the one that is said if it cannot be asked."""
    try:
        return str(pyarrow.fs.resolve_s3_region(bucket))
    except OSError:
        if settings.region is None:
            raise
        return settings.region
