"""Every change of ours after another writer gave or took the name of a schema, table or view."""

from __future__ import annotations

import pytest

from tests.catalog.conflicts.expected import MINE, OF_OURS, is_of_rows


@pytest.mark.parametrize("mine", MINE)
@pytest.mark.parametrize(
    "other",
    [pytest.param(("us", name), id=name) for name in OF_OURS if not is_of_rows(OF_OURS[name])],
    indirect=True,
)
def test_mine_lands_or_is_refused(mine, other, duel):
    duel.fight(mine, other)
