"""What can be known about a lake without reading its rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shelduck.catalog.read import metadata, read
from shelduck.catalog.read.lake_metadata import listed_files
from shelduck.catalog.upkeep.audit import audit_rows
from shelduck.errors import ShelduckError
from shelduck.model.tables.problem import Problem
from shelduck.operations.upkeep.check_files import wrong_files
from shelduck.verbs.lake.upkeep import LakeUpkeep
from shelduck.work.results import TableName
from shelduck.work.state import LakeState

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


class _Checker:
    """One check of a lake."""

    def __init__(self, state: LakeState) -> None:
        self._state = state
        self._lake = LakeUpkeep(state, None)
        self.tables = 0
        self.files = 0

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
            return [], [Problem("", "table", "the list of tables", str(error), _LOOK)]

    def table(self, name: TableName) -> Iterator[Problem]:
        """Look at a table at the newest snapshot: what readers need, and its files."""
        self.tables += 1
        full = str(name)
        try:
            with self._state.store.read() as connection:
                at = read.snapshot(connection)
                table = read.table(connection, at, name.schema, name.name, self._state.info)
                files = read.data_files(connection, table)
                read.file_bounds(connection, table, [f.id for f in table.columns.leaves()])
                read.inlined_rows(connection, table)
                metadata.file_rows(connection, table)
                listed = listed_files(connection, table)
        except ShelduckError as error:
            wrong, _, remedy = str(error).partition("; ")
            yield Problem(full, "table", full, wrong, remedy or _LOOK)
            return
        deletes = {row[4]: row[5] for row in listed if row[4] is not None}
        self.files += len(files) + len(deletes)
        yield from wrong_files(full, files, deletes)

    def orphans(self, table: str | None) -> Iterator[Problem]:
        """Find files that no row of the catalog names."""
        try:
            found = self._lake.remove_orphans(table=table, dry_run=True)
        except ShelduckError as error:
            yield Problem("", "orphan", "the list of orphans", str(error), _LOOK)
            return
        for path in found.files:
            yield Problem("", "orphan", path, "no row of the catalog names it", "remove_orphans()")


def check_lake(state: LakeState, table: str | None = None) -> LakeCheck:
    """Return what is wrong in a lake, or in one table, without reading rows.

    Raises NotFound for a table that does not exist.
    """
    checker = _Checker(state)
    problems = [] if table is not None else list(checker.catalog())
    names, unknown = checker.names(table)
    problems += unknown
    for name in names:
        problems += checker.table(name)
    problems += checker.orphans(table)
    return LakeCheck(tuple(problems), checker.tables, checker.files)
