"""Laws of views that follow: drawn views and ALTERs, and DuckDB says what views show."""

from __future__ import annotations

import random
import shutil

import pytest

import shelduck
from tests.support.lengths import turns
from tests.support.view_program import ViewProgram

PROGRAMS, FAST = range(2_000), range(2)


def tell(folder, seed):
    """Run one program on a lake of its own."""
    url, data = f"sqlite:///{folder}/lake.db", f"{folder}/data/"

    def copy():
        shutil.copy(folder / "lake.db", folder / "copy.db")
        return f"sqlite:///{folder}/copy.db"

    with shelduck.connect(url, data) as lake:
        ViewProgram(lake, url, copy, random.Random(seed)).run(6)


@pytest.mark.parametrize("seed", FAST)
def test_views_show_the_same_whatever_the_names(tmp_path, seed):
    tell(tmp_path, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", turns(PROGRAMS, 100))
def test_views_show_the_same_in_many_programs(tmp_path, seeds):
    for seed in seeds:
        folder = tmp_path / str(seed)
        folder.mkdir()
        tell(folder, seed)
