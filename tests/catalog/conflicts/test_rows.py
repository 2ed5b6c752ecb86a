"""Every change of ours after another writer changed rows of a table, or the table."""

from __future__ import annotations

import pytest

from tests.catalog.conflicts.expected import BY_HAND, MINE, OF_OURS, is_of_rows

# Others of the same verbs are there.
_SLOW = (
    "end A",
    "delete from C",
    "comment",
    "sort",
    "delete position of B",
    "delete other inlined",
)


@pytest.mark.parametrize("mine", MINE)
@pytest.mark.parametrize(
    "other",
    [
        *(
            pytest.param(("us", n), id=n, marks=[pytest.mark.slow] if n in _SLOW else [])
            for n in OF_OURS
            if is_of_rows(OF_OURS[n])
        ),
        *(pytest.param(("hand", name), id=name) for name in BY_HAND),
    ],
    indirect=True,
)
def test_mine_lands_or_is_refused(mine, other, duel):
    duel.fight(mine, other)
