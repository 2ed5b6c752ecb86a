"""Small lakes, made without a JVM, that together use every table of a catalog."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

import shelduck
from tests.support.lake import Lake
from tests.support.old_lakes import OldLake
from tests.support.oracle import DuckDBOracle

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FILES = """
CREATE TABLE t (id BIGINT NOT NULL, v VARCHAR, f DOUBLE);
INSERT INTO t SELECT i, 'v' || i, i / 2 FROM range(8) r(i);
INSERT INTO t VALUES (100, 'last', 'nan');
DELETE FROM t WHERE id IN (1, 3);
INSERT INTO t VALUES (101, NULL, NULL);
CREATE TABLE other (id BIGINT);
INSERT INTO other VALUES (1)"""

INLINED = """
CREATE TABLE t (id INTEGER, v VARCHAR, d DATE, n DECIMAL(9, 2), b BOOLEAN, l INTEGER[]);
INSERT INTO t VALUES (1, 'a', DATE '2024-01-01', 1.5, true, [1, 2]),
  (2, NULL, NULL, NULL, NULL, NULL);
INSERT INTO t SELECT i, 'many', NULL, NULL, false, [] FROM range(50) r(i);
DELETE FROM t WHERE id = 2;
DELETE FROM t WHERE id = 30;
ALTER TABLE t ADD COLUMN w INTEGER;
INSERT INTO t VALUES (3, 'c', DATE '2024-01-03', 2.5, false, NULL, 9)"""

PARTITIONED = """
CREATE TABLE t (id BIGINT, p VARCHAR, ts TIMESTAMP);
ALTER TABLE t SET PARTITIONED BY (p, year(ts));
INSERT INTO t VALUES (1, 'a', TIMESTAMP '2024-01-01 00:00:00'), (2, 'b', NULL);
ALTER TABLE t SET PARTITIONED BY (bucket(4, id));
ALTER TABLE t SET SORTED BY (p ASC, id DESC NULLS FIRST);
INSERT INTO t VALUES (3, 'c', NULL), (4, NULL, NULL)"""

VIEWS = """
CREATE TABLE t (id INTEGER);
INSERT INTO t VALUES (1);
CREATE VIEW v AS SELECT id + 1 AS more FROM t;
CREATE VIEW w (x) AS SELECT id FROM t;
COMMENT ON VIEW v IS 'a view';
CREATE MACRO twice(a) AS a * 2;
CREATE MACRO plus(a, b := 3) AS a + b;
CREATE MACRO below(n) AS TABLE SELECT id FROM t WHERE id < n;
DROP MACRO twice"""

NESTED = """
CREATE TABLE t (id INTEGER, s STRUCT(x INTEGER, y STRUCT(z DATE)), l STRUCT(a INTEGER)[],
  m MAP(VARCHAR, INTEGER));
INSERT INTO t VALUES (1, {x: 1, y: {z: NULL}}, [{a: 1}], MAP {'k': 1});
ALTER TABLE t RENAME s.x TO w;
ALTER TABLE t ADD COLUMN s.n BIGINT;
ALTER TABLE t ALTER id SET DATA TYPE BIGINT;
ALTER TABLE t ADD COLUMN more INTEGER DEFAULT 7;
ALTER TABLE t DROP COLUMN m;
INSERT INTO t VALUES (2, {w: 2, y: NULL, n: 3}, NULL, 1);
COMMENT ON TABLE t IS 'nested';
COMMENT ON COLUMN t.id IS 'the key'"""

COMPACTED = """
CREATE TABLE t (id INTEGER, v VARCHAR);
INSERT INTO t VALUES (1, 'a');
INSERT INTO t VALUES (2, 'b');
INSERT INTO t VALUES (3, 'c');
CALL ducklake_merge_adjacent_files('lake');
INSERT INTO t SELECT i, 'd' FROM range(10, 20) r(i);
DELETE FROM t WHERE id = 12;
CALL ducklake_expire_snapshots('lake', versions => [2]);
CREATE TABLE gone (id INTEGER);
INSERT INTO gone VALUES (1);
DROP TABLE gone;
CALL lake.set_option('expire_older_than', '90 days');
CALL lake.set_option('target_file_size', '10MB', table_name => 't')"""

SCHEMAS = """
CREATE SCHEMA s;
CREATE TABLE s.t (id INTEGER);
INSERT INTO s.t VALUES (1);
ALTER TABLE s.t RENAME TO u;
CREATE TABLE t (id INTEGER);
INSERT INTO t VALUES (2);
CREATE SCHEMA gone;
DROP SCHEMA gone;
ALTER TABLE t RENAME id TO number"""

OWN = """
CREATE TABLE t (id INT NOT NULL, name STRING DEFAULT 'x') COMMENT 'ours'
  TBLPROPERTIES ('owner' = 'me', 'delta.enableTypeWidening' = 'true');
