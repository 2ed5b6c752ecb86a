"""How the Parquet writers of Spark and of pyarrow are told to store single columns."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from pyarrow import parquet

from shelduck.engine.files.physical import PhysicalSchema
from shelduck.model.tables.column_storage import ColumnStorage, Encoding, storage_of
from shelduck.model.tables.schema import FieldId
from shelduck.model.tables.table_version import TableVersion

# Filters of 512 bytes up to 1 MB are tried, and the smallest that suffices is kept.
_CANDIDATES = "12"


def spark_columns(table: TableVersion, physical: PhysicalSchema) -> dict[str, str]:
    """Return the options of Spark's Parquet writer for the columns of a table."""
    found: dict[str, str] = {}
    for path, one in _stored(table, physical):
        if one.encoding is Encoding.PLAIN:
            found[f"parquet.enable.dictionary#{path}"] = "false"
        if one.index is not None:
            found["parquet.bloom.filter.adaptive.enabled"] = "true"
            found[f"parquet.bloom.filter.enabled#{path}"] = "true"
            found[f"parquet.bloom.filter.candidates.number#{path}"] = _CANDIDATES
    return found


def arrow_columns(
    table: TableVersion, physical: PhysicalSchema, group_rows: int, leaves: list[str]
) -> dict[str, Any]:
    """Return the arguments of pyarrow's Parquet writer for the columns of a table.

    ``leaves`` are the paths of all. A pyarrow that does not know Bloom filters writes none.
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
