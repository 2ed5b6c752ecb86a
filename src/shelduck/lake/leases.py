"""Signs of life of this process: its writers and workers renew their leases while they are busy."""

from __future__ import annotations

import os
import socket
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Self, TypeVar

from shelduck.catalog.databases.store import Store, write_with_retries
from shelduck.catalog.running.job_rows import renew_workers
from shelduck.catalog.running.writers import (
    claim_upkeep,
    forget_upkeep,
    forget_writers,
    maintainer,
    register_writer,
    release_upkeep,
    renew_upkeep,
    renew_writers,
)
from shelduck.errors import NotFound, ShelduckError
from shelduck.model.changes.job import BEAT
from shelduck.model.tables.schema import TableId
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.tables.writable import Conversion
from shelduck.model.text.intervals import whole_number

_SOONER = 5
"""How much sooner leases are renewed again if it has just failed."""


class Leases:
    """Renews leases from a thread that runs only while there are leases to renew.

    Threads may share it. ``beat`` is in seconds.
    """

    def __init__(self, store: Store, beat: float = BEAT.total_seconds()) -> None:
        self._store = store
        self._beat = beat
        self._lock = threading.Lock()
        self._writers: set[str] = set()
        self._workers: set[str] = set()
        self._maintainers: set[str] = set()
        self._rest = threading.Event()
        self._thread: threading.Thread | None = None

    def hold_writer(self, writer: str) -> None:
        """Renew the lease of a writer until it is released."""
        self._hold(self._writers, writer)

    def release_writer(self, writer: str) -> None:
        """Stop renewing the lease of a writer."""
        self._release(self._writers, writer)

    def worker(self, worker: str) -> AbstractContextManager[None]:
        """Renew the lease of a worker inside a ``with`` block."""
        return self._holding(self._workers, worker)

    def maintainer(self, maintainer: str) -> AbstractContextManager[None]:
        """Renew the claims of a maintainer inside a ``with`` block."""
        return self._holding(self._maintainers, maintainer)

    @contextmanager
    def _holding(self, held: set[str], name: str) -> Iterator[None]:
        self._hold(held, name)
        try:
            yield
        finally:
            self._release(held, name)

    def _hold(self, held: set[str], name: str) -> None:
        with self._lock:
            held.add(name)
            if self._thread is None:
                self._rest = threading.Event()
                self._thread = threading.Thread(
                    target=self._run, args=(self._rest,), name="shelduck leases", daemon=True
                )
                self._thread.start()

    def _release(self, held: set[str], name: str) -> None:
        with self._lock:
            held.discard(name)
            busy = self._writers or self._workers or self._maintainers
            if not busy and self._thread is not None:
                self._rest.set()
                self._thread = None

    def _run(self, rest: threading.Event) -> None:
        pause = self._beat
        while not rest.wait(pause):
            # If this fails, the catalog is most likely busy or unavailable. A lease lasts several
            # beats, and the writer or worker finds out at the commit what is wrong.
            pause = self._beat / _SOONER
            with suppress(Exception):
                self._renew()
                pause = self._beat

    def _renew(self) -> None:
        with self._lock:
            writers, workers = set(self._writers), set(self._workers)
            maintainers = set(self._maintainers)
        with self._store.write() as connection:
            if writers:
                renew_writers(connection, writers)
            if workers:
                renew_workers(connection, workers)
            if maintainers:
                renew_upkeep(connection, maintainers)


def new_identity() -> str:
    """Return a unique name for a writer or worker of this process."""
    return f"{_place()}/{os.getpid()}/{uuid.uuid4()}"


def is_gone(identity: str | None) -> bool:
    """Return whether its process is known to be dead; False if unknown, or if there is none."""
    if identity is None:
        return False
    place, _, rest = identity.partition("/")
    process = whole_number(rest.partition("/")[0], 9)
    if place != _place() or process is None:
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _place() -> str:
    """Return the host and the container in which process ids are unique."""
    try:
        space = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        space = ""
    return f"{socket.gethostname()}{space}"


