"""What must be true for every commit, inside its lock, before anything is written.

The conflict matrix sees what others logged; this module and the checks of the kinds of changes see
what is in the catalog. Together they cover everything.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection

from shelduck.catalog.commit.draft import Draft
from shelduck.catalog.commit.work import TableWork, Work
from shelduck.catalog.databases.failures import Contention
from shelduck.ducklake.format import follow
from shelduck.errors import Conflict, InvalidRequest
from shelduck.model.changes.change import CommitInfo
from shelduck.model.tables.table import Snapshot


def check_options(connection: Connection, options: Mapping[str, str], info: CommitInfo) -> None:
    """Refuse a commit without the message that the lake requires.

    If the lake has another version than this connection knows, the work runs again in that one.
    """
    version = options.get("version", "")
    if follow(connection, version):
        raise Contention(f"the lake now has DuckLake version {version!r}; nothing was written")
    if options.get("require_commit_message") == "true" and not info.message:
        raise InvalidRequest(
            "this lake demands a commit message (option require_commit_message); give one"
        )


def check_tables(draft: Draft, work: Work) -> None:
    """Raise Conflict unless all tables of the work still exist.

    Tables that were read at the newest snapshot and keep their name do exist. If any others are
    looked up, `Draft.found` has the rows of all.
    """
    if all(_was_read_at(draft.head, table) for table in work.existing()):
        return
    rows = draft.opening.answers["tables"]
    draft.found.update((row.table_id, row._asdict()) for row in rows)
    for table in work.existing():
        if table.id not in draft.found:
            raise Conflict(f"table {table.name} was dropped by another commit")


def _was_read_at(head: Snapshot, table: TableWork) -> bool:
    seen = table.old
    return seen is not None and seen.snapshot.id == head.id and table.new_name is None
