"""Every type that DuckLake has, in a table of DuckDB's, and every verb of ours that writes files.

Whatever a verb does, writes properly, leaves alone or refuses, both engines read every snapshot as
before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import shelduck
from shelduck import Unsupported
from shelduck.model.types.promotions import NOT_WRITTEN
from tests.support.oracle import DuckDBOracle

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.support.oracle import Row

# Each type, as DuckDB calls it, with a value.
TYPES = {
    "boolean": ("BOOLEAN", "true"),
    "int8": ("TINYINT", "-7"),
    "int16": ("SMALLINT", "-7"),
    "int32": ("INTEGER", "-7"),
    "int64": ("BIGINT", "-7"),
    "int128": ("HUGEINT", "-7"),
    "uint8": ("UTINYINT", "7"),
    "uint16": ("USMALLINT", "7"),
    "uint32": ("UINTEGER", "7"),
    "uint64": ("UBIGINT", "7"),
    "uint128": ("UHUGEINT", "7"),
    "float32": ("FLOAT", "0.5"),
    "float64": ("DOUBLE", "0.5"),
    "decimal": ("DECIMAL(9,2)", "0.25"),
    "date": ("DATE", "DATE '2024-02-29'"),
    "timestamp": ("TIMESTAMP", "TIMESTAMP '2024-02-29 01:02:03.000001'"),
    "timestamp_s": ("TIMESTAMP_S", "TIMESTAMP_S '2024-02-29 01:02:03'"),
    "timestamp_ms": ("TIMESTAMP_MS", "TIMESTAMP_MS '2024-02-29 01:02:03.001'"),
    "timestamp_ns": ("TIMESTAMP_NS", "TIMESTAMP_NS '2024-02-29 01:02:03.000000001'"),
    "timestamptz": ("TIMESTAMPTZ", "TIMESTAMPTZ '2024-02-29 01:02:03+00'"),
    "time": ("TIME", "TIME '01:02:03.000001'"),
    "time_ns": ("TIME_NS", "TIME_NS '01:02:03.000000001'"),
    "timetz": ("TIMETZ", "TIMETZ '01:02:03+00'"),
    "interval": ("INTERVAL", "INTERVAL 3 MONTH"),
    "varchar": ("VARCHAR", "'x'"),
    "json": ("JSON", "'{\"a\": 1}'"),
    "uuid": ("UUID", "'f79c3e09-677c-4bbd-a479-3f349cb785e7'"),
    "blob": ("BLOB", "'\\xFF'::BLOB"),
    "geometry": ("GEOMETRY", "'POINT(1 2)'"),
    "variant": ("VARIANT", "7::VARIANT"),
    "struct": ("STRUCT(a INTEGER, b VARCHAR)", "{'a': 1, 'b': 'x'}"),
    "list": ("INTEGER[]", "[1, NULL]"),
    "map": ("MAP(VARCHAR, INTEGER)", "MAP {'x': 1}"),
    "ns_struct": ("STRUCT(a TIMESTAMP_NS)", "{'a': TIMESTAMP_NS '2024-02-29 01:02:03.000000001'}"),
    "ns_list": ("TIMESTAMP_NS[]", "[TIMESTAMP_NS '2024-02-29 01:02:03.000000001']"),
    "ns_map": (
        "MAP(INTEGER, TIMESTAMP_NS)",
        "MAP {1: TIMESTAMP_NS '2024-02-29 01:02:03.000000001'}",
    ),
    "map_key": ("MAP(MAP(INTEGER, INTEGER), INTEGER)", "MAP {MAP {1: 2}: 3}"),
}
NEWER = {"null", "timestamptz_ns"}
UNWRITTEN = [
    *sorted(NOT_WRITTEN - NEWER - {"unknown"}),
    "ns_struct",
    "ns_list",
    "ns_map",
    "map_key",
]
# One of each kind that verbs note: the fast set has a table of each, and one of all other types.
KINDS = ("interval", "ns_struct", "time_ns", "timestamp_ns")
# DuckDB itself cannot write one into files, or read these from the catalog, and Spark has no column
# for the last.
NO_FILES, ONLY_FILES = {"time_ns"}, {"ns_struct", "ns_list", "ns_map"}
NO_COLUMN = {"time_ns", "interval", "map_key"}
ALTERS = {
    "REWRITE": "ALTER TABLE {t} SET PARTITIONED BY (bucket(2, id)) REWRITE",
    "job": "ALTER TABLE {t} ALTER COLUMN w TYPE INT",
}
VERBS = {
    "flush": "CALL flush_inlined_data('{t}')",
    "OPTIMIZE": "OPTIMIZE {t}",
    "rewrite": "CALL rewrite_data_files('{t}', delete_threshold => 0.0)",
}


@pytest.fixture(
    scope="module",
    params=[KINDS, pytest.param(UNWRITTEN, marks=pytest.mark.slow)],
    ids=["kinds", "types"],
)
def unwritten(request):
    """Types that are not written, each of which has a table."""
    return request.param


@pytest.fixture(scope="module")
def made(tmp_path_factory, unwritten):
    """A lake of DuckDB's: rows in files, deletes, rows in the catalog; a table for each such type.

    All types that are written are columns of one table.
    """
    folder = tmp_path_factory.mktemp("types")
    url = f"sqlite:///{folder}/catalog.db"
    written = {name: one for name, one in TYPES.items() if name not in UNWRITTEN}
    tables = {f"t_{name}": {name: TYPES[name]} for name in unwritten} | {"t_written": written}
    versions: dict[str, list[int]] = {table: [] for table in tables}
    with DuckDBOracle(url, f"{folder}/data/") as duck:
        for table, types in tables.items():
            columns = ", ".join(f"v_{name} {kind}" for name, (kind, _) in types.items())
            values = ", ".join(value for _, value in types.values())
            duck.execute(f"CREATE TABLE {table} (id INTEGER, {columns}, w VARCHAR)")
            for start, few in ((1, 0), (4, 0), (7, 0), (10, 10)):
                limit = 10 if types.keys() & NO_FILES else 0 if types.keys() & ONLY_FILES else few
                duck.execute(f"CALL lake.set_option('data_inlining_row_limit', {limit})")
                rows = f"SELECT i, {values}, '7' FROM range({start}, {start + 3}) r(i)"
                duck.execute(f"INSERT INTO {table} {rows}")
                versions[table].append(duck.snapshot())
            duck.execute(f"DELETE FROM {table} WHERE id = 1")
            versions[table].append(duck.snapshot())
    return url, versions


def as_duckdb_reads(url: str, versions: dict[str, list[int]]) -> list[list[Row]]:
    """The rows of each table in each snapshot that changed it."""
    with DuckDBOracle(url) as duck:
        return [duck.rows(table, version=n) for table, known in versions.items() for n in known]


def as_we_read(lake: shelduck.Lake, tables: Iterable[str], version: int) -> list[list[Row]]:
    found = []
    for table in tables:
        columns = ["id", "w"] if table.removeprefix("t_") in NO_COLUMN else None
        rows = lake.table(table).read(version=version, columns=columns)
        found.append(sorted(map(repr, rows.collect())))
    return found


def data_files(url: str) -> list[Row]:
    """The files that DuckDB wrote, of tables that we do not write."""
    with DuckDBOracle(url) as duck:
        return duck.sql(
            "SELECT table_name, data_file_id FROM __ducklake_metadata_lake.ducklake_data_file f"
            " JOIN __ducklake_metadata_lake.ducklake_table USING (table_id)"
            " WHERE table_name <> 't_written' AND f.end_snapshot IS NULL ORDER BY ALL"
        )


def test_whatever_writes_files_keeps_all_types_or_leaves_them_alone(spark, made, unwritten):
    url, tables = made
    lake = shelduck.connect(url, spark=spark, progress=False)
    last = lake.snapshots()[-1].id
    before = as_duckdb_reads(url, tables), as_we_read(lake, tables, last), data_files(url)
    noted = set()
    for name in unwritten:
        table = f"t_{name}"
        for verb, statement in VERBS.items():
            told = lake.sql(statement.format(t=table)).collect()
            noted |= {
                (name, verb) for row in told if "Shelduck cannot write files" in str(row.note)
            }
        for statement in ALTERS.values():
            with pytest.raises(Unsupported, match="Shelduck cannot write files"):
                lake.sql(statement.format(t=table))
        # Python has no dictionaries whose keys are dictionaries.
        if name != "map_key":
            with pytest.raises(shelduck.ShelduckError, match=r"write|cannot hold|does not support"):
                lake.sql(f"UPDATE {table} SET id = id + 10 WHERE id = 2")
    for statement in (*VERBS.values(), ALTERS["REWRITE"], ALTERS["job"]):
        lake.sql(statement.format(t="t_written"))
    told = str(lake.checkpoint())

    assert noted >= {
        (n, v) for n in unwritten if n not in NO_FILES for v in ("OPTIMIZE", "rewrite")
    }
    assert noted >= {(n, "flush") for n in ("timestamp_ns", "time_ns", "interval")}
    assert [name for name in unwritten if f"t_{name}: " not in told] == []
    after = as_duckdb_reads(url, tables), as_we_read(lake, tables, last), data_files(url)
    assert after == before
    with DuckDBOracle(url) as duck:
        now = {table: len(duck.rows(table)) for table in tables}
    assert now == dict.fromkeys(tables, 11)
    lake.close()
