"""A day of ordinary statements and calls of Spark, Delta and Iceberg: each works, or says why not.

The entries and their answers are in ``tests/data/everyday.txt``.
"""

from __future__ import annotations

import re

import pytest

import shelduck
from tests.support import everyday as day
from tests.support.lakes import Base

pytestmark = pytest.mark.guard

ENTRIES = day.entries()
SETTINGS = (
    "spark.sql.sources.partitionOverwriteMode",
    "spark.databricks.delta.schema.autoMerge.enabled",
)
# Those that begin no job of Spark are fast, and a sample of the others.
QUICK = ("ALTER", "What there is", "Maintenance")


def cases():
    for entry in ENTRIES:
        is_fast = (
            entry.refused
            or (entry.kind in QUICK and entry.number % 4 == 1)
            or entry.number % 18 == 0
        )
        yield pytest.param(entry, id=entry.id, marks=() if is_fast else pytest.mark.slow)


@pytest.fixture(scope="module")
def base(spark, tmp_path_factory):
    return Base(tmp_path_factory.mktemp("day"), spark, day.BASE)


def outcome(spark, base, folder, entry, text, *, default):
    base.copy_with_files(folder).close()
    url = f"sqlite:///{folder}/lake.db"
    shelduck.attach(spark, "lake", url, f"{folder}/data/", default=default)
    try:
        return day.run(spark, entry, folder, text)
    finally:
        shelduck.detach(spark, "lake")
        for setting in SETTINGS:
            spark.conf.unset(setting)
        # Each entry begins in a session that has not seen the others.
        spark.sql("DROP TEMPORARY FUNCTION IF EXISTS twice")


def expected(entry):
    return day.REFUSED if entry.refused else day.WORKS


@pytest.mark.filterwarnings("ignore:Deprecated in 4.0.0")
@pytest.mark.parametrize("entry", list(cases()))
def test_what_people_type_works_or_is_refused_clearly(spark, base, tmp_path, entry):
    found = outcome(spark, base, tmp_path, entry, str, default=False)

    assert found.name == expected(entry), found.told


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted({entry.kind for entry in ENTRIES}))
def test_bare_names_mean_the_same_with_the_lake_in_use(spark, base, tmp_path, kind):
    others = []
    for entry in ENTRIES:
        if entry.kind != kind or entry.is_call:
            continue
        folder = tmp_path / str(entry.number)
        folder.mkdir()
        found = outcome(spark, base, folder, entry, bare, default=True)
        if found.name != expected(entry):
            others.append((entry.id, found))
    assert others == []


def bare(text):
    return re.sub(r"\blake\.main\.", "", text)


def test_the_day_is_long_enough():
    assert len(ENTRIES) >= 266
    assert sum(not entry.refused for entry in ENTRIES) >= 240
