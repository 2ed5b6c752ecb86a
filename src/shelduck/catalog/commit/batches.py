"""Which batches of a series are committed: the newest, recorded in its own commit."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from shelduck.catalog.read import queries
from shelduck.catalog.schema import own_tables
from shelduck.errors import InvalidRequest
from shelduck.model.changes.records import ANY_TABLE, Batch
from shelduck.model.tables.schema import SnapshotId

_TABLE = own_tables.stream_batches
_c = _TABLE.c


def landed_in(
    connection: sa.Connection, batch: Batch, present: Collection[str] | None = None
) -> SnapshotId | None:
    """Return the snapshot that committed a batch, None if there is none; two statements at most.

    ``present`` are the tables that the database has, if the caller already knows.

    Raises InvalidRequest if a later batch of its series is committed, because nobody knows then
    whether this one is.
    """
    if present is None:
        present = queries.present_tables(connection, [_TABLE.name])
    if _TABLE.name not in present:
        return None
    row = connection.execute(
        sa.select(_c.batch_id, _c.snapshot_id).where(
            _c.table_id == batch.table_id, _c.query_id == batch.query_id
        )
    ).first()
    if row is None or row.batch_id < batch.batch_id:
        return None
    if row.batch_id > batch.batch_id:
        raise InvalidRequest(
            f"cannot commit {batch}: batch {row.batch_id} has already landed (snapshot"
            f" {row.snapshot_id}), and batch numbers must increase; {_way_out(batch)}"
        )
    return SnapshotId(row.snapshot_id)


def _way_out(batch: Batch) -> str:
    """Return what to do about a late batch: of a stream, or of ``once=`` of a transaction."""
    if batch.table_id != ANY_TABLE:
        return "if the query begins with a new checkpoint, give it a new query id"
    return "if it has not landed, pass a larger number, or another series, to once=(series, number)"


def newest_landed(connection: sa.Connection, series: str) -> int | None:
    """Return the number of the newest committed batch of a series; two statements."""
    if not queries.present_tables(connection, [_TABLE.name]):
        return None
    query = sa.select(_c.batch_id).where(_c.table_id == ANY_TABLE, _c.query_id == series)
    return connection.execute(query).scalar_one_or_none()


def record_batch(connection: sa.Connection, batch: Batch, snapshot: SnapshotId) -> None:
    """Record a batch as committed, in place of those before it; two statements.

    All tables of Shelduck exist.
    """
    connection.execute(
        sa.delete(_TABLE).where(_c.table_id == batch.table_id, _c.query_id == batch.query_id)
    )
    connection.execute(
        sa.insert(_TABLE),
        {
            "table_id": batch.table_id,
            "query_id": batch.query_id,
            "batch_id": batch.batch_id,
            "snapshot_id": snapshot,
        },
    )
