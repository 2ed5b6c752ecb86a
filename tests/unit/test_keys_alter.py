"""What ALTER TABLE does to key models: Doris' refusals, and what follows the columns."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shelduck.doors.sql.parse import parse
from shelduck.errors import AlreadyExists, InvalidRequest
from shelduck.lake.evolution.plan import plan_alter
from shelduck.model.changes.change import altered as changed
from shelduck.model.tables.keys import (
    Aggregation,
    KeyModel,
    KeySpec,
    TableKeys,
    resolve_keys,
    table_keys,
    with_keys,
)
from shelduck.model.tables.schema import Default, Schema
from shelduck.model.tables.table_version import Conversion, Feature, PartitionColumn
from shelduck.write.hooks import hooks_of
from tests.support.scans import column, holding, table

DUPLICATE, UNIQUE, AGGREGATE = KeyModel.DUPLICATE, KeyModel.UNIQUE, KeyModel.AGGREGATE
SUM, MAX, REPLACE = Aggregation.SUM, Aggregation.MAX, Aggregation.REPLACE
PLAIN = table(
    column("k1", "int32", 1),
    column("k2", "date", 2),
    column("v1", "int64", 3),
    replace(column("v2", "varchar", 4), default=Default("x")),
)


def keyed(model, *aggregations, keys=("k1", "k2"), of=PLAIN, **more):
    """The table with a key model, sorted by its keys."""
    spec = KeySpec(model, keys, aggregations, **more)
    found = resolve_keys(spec, of.columns, of.full_name)
    sort = tuple(f"{name} ASC NULLS LAST" for name in keys)
    return replace(of, properties=with_keys({}, found), sort=sort)


DUP = keyed(DUPLICATE)
UNI = keyed(UNIQUE, sequence="v1")
AGG = keyed(AGGREGATE, ("v1", SUM), ("v2", MAX))
LAST = keyed(AGGREGATE, ("v1", SUM), ("v2", REPLACE))
PARTED = replace(DUP, partition=(PartitionColumn(2, "identity"),))
HASHED = keyed(UNIQUE, distributed_by=("k1",))


def planned(to, text, known=None):
    [statement] = parse(f"ALTER TABLE t {text}")
    return plan_alter(to, statement.changes, known)


def altered(to, text):
    """The columns, what they are sorted by and the model after a statement."""
    after = changed(to, planned(to, text).change)
    return after.columns.names, [key.split()[0] for key in after.sort], table_keys(after)


def refused(kind, to, text):
    with pytest.raises(kind) as caught:
        planned(to, text)
    assert type(caught.value) is kind
    return str(caught.value)


@pytest.mark.parametrize(
    ("to", "text", "told"),
    [
        (UNI, "ADD COLUMN c INT SUM", "give column c an aggregation: main.t is a UNIQUE KEY table"),
        (DUP, "ADD COLUMN c INT MAX", "column c an aggregation: main.t is a DUPLICATE KEY table"),
        (AGG, "ADD COLUMN c INT KEY SUM", "cannot give key column c of main.t an aggregation"),
        (DUP, "ADD COLUMN c INT KEY SUM", "cannot give key column c of main.t an aggregation"),
        (PLAIN, "ADD COLUMN c INT KEY", "main.t has no key model, so c cannot be a key"),
        (PLAIN, "ADD COLUMN c INT SUM", "do not support key columns"),
        (PLAIN, "MODIFY COLUMN v1 BIGINT KEY", "main.t has no key model, so v1 cannot be a key"),
        (
            DUP,
            "MODIFY COLUMN k1 BIGINT SUM",
            "column k1 an aggregation: main.t is a DUPLICATE KEY table",
        ),
        (
            UNI,
            "MODIFY COLUMN k1 BIGINT SUM",
            "column k1 an aggregation: main.t is a UNIQUE KEY table",
        ),
        (AGG, "ADD COLUMN c INT SUM DEFAULT '5'", "SUM aggregation function must be zero, not '5'"),
        (AGG, "ALTER COLUMN v1 SET DEFAULT 1", "the default value of v1 of main.t with SUM"),
        (AGG, "ADD COLUMN c STRING SUM", "aggregate type SUM is not compatible with column c"),
        (AGG, "ADD COLUMN c BOOLEAN MAX", "MAX is not compatible with column c of main.t, which"),
        (AGG, "ADD COLUMN c DOUBLE", "float or double cannot be used as a key; use DECIMAL"),
        (
            UNI,
            "ADD COLUMN c ARRAY<INT> KEY",
            "column c of main.t is array<int32> and cannot be a key; key columns are",
        ),
        (
            DUP,
            "MODIFY COLUMN k2 TIMESTAMP FIRST",
            "key column k2 of main.t must stay one: repeat KEY",
        ),
        (UNI, "MODIFY COLUMN k1 BIGINT", "key column k1 of main.t must stay one: repeat KEY"),
        (UNI, "ADD COLUMN c INT KEY AFTER v1", "value should be after key, but v1 stands before"),
        (UNI, "ALTER COLUMN k1 AFTER v1", "value should be after key, but v1 stands before"),
        (UNI, "MODIFY COLUMN v2 STRING DEFAULT 'x' FIRST", "but v2 stands before the last key"),
        (DUP, "ORDER BY (k1, v1, k2, v2)", "value should be after key, but v1 stands before"),
        (UNI, "MODIFY COLUMN v2 STRING KEY", "cannot change column v2 of main.t to a key"),
        (AGG, "MODIFY COLUMN v1 DECIMAL(20, 0)", "it is SUM; repeat that"),
        (AGG, "MODIFY COLUMN v1 BIGINT MAX", "cannot change aggregation type of column v1"),
        (AGG, "MODIFY COLUMN k1 BIGINT MAX", "it is a key; repeat that"),
        (AGG, "MODIFY COLUMN v1 STRING SUM", "SUM is not compatible with column v1 of main.t"),
        (AGG, "ALTER COLUMN v1 TYPE STRING", "SUM is not compatible with column v1 of main.t"),
        (DUP, "ALTER COLUMN k1 TYPE DOUBLE USING k1", "float or double cannot be used as a key"),
        (UNI, "ALTER COLUMN v1 TYPE DECIMAL(20, 0)", "cannot alter sequence column v1 of main.t"),
        (UNI, "ALTER COLUMN v1 TYPE BIGINT USING -v1", "cannot alter sequence column v1 of main.t"),
        (
            UNI,
            "MODIFY COLUMN v1 INT",
            "cannot alter sequence column v1 of main.t: its order determines",
        ),
        (PARTED, "MODIFY COLUMN k2 DATETIME", "cannot modify partition or distribution column k2"),
        (HASHED, "MODIFY COLUMN k1 BIGINT", "cannot modify partition or distribution column k1"),
        (
            UNI,
            "SET PARTITIONED BY (v1)",
            "main.t cannot be partitioned by v1: rows with the same UNIQUE",
        ),
        (AGG, "SET PARTITIONED BY (bucket(4, v1))", "rows with the same AGGREGATE KEY would be in"),
    ],
)
def test_what_a_model_does_not_allow_is_refused(to, text, told):
    assert told in refused(InvalidRequest, to, text)


@pytest.mark.parametrize(
    ("to", "text", "told"),
    [
        (UNI, "DROP COLUMN k1", "cannot drop key column k1 of main.t, which is a UNIQUE KEY table"),
        (
            UNI,
            "DROP COLUMN v1",
            "cannot drop sequence column v1 of main.t: it determines the last row",
        ),
        (HASHED, "DROP COLUMN k1", "Distribution column k1 of main.t cannot be dropped"),
        (PARTED, "DROP COLUMN k2", "Partition column k2 of main.t cannot be dropped"),
        (LAST, "DROP COLUMN k2", "the table has value column with REPLACE aggregation method"),
        (keyed(DUPLICATE, keys=("k1",)), "DROP COLUMN k1", "no key column left: column k1 of"),
        (DUP, "DROP COLUMN k2, DROP COLUMN k1", "no key column left: column k1 of main.t is the"),
    ],
)
def test_columns_that_a_model_needs_are_not_dropped(to, text, told):
    assert told in refused(InvalidRequest, to, text)


@pytest.mark.parametrize(
    ("to", "names", "sort", "keys"),
    [
        (DUP, ["k2", "v1", "v2"], ["k2"], TableKeys(DUPLICATE, (2,))),
        (AGG, ["k2", "v1", "v2"], ["k2"], TableKeys(AGGREGATE, (2,), ((3, SUM), (4, MAX)))),
    ],
)
def test_a_key_is_dropped_where_rows_need_not_stay_apart(to, names, sort, keys):
    assert altered(to, "DROP COLUMN k1") == (names, sort, keys)


def test_values_are_dropped_with_how_they_are_combined():
    both = ["k1", "k2"]

    assert altered(LAST, "DROP COLUMN v2") == (
        *([*both, "v1"], both),
        TableKeys(AGGREGATE, (1, 2), ((3, SUM),)),
    )
    assert altered(UNI, "DROP COLUMN v2") == (
        *([*both, "v1"], both),
        TableKeys(UNIQUE, (1, 2), sequence=3),
    )
    replaceless = altered(LAST, "DROP COLUMN v2, DROP COLUMN k2")
    assert replaceless == (["k1", "v1"], ["k1"], TableKeys(AGGREGATE, (1,), ((3, SUM),)))


@pytest.mark.parametrize(
    ("to", "text", "names", "keys"),
    [
        (DUP, "ADD COLUMN c INT KEY", "k1 k2 c v1 v2", (1, 2, 101)),
        (UNI, "ADD COLUMN c INT KEY DEFAULT 1 AFTER k1", "k1 c k2 v1 v2", (1, 101, 2)),
        (UNI, "ADD COLUMN c INT KEY FIRST", "c k1 k2 v1 v2", (101, 1, 2)),
        (AGG, "ADD COLUMN c INT", "k1 k2 c v1 v2", (1, 2, 101)),
        (AGG, "ADD COLUMN (c INT, d DATE KEY)", "k1 k2 c d v1 v2", (1, 2, 101, 102)),
        (DUP, "ORDER BY (k2, k1, v2, v1)", "k2 k1 v2 v1", (2, 1)),
        (DUP, "ALTER COLUMN k2 FIRST", "k2 k1 v1 v2", (2, 1)),
        (UNI, "ORDER BY (k2, k1, v2, v1)", "k2 k1 v2 v1", (2, 1)),
        (DUP, "DROP COLUMN k2, ADD COLUMN k2 INT KEY", "k1 k2 v1 v2", (1, 101)),
        (
            DUP,
            "ADD COLUMN c INT KEY AFTER k1, ADD COLUMN x INT, ORDER BY (c, k2, k1, x, v2, v1)",
            *("c k2 k1 x v2 v1", (101, 2, 1)),
        ),
    ],
)
def test_keys_and_the_sort_order_follow_the_columns(to, text, names, keys):
    found, sort, now = altered(to, text)

    assert found == names.split()
    assert now.columns == keys
    assert sort == found[: len(keys)]


@pytest.mark.parametrize(
    ("to", "text", "sort", "keys"),
    [
        (DUP, "RENAME COLUMN k1 TO a", ["a", "k2"], (1, 2)),
        (DUP, "RENAME COLUMN k1 TO a, ORDER BY (k2, a, v1, v2)", ["k2", "a"], (2, 1)),
        (DUP, "RENAME COLUMN k1 TO a, ADD COLUMN c INT KEY", ["a", "k2", "c"], (1, 2, 101)),
        (
            DUP,
            "RENAME COLUMN k1 TO x, RENAME COLUMN k2 TO k1, RENAME COLUMN x TO k2",
            *(["k2", "k1"], (1, 2)),
        ),
        (DUP, "RENAME COLUMN k1 TO a, DROP COLUMN k2", ["a"], (1,)),
        (
            DUP,
            "RENAME COLUMN k1 TO a, MODIFY COLUMN k2 STRING KEY, ADD COLUMN c INT KEY",
            *(["a", "k2", "c"], (1, 101, 102)),
        ),
    ],
)
def test_the_sort_order_follows_keys_that_are_renamed(to, text, sort, keys):
    _, found, now = altered(to, text)

    assert (found, now.columns) == (sort, keys)


def test_a_sort_order_of_ones_own_stays():
    other = replace(UNI, sort=("v2 ASC NULLS LAST",))
    text = "ADD COLUMN c INT KEY"

    assert altered(other, text)[1] == ["v2"]
    assert altered(UNI, f"SET SORTED BY (v2), {text}")[1] == ["v2"]
    assert altered(UNI, f"RESET SORTED BY, {text}")[1] == []
    assert altered(other, "SET SORTED BY (k1)")[1] == ["k1"]


def test_where_only_names_change_the_model_is_not_said_anew():
    assert planned(UNI, "RENAME COLUMN v1 TO seq").change.properties == {}
    assert planned(AGG, "ADD COLUMN IF NOT EXISTS k1 INT, DROP COLUMN IF EXISTS q").change is None
    assert refused(AlreadyExists, AGG, "ADD COLUMN K1 INT")


@pytest.mark.parametrize(
    ("to", "text", "place"),
    [
        (UNI, "ADD COLUMN c INT FIRST", "FIRST"),
        (DUP, "ADD COLUMN c INT AFTER k1", "AFTER k1"),
        (AGG, "ADD COLUMN c INT SUM AFTER k1", "AFTER k1"),
    ],
)
def test_a_value_that_would_be_before_a_key_comes_after_the_last_one(to, text, place):
    """Doris' documentation adds such columns, which Doris itself refuses."""
    names, _, _ = altered(to, text)
    assert names == ["k1", "k2", "c", "v1", "v2"]
    note = f"column c of main.t is placed AFTER k2, not {place}: values come after the keys"
    assert planned(to, text).note == note


