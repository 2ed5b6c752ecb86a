"""Every change of ours after a commit of DuckDB's."""

from __future__ import annotations

import pytest

from tests.catalog.conflicts.expected import MINE, OF_DUCKDB

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("mine", MINE)
@pytest.mark.parametrize(
    "other", [pytest.param(("duckdb", name), id=name) for name in OF_DUCKDB], indirect=True
)
def test_mine_lands_or_is_refused(mine, other, duel):
    duel.fight(mine, other)
