"""Which tables hold what their key model or their base says, and as of which snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection, delete, insert, select

from shelduck.catalog import own_tables, queries, read
from shelduck.catalog.store import Store
from shelduck.errors import Conflict
from shelduck.model.change import Entry
from shelduck.model.schema import SnapshotId, TableId
from shelduck.model.settled import Settling
from shelduck.model.table import Snapshot


@dataclass(frozen=True, slots=True)
class Settled:
    """The snapshot of a transaction, and the ids that it gave to new tables."""

    snapshot: SnapshotId
    table_ids: Mapping[TableId, TableId]


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
    store: Store,
    connection: Connection,
    wanted: Sequence[Settling],
    others: Sequence[tuple[SnapshotId, Entry]],
    done: Settled,
) -> None:
    """Record which tables the snapshot of this transaction leaves settled.

    ``others`` is what happened since the commit's work began. Commits that settled a table
    themselves do not count: two that both add what they bring leave it right.
    """
    if not wanted:
        return
    if not queries.present_tables(connection, [_TABLE.name]):
        own_tables.ensure_own_tables(store, connection)
    ids = {s.table: done.table_ids.get(s.table, s.table) for s in wanted}
    known = select(_c.table_id, _c.snapshot_id).where(_c.table_id.in_(ids.values()))
    before = {TableId(table): SnapshotId(at) for table, at in connection.execute(known)}
    found = [
        ids[s.table]
        for s in wanted
        if replace(s, since=max(s.since, before.get(ids[s.table], s.since))).holds(others)
    ]
    if found:
        rows = [{"table_id": table, "snapshot_id": done.snapshot} for table in found]
        connection.execute(delete(_TABLE).where(_c.table_id.in_(found)))
        connection.execute(insert(_TABLE), rows)