@pytest.mark.parametrize("text", ["ADD COLUMN c INT AFTER k2", "ADD COLUMN c INT AFTER v1"])
def test_a_value_that_is_placed_among_values_stays_there(text):
    assert planned(UNI, text).note == ""


def test_a_value_may_be_added_and_combined():
    assert altered(AGG, "ADD COLUMN (c INT SUM DEFAULT 0, d STRING MAX DEFAULT 'x')") == (
        ["k1", "k2", "v1", "v2", "c", "d"],
        ["k1", "k2"],
        TableKeys(AGGREGATE, (1, 2), ((3, SUM), (4, MAX), (101, SUM), (102, MAX))),
    )
    assert altered(UNI, "ADD COLUMN c INT")[0] == ["k1", "k2", "v1", "v2", "c"]


@pytest.mark.parametrize("to", [DUP, UNI, AGG], ids=["duplicate", "unique", "aggregate"])
def test_a_key_that_the_statement_adds_may_be_modified(to):
    names, sort, keys = altered(to, "ADD COLUMN c INT KEY, MODIFY COLUMN c DECIMAL(9, 2) KEY")

    assert names[:3] == sort == ["k1", "k2", "c"]
    assert len(keys.columns) == 3


def test_a_value_that_the_statement_adds_may_be_modified():
    names, _, keys = altered(AGG, "ADD COLUMN c INT SUM, MODIFY COLUMN c BIGINT SUM AFTER k2")

    assert names == ["k1", "k2", "c", "v1", "v2"]
    assert sorted(how.value for _, how in keys.aggregations) == ["MAX", "SUM", "SUM"]


