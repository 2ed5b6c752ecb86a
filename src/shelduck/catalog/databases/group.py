"""Units of work of one process that wait for the catalog's lock: they share a transaction.

Whoever comes first leads: it carries out what waits at that moment, its own work too. Whoever comes
meanwhile waits, and the first of these leads next. So nobody waits for others to come, and a writer
that is alone does what it would do without a group.

Each has its own outcome. If one fails, what it did is rolled back, and the others go on. If the
transaction breaks before COMMIT, the others get a `Contention` and begin again. If COMMIT fails, or
nobody knows how it ended, this is true for each.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import sqlalchemy as sa

from shelduck.catalog.databases.database import Contention
from shelduck.errors import OutcomeUnknown

# Others wait while the lock is held.
T = TypeVar("T")
_MOST = 32
_PART = "SAVEPOINT shelduck_part"


class Writes(Protocol):
    """A store as a group needs it."""

    def write(self) -> AbstractContextManager[sa.Connection]:
        """Provide a transaction that is committed at the end."""

    def translated(self, connection: sa.Connection, error: Exception) -> Exception:
        """Return the error that a caller should see."""


@dataclass(eq=False)
class _Member:
    """One unit of work, and its outcome."""

    act: Callable[[sa.Connection], Any]
    result: Any = None
    error: BaseException | None = None
    is_settled: bool = False
    leads: bool = False
    woken: threading.Event = field(default_factory=threading.Event)

    def succeed(self, result: Any) -> None:
        self.result, self.is_settled = result, True

    def fail(self, error: BaseException) -> None:
        if not self.is_settled:
            self.error, self.is_settled = error, True


class Group:
    """The units of work that wait at one store."""

    def __init__(self, store: Writes) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._waiting: list[_Member] = []
        self._is_led = False
        self._leader: int | None = None

    @property
    def is_mine(self) -> bool:
        """True in the thread that leads: work inside of work would wait for itself."""
        return self._leader == threading.get_ident()

    def run(self, act: Callable[[sa.Connection], T]) -> T:
        """Return what ``act`` returns; any thread that waits at the same time may call it."""
        member = _Member(act)
        try:
            with self._lock:
                self._waiting.append(member)
                member.leads = not self._is_led
                self._is_led = True
            if not member.leads:
                member.woken.wait()
            if member.leads:
                self._lead()
        except BaseException:
            # After Ctrl-C, if a leader has taken the work, nobody hears its outcome.
            with self._lock:
                if member in self._waiting:
                    self._waiting.remove(member)
                    if member.leads:
                        self._pass_on()
            raise
        if member.error is not None:
            raise member.error
        found: T = member.result
        return found

    def _lead(self) -> None:
        members: list[_Member] = []
        try:
            with self._lock:
                self._leader = threading.get_ident()
                members += self._waiting[:_MOST]
                del self._waiting[:_MOST]
            if len(members) == 1:
                with self._store.write() as connection:
                    found = members[0].act(connection)
                members[0].succeed(found)
            else:
                _carry_out(self._store, members)
        finally:
            with self._lock:
                self._waiting = [m for m in self._waiting if m not in members]
                for member in members:
                    member.fail(_interrupted())
                    member.woken.set()
                self._pass_on()

    def _pass_on(self) -> None:
        self._leader, self._is_led = None, bool(self._waiting)
        if self._waiting:
            self._waiting[0].leads = True
            self._waiting[0].woken.set()


def _carry_out(store: Writes, members: Sequence[_Member]) -> None:
    """Carry out units of work in one transaction, and settle each."""
    found: dict[_Member, Any] = {}
    begun = committing = False
    try:
        with store.write() as connection:
            begun = True
            for member in members:
                _carry_out_part(store, connection, member, found)
            committing = True
    except BaseException as error:
        for member in members:
            member.fail(_failure(error, begun=begun, committing=committing))
        if not isinstance(error, Exception):
            raise
    else:
        for member, result in found.items():
            member.succeed(result)


def _carry_out_part(
    store: Writes, connection: sa.Connection, member: _Member, found: dict[_Member, Any]
) -> None:
    driver: Any = connection.connection.dbapi_connection
    driver.execute(_PART)
    try:
        found[member] = member.act(connection)
    except BaseException as error:
        if not isinstance(error, Exception):
            raise
        member.fail(store.translated(connection, error))
        driver.execute(f"ROLLBACK TO {_PART}")
    driver.execute(f"RELEASE {_PART}")


def _failure(error: BaseException, *, begun: bool, committing: bool) -> BaseException:
    """Return what a failed transaction means for one of those that share it."""
    if not isinstance(error, Exception):
        return _interrupted() if committing else _broken()
    return _broken() if begun and not committing else copy(error)


def _broken() -> Contention:
    return Contention("a transaction that several commits shared broke; nothing was written")


def _interrupted() -> OutcomeUnknown:
    return OutcomeUnknown(
        "the commit may or may not have succeeded (it was interrupted); look for its snapshot"
        " before you repeat it"
    )
