"""Which data files become objects while a test runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shelduck.catalog.read.files import data_files

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from shelduck.model.files.data_files import DataFile


def note_files(monkeypatch: pytest.MonkeyPatch, note: Callable[[list[DataFile]], object]) -> None:
    """Pass the files that each look at the catalog makes into objects to a function."""
    look_up = data_files._files

    def noted(*arguments: Any) -> list[DataFile]:
        files = look_up(*arguments)
        note(files)
        return files

    monkeypatch.setattr(data_files, "_files", noted)
