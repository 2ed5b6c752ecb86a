"""Small files with a text: complete or not there, whoever else writes them at the same time."""

from __future__ import annotations

import pytest

from shelduck.engine.files import storage
from shelduck.engine.files.storage import write_new_text, write_text
from tests.support.meanwhile import once_before


def test_of_two_texts_written_at_once_one_is_left(tmp_path, monkeypatch):
    place = tmp_path / "folder" / "text"
    once_before(monkeypatch, storage.os, "fsync", lambda: write_text(str(place), "other"))
    write_text(str(place), "mine")

    assert place.read_text() == "mine"
    assert list(place.parent.iterdir()) == [place]


def test_of_two_new_texts_written_at_once_the_first_is_left(tmp_path, monkeypatch):
    place = tmp_path / "text"
    once_before(monkeypatch, storage.os, "fsync", lambda: write_new_text(str(place), "other"))
    with pytest.raises(FileExistsError):
        write_new_text(str(place), "mine")

    assert place.read_text() == "other"
    assert list(tmp_path.iterdir()) == [place]


@pytest.mark.parametrize("write", [write_text, write_new_text])
def test_a_text_that_cannot_be_written_leaves_nothing(tmp_path, monkeypatch, write):
    def full(_: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(storage.os, "fsync", full)
    with pytest.raises(OSError, match="disk full"):
        write(str(tmp_path / "text"), "mine")
    assert list(tmp_path.iterdir()) == []
