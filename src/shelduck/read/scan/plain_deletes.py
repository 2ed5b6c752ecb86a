"""Delete files, read by the driver without a Spark job: positions, and snapshots of vectors."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence

import pyarrow as pa
from pyarrow import compute

from shelduck.engine.files.file_systems import filesystem
from shelduck.engine.files.footers import RESTORE, metadata_of, opened, told_of_file
from shelduck.errors import CorruptLake
from shelduck.model.files.data_file import DataFile, DeleteFile
from shelduck.model.files.layout import SNAPSHOT_COLUMN, SNAPSHOT_FIELD

POSITION = "pos"
_PUFFIN = b"PFA1"
_FOOTER_END = struct.Struct("<iI4s")
_POSITION_ID = b"2147483645"


def plain_deletes(file: DataFile, stored: DeleteFile, table: str) -> pa.Table:
    """Return the positions of a Parquet delete file, and their snapshots if it has them.

    Raises CorruptLake if it cannot be read, or is not what the catalog says of it and ``file``.
    """
    with opened(stored.path, "delete file", table) as source:
        names = source.schema_arrow.names
        wanted = (_position(source.schema_arrow), SNAPSHOT_COLUMN)
        columns = [n for n in wanted if n in names]
        found = source.read(columns=columns)
    wrong = _fault(found, columns, file.record_count)
    if wrong is not None:
        raise _corrupt(stored, table, wrong)
    require_count(stored, table, len(found))
    names = [POSITION, *columns[1:]]
    return found.rename_columns(names).cast(pa.schema([(n, pa.int64()) for n in names]))


def vector_snapshots(path: str, table: str) -> list[int]:
    """Return the snapshots that a file of deletion vectors tells apart, in order; [] for one.

    Each vector has all that was deleted up to its snapshot.
    """
    with told_of_file(path, "delete file", table):
        files, name = filesystem(path)
        with files.open_input_file(name) as source:
            if source.read(len(_PUFFIN)) != _PUFFIN:
                return []
            end = source.size() - _FOOTER_END.size
            source.seek(end)
            length, _, _ = _FOOTER_END.unpack(source.read())
            source.seek(end - length)
            blobs = json.loads(source.read(length))["blobs"]
    found = [blob.get("properties", {}).get("ducklake-snapshot-id") for blob in blobs]
    return sorted(int(snapshot) for snapshot in found if snapshot is not None)


def may_be_later(stored: DeleteFile, snapshot: int, table: str) -> bool:
    """Return whether a file may have deletes of snapshots after this one."""
    if stored.format != "parquet":
        return any(at > snapshot for at in vector_snapshots(stored.path, table))
    metadata = metadata_of(stored.path, "delete file")
    columns = [n for n, c in enumerate(metadata.schema.to_arrow_schema()) if _is_snapshot(c)]
    for group in range(metadata.num_row_groups):
        for column in columns:
            known = metadata.row_group(group).column(column).statistics
            if known is None or not known.has_min_max or known.max > snapshot:
                return True
    return False


def _is_snapshot(column: object) -> bool:
    metadata = getattr(column, "metadata", None) or {}
    return bool(metadata.get(b"PARQUET:field_id") == str(SNAPSHOT_FIELD).encode())


def require_count(stored: DeleteFile, table: str, rows: int | None = None) -> None:
    """Raise CorruptLake if a delete file has other ``rows``, or its footer, than the catalog says.

    Only Parquet files have a footer that tells.
    """
    if rows is None:
        rows = int(metadata_of(stored.path, "delete file", table).num_rows)
    if rows != stored.delete_count:
        wrong = f"{rows} rows, but the catalog says {stored.delete_count}"
        raise _corrupt(stored, table, wrong, " or correct delete_count in ducklake_delete_file")


def _corrupt(stored: DeleteFile, table: str, wrong: str, otherwise: str = "") -> CorruptLake:
    comma = "," if otherwise else ""
    return CorruptLake(
        f"delete file {stored.path} of {table} has {wrong}; {RESTORE}{comma}{otherwise}"
    )


def _position(schema: pa.Schema) -> str:
    """Return the column of positions, as the scan finds it: by its id, or else by its name."""
    by_id = [f.name for f in schema if (f.metadata or {}).get(b"PARQUET:field_id") == _POSITION_ID]
    return by_id[0] if by_id else POSITION


def _fault(found: pa.Table, columns: Sequence[str], rows: int | None) -> str | None:
    if not columns or columns[0] == SNAPSHOT_COLUMN:
        return "no column of positions"
    if any(c.null_count or not pa.types.is_integer(c.type) for c in found.columns):
        return "positions that are NULL or no integers"
    positions = found[columns[0]]
    if not len(positions):
        return None
    ends = compute.min_max(positions).as_py()
    if ends["min"] < 0:
        return f"position {ends['min']}"
    if rows is not None and ends["max"] >= rows:
        return f"position {ends['max']}, but its data file has {rows} rows"
    return None if len(positions.unique()) == len(positions) else "a position twice"
