"""Signs of life of this process: its writers and workers renew their leases while they are busy."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

from shelduck.catalog.databases.store import Store
from shelduck.catalog.running.jobs import renew_workers
from shelduck.catalog.running.upkeep import renew_upkeep
from shelduck.catalog.running.writers import renew_writers
from shelduck.model.changes.job import BEAT

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
