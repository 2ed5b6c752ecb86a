"""Columns that jobs converted, with the columns that have their values now."""

from __future__ import annotations

from shelduck.catalog.read.read import Connection
from shelduck.catalog.running import jobs as catalog_jobs


def followed_by(connection: Connection, table: int) -> dict[int, int]:
    """Return the id of each column of a table that a job converted, with that of its successor."""
    done = [j for j in catalog_jobs.jobs(connection) if j.table_id == table and j.is_understood]
    return {
        int(c.column_id): int(c.shadow_id)
        for job in done
        if job.published is not None
        for c in job.work.conversions
    }
