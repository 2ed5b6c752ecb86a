"""Constraints that rows which are there must satisfy before they are declared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shelduck.catalog.running.job_rows import open_job
from shelduck.engine.rows.assign import Assigning, telling_failures
from shelduck.engine.rows.table_rules import first_wrong, refusal, ruled, wrong
from shelduck.errors import AlreadyExists
from shelduck.lake.lookup import rows_of
from shelduck.lake.results import TableName
from shelduck.lake.state import LakeState
from shelduck.lake.unit import UnitOfWork
from shelduck.model.changes.change import AlterTable
from shelduck.model.changes.staged_rows import StagedRows
from shelduck.model.files.data_file import NewDataFile
from shelduck.model.tables.computed import COMPUTED
from shelduck.model.tables.constraints import CONSTRAINTS, constraints_of
from shelduck.model.tables.table_version import TableVersion
from shelduck.read.table_rows import TableRows


def require_satisfied(unit: UnitOfWork, name: TableName, constraints: Iterable[str]) -> None:
    """Raise InvalidRequest if a row of a table, as the unit sees it, does not satisfy one of these.

    A table without rows needs no Spark; if it runs, it says whether it can compute them.
    """
    rows = rows_of(unit, name, needs_all=False)
    is_empty = not rows.files and not any(part.rows for part in rows.inlined)
    if is_empty and not unit.state.has_spark:
        return
    _require(unit.state, rows, constraints, is_empty=is_empty)


def require_unconverted(unit: UnitOfWork, change: AlterTable) -> None:
    """Raise AlreadyExists if a new constraint uses a column that a job converts; else it would end.

    No statement if there is no new constraint, otherwise two.
    """
    table = change.table
    known = constraints_of(table.properties, table.full_name)
    text = change.properties.get(CONSTRAINTS)
    found = constraints_of({} if text is None else {CONSTRAINTS: text}, table.full_name)
    used = {n for one in found if known.find(one.name) is None for n in one.uses}
    if not used:
        return
    with unit.state.store.read() as connection:
        job = open_job(connection, table.id)
    if job is not None and used.intersection(n for c in job.work.conversions for n in c.parts):
        raise AlreadyExists(
            f"cannot add a constraint to {table.full_name}: job {job.id} ({job.state.value})"
            f" converts a column of it; wait for the job, or use CANCEL ALTER TABLE COLUMN FROM"
            f" {table.full_name}",
            about="job",
        )


def require_satisfied_in(
    state: LakeState, table: TableVersion, files: Sequence[NewDataFile]
) -> None:
    """Raise InvalidRequest if a row in new files does not satisfy a constraint of its table."""
    own = StagedRows(files=list(files))
    written = TableRows(state.store, table, tuple(own.over(table, [])), own.mappings(), ())
    checks = constraints_of(table.properties, table.full_name).checks
    _require(state, written, [one.name for one in checks], is_empty=False)


def _require(
    state: LakeState, rows: TableRows, constraints: Iterable[str], *, is_empty: bool
) -> None:
    table = rows.table
    known = constraints_of(table.properties, table.full_name)
    frame = rows.frame(state.spark)
    if is_empty and COMPUTED in table.properties:
        ruled(frame, table, lambda _: False, Assigning.into(table).fitting)
    # One that the same ALTER drops again is not among them.
    for constraint in filter(None, map(known.find, constraints)):
        if is_empty:
            wrong(frame, table, constraint)
            continue
        with telling_failures():
            found = first_wrong(frame, table, constraint)
        if found is not None:
            raise refusal(table, constraint, found)
