"""The table that a rollup is, and what an ALTER TABLE of its base means for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shelduck.doors.sql.parse import parse
from shelduck.errors import InvalidRequest, NotFound
from shelduck.lake.evolution.plan import plan_alter
from shelduck.model.changes.change import altered
from shelduck.model.tables.keys import Aggregation, KeyModel, names_of, table_keys
from shelduck.model.tables.rollup import (
    ROLLUP,
    ROLLUPS,
    Measure,
    MeasureSpec,
    Rollup,
    RollupSpec,
    keeps_rows,
    rollup_names,
    rollup_of,
    with_rollup_names,
)
from shelduck.model.types.data_types import parse_type
from shelduck.rollups.rollup_plan import is_current, measured_type, plan_rollup, spec_of
from tests.support.rollups import keyed, made
from tests.support.scans import column, holding, table

DUPLICATE, UNIQUE, AGGREGATE = KeyModel.DUPLICATE, KeyModel.UNIQUE, KeyModel.AGGREGATE
SUM, MIN, MAX, COUNT = Measure.SUM, Measure.MIN, Measure.MAX, Measure.COUNT
ROWS = (COUNT, None)
PLAIN = table(
    column("k1", "int32", 1),
    column("Odd Key", "varchar", 2),
    column("day", "date", 3),
    column("v", "int32", 4),
    column("w", "decimal(10,2)", 5),
    column("f", "float32", 6),
    column("j", "json", 7),
    column("l", "list", 8, column("element", "int32", 9)),
    column("ok", "boolean", 10),
)
VALUES = {"v": Aggregation.SUM, "w": Aggregation.MAX}


DUP = keyed(PLAIN, DUPLICATE, "k1", "Odd Key")
UNI = keyed(PLAIN, UNIQUE, "k1", "Odd Key", "day")
SEQ = keyed(PLAIN, UNIQUE, "k1", "Odd Key", sequence="v")
AGG = keyed(PLAIN, AGGREGATE, "k1", "Odd Key", "day", values=VALUES)
LAST = keyed(PLAIN, AGGREGATE, "k1", "Odd Key", values=VALUES | {"f": Aggregation.REPLACE})
NOT_NULL = keyed(PLAIN, AGGREGATE, "k1", "Odd Key", values={"v": Aggregation.REPLACE_IF_NOT_NULL})


def spec(*names, by=None, **measures):
    made = tuple(MeasureSpec(n, how, of) for n, (how, of) in measures.items())
    return RollupSpec("r", names, made, by)


def keys_of(planned):
    found = table_keys(holding(planned.properties))
    return found.model, names_of(planned.columns, found.columns)


def keeps(base, planned):
    own = table_keys(holding(planned.properties))
    return keeps_rows(planned.rollup, own, table_keys(base))


def types(planned):
    return {f.name: str(f.type) for f in planned.columns}


def after(base, text):
    [statement] = parse(f"ALTER TABLE t {text}")
    return altered(base, plan_alter(base, statement.changes).change)


def refused(kind, base, wanted):
    with pytest.raises(kind) as caught:
        plan_rollup(base, wanted)
    assert type(caught.value) is kind
    return str(caught.value)


def test_a_rollup_of_duplicate_rows_is_a_projection_in_another_order():
    planned = plan_rollup(DUP, spec("v", "ODD KEY", "k1"))

    assert types(planned) == {"v": "int32", "Odd Key": "varchar", "k1": "int32"}
    assert keys_of(planned) == (DUPLICATE, ["v", "Odd Key"])
    assert planned.arrangement.sort_texts == ("v ASC NULLS LAST", '"Odd Key" ASC NULLS LAST')
    assert [(c.source, c.measure) for c in planned.rollup.columns] == [
        (4, None),
        (2, None),
        (1, None),
    ]
    assert planned.rollup == rollup_of(holding(planned.properties))
    assert (planned.rollup.base, planned.rollup.name) == (DUP.uuid, "r")
    assert keeps(DUP, planned)
    assert "owner" not in planned.properties


@pytest.mark.parametrize(
    ("base", "wanted", "expected"),
    [
        (PLAIN, spec("v", "k1"), True),
        (DUP, spec("v", "k1"), True),
        (DUP, spec("v", rows=ROWS), False),
        # All columns are keys of the rollup, and the base may still have one row twice.
        (DUP, spec("k1", "Odd Key", rows=ROWS), False),
        (UNI, spec("Odd Key", "k1", "day"), True),
        (AGG, spec("day", "k1", "Odd Key"), True),
        (AGG, spec("day", "k1", "Odd Key", "v"), True),
        (AGG, spec("day", "k1"), False),
        (AGG, spec("day", "v"), False),
        (AGG, spec("day", "k1", "v", "w"), False),
        (LAST, spec("Odd Key", "k1", "f"), True),
    ],
)
def test_a_rollup_keeps_rows_where_its_keys_tell_them_apart(base, wanted, expected):
    assert keeps(base, plan_rollup(base, wanted)) is expected


def test_columns_of_a_rollup_take_null():
    base = replace(DUP, columns=replace(DUP.columns, fields=tuple(_strict(DUP.columns))))

    assert all(f.nullable for f in plan_rollup(base, spec("v", "k1")).columns)


def _strict(columns):
    return (replace(f, nullable=False) for f in columns)


@pytest.mark.parametrize(
    ("names", "by", "keys"),
    [
        ("v k1 w day", None, "v k1 w"),
        ("v", None, "v"),
        ("v k1", None, "v k1"),
        ("day", None, "day"),
        ("ok v", None, "ok v"),
        # The first text is the last key, and floats and nested columns are none.
        ("Odd_Key v w", None, "Odd_Key"),
        ("v Odd_Key k1", None, "v Odd_Key"),
        ("v f k1", None, "v"),
        ("v k1 l day", None, "v k1"),
        ("v j", None, "v"),
        ("v k1 w day", "v", "v"),
        ("v k1 w day", "V K1 w day", "v k1 w day"),
    ],
)
def test_the_first_columns_of_a_projection_are_its_keys(names, by, keys):
    def split(text):
        return tuple(n.replace("_", " ") for n in text.split())

    found = plan_rollup(DUP, spec(*split(names), by=by and split(by)))

    assert keys_of(found) == (DUPLICATE, list(split(keys)))


def test_a_table_without_keys_has_rollups_like_one_that_keeps_all_rows():
    assert keys_of(plan_rollup(PLAIN, spec("v", "k1"))) == (DUPLICATE, ["v", "k1"])
    found = plan_rollup(PLAIN, spec("k1", n=ROWS))
    assert keys_of(found) == (AGGREGATE, ["k1"])


def test_duplicate_rows_are_combined_where_that_is_asked_for():
    found = plan_rollup(
        DUP,
        spec("day", "k1", s=(SUM, "v"), lo=(MIN, "w"), hi=(MAX, "Odd key"), n=ROWS, c=(COUNT, "f")),
    )

    assert list(types(found)) == ["day", "k1", "s", "lo", "hi", "n", "c"]
    assert [*types(found).values()][2:] == ["int64", "decimal(10,2)", "varchar", "int64", "int64"]
    assert keys_of(found) == (AGGREGATE, ["day", "k1"])
    assert [(c.source, c.measure) for c in found.rollup.columns] == [
        *[(3, None), (1, None), (4, SUM), (5, MIN), (2, MAX), (None, COUNT), (6, COUNT)]
    ]
    keys = table_keys(holding(found.properties))
    assert [how.value for _, how in keys.aggregations] == ["SUM", "MIN", "MAX", "SUM", "SUM"]
    assert not keeps(DUP, found)


@pytest.mark.parametrize(
    ("kinds", "kind"),
    [
        ("int8 int16 int32 uint8 uint16 uint32", "int64"),
        ("int64 uint64 int128 uint128", "decimal(38,0)"),
        ("decimal(10,2) decimal(38,2)", "decimal(38,2)"),
        ("float32 float64", "float64"),
    ],
)
def test_sums_are_kept_in_types_that_hold_them(kinds, kind):
    for text in kinds.split():
        assert str(measured_type(parse_type(text), SUM)) == kind
        assert str(measured_type(parse_type(text), MIN)) == text


def test_a_rollup_of_unique_rows_has_all_keys_in_another_order():
    found = plan_rollup(UNI, spec("day", "k1", "Odd Key", "w"))

    assert list(types(found)) == ["day", "k1", "Odd Key", "w"]
    assert keys_of(found) == (UNIQUE, ["day", "k1", "Odd Key"])
    assert keeps(UNI, found)


@pytest.mark.parametrize(
    ("names", "columns"),
    [
        (("Odd Key", "k1", "w"), ["Odd Key", "k1", "w", "v"]),
        (("Odd Key", "k1", "v", "w"), ["Odd Key", "k1", "v", "w"]),
        (("Odd Key", "k1"), ["Odd Key", "k1", "v"]),
    ],
)
def test_a_rollup_of_unique_rows_carries_the_sequence(names, columns):
    found = plan_rollup(SEQ, spec(*names))
    [sequence] = [f.id for f in found.columns if f.name == "v"]

    assert list(types(found)) == columns
    assert table_keys(holding(found.properties)).sequence == sequence


def test_a_rollup_of_combined_rows_may_leave_keys_out():
    found = plan_rollup(AGG, spec("day", "k1", "w", "v"))

    assert types(found) == {"day": "date", "k1": "int32", "w": "decimal(10,2)", "v": "int64"}
    assert keys_of(found) == (AGGREGATE, ["day", "k1"])
    assert [c.measure for c in found.rollup.columns] == [None, None, MAX, SUM]
    assert keys_of(plan_rollup(AGG, spec("k1"))) == (AGGREGATE, ["k1"])
    assert keys_of(plan_rollup(AGG, spec("k1", "Odd Key", "v"))) == (AGGREGATE, ["k1", "Odd Key"])


def test_values_that_are_replaced_are_held_beside_all_keys():
    found = plan_rollup(LAST, spec("Odd Key", "k1", "f"))
    assert table_keys(holding(found.properties)).aggregations[0][1] is Aggregation.REPLACE
    found = plan_rollup(NOT_NULL, spec("Odd Key", "k1", "v"))
    assert types(found)["v"] == "int32"
    keys = table_keys(holding(found.properties))
    assert keys.aggregations[0][1] is Aggregation.REPLACE_IF_NOT_NULL


USELESS = "contains all keys in base table main.t with same order, so it is useless"
PREFIX = "contains the columns of the base table main.t in prefix order, so it is useless"


@pytest.mark.parametrize(
    ("base", "wanted", "told"),
    [
        (DUP, spec(), "no key column is found in rollup r of main.t"),
        (DUP, spec(n=ROWS), "no key column is found in rollup r of main.t"),
        (DUP, spec("k1"), PREFIX),
        (DUP, spec("k1", "odd key", "day"), PREFIX),
        (PLAIN, spec("k1", "Odd Key"), PREFIX),
        (DUP, spec("f", "k1"), "column f of rollup r of main.t is float32: float or double cannot"),
        (DUP, spec("l", "k1"), "column l of rollup r of main.t is array<int32> and cannot be"),
        (DUP, spec("j", "k1"), "column j of rollup r of main.t is json and cannot be a key; key"),
        (DUP, spec("f", n=ROWS), "float or double cannot be used as a key"),
        (DUP, spec("v", "k1", by=("k1",)), "duplicate keys should be the prefix of rollup columns"),
        (DUP, spec("v", "k1", by=("v", "day")), "rollup r of main.t begins with v, k1"),
        (DUP, spec("v", "f", by=("v", "f")), "column f of rollup r of main.t is float32: float or"),
        (DUP, spec("v", "V"), "rollup r lists column v twice"),
        (DUP, spec("k1", K1=(SUM, "v")), "rollup r lists column k1 twice"),
        (DUP, spec("k1", s=(SUM, None)), "SUM of main.t needs a column"),
        (DUP, spec("k1", s=(SUM, "Odd Key")), "aggregate type SUM is not compatible with column s"),
        (DUP, spec("k1", s=(SUM, "day")), "aggregate type SUM is not compatible with column s"),
        (DUP, spec("k1", s=(MIN, "ok")), "aggregate type MIN is not compatible with column s"),
        (DUP, spec("k1", s=(MAX, "l")), "aggregate type MAX is not compatible with column s"),
        (UNI, spec("k1", n=ROWS), "cannot have aggregates: only rollups of DUPLICATE tables can"),
        (UNI, spec("day", "k1"), "should contain all unique keys of its base table main.t: k1"),
        (UNI, spec("v"), "no key column is found in rollup r of main.t"),
        (UNI, spec("day", "v", "k1", "Odd Key"), "rollup r of main.t: value should be after key"),
        (UNI, spec("k1", "Odd Key", "day", "v"), USELESS),
        (UNI, spec("k1", "Odd Key", "day"), USELESS),
        (AGG, spec("k1", n=(SUM, "v")),
            "cannot have aggregates: only rollups of DUPLICATE tables can"),
        (AGG, spec("v"), "no key column is found in rollup r of main.t"),
        (AGG, spec("v", "k1"), "value should be after key"),
        (AGG, spec("k1", "Odd Key", "day", "v"), USELESS),
        (LAST, spec("k1", "f"), "should contain all keys if there is a REPLACE value, as f is"),
        (NOT_NULL, spec("Odd Key", "v"), "should contain all keys if there is a REPLACE value"),
        (LAST, spec("k1", "Odd Key", "f"), USELESS),
    ],
)  # fmt: skip
def test_a_rollup_that_is_wrong_or_of_no_use_is_refused(base, wanted, told):
    assert told in refused(InvalidRequest, base, wanted)


@pytest.mark.parametrize("wanted", [spec("q"), spec("k1", "q"), spec("k1", s=(SUM, "q"))])
def test_a_rollup_of_a_column_that_is_missing_is_refused(wanted):
    assert "column 'q' does not exist in main.t" in refused(NotFound, DUP, wanted)


def test_a_base_remembers_the_names_of_its_rollups():
    known = with_rollup_names({"owner": "me"}, ("a", "b c"))

    assert rollup_names(holding(known)) == ("a", "b c")
    assert rollup_names(holding({"owner": "me"})) == ()
    assert with_rollup_names(known, ()) == {"owner": "me"}
    assert set(known) == {"owner", ROLLUPS}
    assert rollup_of(holding({ROLLUP: plan_rollup(DUP, spec("v")).properties[ROLLUP]})) == Rollup(
        DUP.uuid, "r", plan_rollup(DUP, spec("v")).rollup.columns
    )


SPECS = [
    (DUP, spec("v", "Odd Key", by=("v",))),
    (PLAIN, spec("v", "k1", by=("v", "k1"))),
    (DUP, spec("day", s=(SUM, "v"), n=ROWS, c=(COUNT, "w"))),
    (UNI, spec("day", "k1", "Odd Key", "v")),
    (SEQ, spec("Odd Key", "k1", "v")),
    (AGG, spec("day", "v", "w")),
    (LAST, spec("Odd Key", "k1", "f", "v")),
]


@pytest.mark.parametrize(("base", "wanted"), SPECS)
def test_a_rollup_is_asked_for_again_as_it_was_made(base, wanted):
    found = made(base, wanted)

    assert spec_of(base, found) == wanted
    assert is_current(base, found)


WIDEN = "ALTER COLUMN v TYPE BIGINT"
SUM_V, MAX_V, COUNT_V = (spec("k1", s=(how, "v")) for how in (SUM, MAX, COUNT))


# What a change of the base makes of a rollup that is left as it is.
@pytest.mark.parametrize(
    ("base", "wanted", "text", "left", "current"),
    [
        (DUP, spec("v", "k1"), "RENAME COLUMN v TO x", spec("x", "k1", by=("x", "k1")), True),
        (DUP, SUM_V, "RENAME COLUMN v TO x", spec("k1", s=(SUM, "x")), True),
        (DUP, spec("v", "k1"), "RENAME COLUMN w TO x", spec("v", "k1", by=("v", "k1")), True),
        (DUP, spec("v"), WIDEN, spec("v", by=("v",)), False),
        (DUP, SUM_V, WIDEN, SUM_V, False),
        (DUP, MAX_V, WIDEN, MAX_V, False),
        (DUP, COUNT_V, WIDEN, COUNT_V, True),
        (AGG, spec("k1", "w"), "MODIFY COLUMN v BIGINT SUM", spec("k1", "w"), True),
        (DUP, spec("v", "w"), "DROP COLUMN w", None, False),
        (DUP, SUM_V, "DROP COLUMN v", None, False),
        (DUP, COUNT_V, "DROP COLUMN v", None, False),
        (DUP, spec("k1", w=(SUM, "v")), "DROP COLUMN v", None, False),
        (PLAIN, spec("v", "k1"), "ADD COLUMN x INT FIRST", spec("v", "k1", by=("v", "k1")), True),
        (UNI, spec("day", "k1", "Odd Key"), "DROP COLUMN v", spec("day", "k1", "Odd Key"), True),
        (SEQ, spec("Odd Key", "k1"), "RENAME COLUMN v TO x", spec("Odd Key", "k1", "x"), True),
        (AGG, spec("day", "v"), "DROP COLUMN w", spec("day", "v"), True),
    ],
)  # fmt: skip
def test_a_rollup_is_current_as_long_as_it_would_be_made_as_it_is(
    base, wanted, text, left, current
):
    found, now = made(base, wanted), after(base, text)

    assert spec_of(now, found) == left
    assert is_current(now, found) is current


def test_a_column_that_was_replaced_is_found_by_its_name_and_makes_the_rollup_old():
    found = made(DUP, spec("v", "k1"))
    now = after(after(DUP, "DROP COLUMN v"), "ADD COLUMN V INT")

    assert spec_of(now, found).columns == ("V", "k1")
    assert not is_current(now, found)


@pytest.mark.parametrize(
    ("base", "wanted", "text"),
    [
        (UNI, spec("Odd Key", "k1", "day"), "ORDER BY (`Odd Key`, k1, day, v, w, f, j, l, ok)"),
        (DUP, spec("Odd Key", "k1"), "ORDER BY (`Odd Key`, k1, day, v, w, f, j, l, ok)"),
        (DUP, spec("Odd Key", "day"), "DROP COLUMN k1"),
    ],
)
def test_a_rollup_in_the_order_that_its_base_has_by_now_is_still_right(base, wanted, text):
    assert is_current(after(base, text), made(base, wanted))
