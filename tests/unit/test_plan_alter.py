"""What an ALTER must not take from a table that is partitioned or sorted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shelduck.errors import InvalidRequest, NotFound, Unsupported
from shelduck.lake.evolution.alter_plan import AlterStep
from shelduck.lake.evolution.plan import plan_alter
from shelduck.model.changes.schema_change import (
    AddColumn,
    ChangeType,
    DropColumn,
    RenameColumn,
    SetDefault,
    SetNullable,
)
from shelduck.model.tables.partition import (
    PartitionBy,
    ResetPartitioning,
    ResetSorting,
    SetPartitioning,
    SetSorting,
    SortKey,
    Transform,
)
from shelduck.model.tables.properties import SetProperties, UnsetProperties
from shelduck.model.tables.schema import Default
from shelduck.model.tables.table_version import PartitionColumn
from shelduck.model.types.data_types import parse_type
from tests.support.scans import column, table

PLAIN = table(
    column("id", "int32", 1),
    column("region", "varchar", 2),
    column("Odd Name", "varchar", 3),
    column("free", "int32", 4),
    column("at_second", "timestamp_s", 5),
)
KEYED = replace(
    PLAIN,
    partition=(PartitionColumn(2, "identity"),),
    sort=("id ASC NULLS LAST", 'upper("Odd Name") DESC NULLS FIRST'),
)
BUCKETED = replace(
    PLAIN, partition=(PartitionColumn(1, "bucket(4)"), PartitionColumn(5, "bucket(4)"))
)
WIDENS = SetProperties((("delta.enableTypeWidening", "true"),))
SORTED = "the table is sorted by it; use ALTER TABLE main.t RESET SORTED BY first"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            [DropColumn(("region",))],
            (
                "cannot drop 'region' of main.t: the table is partitioned by it; use ALTER TABLE"
                " main.t RESET PARTITIONED BY first"
            ),
        ),
        ([DropColumn(("ID",))], f"cannot drop 'id' of main.t: {SORTED}"),
        (
            [RenameColumn(("odd name",), "even"), DropColumn(("even",))],
            f"cannot drop 'even' of main.t: {SORTED}",
        ),
    ],
)
def test_a_column_that_is_a_key_is_not_dropped(changes, told):
    with pytest.raises(Unsupported) as refused:
        plan_alter(KEYED, changes)

    assert str(refused.value) == told
    assert plan_alter(PLAIN, changes).change is not None


def test_a_column_is_dropped_after_its_keys_are():
    done = plan_alter(
        KEYED, [DropColumn(("id",)), ResetSorting(), ResetPartitioning(), DropColumn(("region",))]
    ).change
    assert (done.partition, done.sort) == ((), ())
    assert done.columns.names == ["Odd Name", "free", "at_second"]


def test_sort_keys_follow_a_rename_and_partition_keys_need_not():
    done = plan_alter(
        KEYED, [RenameColumn(("ID",), "key"), RenameColumn(("region",), "area")]
    ).change
    assert done.sort == ("key ASC NULLS LAST", 'upper("Odd Name") DESC NULLS FIRST')
    assert done.partition is None


def test_swapped_names_take_their_sort_keys_along():
    swapped = plan_alter(
        KEYED,
        [
            RenameColumn(("id",), "x"),
            RenameColumn(("Odd Name",), "id"),
            RenameColumn(("x",), "Odd Name"),
        ],
    ).change
    assert swapped.sort == ('"Odd Name" ASC NULLS LAST', "upper(id) DESC NULLS FIRST")


def test_the_layout_is_set_on_the_columns_as_they_are_by_then():
    done = plan_alter(
        PLAIN,
        [
            RenameColumn(("region",), "area"),
            AddColumn(("at",), parse_type("date")),
            SetPartitioning((PartitionBy("AREA"), PartitionBy("at", Transform("year")))),
            SetSorting((SortKey("free"),)),
        ],
    ).change
    assert done.partition == (PartitionColumn(2, "identity"), PartitionColumn(101, "year"))
    assert done.sort == ("free ASC NULLS LAST",)


def test_the_same_layout_again_is_no_change():
    same = [
        SetPartitioning((PartitionBy("region"),)),
        SetSorting((SortKey("id"), SortKey('upper("Odd Name")', True, True))),
    ]
    assert plan_alter(KEYED, same).change is None
    assert plan_alter(PLAIN, [ResetPartitioning(), ResetSorting()]).change is None
    assert plan_alter(PLAIN, same).change is not None


@pytest.mark.parametrize(
    ("change", "error", "told"),
    [
        (SetPartitioning((PartitionBy("nope"),)), NotFound, "nope"),
        (SetSorting((SortKey("upper(nope)"),)), NotFound, "nope"),
        (SetPartitioning(()), InvalidRequest, "needs at least one key"),
        (SetSorting(()), InvalidRequest, "needs at least one key"),
        (SetPartitioning((PartitionBy("id"),) * 2), InvalidRequest, "by id twice"),
        (
            SetPartitioning((PartitionBy("id", Transform("year")),)),
            InvalidRequest,
            "cannot partition main.t by year(id): year does not apply to a column of type int32",
        ),
        (
            SetPartitioning((PartitionBy("id", Transform("bucket", 2**31)),)),
            InvalidRequest,
            "the number of buckets must be from 1 to 2147483647",
        ),
    ],
)
def test_a_layout_that_makes_no_sense_is_refused(change, error, told):
    with pytest.raises(error) as refused:
        plan_alter(PLAIN, [change])
    assert told in str(refused.value)


def test_a_bucketed_column_keeps_a_type_of_the_same_hash():
    assert plan_alter(BUCKETED, [ChangeType(("id",), parse_type("bigint"))]).change is not None
    finer = [WIDENS, ChangeType(("at_second",), parse_type("timestamp_ntz"))]
    with pytest.raises(Unsupported, match="would put its values into other buckets"):
        plan_alter(BUCKETED, finer)
    assert plan_alter(PLAIN, finer).change is not None


def test_a_sort_key_that_is_more_than_a_column_keeps_its_type():
    halves = replace(PLAIN, sort=("abs(id) ASC NULLS LAST", "id ASC NULLS LAST"))
    wider = ChangeType(("id",), parse_type("bigint"))
    with pytest.raises(Unsupported) as refused:
        plan_alter(halves, [wider])

    assert str(refused.value) == (
        "cannot change the type of 'id' of main.t from int32 to int64: the table is sorted by"
        " abs(id), which may order the wider values differently; use ALTER TABLE main.t RESET"
        " SORTED BY first"
    )
    assert plan_alter(KEYED, [wider]).change is not None
    assert plan_alter(halves, [wider, SetSorting((SortKey("id"),))]).change is not None


def test_properties_are_a_change_that_types_may_wait_for():
    to_double = ChangeType(("id",), parse_type("double"))
    with pytest.raises(Unsupported) as refused:
        plan_alter(PLAIN, [to_double])
    plan = plan_alter(PLAIN, [WIDENS, to_double])

    assert str(refused.value) == (
        "cannot change id of main.t from int32 to float64: the DuckLake specification does not"
        " allow this promotion, and type widening is not enabled; enable it with ALTER TABLE"
        " main.t SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
    )
    assert plan.change.properties == {
        "delta.enableTypeWidening": "true",
        "delta.feature.typeWidening": "supported",
    }
    assert plan_alter(PLAIN, [UnsetProperties(("nope",), if_exists=True)]).change is None
    assert "1. SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')" in str(plan)


@pytest.mark.parametrize(
    "change",
    [RenameColumn(("region",), "area"), RenameColumn(("id",), "ID"), DropColumn(("free",))],
)
def test_other_columns_change_and_a_key_of_partitions_may_be_renamed(change):
    assert plan_alter(KEYED, [change]).change is not None


def test_a_column_that_is_new_becomes_not_null_only_with_a_default():
    added = AddColumn(("n",), parse_type("int32"))
    with pytest.raises(InvalidRequest, match=r"new column .n. of main.t cannot be NOT"):
        plan_alter(PLAIN, [added, SetNullable(("n",), nullable=False)])

    with_one = replace(added, default=Default("5"))
    plan = plan_alter(PLAIN, [with_one, SetNullable(("n",), nullable=False)])
    assert plan.change is not None
    assert not plan.checks_null
    assert not plan.change.columns.get(("n",)).nullable


def test_a_column_that_goes_may_hold_null():
    plan = plan_alter(PLAIN, [SetNullable(("free",), nullable=False), DropColumn(("free",))])

    assert not plan.checks_null


@pytest.mark.parametrize(("later", "made"), [(None, None), (Default("7"), Default("7.0"))])
def test_a_new_column_of_another_type_keeps_what_rows_that_exist_read(later, made):
    plan = plan_alter(
        PLAIN,
        [
            AddColumn(("n",), parse_type("int32"), Default("40")),
            SetDefault(("n",), later),
            ChangeType(("n",), parse_type("float64")),
        ],
    )

    assert plan.change is not None
    found = plan.change.columns.get(("n",))
    assert (found.initial_default, found.default) == ("40.0", made)


@pytest.mark.parametrize(
    ("files", "rows", "size", "kept", "told"),
    [
        (3, 10, 2000, 0, "files to rewrite: 3, rows: 10, bytes: 2000"),
        (3, 10, 2000, 4, "files to rewrite: 3, rows: 10 (4 in the catalog), bytes: 2000"),
        (0, 0, 0, 0, "files to rewrite: 0, rows: 0, bytes: 0"),
        (1, 4, 0, 4, "rows to move from the catalog into new files: 4"),
    ],
)
def test_the_cost_of_a_step_says_where_its_rows_are(files, rows, size, kept, told):
    assert AlterStep("c", "heavy", "r", files, rows, size, rows_in_catalog=kept).cost == told


def test_names_change_places_beside_a_column_with_the_name_for_now():
    named = table(*(column(n, "int32", i) for i, n in enumerate(("a", "b", "b_"), 1)))
    plan = plan_alter(named, [RenameColumn(("a",), "b"), RenameColumn(("b",), "a")])
    assert plan.change is not None
    assert {f.id: f.name for f in plan.change.columns} == {1: "b", 2: "a", 3: "b_"}
