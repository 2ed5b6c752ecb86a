"""Every change of ours after another writer gave or took the name of a schema, table or view."""

from __future__ import annotations

import pytest

from tests.catalog.conflicts.expected import OF_OURS, is_of_rows
from tests.catalog.conflicts.pairs import duels


@pytest.mark.parametrize(
    ("other", "mine"),
    duels("us", (n for n in OF_OURS if not is_of_rows(OF_OURS[n]))),
    indirect=["other"],
)
def test_mine_lands_or_is_refused(mine, other, duel):
    duel.fight(mine, other)
