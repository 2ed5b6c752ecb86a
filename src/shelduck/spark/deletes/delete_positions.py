"""Delete files of positions that are already in the driver, written without Spark."""

from __future__ import annotations

import pyarrow as pa
from pyarrow import parquet

from shelduck.model.files.data_files import NewDeleteFile
from shelduck.model.tables.table import TableVersion
from shelduck.spark.files.file_systems import filesystem
from shelduck.spark.files.storage import make_directory

_FIELDS = [
    pa.field("file_path", pa.string(), metadata={"PARQUET:field_id": "2147483646"}),
    pa.field("pos", pa.int64(), metadata={"PARQUET:field_id": "2147483645"}),
]


def write_positions(
    table: TableVersion, name: str, data_file: str, positions: pa.Array
) -> NewDeleteFile:
    """Write a delete file below the table's directory and return it.

    ``positions`` are all deleted positions of the data file, in order; its path is absolute.
    """
    rows = pa.Table.from_arrays(
        [pa.repeat(data_file, len(positions)), positions], schema=pa.schema(_FIELDS)
    )
    buffer = pa.BufferOutputStream()
    footers: list[parquet.FileMetaData] = []
    parquet.write_table(rows, buffer, compression="snappy", metadata_collector=footers)
    data = buffer.getvalue().to_pybytes()
    place = table.path + name
    make_directory(place.rpartition("/")[0])
    files, target = filesystem(place)
    with files.open_output_stream(target) as stream:
        stream.write(data)
    # A Parquet file ends with the length of its footer and four letters.
    footer_size = int.from_bytes(data[-8:-4], "little")
    groups = footers[0].num_row_groups
    return NewDeleteFile(name, len(positions), len(data), footer_size, row_group_count=groups)
