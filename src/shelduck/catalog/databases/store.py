"""Transactions on a catalog database: one class, three databases below it.

    store = open_store("sqlite:////data/lake.db")
    with store.read() as connection:     # one consistent view
        connection.execute(select(...))
    with store.write() as connection:    # the write lock is held from the first statement on
        connection.execute(insert(...))  # committed at the end, rolled back by an exception

A unit of work raises errors of `shelduck.errors` instead of the driver's, chosen by error class or
code, never by message: `Contention` (run it again), `CatalogUnavailable`, `OutcomeUnknown`,
`CorruptLake`, also for a statement that the database refuses: all statements fit a sound catalog.
"""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from shelduck import clock
from shelduck.catalog.databases.address import Address, parse_address
from shelduck.catalog.databases.database import Contention, Database, Failure
from shelduck.catalog.databases.group import Group
from shelduck.catalog.databases.known import DATABASES, EXPECTED, dialect_of, misnamed_tables
from shelduck.ducklake import tables
from shelduck.ducklake.checked import BrokenValue
from shelduck.ducklake.format import OLDEST, Format, follow, format_of, options_of
from shelduck.errors import (
    CatalogUnavailable,
    CorruptLake,
    InvalidRequest,
    LakeChanged,
    OutcomeUnknown,
    ShelduckError,
    missing_extra,
)
from shelduck.metrics import RETRIES, record
from shelduck.model.text.names import require_characters

P = ParamSpec("P")
T = TypeVar("T")


