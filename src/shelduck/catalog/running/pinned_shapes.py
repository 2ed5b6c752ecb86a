"""The columns that a pinned view shows, under the ids that they have today."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlalchemy import Connection

from shelduck.catalog.read import read
from shelduck.catalog.running.job_rows import jobs
from shelduck.catalog.schema.lake_schema import LakeInfo
from shelduck.model.tables.schema import Field, FieldId, Schema, SnapshotId
from shelduck.model.tables.table_version import Snapshot
from shelduck.model.tables.view import Pin
from shelduck.planning.shadows import kept_parts


def shape_of(connection: Connection, pin: Pin, at: Snapshot, lake: LakeInfo) -> Schema | None:
    """Return the columns to which a view is pinned, None if the catalog has forgotten them.

    A job that converts a column gives it new ids. The ids are those at the snapshot ``at``.
    """
    then = read.table_by_id(connection, pin.table_id, replace(at, id=pin.snapshot), lake)
    if then is None:
        return None
    ids = {f.id: f.id for f in then.columns.walk()}
    done = [j for j in jobs(connection) if j.table_id == pin.table_id and j.published is not None]
    for job in reversed(done):
        published = SnapshotId(job.published or 0)
        if not job.is_understood or not pin.snapshot < published <= at.id:
            continue
        before = read.table_by_id(
            connection, pin.table_id, replace(at, id=SnapshotId(published - 1)), lake
        )
        after = read.table_by_id(connection, pin.table_id, replace(at, id=published), lake)
        if before is None or after is None:
            continue
        new: dict[FieldId, FieldId] = {}
        for one in job.work.conversions:
            old, shadow = before.columns.by_id(one.column_id), after.columns.by_id(one.shadow_id)
            if old is not None and shadow is not None:
                new |= {was.id: now.id for was, now in kept_parts(old, shadow)}
        ids = {first: new.get(last, last) for first, last in ids.items()}
    return Schema(tuple(_renumbered(f, ids) for f in then.columns))


def _renumbered(field: Field, ids: Mapping[FieldId, FieldId]) -> Field:
    children = tuple(_renumbered(c, ids) for c in field.children)
    return replace(field, id=ids[field.id], children=children)
