"""Which batches of a series have landed: the newest, recorded in the commit that it made."""

from __future__ import annotations

from sqlalchemy import Connection, delete, insert, select

from shelduck.catalog.databases.store import Store
from shelduck.catalog.read import queries
from shelduck.catalog.schema import own_tables
from shelduck.errors import InvalidRequest
from shelduck.model.changes.batch import ANY_TABLE, Batch
from shelduck.model.tables.schema import SnapshotId

_TABLE = own_tables.stream_batches
_c = _TABLE.c


def landed_in(connection: Connection, batch: Batch) -> SnapshotId | None:
    """Return the snapshot in which a batch landed, None when it has not; two statements.

    Raises InvalidRequest when a later one of its series has: whether this one did is not known.
    """
    if not queries.present_tables(connection, [_TABLE.name]):
        return None
    row = connection.execute(
        select(_c.batch_id, _c.snapshot_id).where(
            _c.table_id == batch.table_id, _c.query_id == batch.query_id
        )
    ).first()
    if row is None or row.batch_id < batch.batch_id:
        return None
    if row.batch_id > batch.batch_id:
        raise InvalidRequest(
            f"cannot commit {batch}: batch {row.batch_id} has already landed (snapshot"
            f" {row.snapshot_id}), and batch numbers must increase; if the query begins with a new"
            " checkpoint, give it a new query id"
        )
    return SnapshotId(row.snapshot_id)


def newest_landed(connection: Connection, series: str) -> int | None:
    """Return the number of the newest batch of a series that has landed; two statements."""
    if not queries.present_tables(connection, [_TABLE.name]):
        return None
    query = select(_c.batch_id).where(_c.table_id == ANY_TABLE, _c.query_id == series)
    return connection.execute(query).scalar_one_or_none()


def record_batch(store: Store, connection: Connection, batch: Batch, snapshot: SnapshotId) -> None:
    """Record that a batch landed, in the place of those before it; some three statements."""
    if not queries.present_tables(connection, [_TABLE.name]):
        own_tables.ensure_own_tables(store, connection)
    connection.execute(
        delete(_TABLE).where(_c.table_id == batch.table_id, _c.query_id == batch.query_id)
    )
    connection.execute(
        insert(_TABLE),
        {
            "table_id": batch.table_id,
            "query_id": batch.query_id,
            "batch_id": batch.batch_id,
            "snapshot_id": snapshot,
        },
    )
