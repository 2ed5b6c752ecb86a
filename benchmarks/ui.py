"""The page on a lake of 1,000 tables and 100,000 files: how long the server takes."""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path

from sqlalchemy import Connection, text

import shelduck
from benchmarks.catalogs import KINDS, NUMBERS, durable_postgres, fresh_url
from benchmarks.harness import Section, Timing, at_most, interleaved, scratch
from shelduck.catalog.databases.store import Store, open_store
from shelduck.catalog.schema.lake_schema import open_lake
from shelduck.lake.state import LakeState
from shelduck.web.application import make_app
from shelduck.web.guard import Guard

with warnings.catch_warnings():
    # Starlette prefers a client that is not installed.
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

TABLES, FILES, SNAPSHOTS, VERSIONS = 1_000, 100, 10_000, 1_000
LIMIT = 0.2
PAGES = {
    "lake": "/",
    "lake, newest first": "/?sort=newest",
    "lake, search": "/?q=t77",
    "schema through time": "/tables/{second}",
    f"schema, {VERSIONS} changes": "/tables/{first}",
    "moult": "/tables/{second}/moult",
    "files": "/tables/{second}/files",
    "snapshots": "/snapshots",
    "snapshots of a table": "/snapshots?table={second}&kind=rows+added",
    "two snapshots compared": "/snapshots/compare?a=2&b=9000",
    "jobs": "/jobs",
    "plan of a heavy change": "/plan?sql=ALTER+TABLE+t0001+ALTER+COLUMN+v+TYPE+INT",
}

# The log goes on behind the snapshot that made the tables; each snapshot added rows to a table.
_LOG = """
INSERT INTO ducklake_snapshot
SELECT s.snapshot_id + n.i, s.snapshot_time, s.schema_version, s.next_catalog_id,
  s.next_file_id + 1000000
FROM ducklake_snapshot AS s CROSS JOIN {snapshots} AS n WHERE s.snapshot_id = 1;

INSERT INTO ducklake_snapshot_changes
SELECT 1 + n.i, 'inserted_into_table:' || ({first} + {step} * (n.i % {tables})), 'load',
  'daily rows', NULL
FROM {snapshots} AS n;

INSERT INTO ducklake_data_file
  (data_file_id, table_id, begin_snapshot, path, path_is_relative, file_format, record_count,
   file_size_bytes, footer_size, row_id_start)
SELECT t.table_id * 1000 + n.i, t.table_id, 1 + n.i * 90, n.i || '.parquet',
  s.path_is_relative, 'parquet', 50000, 1000000 + 9000000 * (n.i % 20), 900, n.i * 50000
FROM ducklake_table AS t CROSS JOIN {files} AS n CROSS JOIN ducklake_schema AS s;

INSERT INTO ducklake_file_column_stats
  (data_file_id, table_id, column_id, column_size_bytes, value_count, null_count, min_value,
   max_value)
SELECT f.data_file_id, f.table_id, 1, 9000, 50000, 0,
  CAST(f.data_file_id % 1000 * 100 AS VARCHAR), CAST(f.data_file_id % 1000 * 100 + 150 AS VARCHAR)
FROM ducklake_data_file AS f;

INSERT INTO ducklake_delete_file
  (delete_file_id, table_id, begin_snapshot, data_file_id, path, path_is_relative, format,
   delete_count, file_size_bytes, footer_size)
SELECT 2000000 + f.data_file_id, f.table_id, f.begin_snapshot + 1, f.data_file_id,
  f.data_file_id || '-delete.parquet', f.path_is_relative, 'parquet', 400, 3000, 500
FROM ducklake_data_file AS f WHERE f.data_file_id % 10 = 3;

INSERT INTO shelduck_layout VALUES (1, 'a', '{old}');
INSERT INTO shelduck_layout VALUES (2, 'b', '{new}');
INSERT INTO shelduck_file_layout
SELECT data_file_id, CASE WHEN data_file_id % 3 = 0 THEN 1 ELSE 2 END FROM ducklake_data_file;

UPDATE ducklake_column SET end_snapshot = 3 WHERE table_id = {first} AND column_id = 2;
INSERT INTO ducklake_column
  (column_id, begin_snapshot, end_snapshot, table_id, column_order, column_name, column_type,
   default_value, nulls_allowed, default_value_type, default_value_dialect)
SELECT c.column_id, 2 + n.i, CASE WHEN n.i < {versions} THEN 3 + n.i END, c.table_id,
  c.column_order, 'v' || n.i, c.column_type, 'NULL', c.nulls_allowed, 'literal', 'duckdb'
FROM ducklake_column AS c CROSS JOIN {names} AS n WHERE c.table_id = {first} AND c.column_id = 2
"""
_OLD = '[["id",1,"int32","","",[]],["v",2,"varchar","","",[]]]'
_NEW = '[["id",1,"int64","","",[]],["v",2,"varchar","","",[]],["at",3,"timestamptz","","",[]]]'


