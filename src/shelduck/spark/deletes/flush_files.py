"""Small files about rows that leave the catalog: where each row is, and when it was deleted."""

from __future__ import annotations

import io
from collections.abc import Mapping

import pyarrow as pa
from pyarrow import parquet

from shelduck.model.files.data_files import NewDeleteFile
from shelduck.model.files.layout import SNAPSHOT_FIELD
from shelduck.spark.files.file_systems import filesystem
from shelduck.spark.files.parquet_files import read_columns
from shelduck.spark.files.physical import ROW_ID_COLUMN, SNAPSHOT_COLUMN

_DELETES = pa.schema(
    [
        pa.field("file_path", pa.string(), metadata={"PARQUET:field_id": "2147483646"}),
        pa.field("pos", pa.int64(), metadata={"PARQUET:field_id": "2147483645"}),
        pa.field(SNAPSHOT_COLUMN, pa.int64(), metadata={"PARQUET:field_id": str(SNAPSHOT_FIELD)}),
    ]
)


def row_versions(path: str) -> list[tuple[int, int]]:
    """Return the row id and the first snapshot of each row of a newly written file."""
    found = read_columns(path, [ROW_ID_COLUMN, SNAPSHOT_COLUMN])
    ids, snapshots = (found.column(n).to_pylist() for n in (ROW_ID_COLUMN, SNAPSHOT_COLUMN))
    return list(zip(ids, snapshots, strict=True))


def deaths_in(path: str, begin_snapshot: int) -> dict[int, int]:
    """Return the snapshot that deleted each position of a delete file.

    If the file does not say, it is ``begin_snapshot`` for all positions.
    """
    found = read_columns(path, None, "delete file")
    positions = found.column("pos").to_pylist()
    if SNAPSHOT_COLUMN not in found.column_names:
        return dict.fromkeys(positions, begin_snapshot)
    return dict(zip(positions, found.column(SNAPSHOT_COLUMN).to_pylist(), strict=True))


def write_deaths(
    table_path: str, name: str, data_file: str, deaths: Mapping[int, int]
) -> NewDeleteFile:
    """Write a delete file with the snapshot that deleted each position.

    ``name`` is its path below ``table_path``, ``data_file`` the absolute path of the data file.
    """
    positions = sorted(deaths)
    rows = [[data_file] * len(positions), positions, [deaths[p] for p in positions]]
    made = pa.Table.from_arrays([pa.array(c, f.type) for c, f in zip(rows, _DELETES, strict=True)],
                                schema=_DELETES)  # fmt: skip
    buffer = io.BytesIO()
    footers: list[parquet.FileMetaData] = []
    parquet.write_table(made, buffer, metadata_collector=footers)
    content = buffer.getvalue()
    files, place = filesystem(table_path + name)
    files.create_dir(place.rpartition("/")[0], recursive=True)
    with files.open_output_stream(place) as target:
        target.write(content)
    footer = int.from_bytes(content[-8:-4], "little")
    return NewDeleteFile(
        name,
        len(positions),
        len(content),
        footer,
        min(deaths.values()),
        row_group_count=footers[0].num_row_groups,
    )
