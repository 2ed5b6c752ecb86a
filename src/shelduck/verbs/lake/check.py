"""What can be known about a lake without reading its rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shelduck import clock
from shelduck.catalog.read import metadata, read
from shelduck.catalog.read.lake_metadata import listed_files
from shelduck.catalog.running.jobs import jobs
from shelduck.catalog.upkeep.audit import audit_rows
from shelduck.catalog.upkeep.older_files import older_files
from shelduck.errors import CatalogUnavailable, ShelduckError
from shelduck.model.files.data_files import counted_rows
from shelduck.model.tables.keys import table_keys
from shelduck.model.tables.problem import Problem
from shelduck.operations.read.rows import TableRows
from shelduck.operations.upkeep.check_files import absences, wrong_files
from shelduck.spark.scan.read import Origin
from shelduck.spark.scan.row_checks import wrong_rows
from shelduck.verbs.lake.upkeep import LakeUpkeep
from shelduck.work.lookup import rows_of
from shelduck.work.results import TableName
from shelduck.work.state import LakeState
from shelduck.work.unit import view_of

_LOOK = "look at the catalog; restore it from a backup if you cannot correct it"


@dataclass(frozen=True, slots=True)
class LakeCheck:
    """What a check found: problems, and how many tables and files it looked at."""

    problems: tuple[Problem, ...]
    tables: int = 0
    files: int = 0

    @property
    def is_sound(self) -> bool:
        """True if nothing is wrong."""
        return not self.problems

    def __str__(self) -> str:
        count = len(self.problems)
        told = f"{self.tables} table(s), {self.files} file(s): {count or 'no'} problem(s)"
        lines = [f"{p.table or 'catalog'}: {p}" for p in self.problems]
        return "\n".join([*lines, told])


def _told(error: ShelduckError) -> str:
    """Return what an error says about the lake; raise it if nobody could ask the catalog."""
    if isinstance(error, CatalogUnavailable):
        raise error
    return str(error)


class _Checker:
    """One check of a lake."""

    def __init__(self, state: LakeState) -> None:
        self._state = state
        self._lake = LakeUpkeep(state, None)
        self.tables = 0
        self.files = 0
        self.ids: dict[int, str] = {}

    def catalog(self) -> Iterator[Problem]:
        """Look at every row of the catalog."""
        with self._state.store.read() as connection:
            yield from audit_rows(connection)

    def names(self, table: str | None) -> tuple[list[TableName], list[Problem]]:
        """Return the tables to look at, or why there are none."""
        try:
            if table is not None:
                return [self._lake.table(table).name], []
            return self._lake.tables(), []
        except ShelduckError as error:
            if table is not None:
                raise
            return [], [Problem("", "table", "the list of tables", _told(error), _LOOK)]

    def table(self, name: TableName) -> Iterator[Problem]:
        """Look at a table at the newest snapshot: what readers need, and its files."""
        self.tables += 1
        full = str(name)
        try:
            with self._state.store.read() as connection:
                at = read.snapshot(connection)
                table = read.table(connection, at, name.schema, name.name, self._state.info)
                files = read.data_files(connection, table)
                leaves = [f.id for f in table.columns.leaves()]
                bounds = read.file_bounds(connection, table, leaves)
                read.inlined_rows(connection, table)
                for _ in metadata.file_rows(connection, table):
                    pass
                listed = listed_files(connection, table)
        except ShelduckError as error:
            wrong, _, remedy = _told(error).partition("; ")
            yield Problem(full, "table", full, wrong, remedy or _LOOK)
            return
        deletes = {row[4]: row[5] for row in listed if row[4] is not None}
        self.files += len(files) + len(deletes)
        self.ids[table.id] = full
        yield from wrong_files(full, table.columns, files, deletes, bounds)

    def rows(self, name: TableName) -> Iterator[Problem]:
        """Read every row of a table at the newest snapshot; Spark starts."""
        full = str(name)
        try:
            rows = rows_of(view_of(self._state, None), name)
            keys = table_keys(rows.table)
            key = keys.key_fields(rows.table.columns) if keys is not None and keys.folds else []
            frame = rows.frame(self._state.spark, origins=(Origin.ROW_ID,))
            for wrong in wrong_rows(frame, rows.table, _live(rows), key):
                yield Problem(full, "rows", full, wrong, _LOOK)
        except ShelduckError as error:
            wrong, _, remedy = _told(error).partition("; ")
            yield Problem(full, "rows", full, wrong, remedy or _LOOK)

    def older(self, *, all_tables: bool) -> Iterator[Problem]:
        """Look whether files that only older snapshots see exist, with their size."""
        try:
            with self._state.store.read() as connection:
                found = older_files(connection, self._state.info)
        except ShelduckError as error:
            yield Problem("", "table", "the files of older snapshots", _told(error), _LOOK)
            return
        for number, sizes in found.items():
            if all_tables or number in self.ids:
                self.files += len(sizes)
                yield from absences(self.ids.get(number, ""), sizes)

    def jobs(self, *, all_tables: bool) -> Iterator[Problem]:
        """Find open jobs that nobody runs any more."""
        now = clock.now()
        try:
            with self._state.store.read() as connection:
                found = jobs(connection)
        except ShelduckError as error:
            yield Problem("", "job", "the list of jobs", _told(error), _LOOK)
            return
        for job in found:
            is_meant = all_tables or job.table_id in self.ids
            if is_meant and job.is_open and job.worker is not None and not job.is_held(now):
                wrong = f"its worker {job.worker} has given no sign of life since {job.heartbeat}"
                remedy = f"continue it with lake.job({job.id}).wait(), or cancel it"
                yield Problem(self.ids.get(job.table_id, ""), "job", f"job {job.id}", wrong, remedy)

    def orphans(self, table: str | None) -> Iterator[Problem]:
        """Find files that no row of the catalog names."""
        try:
            found = self._lake.remove_orphans(table=table, dry_run=True)
        except ShelduckError as error:
            yield Problem("", "orphan", "the list of orphans", _told(error), _LOOK)
            return
        for path in found.files:
            yield Problem("", "orphan", path, "no row of the catalog names it", "remove_orphans()")


def _live(rows: TableRows) -> int | None:
    """Return how many rows there are according to the catalog."""
    count = counted_rows(rows.files)
    if count is None:
        return None
    return count - sum(f.dead_rows for f in rows.files) + sum(len(r.rows) for r in rows.inlined)


def check_lake(state: LakeState, table: str | None = None, *, rows: bool = False) -> LakeCheck:
    """Return what is wrong in a lake, or in one table; only with ``rows``, its rows are read.

    Raises NotFound for a table that does not exist.
    """
    checker = _Checker(state)
    problems = [] if table is not None else list(checker.catalog())
    names, unknown = checker.names(table)
    problems += unknown
    for name in names:
        problems += checker.table(name)
        if rows:
            problems += checker.rows(name)
    problems += checker.older(all_tables=table is None)
    problems += checker.jobs(all_tables=table is None)
    problems += checker.orphans(table)
    return LakeCheck(tuple(problems), checker.tables, checker.files)
