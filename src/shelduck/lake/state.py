"""The state that all objects of one connected lake share, and its signs of life.

The writers and workers of a process renew their leases while they are busy.
"""

from __future__ import annotations

import os
import socket
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from functools import cached_property
from pathlib import Path
from typing import Self, TypeVar

from shelduck.catalog.databases.store import Store, write_with_retries
from shelduck.catalog.read import read
from shelduck.catalog.read.kept_tables import KeptTables
from shelduck.catalog.read.read import Connection
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
from shelduck.catalog.schema.lake_schema import LakeInfo
from shelduck.engine.files.reaching import reach, require_connector
from shelduck.engine.session import SparkSession, is_stopped, session_for, time_zone
from shelduck.engine.stores.homes import hide_secrets_in_log
from shelduck.errors import InvalidRequest, NotFound, ShelduckError, Unsupported
from shelduck.lake.results import TableName
from shelduck.model.changes.change import CommitInfo
from shelduck.model.changes.job import BEAT
from shelduck.model.files.storage_settings import StorageSettings
from shelduck.model.tables.schema import TableId
from shelduck.model.tables.table_version import DEFAULT_SCHEMA, Conversion, Snapshot, TableVersion
from shelduck.model.text.intervals import whole_number
from shelduck.read.file_lists import FileLists
from shelduck.read.table_rows import KeptInlined, LayoutMemory
from shelduck.text.tokens.filter_literals import zone_named

Renewal = Callable[[Connection, Collection[str]], None]
"""What renews the leases of names, each function those of one kind."""
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
        self._held: dict[Renewal, set[str]] = {}
        self._rest = threading.Event()
        self._thread: threading.Thread | None = None

    @contextmanager
    def holding(self, renewal: Renewal, name: str) -> Iterator[None]:
        """Renew the leases of a writer, worker or maintainer inside a ``with`` block."""
        self.hold(renewal, name)
        try:
            yield
        finally:
            self.release(renewal, name)

    def hold(self, renewal: Renewal, name: str) -> None:
        """Have ``renewal`` called for a name until it is released."""
        with self._lock:
            self._held.setdefault(renewal, set()).add(name)
            if self._thread is None:
                self._rest = threading.Event()
                self._thread = threading.Thread(
                    target=self._run, args=(self._rest,), name="shelduck leases", daemon=True
                )
                self._thread.start()

    def release(self, renewal: Renewal, name: str) -> None:
        """Stop renewing the leases of a name."""
        with self._lock:
            self._held.get(renewal, set()).discard(name)
            if not any(self._held.values()) and self._thread is not None:
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
            held = {renewal: set(names) for renewal, names in self._held.items() if names}
        with self._store.write() as connection:
            for renewal, names in held.items():
                renewal(connection, names)


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
                self._leases.hold(renew_writers, self._id)
            if job is None or not job.is_understood:
                # A job that only a newer Shelduck understands converts rows that lack its columns.
                self._tables[table.id] = ()
            else:
                self._tables[table.id] = job.work.conversions
        return replace(table, conversions=self._tables[table.id])

    def ended(self) -> None:
        """Note that the commit has removed it from the catalog."""
        if self._tables:
            self._leases.release(renew_writers, self._id)
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
        with self._leases.holding(renew_upkeep, self._id):
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


class Current(threading.local):
    """What statements have chosen, for the thread that ran them alone: the schema of USE.

    In each thread it begins as ``schema``.
    """

    def __init__(self, schema: str = DEFAULT_SCHEMA) -> None:
        self.schema = schema

    def undo(self) -> Callable[[], None]:
        """Return what gives the thread that calls this its schema of now again, from any thread."""
        here, schema = vars(self), self.schema
        return lambda: here.update(schema=schema)


