"""Data files as a writer of our own would leave them: Parquet with field ids at every level."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from shelduck.model.files.data_file import (
    ColumnStats,
    Layout,
    NewDataFile,
    NewDeleteFile,
    PhysicalField,
)
from shelduck.model.tables.schema import FieldId, Kind
from shelduck.model.types.data_types import Decimal, Primitive

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shelduck.model.tables.schema import Field
    from shelduck.model.tables.table_version import TableVersion

ARROW = {
    "boolean": pa.bool_(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "varchar": pa.string(),
    "blob": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", tz="UTC"),
}

# One leaf: least and greatest value as DuckLake text, and how many NULLs.
Bounds = tuple[str | None, str | None, int]


def write_file(
    table: TableVersion,
    rows: Sequence[Mapping[str, Any]],
    bounds: Mapping[int, Bounds] | None = None,
) -> NewDataFile:
    """Writes rows into a file of the table's directory; `bounds` by leaf become its statistics."""
    schema = pa.schema([_arrow_field(f) for f in table.columns])
    name = f"{uuid.uuid4()}.parquet"
    path = Path(table.path) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist([dict(r) for r in rows], schema), path)
    stats = tuple(
        ColumnStats(FieldId(leaf), 10, len(rows) - nulls, nulls, low, high)
        for leaf, (low, high, nulls) in (bounds or {}).items()
    )
    layout = Layout(tuple(_physical(f) for f in table.columns))
    return NewDataFile(name, len(rows), path.stat().st_size, None, stats, layout)


def write_delete_file(
    table: TableVersion, path: str, positions: Sequence[int], snapshots: Sequence[int] | None = None
) -> NewDeleteFile:
    """Writes dead positions of the data file at a path, and the snapshots in which they died."""
    name = f"{uuid.uuid4()}-delete.parquet"
    columns: list[_Column] = [
        ("file_path", pa.string(), 2147483646, [path] * len(positions)),
        ("pos", pa.int64(), 2147483645, positions),
    ]
    if snapshots is None:
        size = _write(table, name, columns)
        return NewDeleteFile(name, len(positions), size, None)
    columns.append(("_ducklake_internal_snapshot_id", pa.int64(), 2147483539, snapshots))
    size = _write(table, name, columns)
    return NewDeleteFile(name, len(positions), size, None, min(snapshots), max(snapshots))


def write_with_lineage(
    table: TableVersion,
    values: Sequence[int],
    row_ids: Sequence[int],
    snapshots: Sequence[int] | None = None,
) -> NewDataFile:
    """Writes the one BIGINT column of a table, with the ids and snapshots of its rows."""
    name = f"{uuid.uuid4()}.parquet"
    [field] = table.columns
    columns: list[_Column] = [
        (field.name, pa.int64(), field.id, values),
        ("_ducklake_internal_row_id", pa.int64(), 2147483540, row_ids),
    ]
    traits: dict[str, Any] = {}
    if snapshots is not None:
        columns.append(("_ducklake_internal_snapshot_id", pa.int64(), 2147483539, snapshots))
        traits = {"begin_snapshot": min(snapshots), "partial_max": max(snapshots)}
    size = _write(table, name, columns)
    layout = Layout(tuple(PhysicalField(n, i, Primitive("int64")) for n, _, i, _ in columns))
    return NewDataFile(name, len(values), size, None, (), layout, **traits)


_Column = tuple[str, pa.DataType, int, "Sequence[Any]"]


def _write(table: TableVersion, name: str, columns: Sequence[_Column]) -> int:
    fields = [
        pa.field(column, kind, metadata={"PARQUET:field_id": str(number)})
        for column, kind, number, _ in columns
    ]
    arrays = [pa.array(values, kind) for _, kind, _, values in columns]
    path = Path(table.path) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), path)
    return path.stat().st_size


def _arrow_field(f: Field, *, nullable: bool = True) -> pa.Field:
    return pa.field(f.name, _arrow_type(f), nullable, metadata={"PARQUET:field_id": str(f.id)})


def _arrow_type(f: Field) -> pa.DataType:
    if f.shape is Kind.STRUCT:
        return pa.struct([_arrow_field(c) for c in f.children])
    if f.shape is Kind.LIST:
        return pa.list_(_arrow_field(f.children[0]))
    if f.shape is Kind.MAP:
        return pa.map_(_arrow_field(f.children[0], nullable=False), _arrow_field(f.children[1]))
    if isinstance(f.shape, Decimal):
        return pa.decimal128(f.shape.precision, f.shape.scale)
    return ARROW[str(f.shape)]


def _physical(f: Field) -> PhysicalField:
    return PhysicalField(f.name, f.id, f.shape, tuple(_physical(c) for c in f.children))
