"""When a table still holds what its key model says: what others did to its rows, and when."""

from __future__ import annotations

import pytest

from shelduck.model.changes.change import Entry, Verb, parse_entries
from shelduck.model.changes.records import Settling

OWN = Settling(7, frozenset({7}), 3, alone=True)
ROLLUP = Settling(8, frozenset({7}), 3)
ADDS = {Verb.INSERTED_INTO_TABLE, Verb.INLINED_INSERT}
TAKES = {Verb.DELETED_FROM_TABLE, Verb.INLINED_DELETE}


def after(text, snapshot=4):
    return [(snapshot, entry) for entry in parse_entries(text)]


@pytest.mark.parametrize("verb", Verb)
def test_only_rows_that_come_or_go_unsettle_a_table(verb):
    entries = [(4, Entry(verb, 7))]

    assert OWN.holds(entries) is (verb not in ADDS)
    assert ROLLUP.holds(entries) is (verb not in ADDS | TAKES)


@pytest.mark.parametrize("text", ["inlined_insert:7", "inserted_into_table:7"])
def test_rows_that_came_unsettle_a_table(text):
    assert not OWN.holds(after(text))
    assert not ROLLUP.holds(after(text))


@pytest.mark.parametrize("text", ["inlined_delete:7", "deleted_from_table:7"])
def test_rows_that_went_leave_the_others_alone(text):
    assert OWN.holds(after(text))
    assert not ROLLUP.holds(after(text))


def test_nothing_happened():
    assert OWN.holds([])
    assert ROLLUP.holds(iter(()))


@pytest.mark.parametrize(
    "text",
    [
        "inserted_into_table:70,inserted_into_table:8,deleted_from_table:6",
        "altered_table:7,compacted_table:7,merge_adjacent:7,rewrite_delete:7,inline_flush:7",
        'created_table:"main"."7",created_schema:"7",dropped_table:7',
    ],
)
def test_what_happens_elsewhere_or_moves_rows_is_no_matter(text):
    assert OWN.holds(after(text))
    assert ROLLUP.holds(after(text))


def test_only_what_came_later_counts():
    before = after("inserted_into_table:7", 2) + after("inserted_into_table:7", 3)

    assert OWN.holds(before)
    assert not OWN.holds(before + after("inserted_into_table:7", 9))
    assert not OWN.holds(after("inserted_into_table:7", 9) + before)


def test_any_source_counts():
    both = Settling(9, frozenset({7, 8}), 3)

    assert not both.holds(after("deleted_from_table:8"))
    assert not both.holds(after("altered_table:7,inserted_into_table:7"))
    assert both.holds(after("inserted_into_table:9"))
