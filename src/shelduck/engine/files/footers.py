"""Parquet files opened, and their footers: in threads for few files, otherwise in executors.

Statistics are as DuckLake stores them. Anything that a footer does not say with certainty is left
out: a bound that is too narrow would hide rows.

The bridge reads encrypted files, and makes them as DuckDB does, which pyarrow cannot.
"""

from __future__ import annotations

import base64
import io
import math
import secrets
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal as Number
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from pyarrow import parquet
from pyspark.sql import SparkSession

from shelduck.engine.bridge import engine_for
from shelduck.engine.bridge.codec import rows_of
from shelduck.engine.bridge.engine import Engine
from shelduck.engine.files.physical import BatchFunction, map_batches
from shelduck.engine.files.storage import TAIL, Listed, filesystem
from shelduck.engine.stores.homes import listed_path, spark_options
from shelduck.engine.stores.store_errors import told_of_storage
from shelduck.errors import CorruptLake, ShelduckError, Unsupported
from shelduck.model.files.data_file import ColumnStats
from shelduck.model.files.place import SealedPath, key_of
from shelduck.model.tables.schema import Field
from shelduck.model.types.data_types import FLOATS, Decimal, Leaf
from shelduck.model.types.literals import BOUND_BYTES, Ends, ends, integer_range
from shelduck.model.types.temporal import MICROSECONDS

_IN_THREADS = 64
_THREADS = 16
_FILES_PER_TASK = 64
_MAGIC = b"PAR1"
RESTORE = "restore it from a backup, and look at the lake with shelduck check"
_CUT_TYPES = frozenset({"varchar", "json"})
_NUMBERS = frozenset({"date", *MICROSECONDS})


@dataclass(frozen=True, slots=True)
class Footer:
    """A footer, parsed, and its length in bytes as DuckLake counts it, None if unknown."""

    metadata: parquet.FileMetaData
    size: int | None


def read_footers(spark: SparkSession, directory: str, listed: Sequence[Listed]) -> Iterator[Footer]:
    """Yield the footer of each file of ``directory``, which ends in '/', in the given order."""
    if len(listed) <= _IN_THREADS or is_one_machine(spark):
        with ThreadPoolExecutor(_THREADS) as pool:
            yield from pool.map(lambda f: _read_footer(directory + f.name, f.size), listed)
        return
    yield from _from_executors(spark, directory, listed)


def parsed_footer(content: bytes) -> Footer:
    """Return a footer by the bytes that a file has between its rows and the footer's length."""
    # pyarrow reads metadata from the end, and only checks that the file is not shorter.
    end = struct.pack("<I", len(content)) + _MAGIC
    return Footer(parquet.read_metadata(pa.BufferReader(_MAGIC + content + end)), len(content))


def is_one_machine(spark: SparkSession) -> bool:
    """Return whether the executors are this machine: workers there cost more than they read."""
    return str(spark.conf.get("spark.master", "")).startswith("local")


def _read_footer(path: str, size: int) -> Footer:
    with told_of_file(path, "file"):
        return parsed_footer(footer_bytes(path, size))


def footer_bytes(path: str, known_size: int | None = None) -> bytes:
    """Return the thrift bytes of a file's footer, inside `told_of_file`; two reads at most."""
    files, name = filesystem(path)
    with files.open_input_file(name) as file:
        size = file.size()
        if known_size is not None and size > known_size:
            # Files never grow, so this is not the file that the catalog means.
            raise CorruptLake(
                f"has {size} bytes, but the catalog says {known_size}; restore the file, or"
                " correct file_size_bytes in ducklake_data_file",
                about="content",
            )
        tail = file.read_at(min(size, TAIL), max(0, size - TAIL))
        length = _footer_length(tail, size)
        if length + 8 > len(tail):
            tail = file.read_at(length + 8, size - length - 8)
    return bytes(tail[-8 - length : -8])


def _footer_length(tail: bytes, size: int) -> int:
    """Return the length of the footer that ends a file of ``size`` bytes, if that is complete."""
    if tail[-4:] == b"PARE":
        raise Unsupported("is encrypted, but the catalog has no key of it", about="content")
    if len(tail) < 12 or tail[-4:] != _MAGIC:
        raise CorruptLake("is not a Parquet file", about="content")
    (length,) = struct.unpack("<I", tail[-8:-4])
    if length + 12 > size:
        raise CorruptLake("is truncated: its footer is incomplete", about="content")
    return int(length)