@pytest.mark.parametrize(
    ("text", "weight"),
    [
        ("ALTER COLUMN k1 TYPE BIGINT", "light"),
        ("MODIFY COLUMN k1 BIGINT KEY", "light"),
        ("MODIFY COLUMN k1 STRING KEY", "heavy"),
        ("ALTER COLUMN k1 TYPE TINYINT", "heavy"),
        ("MODIFY COLUMN k1 DECIMAL(12, 2) KEY", "heavy"),
        ("MODIFY COLUMN k2 DATETIME KEY", "heavy"),
    ],
)
@pytest.mark.parametrize("to", [UNI, AGG, DUP], ids=["unique", "aggregate", "duplicate"])
def test_keys_that_stay_apart_may_change_their_type(to, text, weight):
    plan = planned(to, text)
    keys = table_keys(changed(to, plan.change))

    assert [step.weight for step in plan.steps] == [weight]
    assert keys.columns == tuple(plan.change.columns.get((n,)).id for n in ("k1", "k2"))
    assert altered(to, text)[1] == ["k1", "k2"]


@pytest.mark.parametrize(
    "text",
    [
        "MODIFY COLUMN k2 TIMESTAMP KEY",
        "ALTER COLUMN k1 TYPE BIGINT USING k1 * 2",
        "ALTER COLUMN k1 TYPE INT USING k1 % 2",
        "MODIFY COLUMN k1 BOOLEAN KEY",
        "ALTER COLUMN k1 TYPE TINYINT ON ERROR NULL",
    ],
)
def test_keys_that_could_become_equal_are_looked_for(text):
    unique, aggregate, duplicate = (planned(to, text) for to in (UNI, AGG, DUP))

    assert [len(p.meeting) for p in (unique, aggregate, duplicate)] == [1, 1, 0]
    assert [p.folds for p in (unique, aggregate, duplicate)] == [False, True, False]


