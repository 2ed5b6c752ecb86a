"""Reading a lake of DuckLake 1.1 with ducklakepy: queries over local copies of its tables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Self

import duckdb
import ducklakepy
import pyarrow as pa
from ducklakepy.exceptions import NamespaceNotFoundError
from ducklakepy.schema import Schema
from sqlalchemy import create_engine, inspect, select, text

from tests.support.ducklakepy_words import declared, dotted, named, quoted, readable, unquoted

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ducklakepy.catalog import Table

Row = tuple[Any, ...]

NAME = r'(?:"(?:[^"]|"")+"|[\w$.]+)'
_SOURCE = re.compile(
    rf"\b(FROM|JOIN|INTO|UPDATE|DESCRIBE)\s+({NAME}(?:\.{NAME})*)(?:\s+AS\s+({NAME}))?"
    r"(?:\s+AT\s*\((VERSION|TIMESTAMP)\s*=>\s*((?:[^()]|\([^()]*\))*)\))?",
    re.IGNORECASE,
)
# What comes after a table that has no other name.
_CLAUSES = (
    r"(?:WHERE|ORDER|GROUP|LEFT|RIGHT|FULL|INNER|CROSS|JOIN|ON|USING|UNION|EXCEPT|LIMIT|OFFSET"
    r"|SET)\b"
)


class LakeReader:
    """What `DuckLakePyOracle` reads; its arguments are the same."""

    def __init__(
        self,
        url: str,
        data_path: str | Path | None = None,
        options: Mapping[str, str | int | bool] | None = None,
        version: str = "1.1",
    ) -> None:
        address = url.replace("postgresql://", "postgresql+psycopg://")
        self._engine = create_engine(address)
        stored = lake_option(self._engine, "data_path")
        limit = (options or {}).get("DATA_INLINING_ROW_LIMIT")
        self.catalog = ducklakepy.load_catalog(
            url=address,
            data_path=stored or f"{str(data_path).rstrip('/')}/",
            spec_version=version if stored is None else None,
            inline_row_threshold=limit,
        )
        if stored is None:
            self.catalog.initialize()
        self._local = duckdb.connect(
            config={"threads": "1", "autoinstall_known_extensions": "false"}
        )
        self._local.execute("SET TimeZone = 'UTC'")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the lake."""
        self.catalog.close()
        self._engine.dispose()
        self._local.close()

    # Reading.

    def sql(self, query: str, parameters: object = None) -> list[Row]:
        """The rows of a query."""
        return self._local.execute(self._bound(query), parameters).fetchall()

    def typed(self, query: str) -> tuple[list[Any], list[Row]]:
        """The DuckDB types of a query's columns, and its rows."""
        cursor = self._local.execute(self._bound(query))
        return [kind for _, kind, *_ in cursor.description], cursor.fetchall()

    def rows(self, table: str, *, version: int | None = None, columns: str = "*") -> list[Row]:
        """The rows of a table, now or at a snapshot, in the order of their columns."""
        source = table if version is None else f"{table} AT (VERSION => {version})"
        return self.sql(f"SELECT {columns} FROM {source} ORDER BY ALL")

    def columns(self, table: str, *, version: int | None = None) -> list[tuple[str, str]]:
        """Name and DuckDB type of each column of a table, now or at a snapshot."""
        source = table if version is None else f"{table} AT (VERSION => {version})"
        return [(name, kind) for name, kind, *_ in self.sql(f"DESCRIBE SELECT * FROM {source}")]

    def snapshot(self) -> int:
        """The newest snapshot that is committed."""
        return int(self.catalog.current_snapshot().snapshot_id)

    def tables(self) -> list[tuple[str, str]]:
        """Schema and name of each table and view that is there."""
        return [
            (schema, found if isinstance(found, str) else found.name)
            for schema in self.catalog.list_namespaces()
            for found in (*self.catalog.list_tables(schema), *self.catalog.list_views(schema))
        ]

    def dump_metadata(self) -> dict[str, list[dict[str, Any]]]:
        """Every `ducklake_*` table by name: its rows, in the order of their columns' values."""
        found: dict[str, list[dict[str, Any]]] = {}
        names = [n for n in inspect(self._engine).get_table_names() if n.startswith("ducklake_")]
        with self._engine.connect() as connection:
            for name in sorted(names):
                query = select(text("*")).select_from(text(name))
                rows = [dict(row) for row in connection.execute(query).mappings()]
                found[name] = sorted(rows, key=lambda row: repr(list(row.values())))
        return found

    def _bound(self, query: str) -> str:
        """The query over local copies of the tables and views that it names."""
        query = re.sub(r"lake\.table_changes\('(\w+)', (\d+), (\d+)\)", self._changes, query)
        query = re.sub(r"duckdb_(schemas|tables|views|columns)\(\)", self._listed, query)
        query = re.sub(r"(?:ducklake_snapshots\('lake'\)|lake\.snapshots\(\))", "$s", query)
        return _SOURCE.sub(self._local_source, query)

    def _local_source(self, found: re.Match[str]) -> str:
        word, name, alias, kind, moment = found.groups()
        is_named = re.match(
            rf"\s+(?:AS\s|(?!{_CLAUSES}){NAME})", found.string[found.end() :], re.IGNORECASE
        )
        shown = "" if is_named or word.upper() not in ("FROM", "JOIN") else " AS {}"
        if alias is not None:
            shown = f" AS {alias}"
        if name.startswith("$s"):
            return f"{word} {self._snapshots()}"
        if name.startswith("__ducklake_metadata_lake."):
            return f"{word} {self._metadata(name.partition('.')[2])}{shown.format('metadata')}"
        snapshot = None
        if kind is not None and kind.upper() == "VERSION":
            snapshot = self.catalog.snapshot_by_id(int(moment))
        elif kind is not None:
            [(when,)] = self._local.execute(f"SELECT ({moment})").fetchall()
            snapshot = self.catalog.snapshot_by_timestamp(when)
        identifier = named(name)
        shown = shown.format(quoted(identifier[-1]))
        try:
            if self.catalog.table_exists(identifier, snapshot=snapshot):
                table = self.catalog.load_table(identifier, snapshot=snapshot)
                local = self._copied(table, name, with_ids="rowid" in found.string)
                return f"{word} {local}{shown}"
            if self.catalog.view_exists(identifier, snapshot=snapshot):
                view = self.catalog.load_view(identifier)
                query = self._bound(view.sql.replace("{DUCKLAKE_CATALOG}.", ""))
                if view.column_aliases:
                    listed = ", ".join(quoted(alias) for alias in view.column_aliases)
                    query = f"SELECT * FROM ({query}) AS v({listed})"
                return f"{word} ({query}){shown}"
        except NamespaceNotFoundError:
            pass
        return found.group()

    def _metadata(self, name: str) -> str:
        """The name of a local table with the rows of one of the catalog."""
        rows = self.dump_metadata()[name]
        with self._engine.connect() as connection:
            names = list(connection.execute(select(text("*")).select_from(text(name))).keys())
        columns = {n: pa.array([row[n] for row in rows]) for n in names}
        self._local.register("metadata_rows", pa.table(columns))
        self._local.execute(f'CREATE OR REPLACE TEMP TABLE "{name}" AS FROM metadata_rows')
        self._local.unregister("metadata_rows")
        return f'"{name}"'

    def _snapshots(self) -> str:
        found = [
            (s.snapshot_id, s.snapshot_time, s.author, s.commit_message, s.commit_extra_info)
            for s in self.catalog.snapshots()
        ]
        names = ("snapshot_id", "snapshot_time", "author", "commit_message", "commit_extra_info")
        self._local.execute(
            "CREATE OR REPLACE TEMP TABLE snapshots (snapshot_id BIGINT, snapshot_time TIMESTAMPTZ,"
            f" {', '.join(f'{name} VARCHAR' for name in names[2:])})"
        )
        self._local.executemany("INSERT INTO snapshots VALUES (?, ?, ?, ?, ?)", found)
        return "snapshots"

    def _listed(self, found: re.Match[str]) -> str:
        """The name of a local table with what a function of DuckDB lists."""
        schemas = self.catalog.list_namespaces()
        tables = [self.catalog.load_table(i) for s in schemas for i in self.catalog.list_tables(s)]
        views = [self.catalog.load_view(v) for s in schemas for v in self.catalog.list_views(s)]
        rows = {
            "schemas": [(s, None, None, 0, None) for s in schemas],
            "tables": [(t.namespace, t.name, None, 0, t.comment()) for t in tables],
            "views": [(v.namespace, v.name, None, 0, v.comment) for v in views],
            "columns": [
                (t.namespace, t.name, c.name, place, t.column_comment(dotted(quoted(c.name))))
                for t in tables
                for place, c in enumerate(t.schema().fields, 1)
            ],
        }[found.group(1)]
        self._local.execute(
            f"CREATE OR REPLACE TEMP TABLE all_{found.group(1)} (schema_name VARCHAR,"
            " table_name VARCHAR, column_name VARCHAR, column_index BIGINT, comment VARCHAR,"
            " view_name VARCHAR AS (table_name), database_name VARCHAR AS ('lake'),"
            " internal BOOLEAN AS (false))"
        )
        if rows:
            self._local.executemany(
                f"INSERT INTO all_{found.group(1)} VALUES (?, ?, ?, ?, ?)", rows
            )
        return f"all_{found.group(1)}"

    def _changes(self, found: re.Match[str]) -> str:
        """The name of a local table with what `table_changes` of DuckDB returns."""
        name, first, last = found.groups()
        table = self.table(name)
        at = [self.catalog.snapshot_by_id(int(number)) for number in (first, last)]
        self._local.register("feed", table.changes(*at).to_arrow())
        self._local.execute("CREATE OR REPLACE TEMP TABLE changes AS SELECT * FROM feed")
        self._local.unregister("feed")
        return "changes"

    def _copied(self, table: Table, name: str, *, with_ids: bool = False) -> str:
        """The name of a local table with the rows, and maybe the row ids, of a table."""
        local = f"{unquoted(name)}@{table.snapshot().snapshot_id}".replace('"', "")
        if not with_ids:
            self._fill(local, table.schema(), table.to_arrow())
            return f'"{local}"'
        found = table.scan().plan_updates(lambda rows: pa.array([True] * rows.num_rows))
        batches = [match.rows for matches in found for match in matches]
        self._fill(local, table.schema(), table.to_arrow().slice(0, 0))
        if batches:
            ids = [i for batch in batches for i in batch.row_ids.to_pylist()]
            assert len(ids) == len(set(ids)), "two rows have one id"
            rows = readable(pa.concat_tables(b.values for b in batches), table.schema())
            self._local.register("arrived", rows.append_column("$id", pa.array(ids)))
            # A local table numbers its rows from 0: gaps are filled, and deleted.
            self._local.execute(
                f'INSERT INTO "{local}" SELECT arrived.* EXCLUDE ("$id") FROM range({max(ids) + 1})'
                ' AS r(i) LEFT JOIN arrived ON "$id" = i ORDER BY i'
            )
            self._local.execute(
                f'DELETE FROM "{local}" WHERE rowid NOT IN (SELECT "$id" FROM arrived)'
            )
            self._local.unregister("arrived")
        return f'"{local}"'

    def _fill(self, local: str, schema: Schema, rows: pa.Table) -> None:
        """A local table with columns, their defaults, and rows."""
        columns = ", ".join(declared(column) for column in schema.fields)
        self._local.execute(f'CREATE OR REPLACE TEMP TABLE "{local}" ({columns})')
        self._local.register("arrived", readable(rows, schema))
        self._local.execute(f'INSERT INTO "{local}" SELECT * FROM arrived')
        self._local.unregister("arrived")


def lake_option(engine: Any, key: str) -> str | None:
    """Return an option of a lake; None if the database holds no lake."""
    if not inspect(engine).has_table("ducklake_metadata"):
        return None
    with engine.connect() as connection:
        query = text("SELECT value FROM ducklake_metadata WHERE key = :key AND scope IS NULL")
        found: str | None = connection.execute(query, {"key": key}).scalar()
        return found