class Store:
    """A catalog database and its transactions; threads may share it.

    Units of work do not nest: a `write` inside a `write` finds the catalog locked.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self.kind = database.kind
        self._address = Address(database.url)
        self.where = self._address.shown
        """The address without its secrets, for printing."""
        self.statements = 0
        """Number of statements that callers executed; BEGIN, lock and COMMIT are not counted."""
        self.has_own_tables = False
        """Whether this process has seen all tables of Shelduck: see `own_tables.if_known`."""
        self._engine = database.make_engine()
        self._driver_error = self._engine.dialect.loaded_dbapi.Error
        # Reentrant: a write inside a write must end with an error of the database, not hang.
        self._writer = threading.RLock()
        sa.event.listen(self._engine, "before_cursor_execute", self._before)
        self._group = Group(self)
        self.use(OLDEST)

    @property
    def format(self) -> Format:
        """The version of DuckLake that the lake has, as far as this process knows."""
        return format_of(self._engine)

    def use(self, known: Format) -> None:
        """Let transactions that begin from now on work in this version of DuckLake."""
        self._engine.update_execution_options(**options_of(known))

    def hide_values(self) -> None:
        """Show no values of statements in logs and errors."""
        self._engine.hide_parameters = True

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """Provide a connection whose statements all see one state of the catalog."""
        with self._transaction(self.database.begin_read) as connection:
            yield connection

    def ask(
        self, question: Callable[Concatenate[sa.Connection, P], T], *args: P.args, **more: P.kwargs
    ) -> T:
        """Call a question with a connection of `read`, and return what it returns."""
        with self.read() as connection:
            return question(connection, *args, **more)

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """Provide a connection that holds the catalog's write lock; commit at the end.

        If there is an exception, roll back: nothing was written. `OutcomeUnknown` says that the
        connection broke during COMMIT. DuckDB writers do not take our lock; on PostgreSQL, a race
        with them is a `Contention`.
        """
        with self._writer, self._transaction(self.database.begin_write) as connection:
            yield connection

    def write_together(self, act: Callable[[sa.Connection], T]) -> T:
        """Return what ``act`` returns in a transaction as `write` provides it, which is committed.

        Threads that call this at the same time may share the transaction, each with its own
        outcome: see `shelduck.catalog.databases.group`.
        """
        if not self.database.has_savepoints or self._group.is_mine:
            with self.write() as connection:
                return act(connection)
        return self._group.run(act)

    def pipelined(self, connection: sa.Connection) -> AbstractContextManager[Any]:
        """Send INSERTs and CREATEs in one round trip to a server; errors come at the end.

        Nothing may ask for rows or their number inside.
        """
        return self.database.pipeline(_driver_connection(connection))

    def translated(self, connection: sa.Connection, error: Exception) -> Exception:
        """Return the error of `shelduck.errors` for one that was raised inside a transaction."""
        if isinstance(error, BrokenValue):
            error.locate(connection)
        try:
            self._require_known_format(error)
            self._translate(error)
        except ShelduckError as found:
            return found
        return error

    def session(self) -> AbstractContextManager[None]:
        """Keep a DuckDB file open for several units of work, so that it is opened only once.

        Nobody else can open the file during this time. On other databases, this does nothing.
        """
        return self.database.session()

    def exists(self) -> bool:
        """Return whether the database file exists, without creating it."""
        return self.database.exists()

    def table_names(self, connection: sa.Connection) -> set[str]:
        """Return the names of all tables in the lake's schema of the database."""
        return set(connection.execute(sa.text(dialect_of(connection).tables)).scalars())

    def index_names(self, connection: sa.Connection) -> set[str]:
        """Return the names of all indexes in the lake's schema of the database."""
        return set(connection.execute(sa.text(dialect_of(connection).indexes)).scalars())

    def close(self) -> None:
        """Close pooled connections; the store opens new ones on its next use."""
        self._engine.dispose()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sa.Connection]:
        connection = self._begin(begin)
        writes = begin == self.database.begin_write
        try:
            try:
                yield connection
            except BaseException as error:
                if isinstance(error, BrokenValue):
                    error.locate(connection)
                self._roll_back(connection, error)
                self._require_known_format(error)
                self._translate(error)
                raise
            if writes:
                self._commit(connection)
            else:
                self._end_read(connection)
        except BaseException:
            connection.close()
            raise
        try:
            connection.close()
        except BaseException as error:
            if not writes:
                raise
            raise self._unknown("the connection did not close") from error

    def _begin(self, begin: str) -> sa.Connection:
        try:
            return self._try_to_begin(begin)
        except (DBAPIError, self._driver_error) as error:
            if self._classify(error) is not Failure.UNAVAILABLE or not self.database.is_server:
                self._translate(error)
                raise self._unusable(error) from error
        # The server has closed a pooled connection in the meantime; nothing was sent on it yet.
        self._engine.dispose()
        try:
            return self._try_to_begin(begin)
        except (DBAPIError, self._driver_error) as error:
            self._translate(error)
            raise self._unusable(error) from error

    def _try_to_begin(self, begin: str) -> sa.Connection:
        try:
            connection = self._engine.connect()
        except (TypeError, ValueError, SQLAlchemyError) as error:
            if isinstance(error, DBAPIError):
                raise
            # Options of the address that the driver does not accept.
            raise self._unusable(error) from error
        try:
            connection.begin()
            _driver_connection(connection).execute(begin)
        except BaseException:
            connection.invalidate()
            connection.close()
            raise
        return connection

    def _commit(self, connection: sa.Connection) -> None:
        if not self.database.is_transaction_open(_driver_connection(connection)):
            self._roll_back(connection)
            raise CatalogUnavailable(
                f"catalog {self.where} ended the transaction before COMMIT; nothing was written"
            )
        try:
            connection.commit()
        except (DBAPIError, self._driver_error) as error:
            self._roll_back(connection, error)
            self._translate(error, committing=True)
            raise
        except BaseException as interrupted:
            # A Ctrl-C during COMMIT is raised when COMMIT is done, and nobody knows how it ended.
            # Files that it may have published must not be removed.
            connection.invalidate()
            raise self._unknown("it was interrupted") from interrupted

    def _end_read(self, connection: sa.Connection) -> None:
        """End a transaction that has only read; nothing of it can be lost."""
        try:
            # After ROLLBACK, psycopg would forget the statements that the server has prepared.
            connection.commit()
        except (DBAPIError, self._driver_error) as error:
            self._roll_back(connection, error)

    def _unknown(self, why: str) -> OutcomeUnknown:
        return OutcomeUnknown(
            f"the commit to {self.where} may or may not have succeeded ({why}); look for its"
            " snapshot before you repeat it"
        )

    def _roll_back(self, connection: sa.Connection, error: BaseException | None = None) -> None:
        try:
            if not connection.invalidated:
                connection.rollback()
                _driver_connection(connection).rollback()
        except (DBAPIError, self._driver_error):
            connection.invalidate()
        if error is not None and self._classify(error) is Failure.UNAVAILABLE:
            # It may be broken for good: the next transaction gets a new one.
            connection.invalidate()

    def _unusable(self, error: BaseException) -> InvalidRequest:
        """Return the error for an address that the driver does not understand."""
        self._address.hide_in(error)
        cause = error.orig if isinstance(error, DBAPIError) else error
        return InvalidRequest(
            f"catalog {self.where} cannot be opened: {cause}; correct its address"
        )

    def _require_known_format(self, error: BaseException) -> None:
        """Raise a better error if a statement failed because somebody has migrated the lake."""
        is_statement = isinstance(error, DBAPIError) and self._classify(error) is Failure.OTHER
        if not is_statement and not isinstance(error, CorruptLake):
            return
        was = self.format.version
        try:
            with self._engine.connect() as connection:
                is_other = follow(connection, connection.execute(_VERSION).scalar())
                wrong = [] if is_other else misnamed_tables(connection)
        except (DBAPIError, CorruptLake):
            return
        if is_other:
            raise LakeChanged(
                f"somebody migrated the lake in {self.where} from DuckLake {was} to"
                f" {self.format.version} in the meantime; run the statement again"
            ) from error
        for name in (each.table for each in wrong):
            if re.search(rf"\b{name}\b", str(error)):
                raise CorruptLake(
                    f"the columns of {name} do not have the names of DuckLake {was}: somebody made"
                    " it who had not noticed a migration of the lake; run shelduck check --repair"
                ) from error

    def _classify(self, error: BaseException, *, committing: bool = False) -> Failure:
        cause = error.orig if isinstance(error, DBAPIError) and error.orig else error
        if not isinstance(cause, self._driver_error):
            return Failure.OTHER
        return self.database.classify(cause, committing=committing)

    def _translate(self, error: BaseException, *, committing: bool = False) -> None:
        """Raise the error that the caller should see, or return if it is the caller's own."""
        if isinstance(error, OverflowError):
            raise InvalidRequest("a number has more than the 64 bits of the catalog") from error
        failure = self._classify(error, committing=committing)
        self._address.hide_in(error)
        cause = error.orig if isinstance(error, DBAPIError) else error
        if failure is Failure.OTHER:
            if not isinstance(error, DBAPIError | self._driver_error):
                return
            raise CorruptLake(
                f"catalog {self.where} cannot answer a statement: {cause}; its tables are not those"
                f" of DuckLake {self.format.version}, or hold a value that is not valid:"
                " restore it from a backup"
            ) from error
        told = str(cause).strip().split("\n", maxsplit=1)[0]
        way_out = self.database.way_out(told)
        raise _ERRORS[failure](
            f"catalog {self.where}: {failure.value} ({told}){'; ' if way_out else ''}{way_out}"
        ) from error

    def _before(
        self, _connection: sa.Connection, _cursor: object, _statement: str, values: Any, *_: object
    ) -> None:
        """Count a statement, and refuse texts that the database cannot hold."""
        self.statements += 1
        refused, by = self.database.cannot_hold, f"no {self.kind} catalog"
        for value in _texts(values):
            require_characters(value, "the text", refused, by)