def test_no_key_becomes_a_number_that_is_rounded():
    told = refused(InvalidRequest, UNI, "ALTER COLUMN k1 TYPE DOUBLE USING k1")

    assert "float or double cannot be used as a key" in told


@pytest.mark.parametrize(
    ("how", "unique", "sums", "replaces"),
    [
        ("", False, True, False),
        (" ON DUPLICATE KEYS REFUSE", False, False, False),
        (" ON DUPLICATE KEYS KEEP NEWEST", True, True, True),
    ],
)
def test_rows_of_equal_keys_are_folded_if_that_is_asked_or_loses_nothing(
    how, unique, sums, replaces
):
    text = f"ALTER COLUMN k2 TYPE STRING USING 'x'{how}"
    plans = [planned(to, text) for to in (UNI, AGG, LAST)]

    assert [p.folds for p in plans] == [unique, sums, replaces]


def test_one_refusal_counts_for_a_key_of_several_columns():
    newest, refuse = "ON DUPLICATE KEYS KEEP NEWEST", "ON DUPLICATE KEYS REFUSE"
    one, two = (f"ALTER COLUMN {k} TYPE STRING USING 'x' {{}}" for k in ("k1", "k2"))

    assert planned(UNI, f"{one.format(newest)}, {two.format('')}").folds
    assert not planned(UNI, f"{one.format(newest)}, {two.format(refuse)}").folds


