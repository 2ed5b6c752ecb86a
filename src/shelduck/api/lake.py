"""A lake: schemas, tables, snapshots, SQL."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from shelduck.api.delta_import import LakeBorders
from shelduck.api.jobs import SchemaChangeJob, jobs_of, run_jobs
from shelduck.api.options import Option, options, set_option
from shelduck.api.results import PlainRows, Result, TableName
from shelduck.api.session import SqlSession
from shelduck.api.state import LakeState
from shelduck.api.statements import run_plain, run_sql
from shelduck.api.transaction import Transaction
from shelduck.api.turns import Turns
from shelduck.api.unit import UnitOfWork
from shelduck.catalog import read as catalog_read
from shelduck.model.batch import Batch
from shelduck.model.options import OptionValue
from shelduck.model.table import Snapshot
from shelduck.spark.session import DataFrame, SparkSession


class Lake(LakeBorders):
    """A connected lake; get one from `connect`."""

    def __init__(self, state: LakeState) -> None:
        super().__init__(state, None)
        self._session = SqlSession(state)

    @property
    def spark(self) -> SparkSession:
        """The Spark session that moves the rows; made when first needed if none was given."""
        return self._state.spark

    @property
    def data_path(self) -> str:
        """Where the files of the lake are, ending in '/'."""
        return self._state.info.data_path

    def sql(self, text: str) -> DataFrame:
        """Run one or several statements; return the rows of the last one as a DataFrame.

        A statement that is not a query returns one row that says what happened: the snapshot, the
        operation, and the rows and files that it wrote. Each statement commits by itself, but for
        those between BEGIN and COMMIT or ROLLBACK: they are one transaction, which this object
        holds open from call to call. They see what was done before them in it. All other calls of
        the lake and its tables stay outside of it. A statement that fails leaves the transaction
        open; closing the lake rolls it back.

        Raises:
            InvalidRequest: a text cannot be read (statement, line and column are told) or names
                what is not there; nothing of ``text`` has run when it cannot be read.
            Unsupported: a statement is known and cannot be run yet; the message says what to do.
            Conflict: another commit excludes the statement's; run it again.
        """
        return run_sql(self._session, text)

    def execute(self, text: str) -> DataFrame | PlainRows:
        """Run statements as `sql` does, and return plain rows where no Spark is needed.

        You can change and show metadata without Java. Raises what `sql` raises.
        """
        return run_plain(self._session, text)

    def snapshots(self) -> list[Snapshot]:
        """Return all snapshots of the lake, oldest first."""
        with self._state.store.read() as connection:
            return catalog_read.snapshots(connection)

    def set_option(
        self,
        name: str,
        value: OptionValue,
        *,
        schema: str | None = None,
        table: str | None = None,
    ) -> None:
        """Set a DuckLake option; one of a table counts before its schema's, that before the lake's.

        Args:
            name: Such as ``data_inlining_row_limit`` or ``target_file_size``.
            value: As the option wants it: ``100``, ``"512MB"``, ``"7 days"``, ``True``.
            schema: The schema that it is for; with ``table`` the schema that the table is in.
            table: The table that it is for, ``table`` or ``schema.table``.

        Options belong to no snapshot and count at once. Raises NotFound, naming near ones, for an
        unknown option, schema or table, and InvalidRequest for a value that it does not take.
        """
        set_option(self._state, name, value, schema=schema, table=table)

    def options(self) -> list[Option]:
        """Return the options that are set, by name; those that are not have their default."""
        return options(self._state)

    def flush_inlined_data(self) -> dict[TableName, Result]:
        """Move the rows and deletes that the catalog itself keeps into files, table by table.

        Returns what was committed, or left, for each table that had some; see
        `Table.flush_inlined_data`.
        """
        with Turns() as turns:
            return self._flushed(turns, self.tables())

    def jobs(self) -> list[SchemaChangeJob]:
        """Return the jobs of heavy schema changes, ended ones too, the newest first."""
        return [SchemaChangeJob(self._state, job.id) for job in jobs_of(self._state)]

    def job(self, number: int) -> SchemaChangeJob:
        """Return a job by its id; NotFound names those that there are."""
        found = SchemaChangeJob(self._state, number)
        _ = found.look()
        return found

    def run_jobs(self) -> list[SchemaChangeJob]:
        """Work on every open job that nobody else works on, one after the other; return them.

        One that cannot be done is cancelled, or left to the next call where another commit was in
        the way; its state tells.
        """
        return run_jobs(self._state)

    def transaction(
        self,
        message: str | None = None,
        extra_info: str | None = None,
        *,
        once: tuple[str, int] | None = None,
    ) -> Transaction:
        """Begin a transaction; use it with ``with``.

        Args:
            message: Kept with its snapshot, as `Snapshot.commit_message`.
            extra_info: Free text for programs, kept with it too.
            once: The name of a series of transactions and the number of this one, which grows, such
                as a job and its run: each lands once, however often it is begun. The number is
                recorded in the same commit. One that has landed tells so in
                `Transaction.has_landed`, and whatever it does then is dropped at its end. A number
                below the newest of its series is InvalidRequest.
        """
        unit = UnitOfWork(self._state, self._state.commit_info(message, extra_info))
        if once is not None:
            unit.batch = Batch(*once)
        return Transaction(unit)

    def close(self) -> None:
        """Roll back what BEGIN left open and close the connections to the catalog.

        The Spark session stays.
        """
        self._session.close()
        self._state.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Lake({self._state.store.where!r}, data_path={self.data_path!r})"
