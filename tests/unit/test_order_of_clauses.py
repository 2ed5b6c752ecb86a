"""An ALTER is judged by what it leads to: clauses that need each other stand in any order."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from shelduck.doors.sql.parse import parse
from shelduck.errors import AlreadyExists, InvalidRequest, Unsupported
from shelduck.lake.evolution.plan import plan_alter
from shelduck.model.tables.keys import Aggregation, KeyModel, KeySpec, resolve_keys, with_keys
from shelduck.model.tables.table_version import PartitionColumn
from tests.support.scans import column, table

TABLE = table(
    column("a", "int32", 1),
    column("b", "varchar", 2),
    column("p", "struct", 3, column("f", "int32", 4), column("g", "int32", 5)),
)
ALONE = table(column("a", "int32", 1))
DATED = table(column("d", "date", 1))
LAID_OUT = replace(TABLE, partition=(PartitionColumn(1, "identity"),), sort=("b ASC NULLS LAST",))


def _keyed(model, keys, *aggregations, of=TABLE):
    found = resolve_keys(KeySpec(model, keys, aggregations), of.columns, "main.t")
    return replace(of, properties=with_keys({}, found))


DUPLICATE = _keyed(KeyModel.DUPLICATE, ("a",))
PARTED = replace(
    _keyed(KeyModel.DUPLICATE, ("a", "b")), partition=(PartitionColumn(2, "identity"),)
)
AGGREGATE = _keyed(
    KeyModel.AGGREGATE,
    ("a", "b"),
    ("v", Aggregation.REPLACE),
    of=table(column("a", "int32", 1), column("b", "int32", 2), column("v", "int32", 3)),
)


def _planned(of, clauses):
    [statement] = parse(f"ALTER TABLE t {', '.join(clauses)}")
    return plan_alter(of, statement.changes)


@pytest.mark.parametrize(
    ("of", "clauses", "columns"),
    [
        (TABLE, ["DROP COLUMN p.f", "DROP COLUMN p.g", "ADD COLUMN p.h INT"], {"a", "b", "p"}),
        (ALONE, ["DROP COLUMN a", "ADD COLUMN c INT"], {"c"}),
        (TABLE, ["DROP COLUMNS (a, b, p)", "ADD COLUMN c INT"], {"c"}),
        (LAID_OUT, ["DROP COLUMN a", "RESET PARTITIONED BY"], {"b", "p"}),
        (LAID_OUT, ["DROP COLUMN b", "RESET SORTED BY"], {"a", "p"}),
        (PARTED, ["DROP COLUMN b", "RESET PARTITIONED BY"], {"a", "p"}),
        (DUPLICATE, ["DROP COLUMN a", "ADD COLUMN c INT KEY"], {"c", "b", "p"}),
        (AGGREGATE, ["DROP COLUMN b", "DROP COLUMN v"], {"a"}),
        (TABLE, ["RENAME COLUMN a TO b", "RENAME COLUMN b TO a"], {"a", "b", "p"}),
        (TABLE, ["RENAME COLUMN p.f TO g", "RENAME COLUMN p.g TO f"], {"a", "b", "p"}),
        (TABLE, [f"RENAME COLUMN {n}" for n in ("a TO b", "b TO p", "p TO a")], {"a", "b", "p"}),
        (TABLE, ["RENAME COLUMN a TO b", "DROP COLUMN b"], {"b", "p"}),
        (LAID_OUT, ["ALTER COLUMN a TYPE STRING", "RESET PARTITIONED BY"], {"a", "b", "p"}),
        (LAID_OUT, ["ALTER COLUMN a TYPE STRING", "SET PARTITIONED BY (b)"], {"a", "b", "p"}),
        (LAID_OUT, ["MODIFY COLUMN a FLOAT", "RESET PARTITIONED BY"], {"a", "b", "p"}),
        (LAID_OUT, ["ALTER COLUMN b TYPE BINARY", "RESET SORTED BY"], {"a", "b", "p"}),
        (PARTED, ["MODIFY COLUMN b BINARY KEY", "RESET PARTITIONED BY"], {"a", "b", "p"}),
    ],
)
def test_clauses_that_need_each_other_stand_in_any_order(of, clauses, columns):
    found = [_planned(of, order).change for order in permutations(clauses)]

    for change in found:
        assert set(change.columns.names) == columns
        # The new ids alone may depend on the order.
        kept = {f.id: f.name for f in change.columns.walk() if f.id <= of.max_column_id}
        assert kept == {f.id: f.name for f in found[0].columns.walk() if f.id in kept}


@pytest.mark.parametrize("of", [TABLE, LAID_OUT])
def test_partition_keys_of_the_statement_follow_a_column_to_its_new_type(of):
    clauses = ["ALTER COLUMN a TYPE STRING", "SET PARTITIONED BY (a, b)"]

    for order in permutations(clauses):
        plan = _planned(of, order)
        [shadow] = plan.shadows
        assert [k.column_id for k in plan.change.partition] == [shadow.field.id, 2]


def test_a_key_of_a_new_column_follows_it_to_another_type():
    clauses = ["ADD COLUMN n INT", "SET PARTITIONED BY (n)", "ALTER COLUMN n TYPE STRING"]

    change = _planned(TABLE, clauses).change

    assert [k.column_id for k in change.partition] == [change.columns.find(("n",)).id]


def test_swapped_columns_keep_their_ids_and_the_sort_order_follows():
    change = _planned(LAID_OUT, ["RENAME COLUMN a TO b", "RENAME COLUMN b TO a"]).change

    assert [(f.id, f.name) for f in change.columns][:2] == [(1, "b"), (2, "a")]
    assert change.sort == ("a ASC NULLS LAST",)


@pytest.mark.parametrize(
    ("of", "clauses", "kind", "told"),
    [
        (
            TABLE,
            ["DROP COLUMN p.f", "DROP COLUMN p.g"],
            InvalidRequest,
            "cannot drop p.g: it is the last field of p of main.t",
        ),
        (
            TABLE,
            ["DROP COLUMN p.f", "DROP COLUMN p.g", "ALTER COLUMN p TYPE STRING"],
            InvalidRequest,
            "cannot drop p.g: it is the last field of p of main.t",
        ),
        (
            TABLE,
            ["DROP COLUMN p.f", "DROP COLUMN p.g", "RENAME COLUMN p TO q"],
            InvalidRequest,
            "cannot drop p.g: it is the last field of p of main.t",
        ),
        (
            ALONE,
            ["DROP COLUMN a"],
            InvalidRequest,
            "cannot drop a: it is the last column of main.t",
        ),
        (
            TABLE,
            ["RENAME COLUMN a TO b", "ALTER COLUMN b COMMENT 'x'"],
            AlreadyExists,
            "column 'b' already exists in main.t",
        ),
        (
            TABLE,
            ["RENAME COLUMN a TO b", "RENAME COLUMN b TO p"],
            AlreadyExists,
            "column 'p' already exists in main.t",
        ),
        (
            PARTED,
            ["DROP COLUMN b", "RESET SORTED BY"],
            InvalidRequest,
            "Partition column b of main.t cannot be dropped",
        ),
        (
            PARTED,
            ["MODIFY COLUMN b BINARY KEY", "RESET SORTED BY"],
            InvalidRequest,
            "cannot modify partition or distribution column b of main.t",
        ),
        (
            LAID_OUT,
            ["ALTER COLUMN a TYPE STRING", "RESET SORTED BY"],
            Unsupported,
            (
                "cannot change a of main.t from int32 to STRING: the table is partitioned by it;"
                " use ALTER TABLE main.t RESET PARTITIONED BY first"
            ),
        ),
        (
            DATED,
            ["SET PARTITIONED BY (day(d))", "ALTER COLUMN d TYPE STRING"],
            InvalidRequest,
            "cannot partition main.t by day(d): day does not apply to a column of type varchar",
        ),
        (
            DUPLICATE,
            ["DROP COLUMN a", "ADD COLUMN c INT"],
            InvalidRequest,
            "no key column left: column a of main.t is the last one",
        ),
    ],
)
def test_what_the_whole_statement_leads_to_is_refused(of, clauses, kind, told):
    with pytest.raises(kind) as refused:
        _planned(of, clauses)

    assert str(refused.value) == told


def test_a_struct_that_is_dropped_itself_may_lose_its_fields_before():
    change = _planned(TABLE, ["DROP COLUMN p.f", "DROP COLUMN p.g", "DROP COLUMN p"]).change

    assert change.columns.names == ["a", "b"]
