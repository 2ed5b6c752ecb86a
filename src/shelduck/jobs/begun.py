"""A job whose worker has submitted it, and begins at once."""

from __future__ import annotations

from dataclasses import dataclass

from shelduck.model.changes.job import Job
from shelduck.model.tables.table import TableVersion


@dataclass(frozen=True, slots=True)
class Begun:
    """A job that its ``worker`` has submitted, and the table as that commit left it, if known."""

    job: Job
    table: TableVersion | None
    worker: str
