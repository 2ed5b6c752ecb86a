"""Which data files become objects, and which lists are made, while a test runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shelduck.catalog.read.files import data_files
from shelduck.read import file_lists

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from shelduck.model.files.data_file import DataFile


def note_files(monkeypatch: pytest.MonkeyPatch, note: Callable[[list[DataFile]], object]) -> None:
    """Pass the files that each look at the catalog makes into objects to a function."""
    look_up = data_files._files

    def noted(*arguments: Any) -> list[DataFile]:
        files = look_up(*arguments)
        note(files)
        return files

    monkeypatch.setattr(data_files, "_files", noted)


def note_lists(monkeypatch: pytest.MonkeyPatch, asked_up_to: int) -> list[int]:
    """Make every table a large one, and return how many files each list reads.

    Before a list is made, queries ask the catalog ``asked_up_to`` times.
    """
    monkeypatch.setattr(file_lists, "LISTED_FROM", 0)
    monkeypatch.setattr(file_lists, "ASKED_UP_TO", asked_up_to)
    found: list[int] = []
    read_all = file_lists.file_numbers

    def counted(connection: Any, table: Any, after: int = -1) -> Any:
        made = list(read_all(connection, table, after))
        found.append(len(made))
        return iter(made)

    monkeypatch.setattr(file_lists, "file_numbers", counted)
    return found
