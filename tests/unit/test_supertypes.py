"""The type that holds the values of two types, and the words of `evolve`."""

from __future__ import annotations

import pytest

from shelduck.errors import InvalidRequest
from shelduck.model.changes.evolution import Evolution, evolution_of
from shelduck.model.types.data_types import Decimal, Primitive
from shelduck.model.types.promotions import common_type

INT, BIGINT, DOUBLE = Primitive("int32"), Primitive("int64"), Primitive("float64")


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        (INT, BIGINT, BIGINT),
        (BIGINT, INT, BIGINT),
        (INT, DOUBLE, DOUBLE),
        (BIGINT, DOUBLE, None),
        (INT, Primitive("varchar"), None),
        (Primitive("date"), Primitive("timestamp"), Primitive("timestamp")),
        (Primitive("uint32"), INT, BIGINT),
        (Primitive("uint64"), BIGINT, Decimal(20, 0)),
        (Decimal(10, 2), INT, Decimal(12, 2)),
        (Decimal(10, 2), Decimal(6, 5), Decimal(13, 5)),
        (Decimal(38, 0), Decimal(38, 30), None),
        (Primitive("float32"), INT, None),
    ],
)
def test_two_types_have_one_that_holds_both_or_none(one, other, common):
    assert common_type(one, other) == common
    assert common_type(other, one) == common


@pytest.mark.parametrize(
    ("evolve", "found"),
    [
        (None, Evolution()),
        ("none", Evolution()),
        ("ADD", Evolution(adds=True)),
        (["add", "widen"], Evolution(adds=True, widens=True)),
        ({"all"}, Evolution(adds=True, widens=True)),
        ((), Evolution()),
    ],
)
def test_words_say_what_rows_may_change(evolve, found):
    assert evolution_of(evolve) == found


def test_wrong_words_are_refused():
    with pytest.raises(InvalidRequest, match="one or several of none, add, widen, all, not 'drop'"):
        evolution_of(["add", "drop"])
    with pytest.raises(InvalidRequest, match="use none without other words"):
        evolution_of(["none", "add"])
    for wrong in ([True], True):
        with pytest.raises(InvalidRequest, match="of none, add, widen, all, not True"):
            evolution_of(wrong)
    with pytest.raises(InvalidRequest, match='merge_schema is the same as evolve="all"'):
        evolution_of("add", merges=True)
    with pytest.raises(InvalidRequest, match="rescue column must have a name"):
        evolution_of("add", "")