@dataclass
class LakeState:
    """The catalog, the Spark session (created when first needed) and what is known of files."""

    store: Store
    info: LakeInfo
    given_spark: SparkSession | None = None
    author: str | None = None
    current: Current = field(default_factory=Current)
    layouts: LayoutMemory = field(default_factory=LayoutMemory)
    lists: FileLists = field(default_factory=FileLists)
    inlined: KeptInlined = field(default_factory=KeptInlined)
    show_progress: bool | None = None
    storage: StorageSettings = field(default_factory=StorageSettings)
    ntz: bool = False
    """Whether a bare TIMESTAMP in a declaration has no time zone, as in DuckDB."""
    config: dict[str, str] = field(default_factory=dict)
    """Settings of the session if one is made."""
    starts_spark: bool = True
    """Whether a session is made when one is needed."""
    branch: str = ""
    """The branch that names of tables of its source mean, empty for none."""
    trust_views: bool = False
    """Whether views may run whatever the catalog says; see `require_harmless`."""
    commits: Counter[int] = field(default_factory=Counter)
    """How many snapshots the lake's calls have made, by thread."""
    leases: Leases = field(init=False)
    tables: KeptTables = field(init=False)

    def __post_init__(self) -> None:
        self.leases = Leases(self.store)
        self.tables = KeptTables(self.info)
        reach(self.info.data_path, self.storage, self.given_spark)
        if self.info.encrypted:
            hide_secrets_in_log()
            self.store.hide_values()

    def __repr__(self) -> str:
        return f"LakeState({self.store.where!r})"

    @property
    def spark(self) -> SparkSession:
        """The session that the user passed, otherwise the active one, otherwise a new local one."""
        if self.given_spark is None:
            if not self.starts_spark:
                raise Unsupported(
                    "this needs Spark, which the page does not start; use the command line"
                )
            self.given_spark = session_for(self.config)
            self.require_spark_reaches(self.given_spark)
        if is_stopped(self.given_spark):
            raise InvalidRequest(
                "the Spark session of this lake was stopped; connect again with a running one"
            )
        return self.given_spark

    @property
    def has_spark(self) -> bool:
        """Whether the lake has a session that runs; it makes none."""
        return self.given_spark is not None and not is_stopped(self.given_spark)

    @property
    def zone(self) -> str:
        """The name of the time zone in which expressions are made; empty if nobody has set one."""
        return time_zone(self.given_spark, self.config) or ""

    def time_zone(self) -> tzinfo | None:
        """Return the time zone in which people write times without an offset.

        It is that of the session, or the one that a session of this lake would have; None is that
        of the machine. Raises InvalidRequest if Python does not know it.
        """
        name = time_zone(self.given_spark, self.config)
        if name is None:
            return None
        found = zone_named(name)
        if found is None:
            raise InvalidRequest(
                f"the session's time zone {name!r} is not known here; write the time with an"
                " offset, such as 2026-01-31 12:30:00+00:00"
            )
        return found

    def require_spark_reaches(self, spark: SparkSession) -> None:
        """Let a session reach the lake's files; Unsupported if it lacks the connector."""
        reach(self.info.data_path, self.storage, spark)
        require_connector(spark, self.info.data_path, encrypted=self.info.encrypted)

    def commit_info(self, message: str | None = None, extra_info: str | None = None) -> CommitInfo:
        """Return author, message and extra info for a commit of this lake."""
        return CommitInfo(self.author, message, extra_info)


class Base:
    """The snapshot that was the newest at the first use; each of its tables is read once."""

    def __init__(self, state: LakeState) -> None:
        self._state = state
        self._snapshot: Snapshot | None = None
        self._connection: Connection | None = None
        self._tables: dict[TableName, TableVersion] = {}

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot itself."""
        if self._snapshot is None:
            with self.reading():
                pass
        assert self._snapshot is not None
        return self._snapshot

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a connection to read the catalog, which all calls inside share."""
        with self._connected() as connection:
            if self._snapshot is None:
                self._snapshot = read.snapshot(connection)
            yield connection

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        if self._connection is not None:
            yield self._connection
            return
        with self._state.store.read() as connection:
            self._connection = connection
            try:
                yield connection
            finally:
                self._connection = None

    def table(self, name: TableName) -> TableVersion:
        """Return a table by name or raise NotFound; the first one finds the snapshot too."""
        if name not in self._tables:
            with self._connected() as connection:
                kept = self._state.tables
                found = kept.table(connection, name.home, name.name, self._snapshot)
            self._snapshot = found.snapshot
            self._tables[name] = found
        return self._tables[name]
