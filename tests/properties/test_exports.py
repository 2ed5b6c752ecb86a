"""Random sequences of ALTER and INSERT, exported to Iceberg, against rows in memory.

Two readers that know nothing of the lake must see the rows of the newest snapshot, whatever names,
types and defaults the files are from; and of an export in the middle, its own.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import shelduck
from tests.properties.test_evolution import SETTINGS, STEPS, Author
from tests.support.iceberg import IcebergReaders
from tests.support.lengths import long

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from shelduck.formats.report import Exported
    from tests.support.evolving import Column, Version


def run_sequence(data: st.DataObject, spark: SparkSession, folder: Path) -> None:
    author = Author(data)
    versions = author.table.versions
    exports: list[Exported] = []
    with shelduck.connect(f"sqlite:///{folder}/lake.db", f"{folder}/data", spark) as lake:
        for step in range(STEPS + 1):
            author.take_step(lake, step)
            if step in (STEPS // 2, STEPS):
                note(str(lake.table("t").plan_export("iceberg")))
                exports.append(lake.table("t").export_iceberg(folder / "out", rewrite=True))
                # Writing files anew makes a snapshot of the same rows.
                author.table.remember(lake.snapshots()[-1].id)
    first, last = exports
    both_agree(IcebergReaders(first.path), versions[first.snapshot])
    both_agree(IcebergReaders(folder / "out"), versions[last.snapshot])
    filters_agree(IcebergReaders(folder / "out"), author, versions[last.snapshot])


def both_agree(readers: IcebergReaders, version: Version) -> None:
    expected = version.expected()
    assert version.normal(readers.plain_by_duckdb()) == expected, "DuckDB"
    kept = [n for n, column in enumerate(version.columns) if tells_null(column)]
    found = version.normal(readers.plain_by_pyiceberg())
    assert [[row[n] for n in kept] for row in found] == [
        [row[n] for n in kept] for row in expected
    ], "PyIceberg"


def filters_agree(readers: IcebergReaders, author: Author, version: Version) -> None:
    for _ in range(4):
        wanted = author.filter(version)
        if wanted.duckdb is not None:
            found = readers.plain_by_duckdb(wanted.duckdb)
            place = [c.name for c in version.columns].index("id")
            assert [row[place] for row in found] == wanted.ids, wanted.duckdb


def tells_null(column: Column) -> bool:
    """Whether PyIceberg tells NULL from empty in it: it does not in lists and maps of structs."""
    return not any(
        part.kind in ("array", "map") and part.children[-1].kind == "struct"
        for _, part in column.walk()
    )


@given(st.data())
@settings(SETTINGS, max_examples=4, derandomize=True)
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
