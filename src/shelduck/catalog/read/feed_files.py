"""Rows that were inserted and deleted between two snapshots, as far as the catalog knows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from shelduck.catalog.read import queries, read
from shelduck.catalog.read.files.data_files import data_files_of, delete_format, sealed_place
from shelduck.catalog.read.queries import chunks
from shelduck.ducklake import tables
from shelduck.errors import InvalidRequest, NotFound
from shelduck.model.changes.change import DELETES, Entry, Verb
from shelduck.model.changes.feed_plan import FeedDeletes, FeedFile, Span
from shelduck.model.files.data_file import DeleteFile
from shelduck.model.tables.table_version import Snapshot, TableVersion

Bound = int | datetime
Logged = list[tuple[Snapshot, list[Entry]]]

_f, _d, _s = tables.data_file.c, tables.delete_file.c, tables.snapshot.c


@dataclass(frozen=True, slots=True)
class FeedRange:
    """The snapshots of a change feed, oldest first, each with its log entries.

    ``next_file_id`` is the lowest id that a file written in them can have. ``is_open``: the
    snapshot before the first has expired, and with it rows that the first one deleted.
    """

    snapshots: tuple[tuple[Snapshot, tuple[Entry, ...]], ...]
    next_file_id: int
    is_open: bool = False

    @property
    def last(self) -> Snapshot:
        """The newest snapshot."""
        return self.snapshots[-1][0]

    @property
    def span(self) -> Span:
        """Return the same range as numbers."""
        return Span(self.snapshots[0][0].id, self.last.id, self.next_file_id)


def feed_range(connection: sa.Connection, start: Bound, end: Bound) -> FeedRange:
    """Return the snapshots from ``start`` to ``end``, both included; about four statements.

    A time as ``start`` means the first snapshot at or after it, and as ``end`` the last one at or
    before it. Raises NotFound, naming the oldest snapshot with which the feed can begin, if one of
    them has expired.
    """
    last = snapshot_at(connection, end)
    if isinstance(start, datetime):
        found_since = _first_since(connection, start)
        if found_since is None:
            raise NotFound(f"the lake has no snapshot at or after {start}", about="snapshot")
        first = found_since
    else:
        first = read.snapshot(connection, version=start).id
    if first > last.id:
        raise InvalidRequest(f"a change feed cannot begin at snapshot {first} and end at {last.id}")
    found = read.logged(connection, first - 1, last.id)
    before = found.pop(0)[0] if found[0][0].id < first else None
    if len(found) != last.id - first + 1:
        known = {s.id for s, _ in found}
        gone = max(n for n in range(first, last.id) if n not in known)
        raise NotFound(
            f"the change feed from snapshot {first} needs snapshot {gone}, which has expired; the"
            f" oldest snapshot that it can begin with is {gone + 1}",
            about="snapshot",
        )
    return FeedRange(
        tuple((s, tuple(entries)) for s, entries in found),
        before.next_file_id if before is not None else 0,
        is_open=before is None and first > 0,
    )


def snapshot_at(connection: sa.Connection, end: Bound) -> Snapshot:
    """Return a snapshot, or the last one at or before a time; NotFound if there is none."""
    if isinstance(end, datetime):
        return read.snapshot(connection, timestamp=end)
    return read.snapshot(connection, version=end)


def is_empty(connection: sa.Connection, start: Bound, end: Bound) -> bool:
    """Return whether no snapshot is between two ends; NotFound if the lake is younger than both."""
    if isinstance(start, int) and isinstance(end, int):
        return start > end
    first = start if isinstance(start, int) else _first_since(connection, start)
    return first is None or first > snapshot_at(connection, end).id


def _first_since(connection: sa.Connection, start: datetime) -> int | None:
    query = sa.select(_s.snapshot_id).where(_s.snapshot_time >= start).order_by(_s.snapshot_id)
    found = connection.execute(query.limit(1)).scalar()
    return None if found is None else int(found)


def feed_files(connection: sa.Connection, table: TableVersion, span: Span) -> list[FeedFile]:
    """Return data files whose rows were inserted or deleted in a span; about six statements."""
    first, last = span.first, span.last
    inlined = queries.inlined_delete_table(table.id)
    present = queries.present_tables(connection, [inlined])
    positions = positions_of(connection, table, last) if inlined in present else {}
    touched = _touched(table, span)
    recent = {n for n, gone in positions.items() if any(first <= at <= last for _, at in gone)}
    ends = _ends(connection, table, touched, recent, span)
    if not ends:
        return []
    deletes = deletes_of(connection, table, ends, span)
    files = data_files_of(connection, table, list(ends) if len(ends) <= _MANY else None)
    return [
        FeedFile(f, ends[f.id], deletes.get(f.id, ()), positions.get(f.id, ()))
        for f in files
        if f.id in ends
    ]


def touches(logged: Logged, table: TableVersion, first: int, last: int) -> bool:
    """Return whether a snapshot from ``first`` to ``last`` may have touched a table.

    A snapshot that has expired, or logged nothing, may have. ``logged`` has the log entries of at
    least these snapshots.
    """
    found = [entries for s, entries in logged if first <= s.id <= last]
    is_known = len(found) == last - first + 1 and all(found)
    return not is_known or any(e.id == table.id for entries in found for e in entries)


def dropped_in(logged: Logged, table: TableVersion) -> int | None:
    """Return the snapshot that dropped a table, None if none of these did."""
    wanted = (Verb.DROPPED_TABLE, table.id)
    dropping = (s.id for s, entries in logged if any((e.verb, e.id) == wanted for e in entries))
    return next(map(int, dropping), None)


def require_closed(found: FeedRange, table: TableVersion) -> None:
    """Raise NotFound if rows that the first snapshot deleted may have expired."""
    if not found.is_open:
        return
    entries = [e for e in found.snapshots[0][1] if e.id == table.id]
    if any(e.verb in DELETES for e in entries) or not found.snapshots[0][1]:
        raise NotFound(
            f"snapshot {found.span.first} deleted rows of {table.full_name} that only the snapshot"
            " before it had, which has expired; the oldest snapshot that the change feed can"
            f" begin with is {found.span.first + 1}",
            about="snapshot",
        )


# With more ids than this for one statement, all files of the table are read instead.
_MANY = 10_000


def _touched(table: TableVersion, span: Span) -> Any:
    """Ask for files that were written in the range, ended in it, or got deletes in it."""
    first, last = span.first, span.last
    written = sa.select(_f.data_file_id).where(
        _f.table_id == table.id,
        sa.or_(
            _f.data_file_id >= span.next_file_id,
            sa.and_(_f.end_snapshot >= first, _f.end_snapshot <= last),
        ),
    )
    deleted = sa.select(_d.data_file_id).where(
        _d.table_id == table.id, _d.delete_file_id >= span.next_file_id
    )
    return sa.union(written, deleted).subquery()


def _ends(
    connection: sa.Connection, table: TableVersion, touched: Any, more: set[int], span: Span
) -> dict[int, int | None]:
    """Return the last snapshot, excluded, of each file that the range may see."""
    known = sa.select(_f.data_file_id, _f.end_snapshot).where(
        _f.table_id == table.id,
        _f.begin_snapshot <= span.last,
        sa.or_(_f.end_snapshot.is_(None), _f.end_snapshot >= span.first),
    )
    rows = connection.execute(
        known.where(_f.data_file_id.in_(sa.select(touched.c.data_file_id)))
    ).all()
    ends: dict[int, int | None] = {row[0]: row[1] for row in rows}
    for missing in chunks(sorted(more - set(ends)), _MANY):
        some = connection.execute(known.where(_f.data_file_id.in_(missing)))
        ends.update((number, end) for number, end in some)
    return ends


def deletes_of(
    connection: sa.Connection, table: TableVersion, files: Collection[int], span: Span | None = None
) -> dict[int, tuple[FeedDeletes, ...]]:
    """Return the delete files of data files, oldest first: those that a span sees, or all.

    There may be those of other files, too. One statement.
    """
    query: sa.Select[Any] = sa.select(
        *(_d.data_file_id, _d.path, _d.path_is_relative, _d.format),
        *(_d.delete_count, _d.encryption_key, _d.delete_file_id, _d.begin_snapshot),
    ).where(_d.table_id == table.id)
    if span is not None:
        is_seen = sa.or_(_d.end_snapshot.is_(None), _d.end_snapshot >= span.first)
        query = query.where(_d.begin_snapshot <= span.last, is_seen)
    if len(files) <= _MANY:
        query = query.where(_d.data_file_id.in_(sorted(files)))
    by_file: dict[int, list[FeedDeletes]] = defaultdict(list)
    rows = connection.execute(query.order_by(_d.begin_snapshot, _d.delete_file_id))
    for number, path, is_relative, kind, count, key, delete_id, begin in rows:
        place = sealed_place(table, path, is_relative, key)
        file = DeleteFile(place, delete_format(table, path, kind), count, delete_id)
        by_file[number].append(FeedDeletes(file, begin))
    return {number: tuple(deletes) for number, deletes in by_file.items()}


def positions_of(
    connection: sa.Connection, table: TableVersion, last: int, files: Collection[int] | None = None
) -> dict[int, tuple[tuple[int, int], ...]]:
    """Return the positions that the catalog itself lists as deleted up to a snapshot, with theirs.

    By data file id. Those of other files may be there, too. The table of them exists. One
    statement.
    """
    query = queries.inlined_deletes_at(queries.inlined_delete_table(table.id), last)
    if files is not None and len(files) <= _MANY:
        query = query.where(query.selected_columns.file_id.in_(sorted(files)))
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for number, position, at in connection.execute(query):
        found[number].append((position, at))
    return {number: tuple(gone) for number, gone in found.items()}
