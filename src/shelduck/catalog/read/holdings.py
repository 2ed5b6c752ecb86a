"""Which tables of the catalog's database hold something of a lake's table; one statement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import sqlalchemy as sa

from shelduck.catalog.read import queries
from shelduck.catalog.read.queries import TABLE
from shelduck.catalog.read.together import Answers, Together
from shelduck.catalog.schema import own_tables
from shelduck.ducklake import tables
from shelduck.ducklake.checked import BIGINT, or_null
from shelduck.model.tables.schema import TableId
from shelduck.model.tables.table_version import Mark

_r, _d = tables.inlined_data_tables.c, tables.delete_file.c
_s = tables.snapshot.c
_SEEN = sa.bindparam("seen", type_=BIGINT)


@dataclass(frozen=True, slots=True)
class Holdings:
    """Which tables a reader of files and of rows in the catalog has to look at."""

    present: frozenset[str]
    """Those that exist, of the tables for layouts, for deleted positions and for inlined rows."""
    inlined: Sequence[tuple[str, int]]
    """Those that are registered for inlined rows, and their schema versions, oldest first."""
    has_positions: bool
    """Whether there is a table for deleted positions."""
    has_delete_files: bool
    """Whether any snapshot has a delete file of the table."""
    marks: frozenset[Mark] = frozenset()
    """The marks of the newest snapshot, and of the one that was asked for."""

    @property
    def newest(self) -> Mark | None:
        """Return the mark of the newest snapshot, None if the catalog has lost all of them."""
        return max(self.marks, key=lambda mark: mark[0], default=None)


def holdings_of(connection: sa.Connection, table: TableId, seen: int = -1) -> Holdings:
    """Return where the rows of a table may be, and where their deletes; one statement.

    It also tells the newest snapshot, and whether the catalog still has the snapshot ``seen``.
    """
    return _holdings(_where(connection.dialect.name).ask(connection, _about(table, seen)), table)


def holdings_with_files(
    connection: sa.Connection, table: TableId, at: int, *, most: int, seen: int
) -> tuple[Holdings, Answers]:
    """Return `holdings_of`, and the ``files`` at a snapshot with their ``deletes`` and ``layouts``.

    At most so many of each. All tables of Shelduck must exist. One statement.
    """
    more = {"at": at, "most": most}
    answers = _with_files(connection.dialect.name).ask(connection, _about(table, seen) | more)
    return _holdings(answers, table), answers


def _about(table: TableId, seen: int) -> dict[str, Any]:
    names = [own_tables.file_layout.name, queries.inlined_delete_table(table)]
    return {"table": table, "names": names, "seen": seen}


def _holdings(answers: Answers, table: TableId) -> Holdings:
    registered = sorted(answers["registered"], key=lambda row: row.schema_version)
    return Holdings(
        frozenset(row.name for row in answers["present"]),
        [(row.table_name, row.schema_version) for row in registered],
        any(row.name == queries.inlined_delete_table(table) for row in answers["present"]),
        bool(answers["delete_files"]),
        frozenset(tuple(row) for row in answers["snapshots"]),
    )


@cache
def _where(dialect: str) -> Together:
    return Together(_questions(dialect))


@cache
def _with_files(dialect: str) -> Together:
    at, most = sa.bindparam("at", type_=BIGINT), sa.bindparam("most", type_=BIGINT)
    files = queries.data_files_at(TABLE, at, with_layouts=True).limit(most)
    return Together(
        {
            **_questions(dialect),
            "files": files,
            "deletes": queries.delete_files_at(TABLE, at).limit(most),
            "layouts": queries.layouts_of(sa.select(files.subquery().c.layout_id)),
        }
    )


def _questions(dialect: str) -> Mapping[str, sa.Select[Any]]:
    registered = sa.select(_r.table_name, _r.schema_version).where(_r.table_id == TABLE)
    newest = sa.select(or_null(sa.func.max(_s.snapshot_id)))
    of_rows = sa.select(_r.table_name).where(_r.table_id == TABLE)
    return {
        "present": queries.present_of(dialect, of_rows),
        "registered": registered,
        "delete_files": sa.select(sa.literal_column("1", BIGINT).label("one"))
        .select_from(tables.delete_file)
        .where(_d.table_id == TABLE)
        .limit(1),
        "snapshots": sa.select(tables.snapshot).where(
            sa.or_(_s.snapshot_id == _SEEN, _s.snapshot_id == newest.scalar_subquery())
        ),
    }
