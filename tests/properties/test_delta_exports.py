"""Random sequences of ALTER and INSERT, exported to Delta, against rows in memory.

DuckDB's reader must see the rows of each export when it was made, whatever names, types and
defaults the files are from; deltalake's too, wherever no file is narrower than its column.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import shelduck
from tests.properties.test_evolution import SETTINGS, STEPS, Author
from tests.support.delta import DeltaReaders
from tests.support.lengths import long

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def run_sequence(data: st.DataObject, spark: SparkSession, folder: Path) -> None:
    author = Author(data)
    out = folder / "out"
    with (
        shelduck.connect(f"sqlite:///{folder}/lake.db", f"{folder}/data", spark) as lake,
        DeltaReaders() as readers,
    ):
        for step in range(STEPS + 1):
            author.take_step(lake, step)
            if step not in (STEPS // 2, STEPS):
                continue
            table = lake.table("t")
            if step == STEPS and author.maybe():
                table.rewrite()
            done = table.export_delta(out, rewrite=True)
            note(str(done.report))
            # Writing files anew makes a snapshot of the same rows.
            author.table.remember(lake.snapshots()[-1].id)
            version = author.table.versions[done.snapshot]
            expected = version.expected()
            assert version.normal(readers.plain_by_duckdb(out)) == expected, "DuckDB"
            if not any("typeWidening" in loss.what for loss in done.report.losses):
                found = version.normal(readers.plain_by_deltalake(out))
                assert found == expected, "deltalake"


@given(st.data())
@settings(SETTINGS, max_examples=2, derandomize=True)
def test_random_changes_and_inserts_are_exported(spark, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("exports")
    run_sequence(data, spark, folder)
    shutil.rmtree(folder)


@pytest.mark.slow
@given(st.data())
@settings(SETTINGS, max_examples=long(100, 25))
def test_many_random_changes_and_inserts_are_exported(spark, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("exports")
    run_sequence(data, spark, folder)
    shutil.rmtree(folder)
