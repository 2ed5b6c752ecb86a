"""Reports of the tasks of one write about the files that they wrote."""

from __future__ import annotations

import uuid
from base64 import b64decode
from dataclasses import dataclass, field
from typing import Any

from shelduck.spark.bridge.codec import field_rows

OPTION = "shelduck.reports"
"""An option of a write: the name under which Java keeps its reports."""


@dataclass(frozen=True, slots=True)
class Report:
    """A file of a task that succeeded.

    If the file is in its last place, ``working`` are the directories in which Spark would have put
    it. ``is_repeated``: an earlier attempt of the task may have left files. ``footer`` is None if
    this Spark does not show it.
    """

    working: str
    is_repeated: bool
    size: int
    footer: bytes | None


@dataclass(frozen=True, slots=True)
class Reports:
    """The reports of one write, which arrive while its tasks end."""

    plans: Any
    name: str = field(default_factory=lambda: uuid.uuid4().hex)

    def taken(self) -> dict[str, Report]:
        """Return what was reported, by the name of the file; a second call returns nothing.

        A file in its last place has a path below the directory of the table for a name.
        """
        rows = field_rows(str(self.plans.reports(self.name)))
        return {name: _report(*told) for name, *told in rows}


def _report(working: str, again: str, size: str, footer: str) -> Report:
    return Report(working, bool(again), int(size), b64decode(footer) if footer else None)
