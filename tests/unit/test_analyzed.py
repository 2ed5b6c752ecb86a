"""What ANALYZE TABLE counted, and what it says of the rows of later."""

from __future__ import annotations

import pytest

from shelduck.model.tables.properties import (
    ANALYZED,
    AnalyzedColumn,
    analyzed_columns,
    with_analyzed,
)
from shelduck.model.tables.schema import Field, FieldId, Schema
from shelduck.model.types.data_types import Primitive

ID, NAME = FieldId(1), FieldId(2)
COLUMNS = Schema((Field(ID, "id", Primitive("int64")), Field(NAME, "name", Primitive("varchar"))))


def column(field=ID, kind="int64", **more):
    return AnalyzedColumn(
        field, kind, **({"snapshot": 3, "rows": 100, "distinct": 7, "nulls": 0} | more)
    )


@pytest.mark.parametrize(
    ("distinct", "nulls", "rows", "found"),
    [
        (7, 0, 100, 7),
        (7, 0, 1000, 7),
        (7, 0, 3, 3),
        (100, 0, 1000, 1000),
        (90, 0, 1000, 900),
        (89, 0, 1000, 89),
        (45, 50, 1000, 450),
        (0, 100, 1000, 0),
        (100, 0, 0, 0),
    ],
)
def test_values_of_keys_grow_with_the_rows_and_others_stay(distinct, nulls, rows, found):
    assert column(distinct=distinct, nulls=nulls).distinct_of(rows) == found


def test_nulls_keep_their_part_of_the_rows():
    assert [column(nulls=25).nulls_of(rows) for rows in (100, 1000, 0)] == [25, 250, 0]
    assert column(rows=0, distinct=0).nulls_of(10) == 0


def test_a_column_is_known_as_long_as_it_has_its_type():
    known = with_analyzed({"mine": "1"}, COLUMNS, [column(), column(NAME, "varchar", average=4)])

    assert known["mine"] == "1"
    assert analyzed_columns(known, COLUMNS)[NAME].average == 4
    wider = Schema((Field(ID, "key", Primitive("int128")), COLUMNS.fields[1]))
    assert analyzed_columns(known, wider).keys() == {NAME}
    assert with_analyzed({}, wider, [column()]) == {}


def test_the_same_counts_of_a_later_snapshot_change_nothing():
    known = with_analyzed({}, COLUMNS, [column()])

    assert with_analyzed(known, COLUMNS, [column(snapshot=9)]) == known
    assert with_analyzed(known, COLUMNS, [column(snapshot=9, distinct=8)]) != known


@pytest.mark.parametrize("text", ["", "{}}", '{"version": 99, "columns": []}'])
def test_a_text_that_cannot_be_read_says_nothing(text):
    assert analyzed_columns({ANALYZED: text}, COLUMNS) == {}
    assert with_analyzed({ANALYZED: text}, COLUMNS, [column()])[ANALYZED] != text
