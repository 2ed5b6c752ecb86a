"""Pinned views follow their tables: a commit writes their queries again when a table changes.

It runs behind everything else of the commit, under its lock, so it sees the tables as they will be.
What a view shows are its columns under the ids that they have today.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import sqlalchemy as sa

from shelduck.catalog.commit.draft import Draft
from shelduck.catalog.commit.follow_views import renew_views
from shelduck.catalog.commit.opening import Work
from shelduck.catalog.commit.view_follower import Row
from shelduck.catalog.read import read
from shelduck.catalog.running.job_rows import jobs
from shelduck.catalog.schema.lake_schema import LakeInfo
from shelduck.ducklake import tables
from shelduck.errors import CorruptLake, NewerFormat, Unsupported
from shelduck.model.changes.change import CreateView
from shelduck.model.shadows.shadows import kept_parts
from shelduck.model.tables.schema import Field, FieldId, Schema, SnapshotId
from shelduck.model.tables.table_version import Snapshot
from shelduck.model.tables.view import STORED_PIN, Pin
from shelduck.text.pins.pin_queries import pin_texts
from shelduck.text.query.translate import refusal_query

_v, _t = tables.view, tables.tag


def follow_pins(draft: Draft, work: Work, views: Sequence[Row]) -> None:
    """Write the queries of those ``views`` that are pinned to tables which the commit changes.

    No statement if there are none. A query that SQL cannot express, or whose table is gone,
    becomes one that fails and says why.
    """
    changed = {t.id for t in work.existing() if t.columns or t.new_name or t.dropped}
    made = [c.definition.pin for c in work.of(CreateView)]
    changed |= {pin.table_id for pin in made if pin is not None}
    if not changed:
        return
    done: list[tuple[Row, str, str | None]] = []
    for row in views:
        if row["pin"] is None:
            continue
        try:
            pin = STORED_PIN.read(row["pin"], f"view {row['view_name']}")
        except (NewerFormat, CorruptLake):
            continue
        if pin.table_id in changed:
            sql, spark_sql = _texts(draft, pin, row["view_name"])
            if sql != row["sql"]:
                done.append((row, sql, spark_sql))
    renew_views(draft, done)


def _texts(draft: Draft, pin: Pin, view: str) -> tuple[str, str | None]:
    """Return the view's query for DuckDB and for Spark, as the table will be."""
    at = replace(draft.head, id=draft.id)
    shape = shape_of(draft.connection, pin, at, draft.lake)
    now = read.table_by_id(draft.connection, pin.table_id, at, draft.lake)
    names = shape.names if shape is not None else ["gone"]
    if shape is None or now is None:
        told = f"view {view} is pinned to a table that was dropped"
        return refusal_query(names, told), None
    try:
        found = pin_texts(pin, shape, now)
    except Unsupported as error:
        return refusal_query(names, f"view {view}: {error}"), None
    return found.duckdb, found.spark


def shape_of(connection: sa.Connection, pin: Pin, at: Snapshot, lake: LakeInfo) -> Schema | None:
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
