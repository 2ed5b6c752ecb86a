"""Which tables hold what their key model or their base says, and as of which snapshot."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from sqlalchemy import Connection, delete, insert, select

from shelduck.catalog import own_tables, queries, read
from shelduck.catalog.store import Store
from shelduck.errors import Conflict
from shelduck.model.schema import SnapshotId, TableId
from shelduck.model.settled import Settling
from shelduck.model.table import Snapshot

_TABLE = own_tables.settled
_c = _TABLE.c
_NEVER = SnapshotId(-1)


def settled_at(connection: Connection, table: TableId) -> SnapshotId:
    """Return the snapshot that left a table settled, -1 where none did; two statements."""
    if table < 0 or not queries.present_tables(connection, [_TABLE.name]):
        return _NEVER
    found = connection.execute(select(_c.snapshot_id).where(_c.table_id == table))
    number = found.scalar_one_or_none()
    return _NEVER if number is None else SnapshotId(number)


def is_settled(connection: Connection, wanted: Settling, at: Snapshot) -> bool:
    """Tell whether a table is settled on the snapshot ``at``; what nobody knows is no.

    ``wanted.since`` does not matter.
    """
    since = settled_at(connection, wanted.table)
    if since == _NEVER:
        return False
    if since >= at.id:
        return since == at.id
    try:
        entries = read.entries_since(connection, since, at.id)
    except Conflict:
        return False
    seen = [(n, e) for n, e in entries if n <= at.id]
    return replace(wanted, since=since).holds(seen)


def settle(
    store: Store, connection: Connection, found: Collection[TableId], snapshot: SnapshotId
) -> None:
    """Record that the snapshot of this transaction leaves tables settled."""
    if not found:
        return
    if not queries.present_tables(connection, [_TABLE.name]):
        own_tables.ensure_own_tables(store, connection)
    connection.execute(delete(_TABLE).where(_c.table_id.in_(found)))
    connection.execute(insert(_TABLE), [{"table_id": t, "snapshot_id": snapshot} for t in found])
