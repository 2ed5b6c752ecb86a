"""Which tables hold exactly what their key model or base says, and as of which snapshot."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa

from shelduck.catalog.read import queries, read
from shelduck.catalog.read.queries import chunks
from shelduck.catalog.schema import own_tables
from shelduck.ducklake import tables
from shelduck.errors import Conflict, NewerFormat
from shelduck.model.changes.change import Entry
from shelduck.model.changes.records import Settling
from shelduck.model.tables.rollup import ROLLUP, STORED_ROLLUP
from shelduck.model.tables.schema import SnapshotId, TableId
from shelduck.model.tables.table_version import Snapshot


@dataclass(frozen=True, slots=True)
class Settled:
    """The snapshot of a transaction, and the ids that it gave to new tables."""

    snapshot: SnapshotId
    table_ids: Mapping[TableId, TableId]


_TABLE = own_tables.settled
_c = _TABLE.c
_NEVER = SnapshotId(-1)


def settled_at(connection: sa.Connection, table: TableId) -> SnapshotId:
    """Return the snapshot that left a table settled, -1 if there is none; two statements."""
    if table < 0 or not queries.present_tables(connection, [_TABLE.name]):
        return _NEVER
    found = connection.execute(sa.select(_c.snapshot_id).where(_c.table_id == table))
    number = found.scalar_one_or_none()
    return _NEVER if number is None else SnapshotId(number)


def settled_ahead(connection: sa.Connection) -> dict[TableId, SnapshotId]:
    """Return the tables that are settled as of a snapshot after the newest one; two statements."""
    if not queries.present_tables(connection, [_TABLE.name]):
        return {}
    newest = sa.select(sa.func.max(tables.snapshot.c.snapshot_id)).scalar_subquery()
    rows = connection.execute(sa.select(_c.table_id, _c.snapshot_id).where(_c.snapshot_id > newest))
    return {TableId(table): SnapshotId(at) for table, at in rows}


def forget_settled(connection: sa.Connection, wanted: Collection[TableId]) -> None:
    """Forget as of which snapshot tables are settled: their next write settles them again."""
    connection.execute(sa.delete(_TABLE).where(_c.table_id.in_(wanted)))


def is_settled(connection: sa.Connection, wanted: Settling, at: Snapshot) -> bool:
    """Return whether a table is settled on the snapshot ``at``; False if nobody knows.

    ``wanted.since`` is ignored.
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
    connection: sa.Connection,
    wanted: Sequence[Settling],
    others: Sequence[tuple[SnapshotId, Entry]],
    done: Settled,
) -> None:
    """Record which tables the snapshot of this transaction leaves settled; three statements.

    ``others`` is what happened since the commit's work began. Commits that settled a table
    themselves do not count: two commits that both add their rows to the rollup leave it correct.
    All tables of Shelduck exist.

    Raises Conflict if a required table is not settled.
    """
    ids = {s.table: done.table_ids.get(s.table, s.table) for s in wanted}
    known = sa.select(_c.table_id, _c.snapshot_id).where(_c.table_id.in_(ids.values()))
    before = {TableId(table): SnapshotId(at) for table, at in connection.execute(known)}
    found = []
    for each in wanted:
        number = ids[each.table]
        since = max(each.since, before.get(number, each.since))
        if replace(each, since=since).holds(others):
            found.append(number)
        elif each.required:
            raise Conflict(
                f"another commit changed the base table of the rollup with table id {number}"
            )
    if found:
        rows = [{"table_id": table, "snapshot_id": done.snapshot} for table in found]
        connection.execute(sa.delete(_TABLE).where(_c.table_id.in_(found)))
        connection.execute(sa.insert(_TABLE), rows)


def carry_over(connection: sa.Connection, last: SnapshotId) -> None:
    """Keep what is known about tables before the log up to the snapshot ``last`` is removed.

    Only the log between the oldest mark and ``last`` is read. A mark that does not hold any more
    is removed, so the next call begins where this one ends. At most six statements.
    """
    if not queries.present_tables(connection, [_TABLE.name]):
        return
    rows = connection.execute(sa.select(_c.table_id, _c.snapshot_id).where(_c.snapshot_id < last))
    marks = {TableId(table): SnapshotId(at) for table, at in rows}
    if not marks:
        return
    bases, newer = _bases(connection)
    marks = {table: at for table, at in marks.items() if table not in newer}
    if not marks:
        return
    logged = read.logged_since(connection, min(marks.values()), last)
    by_table: dict[int | None, list[tuple[SnapshotId, Entry]]] = {}
    for n, found in logged.items():
        for entry in found:
            by_table.setdefault(entry.id, []).append((n, entry))
    # Whatever was known before the last snapshot that the log lacks is no longer certain.
    gap = next((n for n in range(last, min(marks.values()), -1) if n not in logged), -1)
    kept: list[TableId] = []
    lost: list[TableId] = []
    for table, at in marks.items():
        sources = frozenset({table, bases.get(table, table)})
        wanted = Settling(table, sources, at, alone=table not in bases)
        entries = [entry for source in sources for entry in by_table.get(source, ())]
        (kept if at >= gap and wanted.holds(entries) else lost).append(table)
    for ids in chunks(kept):
        connection.execute(sa.update(_TABLE).where(_c.table_id.in_(ids)).values(snapshot_id=last))
    for ids in chunks(lost):
        connection.execute(sa.delete(_TABLE).where(_c.table_id.in_(ids)))


def _bases(connection: sa.Connection) -> tuple[dict[TableId, TableId], set[TableId]]:
    """Return the base tables of rollups, by the ids of the rollups.

    Also return the rollups whose base only a newer Shelduck knows.
    """
    t, tag = tables.table.c, tables.tag.c
    ids = sa.select(t.table_uuid, t.table_id).where(t.end_snapshot.is_(None))
    by_uuid = {uuid: TableId(number) for uuid, number in connection.execute(ids)}
    rollups = sa.select(tag.object_id, tag.value).where(
        tag.key == ROLLUP, tag.value.is_not(None), tag.end_snapshot.is_(None)
    )
    found: dict[TableId, TableId] = {}
    newer: set[TableId] = set()
    for number, text in connection.execute(rollups):
        try:
            base = STORED_ROLLUP.read(text, f"table {number}").base
        except NewerFormat:
            newer.add(TableId(number))
            continue
        if base in by_uuid:
            found[TableId(number)] = by_uuid[base]
    return found, newer
