"""How fast jobs rewrote files: what a new job may expect."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, select

from shelduck.catalog.databases.known import dialect_of
from shelduck.catalog.read.queries import present_tables
from shelduck.catalog.schema import own_tables
from shelduck.model.changes.job import JobSpeed

_TABLE = own_tables.job_speed
_c = _TABLE.c


def add_speed(
    connection: Connection, number: int, more: JobSpeed, present: Collection[str] | None
) -> None:
    """Add to what a job has rewritten; older catalogs do not record it.

    ``present`` are the tables that the database has, if the caller knows.
    """
    if present is None:
        present = present_tables(connection, [_TABLE.name])
    if _TABLE.name not in present:
        return
    row = {"job_id": number, "bytes": more.bytes, "milliseconds": more.milliseconds}
    added = dialect_of(connection).insert(_TABLE).values(row | {"cores": more.cores})
    new = added.excluded
    sums = {"bytes": _c.bytes + new.bytes, "milliseconds": _c.milliseconds + new.milliseconds}
    connection.execute(
        added.on_conflict_do_update(index_elements=[_c.job_id], set_=sums | {"cores": new.cores})
    )


def speeds(connection: Connection) -> dict[int, JobSpeed]:
    """Return what the newest twenty jobs that rewrote files did, by job id; two statements."""
    if not present_tables(connection, [_TABLE.name]):
        return {}
    newest = select(_TABLE).order_by(_c.job_id.desc()).limit(20)
    return {
        row.job_id: JobSpeed(row.bytes, row.milliseconds, row.cores)
        for row in connection.execute(newest)
    }
