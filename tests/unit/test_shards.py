"""Shares of the slow tests: together they are all tests, and each takes about as long."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.support import shards


@pytest.mark.parametrize("minutes", [0, 30, 75, 400])
def test_shares_have_each_group_once_and_the_whole_line_of_main_tests(minutes):
    found = shards.shares(8, minutes)

    names = [group.name for share in found for group in share.groups]
    assert sorted(names) == sorted(group.name for group in shards.GROUPS)
    assert [share.end for share in found[:-1]] == [share.begin for share in found[1:]]
    assert (found[0].begin, found[-1].end) == (0.0, 1.0)


def test_shares_take_about_as_long():
    taken = [
        sum(g.minutes for g in share.groups) + 75 * (share.end - share.begin)
        for share in shards.shares(8, 75)
    ]

    assert max(taken) - min(taken) < 0.01


def test_every_test_is_in_one_stretch(monkeypatch):
    monkeypatch.setattr(shards, "seconds", lambda: {"tests/a.py::test_1": 7.0})
    ids = ["tests/a.py::test_1", *(f"tests/b.py::test_2[{n}]" for n in range(9))]
    config = SimpleNamespace(hook=SimpleNamespace(pytest_deselected=lambda items: None))
    taken = []
    for share in shards.shares(8, 75):
        items = [SimpleNamespace(nodeid=id_) for id_ in ids]
        stretch = shards.Stretch(share.begin, share.end)
        stretch.pytest_collection_modifyitems(config, items)
        taken += [item.nodeid for item in items]

    assert taken == ids
