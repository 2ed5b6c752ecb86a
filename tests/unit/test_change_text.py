"""The text by which a snapshot remembers what it did: written, read back, refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shelduck.errors import CorruptLake
from shelduck.model.changes.change import Entry, Verb, format_entries, parse_entries

# U+0001 stands between the names of a schema and of those around it, and no name is empty.
NAMES = st.text(st.characters(exclude_characters="\x01"), min_size=1, max_size=8)


def _entries(verb):
    """Entries of a verb: a schema has one name, everything else may name its schema too."""
    most = 1 if verb is Verb.CREATED_SCHEMA else 2
    names = st.lists(NAMES, min_size=1, max_size=most).map(tuple)
    return st.one_of(
        st.builds(Entry, st.just(verb), id=st.integers(0, 2**63 - 1)),
        st.builds(Entry, st.just(verb), names=names),
    )


ENTRIES = st.sampled_from(Verb).flatmap(_entries)


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        ([], None),
        ([Entry(Verb.CREATED_SCHEMA, names=("main",))], 'created_schema:"main"'),
        ([Entry(Verb.CREATED_TABLE, names=("main", "t"))], 'created_table:"main"."t"'),
        ([Entry(Verb.ALTERED_TABLE, id=7)], "altered_table:7"),
        ([Entry(Verb.CREATED_TABLE, names=('a"b', "c,d.e:1"))], 'created_table:"a""b"."c,d.e:1"'),
        (
            [
                Entry(Verb.INSERTED_INTO_TABLE, id=1),
                Entry(Verb.ALTERED_TABLE, id=1),
                Entry(Verb.INSERTED_INTO_TABLE, id=1),
                Entry(Verb.CREATED_TABLE, names=("main", "u")),
                Entry(Verb.DROPPED_TABLE, id=2),
            ],
            'dropped_table:2,created_table:"main"."u",inserted_into_table:1,altered_table:1',
        ),
    ],
)
def test_entries_are_written_in_the_extensions_order_each_once(entries, text):
    assert format_entries(entries) == text


@given(st.lists(ENTRIES, max_size=6))
def test_the_text_of_entries_reads_back(entries):
    found = parse_entries(format_entries(entries))

    assert set(found) == set(entries)
    assert len(found) == len(set(entries))


def test_both_words_for_a_flush_of_inlined_rows_mean_the_same():
    assert parse_entries("flushed_inlined:3,inline_flush:3") == [Entry(Verb.INLINE_FLUSH, id=3)] * 2


@pytest.mark.parametrize(
    "text",
    [
        "exploded_table:1",
        "altered_table",
        "altered_table:",
        "altered_table:x",
        'created_table:"main',
        "altered_table:1;altered_table:2",
        "altered_table:1, altered_table:2",
    ],
)
def test_what_ducklake_never_writes_is_a_corrupt_lake(text):
    with pytest.raises(CorruptLake, match="changes_made of a snapshot has an unknown"):
        parse_entries(text)


def test_longer_names_are_of_schemas_inside_schemas():
    text = 'created_schema:"a"."b.c",created_table:"a"."b.c"."t"'

    found = parse_entries(text)

    assert [entry.names for entry in found] == [("a\x01b.c",), ("a\x01b.c", "t")]
    assert [entry.parts for entry in found] == [("a", "b.c"), ("a", "b.c", "t")]
    assert format_entries(found) == text
