"""Delta tables made by hand, and two independent readers of Delta tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder

from tests.support.normal import duckdb_rows, spark_rows_by_key
from tests.support.oracle import DuckDBOracle, at, duckdb_with

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import shelduck
    from shelduck.formats.delta.import_verbs import DeltaImported

Row = tuple[Any, ...]


class DeltaReaders:
    """What DuckDB's delta extension and deltalake's DataFusion read, in the form of `normal`."""

    def __init__(self) -> None:
        self._connection = duckdb_with(("delta",))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def sql(self, query: str) -> list[Row]:
        """The rows of a query."""
        return self._connection.execute(query).fetchall()

    def typed(self, query: str) -> tuple[list[Any], list[Row]]:
        """The DuckDB types of a query's columns, and its rows."""
        cursor = self._connection.execute(query)
        return [kind for _, kind, *_ in cursor.description], cursor.fetchall()

    def by_duckdb(self, path: str | Path, columns: str = "*") -> list[Row]:
        """The rows of the newest version by `delta_scan`."""
        return duckdb_rows(self, f"delta_scan('{path}')", columns)

    def plain_by_duckdb(self, path: str | Path, where: str = "true") -> list[Row]:
        """The rows of the newest version as Python has them, in the order of their ids."""
        return self.sql(f"SELECT * FROM delta_scan('{path}') WHERE {where} ORDER BY id")

    def plain_by_deltalake(self, path: str | Path, version: int | None = None) -> list[Row]:
        """The rows of a version as Python has them, in the order of their ids."""
        query = QueryBuilder().register("t", DeltaTable(str(path), version=version))
        self._connection.register(
            "of_deltalake", pa.table(query.execute("SELECT * FROM t").read_all())
        )
        return self.sql("SELECT * FROM of_deltalake ORDER BY id")

    def by_deltalake(
        self, path: str | Path, version: int | None = None, where: str = "true"
    ) -> list[Row]:
        """The rows of a version by deltalake's DataFusion."""
        query = QueryBuilder().register("t", DeltaTable(str(path), version=version))
        batches = query.execute(f"SELECT * FROM t WHERE {where}").read_all()
        self._connection.register("of_deltalake", pa.table(batches))
        return duckdb_rows(self, "of_deltalake")


def versions_of(lake: shelduck.Lake, url: str, done: DeltaImported) -> dict[int, list[Row]]:
    """The rows of each version imported into `t` after making sure that DuckDB reads the same."""
    table = lake.table("t")
    ours = spark_rows_by_key({v: table.read(version=s) for v, s in done.snapshots.items()})
    lake.close()
    with DuckDBOracle(url) as oracle:
        for version, snapshot in done.snapshots.items():
            found = duckdb_rows(oracle, f"(FROM {at('t', snapshot)})")
            assert found == ours[version], f"version {version}: DuckDB reads {found}"
            [(count,)] = oracle.sql(f"SELECT count(*) FROM {at('t', snapshot)}")
            assert count == len(ours[version]), f"version {version}: DuckDB counts {count}"
    return ours


class HandMade:
    """A Delta table whose log is written action by action."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log = path / "_delta_log"
        self.log.mkdir(parents=True)
        self._next = 0

    def write_file(self, name: str, rows: pa.Table, **options: Any) -> str:
        """Write a data file and return its name."""
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, target, **options)
        return name

    def commit(self, *actions: Mapping[str, Any], version: int | None = None) -> int:
        """Write the next version."""
        number = self._next if version is None else version
        info = {"commitInfo": {"timestamp": 1700000000000 + number, "operation": "WRITE"}}
        lines = [json.dumps(action) for action in (info, *actions)]
        (self.log / f"{number:020}.json").write_text("\n".join(lines) + "\n")
        self._next = number + 1
        return number

    def add(
        self,
        name: str,
        *,
        values: Mapping[str, str | None] | None = None,
        vector: Mapping[str, Any] | None = None,
        path: str | None = None,
    ) -> dict[str, Any]:
        """The action that adds a file."""
        found: dict[str, Any] = {
            "path": name if path is None else path,
            "partitionValues": dict(values or {}),
            "size": (self.path / name).stat().st_size,
            "modificationTime": 0,
            "dataChange": True,
        }
        if vector is not None:
            found["deletionVector"] = dict(vector)
            rows = pq.read_metadata(self.path / name).num_rows
            found["stats"] = json.dumps({"numRecords": rows})
        return {"add": found}


def remove(name: str, vector: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The action that removes a file."""
    found: dict[str, Any] = {"path": name, "dataChange": True, "deletionTimestamp": 0}
    if vector is not None:
        found["deletionVector"] = dict(vector)
    return {"remove": found}


def protocol(*features: str) -> dict[str, Any]:
    """The action that asks for reader features, or for none."""
    if not features:
        return {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    both = {"readerFeatures": list(features), "writerFeatures": list(features)}
    return {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **both}}


def column(
    name: str, kind: Any, *, nullable: bool = True, number: int | None = None, physical: str = ""
) -> dict[str, Any]:
    """A field of a schema; with a number it is mapped."""
    metadata: dict[str, Any] = {}
    if number is not None:
        metadata = {
            "delta.columnMapping.id": number,
            "delta.columnMapping.physicalName": physical or name,
        }
    return {"name": name, "type": kind, "nullable": nullable, "metadata": metadata}


def metadata(
    columns: Sequence[Mapping[str, Any]],
    *,
    partition_by: Sequence[str] = (),
    configuration: Mapping[str, str] | None = None,
    description: str | None = None,
) -> dict[str, Any]:
    """The action that says what the columns are."""
    return {
        "metaData": {
            "id": "5fba94ed-9794-4965-ba6e-6ee3c0d22af9",
            "description": description,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": list(columns)}),
            "partitionColumns": list(partition_by),
            "configuration": dict(configuration or {}),
            "createdTime": 0,
        }
    }
