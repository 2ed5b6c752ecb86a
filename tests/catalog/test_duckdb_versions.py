"""DuckDB 1.5 and 2.0 take turns at a lake in a DuckDB file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

OLD, NEW = "1.5.6", "2.0.1"
ROOT = Path(__file__).parents[2]
# The storage version of files that every DuckDB since 1.0 opens.
OLDEST = 64


@pytest.fixture(scope="module")
def turn(tmp_path_factory):
    """Let a DuckDB do something in a process of its own: what came of it, and the file's version.

    Both come from PyPI into folders, and stand before the DuckDB of the tests.
    """
    folder = tmp_path_factory.mktemp("duckdb")
    for version in (OLD, NEW):
        told = ["--quiet", "--no-deps", "--target", f"{folder}/{version}", f"duckdb=={version}"]
        subprocess.run([sys.executable, "-m", "pip", "install", *told], check=True)

    def act(version, file, *acts):
        path = os.pathsep.join(map(str, (folder / version, ROOT / "src", ROOT)))
        done = subprocess.run(
            [sys.executable, "-m", "tests.support.duckdb_turn", str(file), *acts],
            env=os.environ | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        used, came, storage = json.loads(done.stdout)
        assert used == version
        return came, storage

    return act


def test_both_open_and_write_a_file_that_either_made(turn, tmp_path):
    file = tmp_path / "lake.ducklake"

    assert turn(NEW, file, "make") == ([None], OLDEST)
    # Each adds a row and a column; the row of the beginning has gone.
    assert turn(OLD, file, "write") == ([[4]], OLDEST)
    assert turn(NEW, file, "write", "migrate", "write") == ([[4, 7], None, [4, 7, 9]], OLDEST)
    assert turn(OLD, file, "write") == ([[4, 7, 9, 11]], OLDEST)


def test_a_file_that_duckdb_2_made_is_refused_by_name_and_copied_as_the_message_says(
    turn, tmp_path
):
    file = tmp_path / "lake.ducklake"
    came, storage = turn(NEW, file, "touch", "make", "write")
    assert came == [None, None, [4]]
    assert storage > OLDEST

    [told], _ = turn(OLD, file, "write")

    assert told.startswith(f"DuckDB {OLD} cannot open {file}: the file has the storage version ")
    assert told.endswith("then COPY FROM DATABASE")
    assert turn(NEW, file, "copy") == ([None], OLDEST)
    assert turn(OLD, file, "write") == ([[4, 7]], OLDEST)
