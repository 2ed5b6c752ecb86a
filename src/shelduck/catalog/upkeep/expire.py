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
from itertools import islice
from typing import Any

import sqlalchemy as sa

from shelduck import clock
from shelduck.catalog.commit.rows.inlined_tables import empty_tables, forget_empty_tables
from shelduck.catalog.commit.settled import carry_over
from shelduck.catalog.databases.known import INLINED_TABLE, dialect_of
from shelduck.catalog.databases.store import Store
from shelduck.catalog.read.inlined_rows import tables_with_rows
from shelduck.catalog.read.queries import chunks, live
from shelduck.catalog.read.twins import bases_of_twins
from shelduck.catalog.running.writers import last_finished
from shelduck.catalog.schema.own_tables import ensure_own_tables, upkeep
from shelduck.catalog.upkeep.few_rows import LotPace
from shelduck.ducklake import tables
from shelduck.errors import InvalidRequest, NotFound
from shelduck.model.tables.schema import SnapshotId
from shelduck.model.tables.twin import BRANCH

_PAGE = 10_000
_snapshot, _changes = tables.snapshot, tables.snapshot_changes
# How many one transaction drops.
_MOST = 20
_SUBJECT = "replaced tables at schema version "
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
    query = sa.select(c.snapshot_id, c.snapshot_time, has_branches)
    query = query.order_by(c.snapshot_id).limit(_PAGE)
    last = -1
    while True:
        with store.read() as connection:
            rows: list[Any] = list(connection.execute(query.where(c.snapshot_id > last)))
        yield from rows
        if len(rows) < _PAGE:
            return
        last = rows[-1].snapshot_id


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

    A session of DuckDB keeps the list until the schema version changes, so a table that leaves it
    here stays in the database until then. Raises CorruptLake for a listed table of another name.
    """
    with store.read() as connection:
        names = [] if last_finished(connection, _subject(connection)) else _unlisted(connection)
        has_empty = bool(empty_tables(connection))
    for some in chunks(names, _MOST):
        pace.write(store, partial(_drop, some))
    if has_empty:
        pace.write(store, partial(_forget, store))


def _subject(connection: sa.Connection) -> str:
    newest = sa.select(sa.func.max(_snapshot.c.schema_version))
    return f"{_SUBJECT}{connection.execute(newest).scalar()}"


def _forget(store: Store, connection: sa.Connection) -> None:
    ensure_own_tables(store, connection)
    connection.execute(sa.delete(upkeep).where(upkeep.c.subject.startswith(_SUBJECT)))
    noted = {"subject": _subject(connection), "heartbeat": clock.now(), "finished": clock.now()}
    connection.execute(sa.insert(upkeep), noted)
    forget_empty_tables(connection)


def _unlisted(connection: sa.Connection) -> list[str]:
    """Return empty tables for inlined rows that are not listed, and that nobody reads."""
    listed = set(connection.execute(sa.select(_r.table_name)).scalars())
    dialect = dialect_of(connection)
    if dialect.in_use is not None:
        listed.update(connection.execute(sa.text(dialect.in_use)).scalars())
    present = set(connection.execute(sa.text(dialect.tables)).scalars())
    names = [n for n in present - listed if INLINED_TABLE.fullmatch(n)]
    return sorted({*names} - tables_with_rows(connection, names, lambda _: ()))


def _drop(names: Sequence[str], connection: sa.Connection) -> None:
    # Another expiry may have been faster.
    for name in sorted({*names}.intersection(_unlisted(connection))):
        connection.execute(sa.text(f"DROP TABLE {name}"))
