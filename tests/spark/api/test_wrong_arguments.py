"""A call with an argument of another type says which one it is, and does nothing."""

from __future__ import annotations

import inspect
from contextlib import suppress

import pytest

import shelduck
from shelduck import InvalidRequest, ShelduckError

WRONG = (3, ["x"], None)


@pytest.fixture
def lake(spark, tmp_path):
    with shelduck.connect(f"sqlite:///{tmp_path}/lake.db", f"{tmp_path}/data/") as lake:
        lake.create_table("t", {"i": "int"})
        yield lake


def calls(subject):
    """The public calls that need arguments, with arguments of other types."""
    for name in dir(subject):
        call = getattr(subject, name)
        if name.startswith("_") or not callable(call):
            continue
        needed = [
            one
            for one in inspect.signature(call).parameters.values()
            if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD
        ]
        yield from ((call, [wrong] * len(needed)) for wrong in WRONG if needed)


@pytest.mark.parametrize("subject", ["lake", "table"])
def test_each_public_call_names_what_it_cannot_take(lake, subject):
    found = lake if subject == "lake" else lake.table("t")
    before = lake.snapshots()
    tried = list(calls(found))
    assert len(tried) > 40
    for call, given in tried:
        with suppress(ShelduckError):
            call(*given)
    assert lake.snapshots() == before


def test_the_error_says_the_type_that_is_needed(lake):
    told = r"create_table\(\) of the lake: columns must be Mapping\[str, str\] \| StructType, not "
    with pytest.raises(InvalidRequest, match=told):
        lake.create_table("u", "a INT")


def test_the_names_of_tables_are_names(lake):
    for name in lake.tables():
        assert repr(lake.table(name)) == "Table('main.t')"
        lake.drop_table(name)
    assert lake.tables() == []
