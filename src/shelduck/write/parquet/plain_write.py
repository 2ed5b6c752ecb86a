"""Writes without the bridge, for sessions of Spark Connect.

Spark's own writer cannot write ids for list elements and map keys and values, and some of what it
does depends on settings of the session, which belong to the user. So pyarrow writes rows with lists
or maps, and those that the session's settings would write in another way, inside the executors.
That takes about twice as long.
"""

from __future__ import annotations

import inspect
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any
from urllib.parse import quote

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import TimestampType

from shelduck.engine.bridge import select_named
from shelduck.engine.files.physical import BatchFunction, PhysicalSchema, map_batches
from shelduck.engine.files.storage import delete_file, filesystem, list_data_files, make_directory
from shelduck.engine.stores.homes import spark_options, spark_path
from shelduck.errors import Unsupported
from shelduck.model.files.place import place_below
from shelduck.model.tables.column_storage import COLUMN_STORAGE, ColumnStorage, Encoding, storage_of
from shelduck.model.tables.options import TableOptions
from shelduck.model.tables.schema import Field, FieldId, Kind
from shelduck.model.tables.table_version import TableVersion
from shelduck.write.parquet.clustering import Clustering

_FILTER = "parquet.bloom.filter.enabled#"
# Filters of 512 bytes up to 1 MB are tried, and the smallest that suffices is kept.
_CANDIDATES = "12"
_IDS = "spark.sql.parquet.fieldId.write.enabled"
_SETTINGS = {
    _IDS: "true",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
}
_INSTANTS = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}
# A bound that is cut would not be a value of the column.
_WHOLE_BOUNDS = {"parquet.statistics.truncate.length": str(2**31 - 1)}
_GROUP_ROWS = 122_880  # as DuckDB does
_LIMIT = {"parquet.block.row.count.limit": str(1 << 20)}  # as the bridge does
_BROTLI = "org.apache.hadoop.io.compress.BrotliCodec"
_ARROW_ID = "PARQUET:field_id"
_Part = tuple[str, Any]  # the directory of a partition, and rows of it


def spark_writes(spark: SparkSession, physical: PhysicalSchema) -> bool:
    """Return whether Spark's own writer, as the session sets it, makes the files of a lake.

    Raises Unsupported if it does not, and PyArrow does not either.
    """
    leaves = {str(f.shape) for top in physical.fields for f in top.walk()}
    needed = _SETTINGS | (_INSTANTS if "timestamptz" in leaves else {})
    is_set = not physical.has_repeated and all(
        str(spark.conf.get(key)).upper() == value.upper() for key, value in needed.items()
    )
    if not is_set and "variant" in leaves:
        raise Unsupported(
            "cannot write VARIANT over Spark Connect beside lists and maps, or unless the session"
            f" has {', '.join(f'{k} = {v}' for k, v in needed.items())}; set these, or write in a"
            " driver with a JVM"
        )
    return is_set


def write_plain(
    rows: DataFrame, physical: PhysicalSchema, clustering: Clustering, place: str
) -> None:
    """Write by Spark's own writer, ids in the fields' metadata; only if `spark_writes`."""
    named = select_named(rows, physical.columns(with_ids=True) + clustering.named)
    table = clustering.table
    settings = spark_settings(table, physical)
    limit = {} if "parquet.block.size" in settings else _LIMIT
    writer = named.write.options(**limit | settings | _WHOLE_BOUNDS | spark_options([place]))
    writer.partitionBy(*clustering.columns).parquet(spark_path(place))


def write_plain_parts(
    spark: SparkSession, rows: DataFrame, part: str, place: str, compression: str
) -> None:
    """Write columns whose metadata has their ids, a directory for each value of column ``part``.

    Raises Unsupported in a session that writes no ids.
    """
    if spark.conf.get(_IDS) != "true":
        raise Unsupported(f"the session has {_IDS} = false; set it to true to delete many rows")
    writer = rows.write.partitionBy(part).option("maxRecordsPerFile", 0)
    writer = writer.options(**spark_options([place]))
    writer.parquet(spark_path(place), compression=compression)


