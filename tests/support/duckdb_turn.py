"""What one DuckDB does with a lake in its file: a program of `test_duckdb_versions`.

It runs with another DuckDB than the tests, which has no extensions.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

import shelduck

if TYPE_CHECKING:
    from collections.abc import Callable

STORAGE = "v1.0.0"


def make(file: Path) -> None:
    with shelduck.connect(f"duckdb:///{file}", f"{file}.files/", ducklake_version="1.0") as lake:
        lake.execute("CREATE TABLE t (a INT, s STRING, n STRUCT<l: ARRAY<INT>>)")
        lake.execute("INSERT INTO t VALUES (1, 'x', named_struct('l', array(1, NULL)))")
        lake.execute("ALTER TABLE t ADD COLUMN d DECIMAL(20, 2) DEFAULT 7")


def write(file: Path) -> list[Any]:
    """Change rows and the table; return what DuckDB itself finds of them in the catalog."""
    with shelduck.connect(f"duckdb:///{file}") as lake:
        number = len(lake.snapshots())
        lake.execute(f"INSERT INTO t (a, s) VALUES ({number}, 'y')")
        lake.execute(f"ALTER TABLE t ADD COLUMN c{number} INT")
        lake.execute("DELETE FROM t WHERE a = 1")
        assert lake.check().is_sound
    with duckdb.connect(str(file), read_only=True) as alone:
        listed = alone.execute("SELECT table_name FROM ducklake_inlined_data_tables").fetchall()
        parts = " UNION ALL ".join(f"SELECT a, COLUMNS('end_snapshot') FROM {n}" for (n,) in listed)
        found = alone.execute(f"SELECT a FROM ({parts}) AS r(a, ended) WHERE ended IS NULL")
        return sorted(a for (a,) in found.fetchall())


def migrate(file: Path) -> None:
    with shelduck.connect(f"duckdb:///{file}") as lake:
        lake.migrate("1.1")


def touch(file: Path) -> None:
    """Make an empty file as DuckDB does by itself."""
    duckdb.connect(str(file)).close()


def copy(file: Path) -> None:
    """Make an older file of it, as `Unsupported` says."""
    new = file.with_suffix(".copy")
    with duckdb.connect() as both:
        both.execute(f"ATTACH '{file}' AS made")
        both.execute(f"ATTACH '{new}' AS copy (STORAGE_VERSION '{STORAGE}')")
        both.execute("COPY FROM DATABASE made TO copy")
    new.rename(file)


ACTS: dict[str, Callable[..., Any]] = {
    each.__name__: each for each in (make, write, migrate, touch, copy)
}


def main() -> None:
    """Carry out the order; print the version of DuckDB, the outcome and the storage version."""
    file, *names = sys.argv[1:]
    came: list[Any] = []
    try:
        came.extend(ACTS[name](Path(file)) for name in names)
    except shelduck.Unsupported as error:
        came.append(str(error))
    storage = int.from_bytes(Path(file).read_bytes()[12:20], "little")
    sys.stdout.write(json.dumps([duckdb.__version__, came, storage]))


if __name__ == "__main__":
    main()