INSERT INTO t VALUES (1, 'one'), (2, NULL);
ALTER TABLE t ALTER COLUMN id TYPE BIGINT;
ALTER TABLE t ADD COLUMN z STRUCT<a: INT> COMMENT 'last' AFTER id;
CREATE SCHEMA s;
CREATE TABLE s.u (a INT);
CALL set_option('data_inlining_row_limit', '20');
ALTER TABLE s.u RENAME TO w;
DROP TABLE s.w"""


# What a lake has while somebody is at work, and what a job leaves.
RUNNING = """
INSERT INTO shelduck_writer VALUES ('somebody', 3, 2, '2999-01-01 00:00:00+00');
CREATE TABLE shelduck_job_speed (job_id BIGINT, bytes BIGINT, milliseconds BIGINT, cores BIGINT);
INSERT INTO shelduck_job_speed SELECT job_id, 1000, 10, 2 FROM shelduck_job LIMIT 2;
INSERT INTO shelduck_released_file VALUES (900, '/elsewhere/f.parquet', '2024-01-01 00:00:00+00')"""


def _duckdb(statements: str, inline: int = 0) -> Callable[[str, Path], None]:
    def make(url: str, folder: Path) -> None:
        options = {"DATA_INLINING_ROW_LIMIT": inline}
        with DuckDBOracle(url, f"{folder}/data/", options) as oracle:
            for statement in statements.split(";\n"):
                oracle.execute(statement)

    return make


def _adopted(url: str, folder: Path) -> None:
    for part in ("p=1", "p=2"):
        (folder / "outside" / part).mkdir(parents=True)
        rows = pa.table({"id": pa.array([1, 2], pa.int32()), "v": ["a", "b"]})
        pq.write_table(rows, folder / "outside" / part / "f.parquet")
    _duckdb(
        "CREATE TABLE t (id INTEGER, v VARCHAR, p INTEGER);\n"
        f"CALL ducklake_add_data_files('lake', 't', '{folder}/outside/*/*.parquet',"
        " hive_partitioning => true);\nINSERT INTO t VALUES (3, 'c', 3)"
    )(url, folder)


def _own(url: str, folder: Path) -> None:
    with shelduck.connect(url, f"{folder}/data/") as lake:
        for statement in OWN.split(";\n"):
            lake.execute(statement)


def _committed(url: str, folder: Path) -> None:
    lake = Lake(url, f"{folder}/data/")
    lake.create("t", id="bigint", v="string", s="struct<a: int, b: string>")
    lake.append("t", [{"id": 1, "v": "a"}, {"id": 2, "v": None}], {1: ("1", "2", 0)})
    lake.append("t", [{"id": 5, "v": "z"}], {1: ("5", "5", 0)})
    lake.create("u", id="int")
    lake.store.close()


MAKERS: dict[str, Callable[[str, Path], None]] = {
    "files": _duckdb(FILES),
    "inlined": _duckdb(INLINED, inline=20),
    "partitioned": _duckdb(PARTITIONED),
    "views": _duckdb(VIEWS),
    "nested": _duckdb(NESTED),
    "compacted": _duckdb(COMPACTED),
    "schemas": _duckdb(SCHEMAS),
    "adopted": _adopted,
    "own": _own,
    "committed": _committed,
}


def make_lakes(folder: Path) -> dict[str, Path]:
    """The catalogs of all lakes by name, each a SQLite file beside its files."""
    found = {}
    for name, make in MAKERS.items():
        home = folder / name
        home.mkdir()
        make(f"sqlite:///{home}/catalog.db", home)
        found[name] = home / "catalog.db"
    found["everything"] = OldLake("unversioned", folder / "everything").catalog
    for catalog in found.values():
        with closing(sqlite3.connect(catalog)) as connection, connection:
            connection.execute("CREATE TABLE somebody_elses (id BIGINT)")
            connection.execute("INSERT INTO somebody_elses VALUES (1)")
    with closing(sqlite3.connect(found["everything"])) as connection, connection:
        connection.executescript(RUNNING)
    return found
