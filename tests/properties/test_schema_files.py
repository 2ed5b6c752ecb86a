"""Laws of schema as code: what was pulled differs in nothing, and any file can be reached."""

from __future__ import annotations

import random

import pytest

import shelduck
from tests.support.drawn_rows import Row
from tests.support.drawn_schemas import Table, pairs
from tests.support.lengths import shown, turns


def tell(folder, seeds):
    """Pull, change and apply tables of these seeds; each has a lake's name for itself."""
    with shelduck.connect(f"sqlite:///{folder}/lake.db", f"{folder}/data/") as lake:
        for seed in seeds:
            chance = random.Random(seed)
            table = Table(chance)
            assert lake.plan({"t": table.text()}).apply() == []
            for _ in range(2):
                places = lake.pull_schema(folder / str(seed))
                assert [p.name for p in places] == ["main.t.sql"]
                assert str(lake.plan(folder / str(seed))) == "nothing differs"
                before = set()
                for field, column in zip(lake.table("t").columns, table.columns, strict=True):
                    column.id = field.id
                    before |= {f.id for f in field.walk()}
                    for made, drawn in pairs(field, column):
                        drawn[2] = made.id
                table.change()
                plan = lake.plan({"t": table.text()})
                plan.apply(allow_drop=True)
                assert str(lake.plan({"t": table.text()})) == "nothing differs", plan
                found = lake.table("t").columns
                assert [f.name for f in found] == [c.name for c in table.columns]
                for field, column in zip(found, table.columns, strict=True):
                    # What stays keeps its id, and what is new gets one that was never used.
                    assert field.id == column.id if column.id else field.id not in before
                    assert field.nullable is not column.is_needed
                    for made, drawn in pairs(field, column):
                        assert made.id == drawn[2] if drawn[2] else made.id not in before
            lake.drop_table("t")


def keep(spark, folder, seeds):
    """Change drawn tables with rows, also by jobs: what stays keeps its values. Return the jobs."""
    jobs = 0
    with shelduck.connect(f"sqlite:///{folder}/lake.db", f"{folder}/data/", spark) as lake:
        for seed in seeds:
            table = Table(random.Random(seed))
            lake.plan({"t": table.text()}).apply()
            # Rows of every other table are in the catalog.
            lake.set_option("data_inlining_row_limit", 10 * (seed % 2), table="t")
            drawn = [Row(table, n) for n in (1, 2, 3)]
            for row in drawn:
                lake.table("t").append(spark.sql(row.sql))
            for field, column in zip(lake.table("t").columns, table.columns, strict=True):
                column.id = field.id
                for made, inside in pairs(field, column):
                    inside[2] = made.id
            table.change()
            if seed % 3 == 0:
                table.convert()
            for job in lake.plan({"t": table.text()}).apply(allow_drop=True):
                job.wait()
                jobs += 1
            assert str(lake.plan({"t": table.text()})) == "nothing differs"
            found = lake.table("t").read().collect()
            assert len(found) == 3
            lost = [r.sql for r in drawn if not any(r.is_kept(table, back) for back in found)]
            assert lost == [], (seed, table.text(), found)
            lake.drop_table("t")
    return jobs


def test_rows_are_kept(spark, tmp_path):
    assert keep(spark, tmp_path, range(27, 31)) == 2


def test_files_round_trip_and_are_reached(tmp_path):
    tell(tmp_path, range(8))


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(8, 25), *turns(range(1000, 1500), 100)], ids=shown)
def test_a_thousand_changes_of_files_are_reached(tmp_path, seeds):
    tell(tmp_path, seeds)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", turns(range(2000, 2500), 50), ids=shown)
def test_rows_of_five_hundred_tables_are_kept(spark, tmp_path, seeds):
    assert keep(spark, tmp_path, seeds) > 1
