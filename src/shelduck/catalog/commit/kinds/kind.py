"""What a commit asks of every kind of change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shelduck.catalog.commit.draft import Draft
from shelduck.catalog.commit.work import Work
from shelduck.catalog.read.together import Questions
from shelduck.model.changes.change import Change


@dataclass(frozen=True, slots=True)
class ChangeKind:
    """One kind of change: its classes, and how a commit carries them out.

    A commit calls only the kinds of its own changes: ``fold`` for each change, then every other
    function once.
    """

    takes: tuple[type[Change], ...]
    fold: Callable[[Work, Any], None]
    """Adds a change to the work, without I/O; the last change of a table wins."""
    write: Callable[[Draft, Work], None]
    """Writes its rows. Conflicts over the rows of a table are found here at the latest."""
    check: Callable[[Draft, Work], None] | None = None
    """Raises Conflict if another commit changed what the changes were based on."""
    asks: Questions = ()
    """What it asks the catalog in the opening of the commit, about :of_tables and :of_files."""
