"""Where files of rollups may be, also of rollups that no snapshot shows."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from shelduck.catalog.running.job_rows import jobs
from shelduck.ducklake import tables
from shelduck.errors import CorruptLake, NewerFormat
from shelduck.model.tables.rollup import ROLLUP, STORED_ROLLUP, uuid_of_job, uuid_of_next


@dataclass(frozen=True, slots=True)
class RollupHome:
    """The uuid of a table that is, was or may become a rollup, and that of its base."""

    uuid: str
    base: str


def rollup_homes(connection: sa.Connection) -> list[RollupHome]:
    """Return the rollups of all snapshots, those that replace them, and those that jobs make.

    Rollups that only a newer Shelduck understands are left out. Four statements at most.
    """
    known = _known(connection)
    return [*known, *(RollupHome(uuid_of_next(k.uuid), k.base) for k in known), *_made(connection)]


def _known(connection: sa.Connection) -> list[RollupHome]:
    t, tag = tables.table.c, tables.tag.c
    query = (
        sa.select(t.table_uuid, tag.object_id, tag.value)
        .join_from(tables.table, tables.tag, t.table_id == tag.object_id)
        .where(tag.key == ROLLUP, tag.value.is_not(None))
        .distinct()
    )
    found = []
    for uuid, number, text in connection.execute(query):
        try:
            base = STORED_ROLLUP.read(text, f"table {number}").base
        except (NewerFormat, CorruptLake):
            continue
        found.append(RollupHome(str(uuid), base))
    return found


def _made(connection: sa.Connection) -> list[RollupHome]:
    made = [job for job in jobs(connection) if job.is_understood and job.work.rollups]
    if not made:
        return []
    t = tables.table.c
    query = sa.select(t.table_id, t.table_uuid).where(
        t.table_id.in_({job.table_id for job in made})
    )
    bases = {number: str(uuid) for number, uuid in connection.execute(query.distinct())}
    return [
        RollupHome(uuid_of_job(bases[job.table_id], job.id, spec.name), bases[job.table_id])
        for job in made
        if job.table_id in bases
        for spec in job.work.rollups
    ]