_VERSION = sa.select(tables.metadata.c.value).where(tables.IS_VERSION)
_ERRORS: dict[Failure, type[ShelduckError]] = {
    Failure.RETRYABLE: Contention,
    Failure.UNAVAILABLE: CatalogUnavailable,
    Failure.DENIED: CatalogUnavailable,
    Failure.OUTCOME_UNKNOWN: OutcomeUnknown,
    Failure.CORRUPT: CorruptLake,
}


def open_store(url: str) -> Store:
    """Return the store at a URL; nothing is opened or created before its first use.

    ``sqlite:////absolute.db`` or ``sqlite:///relative.db``, ``postgresql://user@host/database``,
    ``duckdb:////absolute.ducklake``.
    """
    address = parse_address(url)
    database = DATABASES.get(address.kind)
    if database is None:
        raise InvalidRequest(f"unknown catalog database {address.kind!r}; {EXPECTED}")
    try:
        return Store(database(address.url))
    except ModuleNotFoundError as error:
        raise InvalidRequest(missing_extra(error.name, database.extra)) from error
    except ShelduckError:
        raise
    except (SQLAlchemyError, TypeError, ValueError) as error:
        address.hide_in(error)
        raise InvalidRequest(
            f"catalog {address} cannot be opened: {error}; correct its address"
        ) from error


def _texts(values: Any) -> Iterator[str]:
    """Yield the texts among the values of a statement: one row of them, or several."""
    for value in values.values() if isinstance(values, dict) else values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict | tuple | list):
            yield from _texts(value)


def _driver_connection(connection: sa.Connection) -> Any:
    return connection.connection.dbapi_connection


ATTEMPTS = 10
FIRST_WAIT = 0.02
GROWTH = 1.6


def write_with_retries(store: Store, act: Callable[[sa.Connection], T]) -> T:
    """Return what ``act`` returns in a transaction of `Store.write_together`.

    All of it runs again while it raises Contention.
    """
    return with_retries(lambda: store.write_together(act))


def with_retries(
    attempt: Callable[[], T],
    sleep: Callable[[float], None] = clock.sleep,
    *,
    lost: type[Exception] = Contention,
) -> T:
    """Return what ``attempt`` returns; run it up to ten times while it raises ``lost``.

    Waits between 0.02 and about 1 s, with jitter so that two losers do not meet again. Every other
    error, and the last ``lost``, goes to the caller.
    """
    for each in tries(sleep):
        with each.may_lose(lost):
            return attempt()
    raise AssertionError("unreachable")


@dataclass(slots=True)
class Try:
    """One of several attempts at the same work."""

    is_last: bool
    before: Exception | None
    """The error to which the attempt before it lost."""
    lost_to: Exception | None = None

    @contextmanager
    def may_lose(
        self, *lost: type[Exception], but: tuple[type[Exception], ...] = ()
    ) -> Iterator[None]:
        """Suppress errors of these kinds in a ``with`` block, except in the last attempt.

        Errors of the kinds ``but`` are never suppressed.
        """
        try:
            yield
        except lost as error:
            if self.is_last or isinstance(error, but):
                raise
            self.lost_to = error
            record(RETRIES, 1, {"error.type": type(error).__name__})


def tries(sleep: Callable[[float], None] = clock.sleep) -> Iterator[Try]:
    """Yield ten attempts; wait before each but the first.

    For work of which only a part is repeated, or that continues in another way; otherwise use
    `with_retries`.
    """
    before = None
    for number in range(ATTEMPTS):
        each = Try(number == ATTEMPTS - 1, before)
        yield each
        before = each.lost_to
        longest = FIRST_WAIT * GROWTH**number
        sleep(random.uniform(longest / 2, longest))  # noqa: S311 - jitter, not a secret
