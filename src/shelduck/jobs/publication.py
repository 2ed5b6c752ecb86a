"""The change by which a job shows what it has converted."""

from __future__ import annotations

from dataclasses import replace

from shelduck.errors import InvalidRequest
from shelduck.evolution.alter import plan_alter
from shelduck.model.changes.change import AlterTable
from shelduck.model.changes.job import Job
from shelduck.model.tables.table import TableVersion
from shelduck.planning.shadows import known_shadows


def publication(job: Job, table: TableVersion, files: frozenset[int]) -> AlterTable:
    """Return the change that publishes a job, valid as long as ``files`` are all files.

    The clauses of its statement are applied to the current table. Raises what `plan_alter` raises.
    """
    shadows = known_shadows(table, job.work.conversions)
    if isinstance(shadows, str):
        raise InvalidRequest(shadows)
    change = plan_alter(table, job.work.clauses, job.work.conversions).change
    assert change is not None
    return replace(change, only_files=files)
