"""Tables and data files as the catalog would hand them over, for tests of reading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from shelduck.engine.files.layouts import read_layouts
from shelduck.model.files.data_file import DataFile
from shelduck.model.tables.schema import Field, FieldId, Kind, Schema
from shelduck.model.tables.table_version import SchemaInfo, Snapshot, TableVersion
from shelduck.model.types.data_types import ducklake_type


def column(
    name: str, kind: str, number: int, *children: Field, default: str | None = None
) -> Field:
    """A field by its DuckLake type text, `struct`, `list` or `map`."""
    nested = kind in ("struct", "list", "map")
    shape = Kind(kind) if nested else ducklake_type(kind)
    return Field(FieldId(number), name, shape, children, initial_default=default, order=number)


def table(*columns: Field, snapshot: int = 10) -> TableVersion:
    """A table of those columns as that snapshot sees it."""
    schema = Schema(columns)
    at = Snapshot(snapshot, datetime(2026, 1, 1, tzinfo=UTC), 1, 100, 100)
    return TableVersion(
        id=1,
        uuid="00000000-0000-0000-0000-000000000001",
        schema=SchemaInfo(0, "main", "/lake/main/"),
        name="t",
        path="/lake/main/t/",
        columns=schema,
        snapshot=at,
        begin_snapshot=1,
        max_column_id=100,
        first_names={f.id: f.name for f in schema.walk()},
        comments={},
    )


def holding(properties: Mapping[str, str]) -> TableVersion:
    """A table of which only the properties matter."""
    return replace(table(), properties=dict(properties))


def arrow(name: str, kind: pa.DataType, number: int | None, *, nullable: bool = True) -> pa.Field:
    """An Arrow field that gets a field id in Parquet."""
    metadata = None if number is None else {"PARQUET:field_id": str(number)}
    return pa.field(name, kind, nullable=nullable, metadata=metadata)


def written(
    path: Path, columns: list[pa.Field], rows: list[dict[str, Any]], number: int = 1, **more: Any
) -> DataFile:
    """A Parquet file of those rows, and what the catalog knows of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=pa.schema(columns)), path, row_group_size=100)
    return known(path, number, **more)


def known(path: Path, number: int = 1, **more: Any) -> DataFile:
    """What the catalog knows of a Parquet file that exists."""
    [layout] = read_layouts([str(path)])
    settings = {"row_id_start": number * 1000, "begin_snapshot": 1} | more
    return DataFile(
        id=number,
        path=str(path),
        file_size_bytes=path.stat().st_size,
        record_count=pq.read_metadata(path).num_rows,
        layout=layout,
        **settings,
    )


def files_read(frame):
    """The number of files that each scan of an executed plan opened, by table."""
    plan = frame._jdf.queryExecution().executedPlan()
    found = []

    def look(node):
        name = node.getClass().getSimpleName()
        if name == "FileSourceScanExec":
            found.append((node.nodeName(), node.metrics().apply("numFiles").value()))
        if name == "AdaptiveSparkPlanExec":
            look(node.executedPlan())
        if name in ("BroadcastQueryStageExec", "ShuffleQueryStageExec", "ResultQueryStageExec"):
            look(node.plan())
        children = node.children()
        for at in range(children.size()):
            look(children.apply(at))

    look(plan)
    return found
