"""New rows that were written for older columns of a table, fitted inside the commit's lock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import Connection

from shelduck.catalog.read import read
from shelduck.catalog.schema.lake_schema import LakeInfo
from shelduck.errors import Conflict
from shelduck.model.changes.change import AppendFiles, Change, Entry, InlineRows, Verb
from shelduck.model.tables.schema import SnapshotId, TableId
from shelduck.model.tables.table_version import Snapshot, TableVersion
from shelduck.planning.rebase import moved


def rebased(
    connection: Connection,
    lake: LakeInfo,
    changes: Sequence[Change],
    others: Sequence[tuple[SnapshotId, Entry]],
    head: Snapshot,
) -> list[Change]:
    """Return the changes with new rows fitted to the columns of ``head``.

    ``others`` is what was done since the changes were made. No statement if nobody altered their
    tables, four for each altered table. Raises Conflict for rows that do not fit.
    """
    now: dict[TableId, TableVersion] = {}
    found: list[Change] = []
    for change in changes:
        planned = change.planned if isinstance(change, AppendFiles | InlineRows) else None
        if planned is None or not _is_altered(planned, others):
            found.append(change)
            continue
        if planned.id not in now:
            now[planned.id] = _table(connection, lake, planned, head)
        seen = moved(planned, now[planned.id])
        match change:
            case AppendFiles():
                found.append(replace(change, files=seen.files(change.files), planned=seen.now))
            case InlineRows():
                found.append(replace(change, rows=seen.batch(change.rows), planned=seen.now))
    return found


def _is_altered(planned: TableVersion, others: Sequence[tuple[SnapshotId, Entry]]) -> bool:
    return any(
        entry.verb is Verb.ALTERED_TABLE and entry.id == planned.id
        for snapshot, entry in others
        if snapshot > planned.snapshot.id
    )


def _table(
    connection: Connection, lake: LakeInfo, planned: TableVersion, head: Snapshot
) -> TableVersion:
    name = read.name_at(connection, planned.id, head)
    if name is None:
        raise Conflict(f"table {planned.full_name} was dropped by another commit")
    return read.table(connection, head, *name, lake)