def _from_executors(
    spark: SparkSession, directory: str, listed: Sequence[Listed]
) -> Iterator[Footer]:
    names = [(n, f.name, f.size) for n, f in enumerate(listed)]
    frame = spark.createDataFrame(names, "place int, name string, size bigint")
    tasks = -(-len(listed) // _FILES_PER_TASK)
    found = map_batches(frame.repartition(tasks), _tail_reader(directory), "place int, tail binary")
    # These rows are metadata of files, not rows of a table.
    tails = {row.place: bytes(row.tail) for row in found.collect()}
    for place, file in enumerate(listed):
        tail = tails[place]
        with told_of_file(directory + file.name, "file"):
            footer = parsed_footer(tail[-8 - _footer_length(tail, file.size) : -8])
        yield footer


def _tail_reader(directory: str) -> BatchFunction:
    files, base = filesystem(directory)
    usual = TAIL

    def read(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            tails = []
            for name, size in zip(
                batch.column(1).to_pylist(), batch.column(2).to_pylist(), strict=True
            ):
                with files.open_input_file(f"{base.rstrip('/')}/{name}") as file:
                    length = min(size, usual)
                    tail = file.read_at(length, size - length)
                    needed = int.from_bytes(tail[-8:-4], "little") + 8
                    if length < needed <= size:
                        tail = file.read_at(needed, size - needed)
                tails.append(tail[-needed:])
            yield pa.RecordBatch.from_arrays(
                [batch.column(0), pa.array(tails, pa.binary())], ["place", "tail"]
            )

    return read


@contextmanager
def opened(path: str, kind: str = "file", table: str = "") -> Iterator[parquet.ParquetFile]:
    """Open a file for reading, inside a ``with`` block; messages name its kind and its table.

    Raises CorruptLake if it is missing or cannot be read, StorageUnavailable if its storage fails.
    """
    with told_of_file(path, kind, table):
        if key_of(path) is not None:
            with _sealed(path) as source:
                yield parquet.ParquetFile(source, page_checksum_verification=True)
            return
        files, name = filesystem(path)
        with files.open_input_file(name) as source:
            yield parquet.ParquetFile(source, page_checksum_verification=True)


@contextmanager
def told_of_file(path: str, kind: str, table: str = "") -> Iterator[None]:
    """Raise what pyarrow says about a file as CorruptLake or StorageUnavailable.

    Our own errors about ``content`` get its name.
    """
    what = f"{kind} {path} of {table}" if table else f"{kind} {path}"
    try:
        with told_of_storage(path, what):
            yield
    except FileNotFoundError as error:
        raise CorruptLake(
            f"{what} is missing, or was cleaned up after its snapshot expired; {RESTORE}"
        ) from error
    except (CorruptLake, Unsupported) as error:
        if error.about != "content":
            raise
        wrong, semicolon, remedy = str(error).partition("; ")
        raise type(error)(f"{what} {wrong}; {remedy if semicolon else RESTORE}") from error
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        if isinstance(error, ShelduckError):
            raise
        first = str(error).strip().split("\n", maxsplit=1)[0]
        raise CorruptLake(f"{what} cannot be read ({first}); {RESTORE}") from error


def read_columns(path: str, columns: Sequence[str] | None, kind: str = "file") -> pa.Table:
    """Return columns of a file, or all with None, in the order of the file."""
    with opened(path, kind) as source:
        return source.read(columns=None if columns is None else list(columns))


def metadata_of(path: str, kind: str = "file", table: str = "") -> parquet.FileMetaData:
    """Return what the footer of a file says."""
    with opened(path, kind, table) as source:
        return source.metadata


def encrypted_file(
    path: str, write: Callable[[Mapping[str, Any]], bytes]
) -> tuple[SealedPath, bytes]:
    """Return the path and the bytes of a file with a new key, as DuckDB encrypts it.

    ``write`` makes the file by the settings that pyarrow gets. Unsupported for an older pyarrow.
    """
    key = secrets.token_bytes(16)
    sealed = SealedPath(path, base64.b64encode(key).decode())
    try:
        from pyarrow.parquet import encryption  # noqa: PLC0415 - some builds lack it

        how = encryption.create_encryption_properties(footer_key=key)
    except (ImportError, AttributeError) as error:
        raise Unsupported(f"pyarrow {pa.__version__} takes no keys of files; update it") from error
    content = write({"encryption_properties": how})
    return sealed, _engine().unbound_file(content, sealed.key)


@contextmanager
def _sealed(path: str) -> Iterator[pa.PythonFile]:
    """Open an encrypted file, whose path is a `SealedPath`, as a plain one."""
    options = rows_of(spark_options([path]).items())
    file = _engine().sealed_file(listed_path(path), key_of(path), options)
    with pa.PythonFile(_Bytes(file), mode="r") as source:
        yield source


def _engine() -> Engine:
    # Threads that read files have no active session of their own.
    spark = SparkSession.getActiveSession() or SparkSession._instantiatedSession  # noqa: SLF001
    assert spark is not None
    return engine_for(spark)


class _Bytes(io.RawIOBase):
    """The bytes of a file that Java reads; only ranges that are asked for are sent."""

    def __init__(self, file: Any) -> None:
        self._size, self._stream, self._at = int(file.getLength()), file.newStream(), 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = start + offset
        return self._at

    def read(self, size: int = -1) -> bytes:
        left = max(self._size - self._at, 0)
        count = left if size < 0 else min(size, left)
        self._stream.seek(self._at)
        self._at += count
        return bytes(self._stream.readNBytes(count))

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


def file_stats(
    metadata: pyarrow.parquet.FileMetaData, leaves: Sequence[Field | None], extra: int = 0
) -> tuple[ColumnStats, ...]:
    """Return the statistics of each leaf column; a column without a null count has none.

    ``leaves`` are the leaves of the table for which the file was written, in the file's order;
    None, and ``extra`` columns after them, contain the origins of rows and have no statistics.
    """
    paths = [metadata.schema.column(n).path for n in range(metadata.num_columns)]
    groups = [metadata.row_group(n) for n in range(metadata.num_row_groups)]
    found, at = [], 0
    for leaf in leaves:
        if leaf is not None and str(leaf.shape) == "variant":
            at += _variant_columns(paths[at:])
            continue
        if leaf is not None and at < len(paths):
            found.append(column_stats(leaf, [g.column(at) for g in groups]))
        at += 1
    if len(paths) != at + extra:
        raise CorruptLake(
            f"a file with {len(paths)} columns was written for a table with {at + extra}"
        )
    return tuple(stats for stats in found if stats is not None)


def _variant_columns(paths: Sequence[str]) -> int:
    """Return how many columns hold the variant that begins with the first of these.

    They are its metadata and value and, if it is shredded, its typed parts. A variant has no
    statistics: DuckDB counts one that is null as NULL.
    """
    variant = paths[0].rpartition(".")[0] + "." if paths else ""
    return sum(1 for path in paths if path.startswith(variant))


def column_stats(
    field: Field, chunks: list[Any], *, with_bounds: bool = True
) -> ColumnStats | None:
    """Return the statistics of a leaf from its column chunks; None if nulls are not counted.

    Without ``with_bounds``, the footer's bounds are ignored.
    """
    statistics = [c.statistics for c in chunks]
    if any(s is None or not s.has_null_count for s in statistics):
        return None
    null_count = sum(s.null_count for s in statistics)
    values = sum(c.num_values for c in chunks) - null_count
    filled = [s for c, s in zip(chunks, statistics, strict=True) if c.num_values > s.null_count]
    found, contains_nan = _bounds(field.leaf, filled) if with_bounds else (Ends(), bool(filled))
    return ColumnStats(
        column_id=field.id,
        column_size_bytes=sum(c.total_compressed_size for c in chunks),
        value_count=values,
        null_count=null_count,
        contains_nan=contains_nan if str(field.leaf) in FLOATS else None,
        **found._asdict(),
    )


def _bounds(leaf: Leaf, statistics: list[Any]) -> tuple[Ends, bool]:
    """Return the bounds over all row groups that hold values, and whether there may be a NaN."""
    known = bool(statistics) and all(s.has_min_max for s in statistics)
    if not known:
        return Ends(), bool(statistics)
    if str(leaf) in FLOATS:
        edges = [float(v) for s in statistics for v in (s.min_raw, s.max_raw)]
        # A NaN hides the values below it, and only the footer's bounds show that there is one.
        if any(math.isnan(v) for v in edges):
            return Ends(), True
    read = _reader(leaf)
    if read is None:
        return Ends(), False
    try:
        low = min(read(s.min_raw) for s in statistics)
        found = ends(leaf, low, max(read(s.max_raw) for s in statistics))
    except UnicodeDecodeError:
        return Ends(), False
    if str(leaf) == "blob" and len(found.max_value or "") > BOUND_BYTES:
        return Ends(), False
    return found, False


def _reader(leaf: Leaf) -> Callable[[Any], Any] | None:
    """Return a function that makes a comparable value from a footer's raw bound."""
    name = str(leaf)
    if isinstance(leaf, Decimal):
        scale = leaf.scale
        return lambda raw: Number(f"{_unscaled(raw)}E-{scale}")
    if integer_range(leaf) is not None:
        return _unscaled
    if name in FLOATS or name in _NUMBERS or name == "boolean":
        return lambda raw: raw
    if name in _CUT_TYPES or name in ("uuid", "time"):
        return lambda raw: raw.decode()
    return bytes if name == "blob" else None


def _unscaled(raw: int | bytes) -> int:
    return raw if isinstance(raw, int) else int.from_bytes(raw, "big", signed=True)
