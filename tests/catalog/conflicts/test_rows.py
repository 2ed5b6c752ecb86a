"""Every change of ours after another writer changed rows of a table, or the table."""

from __future__ import annotations

import pytest

from tests.catalog.conflicts.expected import BY_HAND, OF_OURS, is_of_rows
from tests.catalog.conflicts.pairs import duels


@pytest.mark.parametrize(
    ("other", "mine"),
    [*duels("us", (n for n in OF_OURS if is_of_rows(OF_OURS[n]))), *duels("hand", BY_HAND)],
    indirect=["other"],
)
def test_mine_lands_or_is_refused(mine, other, duel):
    duel.fight(mine, other)
