"""The tables that this process has read: read again only after the schema of the lake changed.

Every change of a table's columns, name, tags or keys raises the schema version of the lake, in
DuckDB too. But equal numbers do not prove an equal schema: another catalog may have taken the place
of the one that was read, such as a backup of it. So a kept table is used only while the catalog
still has the snapshot at which it was read, with the same time and the same counters. Options
have no snapshots, and are read every time.

A commit of this process changes what is kept, if it was made on the very snapshot at which the
table is kept. So the next one need not read the table that this process has just written.

Whoever removes old snapshots also removes the columns that only they had. A kept table still knows
their ids and names, and that is safe: new columns take other ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import sqlalchemy as sa

from shelduck.catalog.read import queries, read
from shelduck.catalog.read.read import OPTIONS
from shelduck.catalog.read.together import Together
from shelduck.catalog.schema.lake_schema import LakeInfo
from shelduck.ducklake import tables
from shelduck.ducklake.checked import BIGINT
from shelduck.ducklake.descriptions import settings_of
from shelduck.ducklake.format import follow
from shelduck.errors import NotFound
from shelduck.metrics import TABLE_LOOKUPS, record
from shelduck.model.changes.change import AlterTable, RenameTable, altered
from shelduck.model.tables.options import table_options
from shelduck.model.tables.schema import TableId
from shelduck.model.tables.table_version import Snapshot, TableVersion

_MOST = 500
_STILL = Together(
    {
        "newest": queries.newest_snapshot(),
        "seen": sa.select(tables.snapshot).where(
            tables.snapshot.c.snapshot_id == sa.bindparam("seen", type_=BIGINT)
        ),
        "options": OPTIONS,
    }
)


class KeptTables:
    """Table versions of one lake; threads may share it."""

    def __init__(self, lake: LakeInfo) -> None:
        self._lake = lake
        self._by_name: dict[tuple[str, str], TableVersion] = {}

    def table(
        self, connection: sa.Connection, schema: str, name: str, at: Snapshot | None = None
    ) -> TableVersion:
        """Return a table by its name at a snapshot, by default the newest.

        One statement if it is kept and unchanged. Otherwise those of `read.snapshot` and
        `read.table`, and their errors.
        """
        kept, same = self._by_name.get((schema, name)), None
        if kept is not None:
            same, at = _unchanged(connection, kept, at)
        record(TABLE_LOOKUPS, 1, {"shelduck.known": "no" if same is None else "yes"})
        if same is not None:
            self._keep(schema, name, same)
            return same
        if at is None:
            at = read.snapshot(connection)
        found = read.table(connection, at, schema, name, self._lake)
        self._keep(schema, name, found)
        return found

    def newest_of(self, connection: sa.Connection, number: TableId) -> TableVersion | None:
        """Return the newest version of a table by its id, None if it does not exist.

        One statement if it is kept and unchanged.
        """
        known = next((k for k, kept in list(self._by_name.items()) if kept.id == number), None)
        if known is not None:
            found = self._named(connection, *known, None)
            if found is not None and found.id == number:
                return found
        at = read.snapshot(connection)
        names = read.name_at(connection, number, at)
        found = None if names is None else self._named(connection, *names, at)
        return found if found is not None and found.id == number else None

    def follow(
        self, before: Snapshot, made: Snapshot, changes: Iterable[AlterTable | RenameTable]
    ) -> None:
        """Keep what a commit made of tables that are kept as of the snapshot before it.

        Call it only after the database has committed. No statement.
        """
        for change in changes:
            for (schema, name), kept in list(self._by_name.items()):
                if kept.id != change.table.id or kept.snapshot.mark not in (before.mark, made.mark):
                    continue
                after = replace(kept, snapshot=made)
                if isinstance(change, AlterTable):
                    after = altered(after, change)
                else:
                    after = replace(after, name=change.new_name, begin_snapshot=made.id)
                self._by_name.pop((schema, name), None)
                is_called = name.lower() == after.name.lower()
                self._keep(schema, name if is_called else after.name, after)

    def _named(
        self, connection: sa.Connection, schema: str, name: str, at: Snapshot | None
    ) -> TableVersion | None:
        try:
            return self.table(connection, schema, name, at)
        except NotFound:
            return None

    def _keep(self, schema: str, name: str, found: TableVersion) -> None:
        self._by_name[schema, name] = found
        if len(self._by_name) > _MOST:
            for oldest in list(self._by_name)[: _MOST // 2]:
                self._by_name.pop(oldest, None)


def _unchanged(
    connection: sa.Connection, kept: TableVersion, at: Snapshot | None
) -> tuple[TableVersion | None, Snapshot | None]:
    """Return a kept table at a snapshot, None if it may have changed; and the snapshot."""
    wanted = {"seen": kept.snapshot.id, "table": kept.id, "schema": kept.schema.id}
    answers = _STILL.ask(connection, wanted)
    newest = answers["newest"][0] if answers["newest"] else None
    # A migration mends rows without a snapshot.
    is_migrated = newest is not None and follow(connection, newest.ducklake_version)
    if at is None and newest is not None:
        at = read.as_snapshot(newest)
    was = kept.snapshot
    if (
        at is None
        or is_migrated
        or at.schema_version != was.schema_version
        or answers["seen"] != [was.mark]
    ):
        return None, at
    options = table_options(
        settings_of(answers["options"]), schema_id=kept.schema.id, table_id=kept.id
    )
    return replace(kept, snapshot=at, options=options), at
