"""The metrics of a data file in Iceberg's metadata: rows, counts and bounds, only if certain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.types import PrimitiveType

from shelduck.borders.iceberg.manifests import named
from shelduck.borders.iceberg.survey import IcebergSurvey
from shelduck.borders.iceberg.values import certain_bounds
from shelduck.catalog.read.read import Connection, file_bounds
from shelduck.model.files.data_files import ColumnStats, DataFile
from shelduck.model.tables.schema import Field, FieldId, Kind

# Their statistics count no values although there are some.
_UNCOUNTED = ("timetz", "interval")
_FILES_AT_ONCE = 1_000


def described(
    connection: Connection, found: IcebergSurvey, schema: Schema
) -> Iterator[tuple[DataFile, dict[str, Any]]]:
    """Yield each data file with the arguments of its row in a manifest; a statement per 1,000.

    Parts of lists and maps have neither counts nor bounds, because theirs are not reliable.
    """
    files = found.rows.files
    leaves = dict(_counted_leaves(found.shown.fields))
    describe = _Described(found, schema, leaves)
    for start in range(0, len(files), _FILES_AT_ONCE):
        part = files[start : start + _FILES_AT_ONCE]
        stats = file_bounds(connection, found.table, leaves, [f.id for f in part])
        for file in part:
            yield file, describe(file, stats)


class _Described:
    def __init__(
        self, found: IcebergSurvey, schema: Schema, leaves: Mapping[FieldId, tuple[Field, bool]]
    ) -> None:
        self._found = found
        self._leaves = leaves
        self._types = {i: cast("PrimitiveType", schema.find_type(i)) for i in leaves}

    def __call__(
        self, file: DataFile, stats: Mapping[int, Mapping[int, ColumnStats]]
    ) -> dict[str, Any]:
        made: dict[str, Any] = {
            "content": DataFileContent.DATA,
            "file_path": named(file.path),
            "file_format": FileFormat.PARQUET,
            "record_count": file.record_count,
            "file_size_in_bytes": file.file_size_bytes,
            "first_row_id": file.row_id_start,
        }
        columns: dict[str, dict[int, Any]] = {
            "column_sizes": {},
            "value_counts": {},
            "null_value_counts": {},
            "nan_value_counts": {},
            "lower_bounds": {},
            "upper_bounds": {},
        }
        for field_id, stored in self._found.stored[file.id].items():
            known = stats.get(field_id, {}).get(file.id)
            if field_id not in self._leaves or known is None:
                continue
            field, is_top = self._leaves[field_id]
            columns["column_sizes"][field_id] = known.column_size_bytes
            if is_top and str(stored.shape) not in _UNCOUNTED:
                _count(columns, field_id, known, file)
            bounds = certain_bounds(field, stored, known)
            if bounds is not None:
                for name, value in zip(("lower_bounds", "upper_bounds"), bounds, strict=True):
                    columns[name][field_id] = to_bytes(self._types[field_id], value)
        return made | {name: values for name, values in columns.items() if values}


def _count(
    columns: dict[str, dict[int, Any]], field_id: int, known: ColumnStats, file: DataFile
) -> None:
    if known.value_count + known.null_count != file.record_count:
        return
    columns["value_counts"][field_id] = file.record_count
    columns["null_value_counts"][field_id] = known.null_count
    if known.contains_nan is False:
        columns["nan_value_counts"][field_id] = 0


def _counted_leaves(
    fields: Iterable[Field], *, is_top: bool = True
) -> Iterator[tuple[FieldId, tuple[Field, bool]]]:
    for field in fields:
        if field.is_leaf:
            yield field.id, (field, is_top)
        elif field.shape is Kind.STRUCT:
            yield from _counted_leaves(field.children, is_top=False)
