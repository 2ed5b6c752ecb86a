"""Two readers of Iceberg tables that know nothing of the lake: PyIceberg and DuckDB."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyiceberg.table import StaticTable

from tests.support.normal import duckdb_rows
from tests.support.oracle import duckdb_with

if TYPE_CHECKING:
    from tests.support.normal import Row


class IcebergReaders:
    """What both readers make of an export, rows in the form of `tests.support.normal`.

    `path` is the directory of the export, or one of its metadata files.
    """

    def __init__(self, path: object) -> None:
        self.path = str(path)
        self._connection = duckdb_with(("avro", "iceberg"))

    def sql(self, query: str) -> list[Row]:
        """The rows of a query in DuckDB."""
        return self._connection.execute(query).fetchall()

    def typed(self, query: str) -> tuple[list[Any], list[Row]]:
        """The DuckDB types of a query's columns, and its rows."""
        cursor = self._connection.execute(query)
        return [kind for _, kind, *_ in cursor.description], cursor.fetchall()

    def rows(
        self, where: str | None = None, *, snapshot: int | None = None, columns: str = "*"
    ) -> dict[str, list[Row]]:
        """The rows for which a condition holds, by the name of the reader."""
        return {
            "duckdb": self.by_duckdb(where, snapshot=snapshot, columns=columns),
            "pyiceberg": self.by_pyiceberg(where, snapshot=snapshot, columns=columns),
        }

    def by_duckdb(
        self, where: str | None = None, *, snapshot: int | None = None, columns: str = "*"
    ) -> list[Row]:
        at = "" if snapshot is None else f", snapshot_from_id => {snapshot}"
        source = f"iceberg_scan('{self.path}'{at})"
        return duckdb_rows(self, source if where is None else f"{source} WHERE {where}", columns)

    def by_pyiceberg(
        self, where: str | None = None, *, snapshot: int | None = None, columns: str = "*"
    ) -> list[Row]:
        scan = self.table().scan(
            **({} if where is None else {"row_filter": where}), snapshot_id=snapshot
        )
        self._connection.register("found", scan.to_arrow())
        return duckdb_rows(self, "found", columns)

    def plain_by_duckdb(self, where: str = "true") -> list[Row]:
        """The rows as Python has them, in the order of their ids."""
        return self.sql(f"SELECT * FROM iceberg_scan('{self.path}') WHERE {where} ORDER BY id")

    def plain_by_pyiceberg(self) -> list[Row]:
        """The rows as Python has them, in the order of their ids."""
        self._connection.register("found", self.table().scan().to_arrow())
        return self.sql("SELECT * FROM found ORDER BY id")

    def table(self) -> StaticTable:
        """The table as PyIceberg opens it."""
        return StaticTable.from_metadata(self.path)

    def types(self) -> dict[str, str]:
        """Columns and their Iceberg types."""
        return {f.name: str(f.field_type) for f in self.table().schema().fields}

    def files_for(self, where: str) -> int:
        """How many data files PyIceberg opens for a condition."""
        return len(list(self.table().scan(row_filter=where).plan_files()))
