"""Jobs that copy: files of any size are copied, and each copy is seen."""

from __future__ import annotations

import pytest

from shelduck.files import compact
from shelduck.jobs import convert, lots


@pytest.fixture
def files_of_any_size(monkeypatch):
    monkeypatch.setattr(lots, "SMALL", 0)
    monkeypatch.setattr(convert, "SMALL", 0)


@pytest.fixture
def copies(monkeypatch):
    """What was copied of each file."""
    found = []
    write = compact.write_copied

    def seen(spark, parts, table, files):
        found.extend(files)
        return write(spark, parts, table, files)

    monkeypatch.setattr(compact, "write_copied", seen)
    return found