@pytest.mark.parametrize("to", [UNI, DUP, PLAIN], ids=["value", "duplicate", "plain"])
def test_only_for_keys_by_which_rows_are_folded_something_can_be_said_of_equal_ones(to):
    name = "v2" if to is UNI else to.columns.names[0]
    text = f"ALTER COLUMN {name} TYPE BIGINT USING 1 ON DUPLICATE KEYS REFUSE"

    assert refused(InvalidRequest, to, text) == (
        f"{name} of {to.full_name} is not a key by which rows are folded; leave ON DUPLICATE KEYS"
        " out"
    )


@pytest.mark.parametrize(
    ("kind", "new", "apart"),
    [
        ("decimal(9,2)", "DECIMAL(12, 3)", True),
        ("decimal(9,2)", "DECIMAL(12, 1)", True),
        ("decimal(9,2)", "STRING", True),
        ("decimal(9,0)", "BIGINT", True),
        ("varchar", "INT", False),
        ("varchar", "DATE", False),
        ("varchar", "BINARY", False),
        ("boolean", "STRING", True),
        ("boolean", "INT", False),
        ("uuid", "STRING", True),
        ("uint8", "INT", True),
        ("timestamp", "DATE", False),
        ("timestamp", "TIMESTAMP", False),
        ("timestamptz", "STRING", False),
        ("date", "TIMESTAMP", False),
        ("date", "TIMESTAMP_NTZ", True),
        ("date", "STRING", True),
    ],
)
def test_whether_keys_stay_apart_is_told_by_the_types(kind, new, apart):
    to = keyed(UNIQUE, keys=("k",), of=table(column("k", kind, 1), column("v", "int32", 2)))

    assert bool(planned(to, f"MODIFY COLUMN k {new} KEY").meeting) is not apart


def test_the_model_follows_a_column_that_a_job_has_converted():
    text = "MODIFY COLUMN k2 STRING KEY, MODIFY COLUMN v1 DECIMAL(20, 0)"
    plan = planned(DUP, text)
    known = [s.conversion for s in plan.shadows]

    assert [(c.column_id, c.shadow_id) for c in known] == [(2, 101), (3, 102)]
    assert table_keys(holding(plan.change.properties)).columns == (1, 101)
    later = planned(DUP, text, [replace(c, shadow_id=c.shadow_id + 100) for c in known])
    assert table_keys(holding(later.change.properties)).columns == (1, 201)
    assert isinstance(known[0], Conversion)


def test_a_sum_follows_a_column_that_a_job_has_converted():
    _, sort, keys = altered(AGG, "MODIFY COLUMN v1 DECIMAL(20, 0) SUM")

    assert keys.aggregations == ((101, SUM), (4, MAX))
    assert sort == ["k1", "k2"]


def test_a_partition_key_that_is_given_up_in_the_statement_may_be_dropped():
    names, sort, _ = altered(PARTED, "RESET PARTITIONED BY, DROP COLUMN k2")

    assert (names, sort) == (["k1", "v1", "v2"], ["k1"])


def test_partitions_by_keys_are_taken():
    change = planned(UNI, "SET PARTITIONED BY (k2, bucket(4, k1))").change

    assert [p.column_id for p in change.partition] == [2, 1]
    assert planned(DUP, "SET PARTITIONED BY (v1)").change.partition[0].column_id == 3


def test_a_key_that_another_writer_dropped_is_not_forgotten():
    lost = replace(UNI, columns=Schema(tuple(f for f in UNI.columns if f.name != "k2")), sort=())
    change = planned(lost, "ADD COLUMN c INT").change

    assert table_keys(changed(lost, change)).columns == (1, 2)


def test_a_value_that_another_writer_added_is_in_nobodys_way():
    more = Schema((*AGG.columns, column("theirs", "int32", 5)))

    assert planned(replace(AGG, columns=more), "ADD COLUMN c INT SUM").change is not None


def test_each_feature_of_a_table_has_a_subject():
    whole = holding({feature.value: "" for feature in Feature})

    # One that is not put in is an error where a call asks for it.
    assert len(list(hooks_of(whole))) == len(whole.features) == len(Feature)
    assert list(hooks_of(PLAIN)) == []
