"""Which snapshots expire, and their rows; `shelduck.catalog.upkeep.sweep` removes what they saw.

The effect of both is that of DuckDB's ``expire_snapshots``, row by row; it makes no snapshot.
Empty tables for inlined rows that an ALTER has replaced go as well: DuckDB leaves them.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import chain, islice

import sqlalchemy as sa

from shelduck import clock
from shelduck.catalog.commit.rows.inlined_tables import empty_tables, forget_empty_tables
from shelduck.catalog.commit.settled import carry_over
from shelduck.catalog.databases.known import INLINED_TABLE, dialect_of
from shelduck.catalog.databases.store import Store
from shelduck.catalog.read.inlined_rows import tables_with_rows
from shelduck.catalog.read.queries import chunks, live
from shelduck.catalog.read.twins import bases_of_twins
from shelduck.catalog.schema.own_tables import ensure_own_tables, upkeep
from shelduck.catalog.upkeep.few_rows import LotPace, row_pages
from shelduck.ducklake import tables
from shelduck.errors import InvalidRequest, NotFound
from shelduck.model.tables.schema import SnapshotId
from shelduck.model.tables.twin import BRANCH

_PAGE = 10_000
_snapshot, _changes = tables.snapshot, tables.snapshot_changes
# How many one transaction drops.
_MOST = 20
# Followed by the name of the table, and the schema version.
_SUBJECT = "replaced table "
_r = tables.inlined_data_tables.c


@dataclass(frozen=True, slots=True)
class ExpiryRequest:
    """Which snapshots expire: those that meet all given conditions; never the newest.

    ``versions`` are ids, ``older_than`` a time, ``retain_last`` how many of the newest stay.
    """

    versions: tuple[int, ...] | None = None
    older_than: datetime | None = None
    retain_last: int | None = None


class Remaining:
    """The snapshots that remain, as they were when somebody looked."""

    def __init__(self, ids: Sequence[int]) -> None:
        """Keep the ids, in ascending order; there is at least one."""
        self._ids = ids

    def see(self, begin: int, end: int | None) -> bool:
        """Return whether one of them, or a newer snapshot, may see a row of these snapshots."""
        if end is None or end > self._ids[-1]:
            return True
        at = bisect_left(self._ids, begin)
        return at < len(self._ids) and self._ids[at] < end


@dataclass(frozen=True, slots=True)
class ExpiryChoice:
    """The snapshots that expire, oldest first, and those that remain.

    ``has_branches``: the lake has branches or tags, which may have a time.
    """

    expired: Sequence[int]
    remaining: Remaining
    has_branches: bool


def choose(store: Store, request: ExpiryRequest) -> ExpiryChoice:
    """Return which snapshots expire; each transaction reads 10,000 of them.

    Those from which a merge of a branch starts stay. Raises NotFound for a version that does not
    exist, InvalidRequest for the newest.
    """
    ids, times, has_branches = array("q"), [], False
    for number, time, is_branched in _snapshots(store):
        ids.append(number)
        has_branches = is_branched
        if request.older_than is not None:
            times.append(time < request.older_than)
    last = len(ids) - max(1, request.retain_last or 1)
    kept: set[int] = set()
    if has_branches:
        kept = store.ask(bases_of_twins)
    wanted = None if request.versions is None else _known(request.versions, ids)
    expired, remaining = array("q"), array("q")
    for at, number in enumerate(ids):
        is_old = at < last and (not times or times[at])
        goes = is_old and (wanted is None or number in wanted) and number not in kept
        (expired if goes else remaining).append(number)
    return ExpiryChoice(expired, Remaining(remaining), has_branches)


def _snapshots(store: Store) -> Iterator[tuple[int, datetime, bool]]:
    c, tag = _snapshot.c, tables.tag
    has_branches = sa.exists().where(tag.c.key == BRANCH, live(tag)).label("has_branches")
    query = sa.select(c.snapshot_id, c.snapshot_time, has_branches).order_by(c.snapshot_id)
    return chain.from_iterable(row_pages(store, c.snapshot_id, _PAGE, query))


def _known(versions: Sequence[int], ids: Sequence[int]) -> set[int]:
    wanted, known = set(versions), set(ids)
    missing = next((v for v in versions if v not in known), None)
    if missing is not None:
        raise NotFound(
            f"snapshot {missing} does not exist or has already expired", about="snapshot"
        )
    if ids[-1] in wanted:
        raise InvalidRequest(f"snapshot {ids[-1]} is the newest one and cannot expire")
    return wanted


def remove_snapshots(store: Store, ids: Iterable[int], pace: LotPace) -> None:
    """Remove the rows of these snapshots, some in a transaction: nobody can read them any more.

    Each has two rows.
    """
    left = iter(ids)
    while lot := list(islice(left, max(1, pace.rows // 2))):
        pace.write(store, partial(_remove, lot))


def _remove(ids: Sequence[int], connection: sa.Connection) -> None:
    carry_over(connection, SnapshotId(max(ids)))
    for some in chunks(ids):
        for source in (_snapshot, _changes):
            connection.execute(sa.delete(source).where(source.c.snapshot_id.in_(some)))


def remove_empty_tables(store: Store, pace: LotPace) -> None:
    """Take empty, replaced tables off the list, and drop those that nobody can know any more.

    A session of DuckDB keeps the list that it read with a schema version, also to read older
    snapshots. So a table that has left the list stays until all snapshots are of a newer version.
    Raises CorruptLake for a listed table of another name.
    """
    with store.read() as connection:
        has_empty = bool(empty_tables(connection))
        unlisted = _unlisted(connection)
    if has_empty or unlisted:
        gone = pace.write(store, partial(_forget, store))
        for some in chunks(gone, _MOST):
            pace.write(store, partial(_drop, some))


def _forget(store: Store, connection: sa.Connection) -> list[str]:
    """Note the schema version at which each table had left the list; return those that may go."""
    ensure_own_tables(store, connection)
    forget_empty_tables(connection)
    version = _snapshot.c.schema_version
    oldest, newest = connection.execute(sa.select(sa.func.min(version), sa.func.max(version))).one()
    noted = sa.select(upkeep.c.subject).where(upkeep.c.subject.startswith(_SUBJECT))
    subjects = connection.execute(noted).scalars()
    known = dict(text.removeprefix(_SUBJECT).split(" ") for text in subjects)
    unlisted = _unlisted(connection)
    for name in known.keys() - _present(connection):
        subject = f"{_SUBJECT}{name} {known[name]}"
        connection.execute(sa.delete(upkeep).where(upkeep.c.subject == subject))
    now = clock.now()
    new = [f"{_SUBJECT}{name} {newest}" for name in unlisted if name not in known]
    if new:
        rows = [{"subject": subject, "heartbeat": now, "finished": now} for subject in new]
        connection.execute(sa.insert(upkeep), rows)
    return [name for name in unlisted if int(known.get(name, newest)) < oldest]


def _present(connection: sa.Connection) -> set[str]:
    return set(connection.execute(sa.text(dialect_of(connection).tables)).scalars())


def _unlisted(connection: sa.Connection) -> list[str]:
    """Return empty tables for inlined rows that are not listed."""
    listed = set(connection.execute(sa.select(_r.table_name)).scalars())
    names = [n for n in _present(connection) - listed if INLINED_TABLE.fullmatch(n)]
    return sorted({*names} - tables_with_rows(connection, names, lambda _: ()))


def _drop(names: Sequence[str], connection: sa.Connection) -> None:
    # Another expiry may have been faster, and nobody who reads one waits.
    left = {*names}.intersection(_unlisted(connection))
    in_use = dialect_of(connection).in_use
    if in_use is not None:
        left.difference_update(connection.execute(sa.text(in_use)).scalars())
    for name in sorted(left):
        connection.execute(sa.text(f"DROP TABLE {name}"))
