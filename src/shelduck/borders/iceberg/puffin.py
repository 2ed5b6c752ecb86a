"""Deletion vectors: deleted positions as bitmaps, all in one Puffin file."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

from pyroaring import BitMap64

_MAGIC = b"PFA1"
_VECTOR_MAGIC = b"\xd1\xd3\x39\x64"
# The field id of a row's position, to which the bitmap refers.
_POSITION_FIELD = 2147483645


@dataclass(frozen=True, slots=True)
class DeletionVector:
    """Where the deleted positions of one data file are in a Puffin file, and how many there are."""

    data_file: str
    rows: int
    offset: int
    length: int


class PuffinWriter:
    """The bytes of a Puffin file, vector by vector."""

    def __init__(self) -> None:
        self._parts = [_MAGIC]
        self._size = len(_MAGIC)
        self.vectors: list[DeletionVector] = []

    def add(self, data_file: str, positions: Iterable[int]) -> None:
        """Add the deleted positions of a data file, by its path in the metadata."""
        bitmap = BitMap64(positions)
        bitmap.run_optimize()
        blob = _framed(bitmap.serialize())
        self.vectors.append(DeletionVector(data_file, len(bitmap), self._size, len(blob)))
        self._parts.append(blob)
        self._size += len(blob)

    def bytes(self) -> bytes:
        """Return the whole file."""
        payload = json.dumps({"blobs": [_described(v) for v in self.vectors]}).encode()
        flags = bytes(4)
        footer = _MAGIC + payload + struct.pack("<i", len(payload)) + flags + _MAGIC
        return b"".join(self._parts) + footer


def _framed(bitmap: bytes) -> bytes:
    vector = _VECTOR_MAGIC + bitmap
    return struct.pack(">i", len(vector)) + vector + struct.pack(">I", zlib.crc32(vector))


def _described(vector: DeletionVector) -> dict[str, object]:
    return {
        "type": "deletion-vector-v1",
        "fields": [_POSITION_FIELD],
        "snapshot-id": -1,
        "sequence-number": -1,
        "offset": vector.offset,
        "length": vector.length,
        "properties": {
            "referenced-data-file": vector.data_file,
            "cardinality": str(vector.rows),
        },
    }
