"""Deletion vectors of Delta tables: deleted positions of a data file as 64-bit roaring bitmaps.

A vector is inside the log (``i``), or in a file below the table (``u``) or elsewhere (``p``).
"""

from __future__ import annotations

import struct
import zlib
from base64 import b85decode, b85encode
from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import UUID

from shelduck.engine.files.storage import filesystem
from shelduck.errors import CorruptLake, Unsupported, missing_extra
from shelduck.formats.delta.log import Added, LoggedVector, absolute

if TYPE_CHECKING:
    from pyroaring import BitMap64

_MAGIC = 1681511377
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
# Python's alphabet of the same numbers.
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"


def read_vector(root: str, file: Added) -> BitMap64:
    """Return the deleted positions of a data file that has a deletion vector.

    Raises CorruptLake if it is not what the log says, Unsupported if pyroaring is missing.
    """
    vector = file.vector
    assert vector is not None
    try:
        data = _bytes(root, vector)
        (magic,) = struct.unpack_from("<i", data)
    except (OSError, ValueError, KeyError, struct.error) as broken:
        raise CorruptLake(f"cannot read the deletion vector of {file.path}: {broken}") from broken
    if magic != _MAGIC:
        raise CorruptLake(f"the deletion vector of {file.path} begins with {magic}, not {_MAGIC}")
    try:
        found = bitmap().deserialize(data[4:])
    except ValueError as broken:
        raise CorruptLake(f"the deletion vector of {file.path} is damaged: {broken}") from broken
    if len(found) != vector.cardinality:
        raise CorruptLake(
            f"the deletion vector of {file.path} has {len(found)} rows, but the log says"
            f" {vector.cardinality}"
        )
    return found


def inline_vector(positions: BitMap64) -> LoggedVector:
    """Return a deletion vector for storage in the log itself."""
    data = struct.pack("<i", _MAGIC) + positions.serialize()
    return LoggedVector("i", z85_text(data), len(data), len(positions))


def bitmap() -> type[BitMap64]:
    """Return the class of 64-bit roaring bitmaps; Unsupported says how to install it."""
    try:
        from pyroaring import BitMap64  # noqa: PLC0415 - an optional extra
    except ImportError as missing:
        needed = missing_extra("pyroaring", "delta")
        raise Unsupported(f"cannot read deletion vectors of Delta tables: {needed}") from missing
    return BitMap64


def z85_bytes(text: str) -> bytes:
    """Return the bytes that Z85 text means: five characters are four bytes."""
    if not len(text) % 5 and set(text) <= set(_Z85):
        with suppress(ValueError):
            return b85decode(text.translate(str.maketrans(_Z85, _B85)))
    raise ValueError(f"{text[:40]!r} is not valid Z85 text")


def z85_text(data: bytes) -> str:
    """Return bytes as Z85 text, padded with zeros to a multiple of four."""
    return b85encode(data, pad=True).decode().translate(str.maketrans(_B85, _Z85))


def _bytes(root: str, vector: LoggedVector) -> bytes:
    """Return the bytes of a vector: its magic number and the bitmap."""
    if vector.storage == "i":
        return z85_bytes(vector.place)[: vector.size]
    if vector.storage == "u":
        prefix, short = vector.place[:-20], vector.place[-20:]
        name = f"deletion_vector_{UUID(bytes=z85_bytes(short))}.bin"
        path = f"{root}/{prefix}/{name}" if prefix else f"{root}/{name}"
    elif vector.storage == "p":
        path = absolute(root, vector.place)
    else:
        raise ValueError(f"unknown storage type {vector.storage!r}")
    return _stored(path, vector)


def _stored(path: str, vector: LoggedVector) -> bytes:
    files, name = filesystem(path)
    with files.open_input_file(name) as source:
        found = bytes(source.read_at(vector.size + 8, vector.offset or 0))
    if len(found) < vector.size + 8:
        raise ValueError(f"{path} is truncated")
    (length,) = struct.unpack_from(">i", found)
    data = found[4 : 4 + vector.size]
    (checksum,) = struct.unpack_from(">I", found, 4 + vector.size)
    if length != vector.size or checksum != zlib.crc32(data):
        raise ValueError(f"{path} has no deletion vector at byte {vector.offset or 0}")
    return data