def write_by_arrow(
    df: DataFrame, physical: PhysicalSchema, clustering: Clustering, place: str
) -> bool:
    """Write files by pyarrow, ids at every level, one for each task and partition.

    True if there were rows.
    """
    # PySpark parses backticks in names when it maps batches, so the schema has the names.
    rows = select_named(df, physical.columns(with_ids=False) + clustering.named)
    rows = rows.toDF(*[f"c{f.id}" for f in physical.fields], *clustering.columns)
    schema = pa.schema([_arrow_field(f, physical) for f in physical.fields])
    table, options, leaves = clustering.table, clustering.table.options, _leaves(schema)
    # Floats get no statistics, because pyarrow leaves NaN out.
    counted = [leaf.path for leaf in leaves if leaf.physical_type not in ("FLOAT", "DOUBLE")]
    settings = arrow_settings(options) | {"write_statistics": counted}
    group_rows = options.parquet_row_group_size or _GROUP_ROWS
    settings |= _arrow_columns(table, physical, group_rows, [leaf.path for leaf in leaves])
    write = _writer(schema, clustering.columns, place, options.parquet_row_group_size, settings)
    make_directory(place)
    written = map_batches(rows, write, "name string")
    # These rows are names of files, not rows of a table.
    names = {row.name for row in written.collect()}
    for file in list_data_files(place):
        # A task that failed or ran twice leaves a file that is not in the results.
        if file.name not in names:
            delete_file(place_below(f"{place}/", file.name))
    return bool(names)


def _arrow_field(field: Field, physical: PhysicalSchema, name: str | None = None) -> Any:
    kind = _arrow_type(field, physical)
    name = physical.names[field.id] if name is None else name
    return pa.field(name, kind, name != "key", {_ARROW_ID: str(int(field.id))})


def _arrow_type(field: Field, physical: PhysicalSchema) -> Any:
    if field.shape is Kind.STRUCT:
        return pa.struct([_arrow_field(c, physical) for c in field.children])
    if field.shape is Kind.LIST:
        return pa.list_(_arrow_field(field.children[0], physical, "element"))
    if field.shape is Kind.MAP:
        key, value = field.children
        return pa.map_(_arrow_field(key, physical, "key"), _arrow_field(value, physical, "value"))
    leaf = physical.spark_type(field, with_ids=False)
    # PySpark requires the time zone from 4.2 on, under a name that 4.1 does not know.
    return pa.timestamp("us", "UTC") if isinstance(leaf, TimestampType) else to_arrow_type(leaf)


def _leaves(schema: Any) -> list[Any]:
    """Return the leaves of a schema as Parquet describes them."""
    sink = pa.BufferOutputStream()
    parquet.write_table(schema.empty_table(), sink)
    leaves = parquet.read_metadata(pa.BufferReader(sink.getvalue())).schema
    return [leaves.column(n) for n in range(len(leaves))]


def _writer(
    schema: Any,
    directories: list[str],
    directory: str,
    row_group_size: int | None,
    settings: Mapping[str, Any],
) -> BatchFunction:
    files, base = filesystem(directory)
    runs, groups = _cutter(schema, directories), _gatherer(row_group_size or _GROUP_ROWS)

    def write(batches: Iterator[Any]) -> Iterator[Any]:
        name = f"part-{uuid.uuid4()}.parquet"
        parts = (found for batch in batches for found in runs(batch))
        for below, tables in groupby(groups(parts), key=lambda found: found[0]):
            _make_directories(files, base.rstrip("/"), below)
            with parquet.ParquetWriter(
                f"{base.rstrip('/')}/{below}{name}",
                schema,
                filesystem=files,
                store_schema=False,
                **settings,
            ) as writer:
                for _, rows in tables:
                    writer.write_table(rows, row_group_size)
            yield pa.RecordBatch.from_arrays([pa.array([below + name])], ["name"])

    return write


def _make_directories(files: Any, base: str, below: str) -> None:
    """Make the directories of a partition in ``base``, which exists.

    A task may outlive its failed job, whose directory is deleted: it must not make that again.
    """
    if files.type_name == "s3":
        # In an object store, files imply their directories.
        return
    for level in below.split("/")[:-1]:
        base = f"{base}/{level}"
        files.create_dir(base, recursive=False)


def _cutter(schema: Any, directories: list[str]) -> Callable[[Any], Iterator[_Part]]:
    """Return a function that splits a batch, whose rows are in partition order, by partition."""
    width = len(schema)

    def runs(batch: Any) -> Iterator[_Part]:
        columns = [
            column.cast(field.type)
            for column, field in zip(batch.columns[:width], schema, strict=True)
        ]
        rows = pa.RecordBatch.from_arrays(columns, schema=schema)
        if not directories:
            yield "", rows
            return
        start = 0
        keys = zip(*(column.to_pylist() for column in batch.columns[width:]), strict=True)
        for key, run in groupby(keys):
            size = sum(1 for _ in run)
            parts = (
                f"{d}={quote(text, safe='')}/" for d, text in zip(directories, key, strict=True)
            )
            yield "".join(parts), rows.slice(start, size)
            start += size

    return runs


