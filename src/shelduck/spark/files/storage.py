"""Directories and bytes of data files, on local disks and on what ``pyarrow.fs`` reaches.

This module and `file_systems` alone list, size, copy, move and delete files. They delete a
`Place` alone, so that a path of the catalog gets here only when it is known to lie below a
directory.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.fs

from shelduck.errors import CorruptLake
from shelduck.model.files.place import Place, normal, split_address
from shelduck.spark.files.file_systems import filesystem

TAIL = 64 * 1024
_THREADS = 16


@dataclass(frozen=True, slots=True)
class Listed:
    """One file of a directory: its path below it and its size in bytes."""

    name: str
    size: int


def spark_path(path: str) -> str:
    """Return a path of a lake as Spark is told it: a path without a scheme is a local one."""
    return f"file://{path}" if path.startswith("/") else path


def local_path(path: str) -> str | None:
    """Return the plain path of a local file or directory, None for what lies elsewhere."""
    scheme, _, key = split_address(path)
    return None if scheme else key


def list_data_files(directory: str) -> list[Listed]:
    """Return the Parquet files of a directory and those below it, by path; none when it is not."""
    try:
        found = _list_local(directory) if local_path(directory) else _list_remote(directory)
    except FileNotFoundError:
        return []
    return sorted(
        (f for f in found if f.name.endswith(".parquet") and not _is_hidden(f.name)),
        key=lambda f: f.name,
    )


def read_tail(path: str, size: int, length: int = TAIL) -> bytes:
    """Return the last bytes of a file of ``size`` bytes, ``length`` of them or all."""
    length = min(size, length)
    plain = local_path(path)
    if plain is not None:
        with Path(plain).open("rb") as file:
            file.seek(size - length)
            return file.read()
    files, name = filesystem(path)
    with files.open_input_file(name) as file:
        return bytes(file.read_at(length, size - length))


def delete_directory(directory: Place) -> None:
    """Delete a directory and all in it; it is no error that there is none.

    Raises CorruptLake when a link below the root leads to it.
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
    """Delete a file; it is no error that there is none.

    Raises CorruptLake when a link below the root leads to its directory.
    """
    _delete(place, _unlinked(place))


def delete_files(places: Iterable[Place]) -> None:
    """Delete files, several at once; it is no error that one is missing.

    The checksums that Spark puts beside local files go with them. Raises CorruptLake, before any is
    deleted, when a link below the root leads to the directory of one.
    """
    with ThreadPoolExecutor(_THREADS) as pool:
        chosen = list(places)
        # All are looked at before the first is deleted.
        plain = list(pool.map(_unlinked, chosen))
        for _ in pool.map(_delete_with_checksum, chosen, plain):
            pass


def other_paths(path: str, root: str) -> tuple[str, ...]:
    """Return what else a local file is called once links are followed, below ``root`` too."""
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
    """Return the local path of a place, None when it is not local; CorruptLake behind a link."""
    plain = local_path(place.root)
    if plain is None:
        return None
    # The way to the root may have links: nobody but the owner of the machine makes these.
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


def move_file(source: str, target: str) -> None:
    """Move a file, into directories that are made where they are missing."""
    plain = local_path(target)
    if plain is not None:
        old = local_path(source)
        assert old is not None
        Path(plain).parent.mkdir(parents=True, exist_ok=True)
        Path(old).rename(plain)
        return
    files, name = filesystem(target)
    make_directory(target.rpartition("/")[0])
    files.move(filesystem(source)[1], name)


def copy_file(source: str, target: str) -> None:
    """Make a second file of the bytes of a first, in directories that are made where missing.

    Files of a lake are never changed, so on a local disk it is a link where the disk has links.
    Object stores copy by themselves; nothing passes through this process.
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
    """Copy files, several at once, each from its first path to its second, as `copy_file` does."""
    with ThreadPoolExecutor(_THREADS) as pool:
        for _ in pool.map(lambda pair: copy_file(*pair), pairs):
            pass


def make_directory(directory: str) -> None:
    """Make a directory and those above it; nothing on object stores, which have none."""
    files, name = filesystem(directory)
    if files.type_name != "s3":
        # Directories of an object store are made by their files.
        files.create_dir(name, recursive=True)


def _list_local(directory: str) -> list[Listed]:
    plain = local_path(directory)
    assert plain is not None
    place = Path(plain)
    if not place.exists():
        return []
    found = (p for p in place.rglob("*.parquet") if p.is_file())
    return [Listed(p.relative_to(place).as_posix(), p.stat().st_size) for p in found]


def _list_remote(directory: str) -> list[Listed]:
    files, name = filesystem(directory)
    root = name.rstrip("/")
    infos = files.get_file_info(pyarrow.fs.FileSelector(root, recursive=True))
    return [Listed(i.path.removeprefix(root).lstrip("/"), i.size) for i in infos if i.is_file]


def _is_hidden(path: str) -> bool:
    """Tell whether a file, or a directory on the way to it, is work in progress of Spark's."""
    return any(part[0] in "._" and "=" not in part for part in path.split("/"))


@dataclass(frozen=True, slots=True)
class Stored:
    """A file or directory by its path below another one, its bytes, and its last change."""

    name: str
    size: int
    changed: datetime
    is_directory: bool


def list_everything(directory: str) -> list[Stored]:
    """Return all files and directories below a directory, hidden ones too; none when it is not.

    What a file system does not tell the time of counts as changed just now.
    """
    files, name = filesystem(directory)
    root = name.rstrip("/")
    selector = pyarrow.fs.FileSelector(root, recursive=True, allow_not_found=True)
    now = datetime.now(UTC)
    return [
        Stored(
            info.path.removeprefix(root).lstrip("/"),
            info.size or 0,
            now if info.mtime is None else info.mtime.astimezone(UTC),
            info.type == pyarrow.fs.FileType.Directory,
        )
        for info in files.get_file_info(selector)
    ]


def list_names(directory: str) -> list[str]:
    """Return the names of what is in a directory, none when there is no such directory."""
    files, name = filesystem(directory)
    selector = pyarrow.fs.FileSelector(name.rstrip("/"), allow_not_found=True)
    return [info.base_name for info in files.get_file_info(selector)]


def read_text(path: str) -> str:
    """Return the text of a small file."""
    files, name = filesystem(path)
    with files.open_input_file(name) as file:
        return bytes(file.readall()).decode()


def write_text(path: str, text: str) -> None:
    """Write a small file so that it is there whole or not at all, also after a crash."""
    plain = local_path(path)
    if plain is None:
        # Object stores show an object when it is written to its end.
        files, name = filesystem(path)
        with files.open_output_stream(name) as stream:
            stream.write(text.encode())
        return
    target = Path(plain)
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.part")
    with part.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(target)


def write_new_text(path: str, text: str) -> None:
    """Write a small file that must not be there yet, whole or not at all.

    Raises FileExistsError when it is. On object stores, which pyarrow asks for nothing of the kind,
    a file that another writer begins in the same moment is not seen.
    """
    plain = local_path(path)
    if plain is None:
        files, name = filesystem(path)
        if files.get_file_info(name).type != pyarrow.fs.FileType.NotFound:
            raise FileExistsError(path)
        write_text(path, text)
        return
    target = Path(plain)
    part = target.with_name(f".{target.name}.{uuid.uuid4()}")
    write_text(str(part), text)
    try:
        # Unlike a rename, a link never takes the place of a file.
        os.link(part, target)
    finally:
        part.unlink()
