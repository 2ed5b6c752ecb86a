"""What an ALTER must not take from a table that is partitioned or sorted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shelduck.errors import Unsupported
from shelduck.evolution.alter import plan_alter
from shelduck.model.schema_change import DropColumn, RenameColumn
from shelduck.model.table import PartitionColumn
from tests.support.scans import column, table

PLAIN = table(
    column("id", "int32", 1),
    column("region", "varchar", 2),
    column("Odd Name", "varchar", 3),
    column("free", "int32", 4),
)
KEYED = replace(
    PLAIN,
    partition=(PartitionColumn(2, "identity"),),
    sort=("id ASC NULLS LAST", 'upper("Odd Name") DESC NULLS FIRST'),
)
SORTED = "the table is sorted by it; ALTER TABLE … RESET SORTED BY in DuckDB first"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            DropColumn(("region",)),
            (
                "cannot drop 'region' of main.t: the table is partitioned by it;"
                " ALTER TABLE … RESET PARTITIONED BY in DuckDB first"
            ),
        ),
        (DropColumn(("id",)), f"cannot drop or rename 'id' of main.t: {SORTED}"),
        (RenameColumn(("ID",), "key"), f"cannot drop or rename 'id' of main.t: {SORTED}"),
        (
            RenameColumn(("odd name",), "even"),
            f"cannot drop or rename 'Odd Name' of main.t: {SORTED}",
        ),
    ],
)
def test_keys_of_partitions_and_of_the_sort_order_stay(change, told):
    with pytest.raises(Unsupported) as refused:
        plan_alter(KEYED, [change])

    assert str(refused.value) == told
    assert plan_alter(PLAIN, [change]).change is not None


@pytest.mark.parametrize(
    "change",
    [RenameColumn(("region",), "area"), RenameColumn(("id",), "ID"), DropColumn(("free",))],
)
def test_other_columns_change_and_a_key_of_partitions_may_be_renamed(change):
    assert plan_alter(KEYED, [change]).change is not None
