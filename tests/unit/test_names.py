"""Dotted names as people write them, and directories named after tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shelduck.errors import InvalidRequest
from shelduck.model.tables.schema import path_text
from shelduck.model.text.names import directory, split_name

UUID = "0197b3c4-0000-7000-8000-000000000000"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("events", ("events",)),
        ("main.events", ("main", "events")),
        ("s.f.g", ("s", "f", "g")),
        ("`a.b`", ("a.b",)),
        ('main."my.table"', ("main", "my.table")),
        ("`a``b`.c", ("a`b", "c")),
        ('"say ""hi"""', ('say "hi"',)),
        ("größe.名", ("größe", "名")),
        ("`with 'quote'`", ("with 'quote'",)),
        ("my column", ("my column",)),
        ("1st", ("1st",)),
        ("it's", ("it's",)),
        ("` `", (" ",)),
    ],
)
def test_a_name_is_split_at_dots_outside_quotes(text, parts):
    assert split_name(text) == parts


@pytest.mark.parametrize(
    "text", ["", ".", "a.", ".a", "a..b", " a", "`a", '"a', "a`b`", "`a`b", "a. "]
)
def test_what_is_no_name_is_refused(text):
    with pytest.raises(
        InvalidRequest, match=r"cannot parse the name .*; put special names in backticks"
    ):
        split_name(text)


@pytest.mark.parametrize("text", ["``", '""', "a.``"])
def test_an_empty_name_is_refused(text):
    with pytest.raises(InvalidRequest, match="cannot parse the name"):
        split_name(text)


@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=4))
def test_the_text_of_a_path_splits_back(path):
    assert split_name(path_text(tuple(path))) == tuple(path)


@pytest.mark.parametrize("name", ["events", "Events_2", "a-b", "1"])
def test_a_plain_name_is_its_own_directory(name):
    assert directory(name, UUID) == f"{name}/"


@pytest.mark.parametrize("name", ["a b", "a.b", "../x", "a/b", "größe", "", "a\n", "it's"])
def test_an_odd_name_keeps_its_files_under_its_uuid(name):
    assert directory(name, UUID) == f"{UUID}/"
