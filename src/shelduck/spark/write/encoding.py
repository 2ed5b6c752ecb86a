"""How files are encoded, by the options of their table, in the words of each writer."""

from __future__ import annotations

from typing import Any

from shelduck.model.tables.options import TableOptions


def spark_settings(options: TableOptions) -> dict[str, str]:
    """Return the options of Spark's Parquet writer."""
    found = {"compression": options.parquet_compression}
    if options.parquet_version == 2:
        found["parquet.writer.version"] = "v2"
    if options.parquet_compression_level is not None:
        # Of the codecs of Spark and DuckDB, only zstd has levels.
        found["parquet.compression.codec.zstd.level"] = str(options.parquet_compression_level)
    if options.parquet_row_group_size is not None:
        found["parquet.block.row.count.limit"] = str(options.parquet_row_group_size)
    if options.parquet_row_group_size_bytes is not None:
        found["parquet.block.size"] = str(options.parquet_row_group_size_bytes)
    return found


def arrow_settings(options: TableOptions) -> dict[str, Any]:
    """Return the arguments of pyarrow's Parquet writer; it limits row groups by rows, not bytes."""
    found: dict[str, Any] = {"compression": options.parquet_compression}
    if options.parquet_version == 2:
        found["data_page_version"] = "2.0"
    if options.parquet_compression == "zstd" and options.parquet_compression_level is not None:
        found["compression_level"] = options.parquet_compression_level
    return found
