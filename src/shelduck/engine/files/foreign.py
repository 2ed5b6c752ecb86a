"""Footers of foreign files: what the files hold, and the statistics that can be trusted.

Writers differ in what they count and in how they order values. A bound is kept only if every writer
means the same by it. It is never known whether a float column holds a NaN, because some writers
leave it out.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet
from pyspark.sql import SparkSession

from shelduck.engine.files.footers import Footer, column_stats, read_footers
from shelduck.engine.files.layouts import layout_of
from shelduck.engine.files.listing import FoundFile
from shelduck.engine.files.storage import Listed
from shelduck.errors import CorruptLake, InvalidRequest, Unsupported
from shelduck.model.files.data_file import (
    ColumnStats,
    Layout,
    MappedName,
    NewDataFile,
    PhysicalField,
)
from shelduck.model.tables.schema import Field, Kind
from shelduck.model.types.data_types import FLOATS, SIGNED, UNSIGNED, Decimal
from shelduck.model.types.literals import exactness

_ROOT = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*://[^/]*/")
_SMALLEST = 12
_TEXTS = frozenset({"varchar", "json"})
_AS_STORED = frozenset({"boolean", "date", "timestamp", "timestamptz", "blob", *FLOATS})


@dataclass(frozen=True, slots=True)
class ForeignFile:
    """A file with its footer. Files of one schema share one ``layout`` object."""

    path: str
    size: int
    footer: Footer
    layout: Layout

    def adopted(self, stats: tuple[ColumnStats, ...], names: tuple[MappedName, ...]) -> NewDataFile:
        """Return it as a file of a table that finds its columns by these names."""
        metadata = self.footer.metadata
        return NewDataFile(
            path=self.path,
            record_count=metadata.num_rows,
            file_size_bytes=self.size,
            footer_size=self.footer.size,
            row_group_count=metadata.num_row_groups,
            stats=stats,
            layout=self.layout,
            names=names,
        )


def read_foreign(spark: SparkSession, files: Sequence[FoundFile]) -> Iterator[ForeignFile]:
    """Yield the files with their footers, in the given order.

    Footers are read in threads, or in the executors if there are many. Raises InvalidRequest for a
    file that is encrypted, not a Parquet file, or misread by Spark; for files that are too small,
    before any is yielded.
    """
    small = next((f for f in files if f.size < _SMALLEST), None)
    if small is not None:
        raise InvalidRequest(f"{small.path} is not a Parquet file: it has {small.size} bytes")
    seen: list[tuple[Any, Layout]] = []
    for file, footer in _footers(spark, files):
        schema = footer.metadata.schema
        if (name := _misread(footer.metadata)) is not None:
            raise InvalidRequest(
                f"Spark misreads column {name!r} of {file.path}: its pages are of version 2 and not"
                " compressed; write the file again with another codec or version"
            )
        layout = next((known for other, known in seen if schema.equals(other)), None)
        if layout is None:
            layout = layout_of(footer.metadata)
            seen.insert(0, (schema, layout))
        yield ForeignFile(file.path, file.size, footer, layout)


def _misread(metadata: pyarrow.parquet.FileMetaData) -> str | None:
    """Return a column that Spark's vectorized reader takes from a wrong place of its page."""
    if not (metadata.created_by or "").startswith("parquet-mr") or not metadata.num_row_groups:
        return None
    group = metadata.row_group(0)
    # A writer has one codec for a file.
    if not group.num_columns or group.column(0).compression != "UNCOMPRESSED":
        return None
    columns = map(group.column, range(group.num_columns))
    return next((c.path_in_schema for c in columns if "DELTA_BYTE_ARRAY" in c.encodings), None)


def _footers(spark: SparkSession, files: Sequence[FoundFile]) -> Iterator[tuple[FoundFile, Footer]]:
    by_root: dict[str, list[FoundFile]] = defaultdict(list)
    for file in files:
        match = _ROOT.match(file.path)
        if match is None:
            raise InvalidRequest(f"{file.path!r} is not an absolute path")
        by_root[match[0]].append(file)
    for root, inside in by_root.items():
        listed = [Listed(f.path[len(root) :], f.size) for f in inside]
        try:
            yield from zip(inside, read_footers(spark, root, listed), strict=True)
        except (CorruptLake, Unsupported) as error:
            # What can be done about a file of the lake is not said of one that it does not have.
            raise InvalidRequest(str(error).rpartition("; ")[0] or str(error)) from error


def column_places(metadata: pyarrow.parquet.FileMetaData) -> Mapping[str, int]:
    """Return which column of a file each path in its schema is; ambiguous paths are left out."""
    schema = metadata.schema
    paths = [schema.column(n).path for n in range(metadata.num_columns)]
    count = Counter(paths)
    return {path: n for n, path in enumerate(paths) if count[path] == 1}


def foreign_stats(
    metadata: pyarrow.parquet.FileMetaData,
    leaves: Sequence[tuple[Field, PhysicalField, str]],
    places: Mapping[str, int],
) -> tuple[ColumnStats, ...]:
    """Return the statistics of the leaves of a table that the file holds under these paths."""
    groups = [metadata.row_group(n) for n in range(metadata.num_row_groups)]
    found = []
    for field, stored, path in leaves:
        at = places.get(path)
        if at is None:
            continue
        chunks = [group.column(at) for group in groups]
        stats = _counted(field, stored, chunks)
        if stats is not None:
            found.append(stats)
    return tuple(found)


def _counted(field: Field, stored: PhysicalField, chunks: list[Any]) -> ColumnStats | None:
    bounded = _means_the_same(field, stored) and not _wraps(stored, chunks)
    stats = column_stats(field, chunks, with_bounds=bounded)
    if stats is None:
        return None
    has_nan = str(field.leaf) in FLOATS and stats.value_count > 0
    return stats._replace(
        contains_nan=True if has_nan else stats.contains_nan,
        # Some writers cut texts, and pyarrow does not show whether they did.
        min_is_exact=exactness(field.leaf, stats.min_value, None),
        max_is_exact=exactness(field.leaf, stats.max_value, None),
    )


def _means_the_same(field: Field, stored: PhysicalField) -> bool:
    """Return whether the footer's bounds are bounds of the column's values, in its own unit."""
    leaf, kept = field.shape, stored.shape
    if isinstance(leaf, Kind) or isinstance(kept, Kind) or stored.encoding:
        return False
    if isinstance(leaf, Decimal) or isinstance(kept, Decimal):
        return leaf == kept
    whole = SIGNED.keys() | UNSIGNED.keys()
    if leaf.name in whole and kept.name in whole:
        return not {leaf.name, kept.name} & {"int128", "uint128"}
    if leaf.name in _TEXTS:
        return kept.name in _TEXTS
    return leaf == kept and leaf.name in _AS_STORED


def _wraps(stored: PhysicalField, chunks: list[Any]) -> bool:
    """Return whether a bound of an unsigned column is shown as a negative number."""
    if str(stored.shape) not in UNSIGNED:
        return False
    known = [s for c in chunks if (s := c.statistics) is not None and s.has_min_max]
    return any(s.min_raw < 0 or s.max_raw < 0 for s in known)
