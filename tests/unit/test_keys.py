"""Key models: what columns may be keys and be combined, and how a table remembers them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shelduck.errors import CorruptLake, InvalidRequest, NotFound, ShelduckError
from shelduck.keys.key_draft import (
    aggregate,
    aggregation,
    duplicate,
    keyed_table,
    unique,
    with_aggregates,
)
from shelduck.lake.evolution.arrangement import new_arrangement
from shelduck.model.tables.keys import (
    KEYS,
    Aggregation,
    KeyModel,
    KeySpec,
    TableKeys,
    names_of,
    require_zero,
    resolve_keys,
    table_keys,
    with_keys,
)
from shelduck.model.tables.partition import PartitionBy, SortKey, Transform
from shelduck.model.tables.properties import shown_properties
from shelduck.model.tables.schema import Default, Schema, new_field
from shelduck.model.types.data_types import PRIMITIVES, parse_type
from tests.support.scans import column, holding

DUPLICATE, UNIQUE, AGGREGATE = KeyModel.DUPLICATE, KeyModel.UNIQUE, KeyModel.AGGREGATE
SUM, MIN, MAX = Aggregation.SUM, Aggregation.MIN, Aggregation.MAX
REPLACE, LAST = Aggregation.REPLACE, Aggregation.REPLACE_IF_NOT_NULL
COLUMNS = Schema(
    (
        column("k1", "int32", 1),
        column("Odd Key", "varchar", 2),
        column("at", "timestamp", 3),
        column("v", "int64", 4),
        column("d", "float64", 5),
    )
)
VALUES = (("at", MAX), ("v", SUM), ("d", REPLACE))
HIDDEN = TableKeys(AGGREGATE, (1, 2), ((3, MAX), (4, SUM)), distributed_by=(2,))


def resolved(model, *names, **more):
    return resolve_keys(KeySpec(model, names, **more), COLUMNS, "main.t")


def told(kind, act):
    with pytest.raises(kind) as refused:
        act()
    assert type(refused.value) is kind
    return str(refused.value)


def shaped(kind, name="k1"):
    """The columns with another type in the place of one."""
    made = column(name, kind, 1) if kind in PRIMITIVES else new_field(name, parse_type(kind), 1)
    return Schema((made, *COLUMNS.fields[1:]))


def test_names_become_ids_whatever_their_case():
    found = resolved(AGGREGATE, "K1", "odd key", aggregations=VALUES, distributed_by=("ODD KEY",))

    assert found == TableKeys(
        AGGREGATE, (1, 2), ((3, MAX), (4, SUM), (5, REPLACE)), distributed_by=(2,)
    )
    assert found.aggregation(4) is SUM
    assert found.aggregation(1) is None
    assert [f.name for f in found.key_fields(COLUMNS)] == ["k1", "Odd Key"]
    assert names_of(COLUMNS, (5, 99, 1)) == ["d", "k1"]


def test_combined_columns_stand_in_the_order_of_the_table():
    found = resolved(AGGREGATE, "k1", "Odd Key", aggregations=tuple(reversed(VALUES)))

    assert found.aggregations == ((3, MAX), (4, SUM), (5, REPLACE))


def test_only_duplicate_keys_leave_several_rows():
    assert [TableKeys(model, (1,)).folds for model in KeyModel] == [False, True, True]
    assert [how for how in Aggregation if how.replaces] == [REPLACE, LAST]


@pytest.mark.parametrize("sequence", ["at", "v"])
def test_a_sequence_is_a_column_that_is_no_key(sequence):
    assert resolved(UNIQUE, "k1", sequence=sequence).sequence == COLUMNS.get((sequence,)).id


@pytest.mark.parametrize(
    ("kind", "spec", "message"),
    [
        (InvalidRequest, KeySpec(UNIQUE, ()), "UNIQUE KEY of main.t lists no column"),
        (NotFound, KeySpec(UNIQUE, ("q",)), "column 'q' does not exist in main.t"),
        (NotFound, KeySpec(UNIQUE, ("k1",), sequence="q"), "column 'q' does not exist in main.t"),
        (NotFound, KeySpec(UNIQUE, ("k1",), distributed_by=("q",)), "'q' does not exist"),
        (NotFound, KeySpec(AGGREGATE, ("k1",), (("q", SUM),)), "'q' does not exist in main.t"),
        (
            InvalidRequest,
            KeySpec(DUPLICATE, ("k1", "at")),
            (
                "invalid column order of main.t: value should be after key, but `Odd Key` stands"
                " before the last key; the keys are k1, at"
            ),
        ),
        (InvalidRequest, KeySpec(UNIQUE, ("Odd Key",)), "but k1 stands before the last key"),
        (
            InvalidRequest,
            KeySpec(UNIQUE, ("k1", "Odd Key", "at", "v", "d")),
            "column d of main.t is float64: float or double cannot be used as a key; use DECIMAL",
        ),
        (
            InvalidRequest,
            KeySpec(AGGREGATE, ("k1", "Odd Key"), VALUES[1:]),
            (
                "column at of main.t is not a key of the AGGREGATE KEY table and needs an"
                " aggregation type; use one of SUM, MIN, MAX, REPLACE, REPLACE_IF_NOT_NULL"
            ),
        ),
        (
            InvalidRequest,
            KeySpec(AGGREGATE, ("k1", "Odd Key"), (("k1", SUM), *VALUES)),
            "key column k1 of main.t cannot have an aggregation type",
        ),
        (
            InvalidRequest,
            KeySpec(AGGREGATE, ("k1",), (("Odd Key", SUM), *VALUES)),
            "type SUM is not compatible with column `Odd Key` of main.t, which is varchar",
        ),
        (
            InvalidRequest,
            KeySpec(AGGREGATE, ("k1", "Odd Key"), (("at", SUM), *VALUES[1:])),
            "aggregate type SUM is not compatible with column at of main.t, which is timestamp",
        ),
        (
            InvalidRequest,
            KeySpec(UNIQUE, ("k1",), (("v", SUM),)),
            (
                "cannot assign aggregation method SUM on column v of main.t: UNIQUE KEY"
                " tables do not aggregate"
            ),
        ),
        (
            InvalidRequest,
            KeySpec(DUPLICATE, ("k1",), (("v", REPLACE),)),
            "DUPLICATE KEY tables do not aggregate",
        ),
        (
            InvalidRequest,
            KeySpec(UNIQUE, ("k1",), sequence="k1"),
            (
                "the sequence column of main.t must be a column of a UNIQUE KEY table and not"
                " one of its keys"
            ),
        ),
        (
            InvalidRequest,
            KeySpec(DUPLICATE, ("k1",), sequence="v"),
            (
                "the sequence column of main.t must be a column of a UNIQUE KEY table and not"
                " one of its keys"
            ),
        ),
        (
            InvalidRequest,
            KeySpec(UNIQUE, ("k1",), sequence="d"),
            "sequence column d of main.t is float64; it must be an integer, a date or a timestamp",
        ),
        (
            InvalidRequest,
            KeySpec(UNIQUE, ("k1",), sequence="Odd Key"),
            "`Odd Key` of main.t is varchar; it must be an integer, a date or a timestamp",
        ),
        (
            InvalidRequest,
            KeySpec(UNIQUE, ("Odd Key", "k1")),
            "key column k1 of main.t is out of order; list the keys in the order of the columns",
        ),
        (InvalidRequest, KeySpec(UNIQUE, ("k1", "K1")), "key column k1 of main.t is listed twice"),
    ],
)
def test_a_model_that_the_columns_do_not_fit_is_refused(kind, spec, message):
    assert message in told(kind, lambda: resolve_keys(spec, COLUMNS, "main.t"))


@pytest.mark.parametrize(
    "kind",
    [
        *"boolean int8 int64 int128 uint8 uint64 uint128 decimal(38,2) date time".split(),
        *"timestamp timestamp_s timestamptz varchar blob uuid".split(),
    ],
)
def test_values_that_are_compared_exactly_may_be_keys(kind):
    assert resolve_keys(KeySpec(UNIQUE, ("k1",)), shaped(kind), "main.t").columns == (1,)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("float32", "is float32: float or double cannot be used as a key"),
        ("float64", "is float64: float or double cannot be used as a key"),
        (
            "json",
            (
                "is json and cannot be a key; key columns are numbers, text, dates, timestamps,"
                " booleans and binary"
            ),
        ),
        ("variant", "is variant and cannot be a key; key columns are"),
        ("geometry", "is geometry and cannot be a key; key columns are"),
        ("array<int>", "is array<int32> and cannot be a key; key columns are"),
        ("map<int, int>", "is map<int32, int32> and cannot be a key; key columns are"),
        ("struct<a: int>", "is struct<a: int32> and cannot be a key; key columns are"),
    ],
)
@pytest.mark.parametrize("model", [DUPLICATE, UNIQUE])
def test_values_without_an_exact_order_are_no_keys(model, kind, message):
    spec = KeySpec(model, ("k1",))

    assert message in told(InvalidRequest, lambda: resolve_keys(spec, shaped(kind), "main.t"))


@pytest.mark.parametrize(
    ("kinds", "fitting"),
    [
        ("int8 int64 int128 uint8 uint64 decimal(9,2) float32 float64", {*Aggregation}),
        ("date timestamp timestamptz timestamp_s time varchar", {MIN, MAX, REPLACE, LAST}),
        ("boolean blob json variant geometry uuid", {REPLACE, LAST}),
        ("array<int>;map<int,int>;struct<a:int>", {REPLACE, LAST}),
    ],
)
def test_how_values_are_combined_depends_on_their_type(kinds, fitting):
    for kind in kinds.split(";" if ";" in kinds else None):
        columns = Schema((column("k", "int32", 2), shaped(kind, "v").fields[0]))
        for how in Aggregation:
            spec = KeySpec(AGGREGATE, ("k",), (("v", how),))
            if how in fitting:
                assert resolve_keys(spec, columns, "t").aggregations == ((1, how),)
            else:
                message = told(InvalidRequest, lambda s=spec, c=columns: resolve_keys(s, c, "t"))
                assert f"aggregate type {how.value} is not compatible with column v" in message


@pytest.mark.parametrize(
    ("default", "fits"),
    [
        (None, True),
        (Default("0"), True),
        (Default("0.00"), True),
        (Default("-0"), True),
        (Default("5"), False),
        (Default("0.01"), False),
        (Default("random()", literal=False), False),
        (Default("0", literal=False), False),
    ],
)
def test_the_default_of_a_sum_is_zero(default, fits):
    field = replace(column("v", "int64", 1), default=default)
    require_zero(MAX, field, "main.t")
    require_zero(None, field, "main.t")
    if fits:
        require_zero(SUM, field, "main.t")
    else:
        message = told(InvalidRequest, lambda: require_zero(SUM, field, "main.t"))
        assert "of v of main.t with SUM aggregation function must be zero, not" in message


@pytest.mark.parametrize(
    "keys",
    [
        HIDDEN,
        TableKeys(UNIQUE, (1,), sequence=4),
        TableKeys(DUPLICATE, (2, 1), distributed_by=(1, 2)),
        TableKeys(AGGREGATE, (1,), tuple((n, how) for n, how in enumerate(Aggregation, 2))),
    ],
)
def test_a_table_remembers_its_model_beside_its_properties(keys):
    properties = with_keys({"owner": "me"}, keys)

    assert table_keys(holding(properties)) == keys
    assert shown_properties(properties, Schema(())) == {"owner": "me"}
    other = TableKeys(UNIQUE, (7,))
    assert table_keys(holding(with_keys(properties, other))) == other
    assert with_keys(properties, None) == {"owner": "me"}


def test_a_table_without_a_model_has_none():
    assert table_keys(holding({"owner": "me"})) is None
    assert with_keys({"owner": "me"}, None) == {"owner": "me"}


def test_a_model_that_cannot_be_read_says_so():
    broken = holding({KEYS: '{"is":"Nope"}'})
    message = told(CorruptLake, lambda: table_keys(broken))
    assert message == 'cannot decode the key model of table main.t: \'{"is":"Nope"}\''


def test_a_column_of_another_id_takes_every_place_of_the_old_one():
    everywhere = TableKeys(UNIQUE, (1, 2), ((3, SUM),), sequence=4, distributed_by=(1,))

    assert everywhere.renumbered(1, 9) == replace(everywhere, columns=(9, 2), distributed_by=(9,))
    assert everywhere.renumbered(3, 9) == replace(everywhere, aggregations=((9, SUM),))
    assert everywhere.renumbered(4, 9) == replace(everywhere, sequence=9)
    assert everywhere.renumbered(5, 9) == everywhere
    assert HIDDEN.renumbered(4, 9).sequence is None


def made(spec, partition=(), sort=(), columns=COLUMNS):
    arrangement = new_arrangement(columns, partition, sort, "main.t")
    return keyed_table(columns, spec, {"owner": "me"}, arrangement, "main.t")


def test_a_new_table_is_sorted_by_its_keys():
    properties, arrangement = made(duplicate("k1", "Odd Key"))

    assert table_keys(holding(properties)) == TableKeys(DUPLICATE, (1, 2))
    assert arrangement.sort_texts == ("k1 ASC NULLS LAST", '"Odd Key" ASC NULLS LAST')
    assert made(unique("k1"), sort=(SortKey("v"),))[1].sort_texts == ("v ASC NULLS LAST",)


def test_partitions_hold_whole_keys():
    by_value = (PartitionBy("v"),)
    by_keys = (PartitionBy("Odd Key"), PartitionBy("k1", Transform("bucket", 4)))

    for spec in (unique("k1", "Odd Key"), aggregate_of("k1", "Odd Key")):
        assert len(made(spec, by_keys)[1].partition) == 2
        assert (
            f"main.t cannot be partitioned by v: rows with the same {spec.model.value} KEY would"
            " be in several partitions; partition by key columns"
        ) in told(InvalidRequest, lambda s=spec: made(s, by_value))
    assert len(made(duplicate("k1"), by_value)[1].partition) == 1


def aggregate_of(*names):
    return with_aggregates(
        aggregate(*names), {"at": "max", "v": "Sum", "d": "replace_if_not_null"}, "t"
    )


def test_a_new_table_has_no_sum_that_begins_above_zero():
    fields = [replace(f, default=Default("5")) if f.name == "v" else f for f in COLUMNS]
    columns = Schema(tuple(fields))

    message = told(InvalidRequest, lambda: made(aggregate_of("k1", "Odd Key"), columns=columns))
    assert "the default value of v of main.t with SUM aggregation function must be zero" in message


def test_python_says_models_in_words():
    assert unique("a", "b", sequence="v") == KeySpec(UNIQUE, ("a", "b"), sequence="v")
    assert duplicate("a") == KeySpec(DUPLICATE, ("a",))
    assert aggregate_of("a").aggregations == (("at", MAX), ("v", SUM), ("d", LAST))


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (unique, "a key must be one or more column names, not ()"),
        (lambda: duplicate("a", 1), "a key must be one or more column names"),
        (lambda: aggregate(["a"]), "a key must be one or more column names"),
        (lambda: aggregation("avg"), "unknown aggregation 'avg'; use one of sum, min, max,"),
        (lambda: with_aggregates(None, {"v": "sum"}, "t"), "aggregates of t need keys=shelduck.a"),
        (lambda: with_aggregates(aggregate("k"), {"v": None}, "t"), "unknown aggregation None"),
    ],
)
def test_words_that_mean_nothing_are_refused(act, message):
    with pytest.raises(ShelduckError) as refused:
        act()
    assert message in str(refused.value)
