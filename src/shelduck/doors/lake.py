"""A lake: schemas, tables, snapshots, SQL; and transactions over several of its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from datetime import timedelta
from pathlib import Path
from threading import get_ident
from typing import Self

import shelduck.doors.subjects  # noqa: F401 - lets subjects take part in calls
from shelduck.branches.branch_tables import require_branch
from shelduck.branches.verb import BranchVerbs
from shelduck.carry.verb import CarryVerbs
from shelduck.catalog.read import read as catalog_read
from shelduck.doors.schema_files.schema_folder import plan_schema, pull, read_folder
from shelduck.doors.schema_files.schema_plan import SchemaPlan
from shelduck.doors.sql.execution import run_plain, run_sql
from shelduck.engine.session import DataFrame, SparkSession
from shelduck.errors import InvalidRequest
from shelduck.formats.delta.import_verbs import LakeBorders
from shelduck.jobs.jobs import SchemaChangeJob, jobs_of, run_jobs
from shelduck.lake.operation import SqlSession
from shelduck.lake.results import (
    Committed,
    PlainRows,
    Result,
    Snapshots,
    TableName,
    Unchanged,
    require_limit,
)
from shelduck.lake.state import Current, LakeState, Turns
from shelduck.lake.unit import UnitOfWork
from shelduck.materialized.verb import MaterializedVerbs
from shelduck.model.changes.records import Batch
from shelduck.model.tables.options import OptionValue
from shelduck.model.text.names import html_table
from shelduck.objects.catalog_verbs import CatalogVerbs
from shelduck.objects.set_options import Option, options, set_option
from shelduck.upkeep.check import LakeCheck, check_lake
from shelduck.upkeep.lake_upkeep import LakeUpkeep
from shelduck.upkeep.maintain import (
    MAX_BYTES,
    MAX_TIME,
    Budget,
    Maintained,
    MaintenanceStep,
    maintain_lake,
)


class Lake(LakeUpkeep, LakeBorders, BranchVerbs, CarryVerbs, MaterializedVerbs, in_parts=True):
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
        operation, and the rows and files that it wrote. Each statement commits by itself, except
        for those between BEGIN and COMMIT or ROLLBACK: they form one transaction, which this object
        keeps open from call to call, and they see its earlier changes. All other calls of the lake
        and its tables are outside of it. A statement that fails leaves the transaction
        open; closing the lake rolls it back. USE counts for the thread that runs it; in each thread
        names begin as those of the schema ``main``.

        Raises:
            InvalidRequest: ``text`` cannot be parsed (the message tells statement, line and column,
                and nothing has run), or a statement names something that does not exist.
            Unsupported: a statement is known but not supported; the message says what to do.
            Conflict: another commit conflicts with that of the statement; run it again.
        """
        return run_sql(self._session, text)

    def execute(self, text: str) -> DataFrame | PlainRows:
        """Run statements as `sql` does, and return plain rows where no Spark is needed.

        You can change and show metadata without Java. Raises what `sql` raises.
        """
        return run_plain(self._session, text)

    def branch(self, name: str) -> Lake:
        """Return the lake in which names without a schema mean tables of a branch, or of a tag.

        Raises NotFound if there is no such branch; see `create_branch`.
        """
        state = copy(self._state)
        state.current = Current(require_branch(UnitOfWork(self._state), name))
        return Lake(state)

    def pull_schema(self, folder: str | Path) -> list[Path]:
        """Write a file of SQL for each table, view, and for options; return the files.

        Those of tables have the ids of columns and struct fields. Change the files, keep them in
        version control, and see with `plan` what they would do.
        """
        return pull(self._state, Path(folder))

    def plan(self, target: str | Path | Mapping[str, str]) -> SchemaPlan:
        """Return what leads from the lake to files of SQL; print it, then call its ``apply``.

        Args:
            target: A folder with one ``.sql`` file for each table and view of the lake, or their
                texts by name. A table or a view that no file declares would be dropped; an option
                that no file sets stays.

        Raises:
            InvalidRequest: a file declares nothing, or it is unclear whether a column is new or
                renamed; the message says what to write.
            Unsupported: a key model or rollups differ; they have statements of their own.
        """
        texts = target if isinstance(target, Mapping) else read_folder(Path(target))
        return plan_schema(self._state, texts)

    def snapshots(self, *, limit: int | None = None, before: int | None = None) -> Snapshots:
        """Return the snapshots of the lake, oldest first.

        Args:
            limit: Only the newest ones, at most so many.
            before: Only older ones than this snapshot, such as the first one of the page before.
        """
        require_limit(limit)
        found = self._state.store.ask(catalog_read.snapshots, limit=limit, before=before)
        return Snapshots(found)

    def set_option(
        self, name: str, value: OptionValue, *, schema: str | None = None, table: str | None = None
    ) -> None:
        """Set a DuckLake option; a table's overrides its schema's, which overrides the lake's.

        Args:
            name: Such as ``data_inlining_row_limit`` or ``target_file_size``.
            value: In the form of the option: ``100``, ``"512MB"``, ``"7 days"``, ``True``.
            schema: The schema that it is for; with ``table`` the schema that the table is in.
            table: The table that it is for, ``table`` or ``schema.table``.

        Options belong to no snapshot and apply at once. Raises NotFound, naming similar ones, for
        an unknown option, schema or table, and InvalidRequest for a value that it does not accept.
        """
        set_option(self._state, name, value, schema=schema, table=table)

    def options(self) -> list[Option]:
        """Return the options that are set, by name; all others have their default."""
        return options(self._state)

    def flush_inlined_data(self) -> dict[TableName, Result]:
        """Move the rows and deletes that the catalog itself keeps into files, table by table.

        Returns the result for each table that had any, with a note on rows that stay; see
        `Table.flush_inlined_data`.
        """
        with Turns() as turns:
            return self._flushed(turns, self.tables())

    def maintain(
        self,
        *,
        max_bytes: int | str | None = MAX_BYTES,
        max_time: str | timedelta | None = MAX_TIME,
        dry_run: bool = False,
        report: Callable[[MaintenanceStep], None] = lambda _: None,
    ) -> Maintained:
        """Do the maintenance that is worth it now, and no more; call it again and again.

        Looks at the catalog, not at files. Rewrites small files once eight of similar size are in a
        partition, so that each row is rewritten only a few times; moves rows out of the catalog
        once there are many; follows the options of the lake and of each table, as `checkpoint`
        does. `checkpoint` does everything at once. Several processes may call it: they share the
        tables. If a table fails, the others go on: look at ``failed`` of the result.

        Args:
            max_bytes: How much this run may rewrite; bytes, or text such as ``"8GB"``. None is no
                limit.
            max_time: After this time, no further step begins; a timedelta, or text such as ``"10
                minutes"``. None means no limit.
            dry_run: Tell what would be done and why, and change nothing.
            report: Is called after each step.

        Raises:
            CatalogUnavailable: the catalog cannot be reached; what is done stays.
        """
        budget = Budget.of(max_bytes, max_time)
        return maintain_lake(self._state, budget, report, dry_run=dry_run)

    def check(
        self, table: str | None = None, *, rows: bool = False, repair: bool = False
    ) -> LakeCheck:
        """Return what is wrong in the lake, or in one table; print it.

        Looks at every row of the catalog, at the files of the newest snapshot (they exist, have
        their size, and footers that agree, also with statistics), at those of older ones (they
        exist), at rollups, and for abandoned jobs, dead writers and orphans. Nothing is changed.

        Args:
            table: ``"t"`` or ``"schema.t"``; by default all tables.
            rows: Read every row too, with Spark: counts, NOT NULL, row ids, keys, and rollups
                against their bases.
            repair: Repair what needs no decision, and check again; ``repaired`` lists the repairs.
        """
        return check_lake(self._state, table, rows=rows, repair=repair)

    def jobs(self) -> list[SchemaChangeJob]:
        """Return the jobs of heavy schema changes, also those that have ended, newest first."""
        return [SchemaChangeJob(self._state, job.id, job) for job in jobs_of(self._state)]

    def job(self, number: int) -> SchemaChangeJob:
        """Return a job by its id; NotFound lists the existing ones."""
        found = SchemaChangeJob(self._state, number)
        _ = found.look()
        return found

    def undo(
        self,
        number: int,
        *,
        using: str | None = None,
        on_error_null: bool = False,
        timeout: int | None = None,
    ) -> SchemaChangeJob:
        """Return a new job that takes back what a published job converted, and keeps all writes.

        Call its `SchemaChangeJob.wait`. See `SchemaChangeJob.undo`.
        """
        return self.job(number).undo(using=using, on_error_null=on_error_null, timeout=timeout)

    def run_jobs(self) -> list[SchemaChangeJob]:
        """Run every open job that no other worker runs, one after the other; return them.

        Then help with those of other workers: a table of more than 1 GB is converted in shares.
        A job that cannot succeed is cancelled; one that lost to another commit is left to the next
        call. Its state tells which.
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
            once: The name of a series of transactions and the number of this one, which must
                increase, such as a job and its run: each lands once, however often it is begun. The
                number is recorded in the same commit. If it has already landed,
                `Transaction.has_landed` is True, and whatever it does is discarded at its end. A
                number below the newest of its series is InvalidRequest.
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

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Lake({self._state.store.where!r}, data_path={self.data_path!r})"

    def _repr_html_(self) -> str:
        return html_table(("catalog", "data_path"), [(self._state.store.where, self.data_path)])


class Transaction(CatalogVerbs):
    """Changes of several tables that become one snapshot, or none.

    Use it as a context manager: it commits at the end of the block, and an exception that leaves
    the block rolls everything back. Afterwards ``result`` tells what landed.

        with lake.transaction(message="daily load") as tx:
            tx.table("events").append(df)
    """

    def __init__(self, unit: UnitOfWork) -> None:
        super().__init__(unit.state, unit)
        self._open_unit = unit
        self._undo_use = unit.state.current.undo()
        self.result: Committed | Unchanged | None = None
        self.has_landed = unit.has_landed()
        """True if what ``once`` names has already landed: then this one changes nothing."""

    def sql(self, text: str) -> DataFrame:
        """Run statements like `Lake.sql`, but in this transaction: nothing lands before its end."""
        self._open_unit.require_open()
        return run_sql(SqlSession(self._state, self._open_unit), text)

    def commit(self) -> Committed | Unchanged:
        """Commit now; the transaction is over afterwards."""
        try:
            self.result = self._open_unit.commit()
        except BaseException:
            self._undo_use()
            raise
        return self.result

    def rollback(self) -> None:
        """Discard all changes; the transaction is over afterwards.

        If it has already ended, this does nothing. The schema that USE chose is reset too.
        """
        if self._open_unit.is_open:
            self._undo_use()
        self._open_unit.rollback()

    def __enter__(self) -> Self:
        # The transaction reads as of its first line, not of its first statement.
        _ = self._open_unit.workspace.base
        self._commits_before = self._state.commits[get_ident()]
        return self

    def __exit__(self, _: object, error: BaseException | None, *__: object) -> None:
        if not self._open_unit.is_open:
            return
        others = self._state.commits[get_ident()] - self._commits_before
        is_forgotten = bool(others) and not (self._open_unit.is_used or self.has_landed)
        if error is not None or is_forgotten:
            self.rollback()
        else:
            self.commit()
        if error is None and is_forgotten:
            raise InvalidRequest(
                f"the block of lake.transaction() does not use it: {others} snapshot(s) were"
                " committed one by one; write with lake.transaction() as tx, and call tx"
            )
