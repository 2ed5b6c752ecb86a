"""Parquet files that the driver reads itself; what is wrong with one is an error of the lake.

Only this module opens Parquet files of a lake with pyarrow. A page whose checksum is wrong is not
read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
from pyarrow import parquet

from shelduck.errors import CorruptLake, ShelduckError, Unsupported
from shelduck.spark.files.file_systems import filesystem
from shelduck.spark.stores.store_errors import told_of_storage

RESTORE = "restore it from a backup, and look at the lake with shelduck check"


@contextmanager
def opened(path: str, kind: str = "file", table: str = "") -> Iterator[parquet.ParquetFile]:
    """Open a file for reading, inside a ``with`` block; messages name its kind and its table.

    Raises CorruptLake if it is missing or cannot be read, StorageUnavailable if its storage fails.
    """
    with told_of_file(path, kind, table):
        files, name = filesystem(path)
        with files.open_input_file(name) as source:
            yield parquet.ParquetFile(source, page_checksum_verification=True)


@contextmanager
def told_of_file(path: str, kind: str, table: str = "") -> Iterator[None]:
    """Raise what pyarrow says about a file as CorruptLake or StorageUnavailable.

    Our own errors about its content get its name.
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
        if path in str(error):
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
