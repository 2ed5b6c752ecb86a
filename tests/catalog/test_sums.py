"""PostgreSQL's sum of whole numbers is a decimal, so sums are made where they are cast."""

from __future__ import annotations

from pathlib import Path

import shelduck

_SOURCE = Path(shelduck.__file__).parent
# Two functions that cast, and an order, which nobody reads.
_SUMS = {"ducklake/checked.py", "catalog/read/queries.py", "catalog/read/overview/table_files.py"}


def test_sums_of_the_catalog_are_whole_numbers():
    texts = {p.relative_to(_SOURCE).as_posix(): p.read_text() for p in _SOURCE.rglob("*.py")}

    assert {name for name, text in texts.items() if "func.sum(" in text} == _SUMS
    assert all(texts[name].count("func.sum(") == 1 for name in _SUMS)
