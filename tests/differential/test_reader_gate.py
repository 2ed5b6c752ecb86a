"""What in a catalog keeps readers of DuckLake from a table, or from one file, with an error."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import duckdb
import pytest
from ducklakepy.exceptions import DuckLakeError

from tests.support.ducklakepy_oracle import DuckLakePyOracle
from tests.support.oracle import DuckDBOracle

READERS = {"1.0": DuckDBOracle, "1.1": DuckLakePyOracle}
OF_T = "SELECT table_id FROM ducklake_table WHERE table_name = 't'"
MAPPED = (
    f"INSERT INTO ducklake_column_mapping SELECT 77, table_id, 'map_by_name' FROM ({OF_T})",
    *(
        "INSERT INTO ducklake_name_mapping (mapping_id, column_id, source_name, target_field_id,"
        f" is_partition) VALUES (77, {n}, '{name}', {n + 1}, {is_key})"
        for n, (name, is_key) in enumerate([("a", 0), ("b, in the catalog", 1)])
    ),
    f"UPDATE ducklake_data_file SET mapping_id = 77 WHERE table_id = ({OF_T})",
)
# By what stands in the catalog: the tables that cannot be read then.
GATES = {
    "another version": (
        ("UPDATE ducklake_metadata SET value = value || '-x' WHERE key = 'version'",),
        {"1.0": "tu", "1.1": "tu"},
    ),
    "an unknown type": (
        (f"UPDATE ducklake_column SET column_type = 'x' WHERE table_id = ({OF_T})",),
        {"1.0": "tu", "1.1": "t"},
    ),
    "an unknown transform": (
        (
            f"INSERT INTO ducklake_partition_info SELECT 88, table_id, 1, NULL FROM ({OF_T})",
            f"INSERT INTO ducklake_partition_column SELECT 88, table_id, 0, 1, 'x' FROM ({OF_T})",
        ),
        {"1.0": "tu", "1.1": ""},
    ),
    "an unknown format of a file": (
        (f"UPDATE ducklake_data_file SET file_format = 'x' WHERE table_id = ({OF_T})",),
        {"1.0": "", "1.1": "t"},
    ),
    "a partition that no path has": (MAPPED, {"1.0": "t", "1.1": "t"}),
}


def read(reader, url, name):
    """The rows of a table by a reader that opens the lake, None where it refuses."""
    try:
        with reader(url) as lake:
            return lake.sql(f"SELECT * FROM {name}")
    except (duckdb.Error, DuckLakeError, NotImplementedError, ValueError):
        return None


@pytest.mark.parametrize("version", READERS)
@pytest.mark.parametrize("gate", GATES)
def test_which_tables_a_reader_refuses(tmp_path, gate, version):
    url, reader = f"sqlite:///{tmp_path}/lake.db", READERS[version]
    with reader(url, tmp_path / "data", {"DATA_INLINING_ROW_LIMIT": 0}) as lake:
        for name in "tu":
            lake.execute(f"CREATE TABLE {name} (a INTEGER, b INTEGER)")
            lake.execute(f"INSERT INTO {name} VALUES (1, 2)")
    statements, shut = GATES[gate]
    with closing(sqlite3.connect(tmp_path / "lake.db")) as catalog:
        for statement in statements:
            catalog.execute(statement)
        catalog.commit()

    found = {name: read(reader, url, name) for name in "tu"}
    assert found == {name: None if name in shut[version] else [(1, 2)] for name in "tu"}