def run(*, quick: bool = False) -> Section:
    tables, runs = (50, 2) if quick else (TABLES, 7)
    found: dict[str, dict[str, Timing]] = {}
    with scratch("ui") as folder, durable_postgres() as server:
        for kind in KINDS:
            with fresh_url(kind, folder, server, "ui") as url:
                found[kind] = _measured(url, folder, tables, runs)
    section = Section(
        "The page",
        f"What the server of `shelduck ui` takes for a page of a lake of {tables:,} tables,"
        f" {tables * FILES:,} files and {SNAPSHOTS:,} snapshots; the columns of one table changed"
        f" {VERSIONS:,} times. A page opens a DuckDB file once: about 0.11 s of CPU.",
        ("page", *KINDS),
    )
    section.rows = [(name, *(str(found[kind][name]) for kind in KINDS)) for name in PAGES]
    for kind in KINDS:
        best = {name: timing.best for name, timing in found[kind].items()}
        section.targets.append(at_most(LIMIT, best, f"seconds for a page, {kind}, best,"))
    return section


def _measured(url: str, folder: Path, tables: int, runs: int) -> dict[str, Timing]:
    with shelduck.connect(url, f"{folder}/data") as lake, lake.transaction() as tx:
        columns = {"id": "bigint", "v": "string", "at": "timestamp"}
        for n in range(tables):
            tx.create_table(f"t{n:04}", columns, sorted_by=["id"])
    store = open_store(url)
    ids = _fill(store, tables)
    app = make_app(LakeState(store, open_lake(store)), Guard(8765))
    with TestClient(app, base_url="http://127.0.0.1:8765") as client:
        timings = interleaved(
            {name: partial(_ask, client, path.format(**ids)) for name, path in PAGES.items()},
            runs=runs,
        )
    store.close()
    return timings


def _ask(client: TestClient, path: str) -> None:
    found = client.get(path)
    assert found.status_code == 200, found.text


def _fill(store: Store, tables: int) -> dict[str, int]:
    """Fill the catalog, and return the ids of the first two tables."""
    with store.write() as connection:
        query = text("SELECT table_id FROM ducklake_table ORDER BY table_id LIMIT 2")
        # Sort orders take ids too.
        first, second = connection.execute(query).scalars()
        numbers = NUMBERS[connection.dialect.name]
        parts = {
            "snapshots": numbers.replace(":copies", str(SNAPSHOTS)),
            "files": numbers.replace(":copies", str(FILES)),
            "names": numbers.replace(":copies", str(VERSIONS)),
        }
        texts = {"old": _OLD, "new": _NEW, "versions": str(VERSIONS), "tables": str(tables)}
        texts |= {"first": str(first), "step": str(second - first)}
        for statement in _LOG.split(";"):
            asked = statement
            for name, value in (parts | texts).items():
                asked = asked.replace("{" + name + "}", value)
            _run(connection, asked)
    with store.write() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("ANALYZE"))
    return {"first": first, "second": second}


def _run(connection: Connection, statement: str) -> None:
    # Colons of the layouts are not parameters, and signs of percent are none either.
    doubles = connection.dialect.paramstyle in ("format", "pyformat")
    connection.exec_driver_sql(statement.replace("%", "%%") if doubles else statement)