class Writer:
    """The writer of one commit, to any number of tables.

    If a job began before `register`, the writer serves it: the returned table version says what the
    job converts. A job that begins later waits until `ended`, or until this process is dead.
    """

    def __init__(self, store: Store, leases: Leases) -> None:
        self._store = store
        self._leases = leases
        self._tables: dict[TableId, tuple[Conversion, ...]] = {}

    @cached_property
    def _id(self) -> str:
        # Every query makes a unit of work with a writer, but few of them write.
        return new_identity()

    @property
    def registered(self) -> dict[str, int]:
        """The commit removes it from the catalog: the name, and how many tables it wrote to."""
        return {self._id: len(self._tables)} if self._tables else {}

    def register(self, table: TableVersion) -> TableVersion:
        """Register once for a table, and return it with the conversions of its open job."""
        if table.id < 0:
            return table
        if table.id not in self._tables:
            job = register_writer(self._store, self._id, table.id)
            if not self._tables:
                self._leases.hold_writer(self._id)
            if job is None or not job.is_understood:
                # A job that only a newer Shelduck understands converts rows that lack its columns.
                self._tables[table.id] = ()
            else:
                self._tables[table.id] = job.work.conversions
        return replace(table, conversions=self._tables[table.id])

    def ended(self) -> None:
        """Note that the commit has removed it from the catalog."""
        if self._tables:
            self._leases.release_writer(self._id)
            self._tables.clear()

    def give_up(self) -> None:
        """Remove it from the catalog without a commit."""
        if not self._tables:
            return
        self.ended()
        # If the catalog is unavailable, the earlier error says more; the lease ends by itself.
        with suppress(ShelduckError):
            write_with_retries(self._store, lambda c: forget_writers(c, [self._id]))


@dataclass
class Claim:
    """The claim of a maintainer; set ``is_done`` once it is maintained."""

    is_mine: bool
    is_done: bool = False


class Maintainer:
    """Does maintenance on behalf of one call; dead ones lose their claims with their lease."""

    def __init__(self, store: Store, leases: Leases) -> None:
        self._store = store
        self._leases = leases
        self._id = new_identity()

    @contextmanager
    def claim(self, subject: str, *, ends: bool = False) -> Iterator[Claim]:
        """Claim a subject inside a ``with`` block; ``is_mine`` is False if somebody else has it.

        With ``ends``, the subject is forgotten when it is released.
        """
        holder = maintainer(self._store, subject)
        gone = holder if is_gone(holder) else None
        claim = Claim(claim_upkeep(self._store, subject, self._id, gone))
        if not claim.is_mine:
            yield claim
            return
        with self._leases.maintainer(self._id):
            try:
                yield claim
            finally:
                # If the catalog is unavailable, the earlier error says more.
                with suppress(ShelduckError):
                    if ends:
                        forget_upkeep(self._store, subject, self._id)
                    else:
                        release_upkeep(self._store, subject, self._id, is_done=claim.is_done)


Thing = TypeVar("Thing")
Result = TypeVar("Result")


class Turns:
    """Processes all things even if some fail; raises the first error at the end."""

    def __init__(self) -> None:
        self._failed: list[Exception] = []

    def each(
        self,
        things: Iterable[Thing],
        act: Callable[[Thing], Result],
        told: Callable[[Thing], str] = "while working on table {}".format,
    ) -> Iterator[Result]:
        """Yield the result for each thing; an error gets a note from ``told`` about its thing.

        Tables that were dropped in the meantime are skipped.
        """
        for thing in things:
            try:
                done = act(thing)
            except Exception as error:  # noqa: BLE001 - raised after the others
                if not (isinstance(error, NotFound) and error.about == "table"):
                    error.add_note(told(thing))
                    self._failed.append(error)
            else:
                yield done

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and self._failed:
            raise self._failed[0]