def _gatherer(group_rows: int) -> Callable[[Iterable[_Part]], Iterator[_Part]]:
    """Return a function that collects small batches into tables, one for each row group."""

    def groups(parts: Iterable[_Part]) -> Iterator[_Part]:
        held: list[Any] = []
        at = ""
        for below, rows in parts:
            # Rows, not bytes: counting the bytes of lists that Spark 4.1 sent empty crashes.
            if held and (below != at or sum(b.num_rows for b in held) >= group_rows):
                yield at, pa.Table.from_batches(held)
                held = []
            at = below
            if rows.num_rows:
                held.append(rows)
        if held:
            yield at, pa.Table.from_batches(held)

    return groups


def spark_settings(table: TableVersion, physical: PhysicalSchema) -> dict[str, str]:
    """Return the options of Spark's Parquet writer for files of a table."""
    options = table.options
    # What Spark writes as lz4, DuckDB cannot read; what DuckDB writes as lz4 is lz4_raw.
    codec = options.parquet_compression
    found = {"compression": "lz4_raw" if codec == "lz4" else codec}
    # Spark misreads texts and bytes that it wrote uncompressed in pages of version 2.
    if options.parquet_version == 2 and codec != "uncompressed":
        found["parquet.writer.version"] = "v2"
    if options.parquet_compression_level is not None:
        # Of the codecs of Spark and DuckDB, only zstd has levels.
        found["parquet.compression.codec.zstd.level"] = str(options.parquet_compression_level)
    if options.parquet_row_group_size is not None:
        found["parquet.block.row.count.limit"] = str(options.parquet_row_group_size)
    if options.parquet_row_group_size_bytes is not None:
        found["parquet.block.size"] = str(options.parquet_row_group_size_bytes)
    if COLUMN_STORAGE in table.properties:
        found |= _spark_columns(table, physical)
    if options.encrypted:
        # DuckDB takes an encrypted filter for a plain one, and fails.
        found |= {_FILTER + ".".join(path): "false" for path in physical.ids}
    return found


def _spark_columns(table: TableVersion, physical: PhysicalSchema) -> dict[str, str]:
    found: dict[str, str] = {}
    for path, one in _stored(table, physical):
        if one.encoding is Encoding.PLAIN:
            found[f"parquet.enable.dictionary#{path}"] = "false"
        if one.index is not None:
            found["parquet.bloom.filter.adaptive.enabled"] = "true"
            found[_FILTER + path] = "true"
            found[f"parquet.bloom.filter.candidates.number#{path}"] = _CANDIDATES
    return found


def codec_failure(error: BaseException, table: TableVersion) -> Unsupported | None:
    """Return that Spark lacks the codec of a table, None if a write failed for another reason."""
    if table.options.parquet_compression != "brotli" or _BROTLI not in str(error):
        return None
    return Unsupported(
        f"cannot write {table.full_name} with brotli: Spark does not come with the class {_BROTLI};"
        f" add a JAR that has it, or CALL set_option('parquet_compression', 'zstd')"
    )


def arrow_settings(options: TableOptions) -> dict[str, Any]:
    """Return the arguments of pyarrow's Parquet writer; it limits row groups by rows, not bytes."""
    found: dict[str, Any] = {"compression": options.parquet_compression}
    if options.parquet_version == 2:
        found["data_page_version"] = "2.0"
    if options.parquet_compression == "zstd" and options.parquet_compression_level is not None:
        found["compression_level"] = options.parquet_compression_level
    return found


def _arrow_columns(
    table: TableVersion, physical: PhysicalSchema, group_rows: int, leaves: list[str]
) -> dict[str, Any]:
    """Return the arguments of pyarrow's Parquet writer for single columns, of which all ``leaves``.

    A pyarrow that does not know Bloom filters writes none.
    """
    stored = dict(_stored(table, physical))
    found: dict[str, Any] = {}
    plain = {path for path, one in stored.items() if one.encoding is Encoding.PLAIN}
    if plain:
        found["use_dictionary"] = [leaf for leaf in leaves if leaf not in plain]
    filters = [path for path, one in stored.items() if one.index is not None]
    if filters and "bloom_filter_options" in inspect.signature(parquet.ParquetWriter).parameters:
        found["bloom_filter_options"] = {key: {"ndv": group_rows, "fpp": 0.01} for key in filters}
    return found


def _stored(table: TableVersion, physical: PhysicalSchema) -> Iterator[tuple[str, ColumnStorage]]:
    """Yield how columns are stored, by their paths; a dot in a name would begin another part."""
    known = storage_of(table.properties, table.full_name)
    if known.columns:
        for path, number in physical.ids.items():
            one = known.of(FieldId(number))
            if one in known.columns and not any("." in part for part in path):
                yield ".".join(path), one
