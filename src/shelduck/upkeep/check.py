"""The check of a lake, without reading its rows and with them, its repairs, and who died at it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from shelduck import clock
from shelduck.catalog.commit.commit import commit
from shelduck.catalog.databases.store import write_with_retries
from shelduck.catalog.read import metadata_rows, read
from shelduck.catalog.read.metadata_rows import listed_files
from shelduck.catalog.read.read import Connection
from shelduck.catalog.running.job_rows import jobs
from shelduck.catalog.running.writers import (
    HeldClaim,
    Registered,
    drop_claims,
    held_claims,
    registered_writers,
    remove_dead,
)
from shelduck.catalog.upkeep.audit import audit_rows, older_files
from shelduck.engine.rows.assign import Assigning
from shelduck.engine.rows.table_rules import violations, wrong_values
from shelduck.engine.stopping import stopped_on_error
from shelduck.errors import CatalogUnavailable, ShelduckError
from shelduck.jobs.undo import ComparedJob, compared_jobs
from shelduck.lake.lookup import rows_of
from shelduck.lake.results import TableName
from shelduck.lake.state import LakeState, is_gone
from shelduck.lake.unit import view_of
from shelduck.model.changes.job import JobState
from shelduck.model.changes.problem import CorrectedStats, Problem, RepairCatalog
from shelduck.model.tables.keys import table_keys
from shelduck.model.tables.rollup import ROLLUP, ROLLUPS
from shelduck.read.scan.expect import wrong_rows
from shelduck.read.scan.scan_frames import Origin
from shelduck.rollups import check_rollups
from shelduck.rollups.following import alive
from shelduck.upkeep.check_files import absences, wrong_files
from shelduck.upkeep.lake_upkeep import LakeUpkeep
from shelduck.write.progress import counted

_LOOK = "look at the catalog; restore it from a backup if you cannot correct it"
_CORRECT = "another writer does not know the rule; correct or delete these rows"
_DELETES = "deletes it"
# Kinds of problems that cannot be the reason why no row names a file.
_HARMLESS = frozenset({"orphan", "job", "statistics"})
_IDLE = "nobody waits for it; remove_orphans() deletes what it wrote"
_REMOVES = "removes its registration"


@dataclass(frozen=True, slots=True)
class LakeCheck:
    """The findings of a check, and how many tables and files it looked at.

    ``problems`` are wrong now; ``notes`` are worth knowing, and nothing is wrong with them;
    ``repaired`` are problems and notes that the check has mended.
    """

    problems: tuple[Problem, ...]
    tables: int = 0
    files: int = 0
    notes: tuple[Problem, ...] = ()
    repaired: tuple[Problem, ...] = ()

    @property
    def is_sound(self) -> bool:
        """True if nothing is wrong, or nothing is any more."""
        return not self.problems

    @property
    def rows(self) -> list[tuple[str, Problem]]:
        """Everything, each with its level: ``problem``, ``note`` or ``repaired``."""
        levels = (("problem", self.problems), ("note", self.notes), ("repaired", self.repaired))
        return [(level, problem) for level, found in levels for problem in found]

    def __str__(self) -> str:
        count = len(self.problems)
        told = f"{self.tables} table(s), {self.files} file(s): {count or 'no'} problem(s)"
        others = ((len(self.notes), "note(s)"), (len(self.repaired), "repaired"))
        told += "".join(f", {number} {what}" for number, what in others if number)
        mendable = sum(p.is_repairable for p in self.problems)
        told += f"; repair mends {mendable} of them" if mendable else ""
        return "\n".join([*(_line(*row) for row in self.rows), told])


def _line(level: str, problem: Problem) -> str:
    where = "" if problem.object == problem.table else f"{problem.table or 'catalog'}: "
    if level == "repaired":
        return f"repaired: {where}{problem.object}: {problem.wrong}; it {problem.repair}"
    return f"{'note: ' * (level == 'note')}{where}{problem}"


def _told(error: ShelduckError) -> str:
    """Return what an error says about the lake; raise it if nobody could ask the catalog."""
    if isinstance(error, CatalogUnavailable):
        raise error
    return str(error)


def _failed(table: str, kind: str, error: ShelduckError) -> Problem:
    """Return an error that says what is wrong as a problem."""
    wrong, _, remedy = _told(error).partition("; ")
    return Problem(table, kind, table, wrong, remedy or _LOOK)


def _unlike(table: str, done: ComparedJob) -> Iterator[Problem]:
    """Return what is wrong with the columns that a job has converted."""
    if done.unlike:
        job, columns = done.job, ", ".join(map(repr, done.columns))
        wrong = f"{done.unlike} row(s) do not have the values into which it converts {columns}"
        yield Problem(table, "rows", f"job {job.id}, snapshot {job.published}", wrong, _LOOK)


@dataclass
class _Checker:
    """One look at a lake, or at one table."""

    state: LakeState
    only: str | None = None
    every: bool = False
    tables: int = 0
    files: int = 0
    names: dict[int, str] = field(default_factory=dict)
    corrected: list[CorrectedStats] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)

    def look(self, *, rows: bool) -> LakeCheck:
        """Return what is wrong; only with ``rows``, rows are read."""
        problems = [] if self.only is not None else list(self.catalog())
        names, unknown = self.listed()
        problems += unknown
        for name in names:
            problems += self.table(name)
        if rows:
            spark = self.state.spark
            show = self.state.show_progress
            each = counted(names, "reading", len(names), unit="table(s)", show=show)
            with stopped_on_error(spark):
                for name in each:
                    problems += self.rows(name)
        problems += self.older()
        problems += self.running()
        problems += self.orphans(problems)
        return LakeCheck(tuple(problems), self.tables, self.files, tuple(self.notes))

    def catalog(self) -> Iterator[Problem]:
        """Look at every row of the catalog."""
        with self.state.store.read() as connection:
            yield from audit_rows(connection, every=self.every)

    def listed(self) -> tuple[list[TableName], list[Problem]]:
        """Return the tables to look at, or why there are none."""
        lake = LakeUpkeep(self.state, None)
        try:
            if self.only is not None:
                return [lake.table(self.only).name], []
            return lake.tables(), []
        except ShelduckError as error:
            if self.only is not None:
                raise
            return [], [Problem("", "table", "the list of tables", _told(error), _LOOK)]

    def table(self, name: TableName) -> Iterator[Problem]:
        """Look at a table at the newest snapshot: what readers need, and its files."""
        self.tables += 1
        full = str(name)
        try:
            with self.state.store.read() as connection:
                at = read.snapshot(connection)
                table = read.table(connection, at, name.home, name.name, self.state.info)
                files = read.data_files(connection, table)
                leaves = [f.id for f in table.columns.leaves()]
                bounds = read.file_bounds(connection, table, leaves)
                read.inlined_rows(connection, table)
                for _ in metadata_rows.file_rows(connection, table):
                    pass
                listed = listed_files(connection, table)
            self.names[table.id] = full
            if table.properties.keys() & {ROLLUP, ROLLUPS}:
                self.notes += check_rollups.rollup_notes(view_of(self.state, None), name)
        except ShelduckError as error:
            yield _failed(full, "table", error)
            return
        deletes = {row[4]: row[5] for row in listed if row[4] is not None}
        self.files += len(files) + len(deletes)
        show = self.state.show_progress
        found = wrong_files(table, files, deletes, bounds, show=show)
        self.corrected += found.corrected
        yield from found.problems

    def rows(self, name: TableName) -> Iterator[Problem]:
        """Read every row of a table at the newest snapshot; Spark starts."""
        full = str(name)
        try:
            unit = view_of(self.state, None)
            rows = rows_of(unit, name)
            keys = table_keys(rows.table)
            key = keys.key_fields(rows.table.columns) if keys is not None and keys.folds else []
            frame = rows.frame(self.state.spark, origins=(Origin.ROW_ID,))
            for wrong in wrong_rows(frame, rows.table, alive(rows), key):
                yield Problem(full, "rows", full, wrong, _LOOK)
            fitting = Assigning.into(rows.table).fitting
            broken = (*violations(frame, rows.table), *wrong_values(frame, rows.table, fitting))
            for wrong in broken:
                yield Problem(full, "rows", full, wrong, _CORRECT)
            yield from check_rollups.wrong_rollups(unit, name)
            for done in compared_jobs(self.state, rows.table):
                yield from _unlike(full, done)
        except ShelduckError as error:
            yield _failed(full, "rows", error)

    def older(self) -> Iterator[Problem]:
        """Look whether files that only older snapshots see exist, with their size."""
        try:
            found = self.state.store.ask(older_files, self.state.info)
        except ShelduckError as error:
            yield Problem("", "table", "the files of older snapshots", _told(error), _LOOK)
            return
        for number, sizes in found.items():
            if self.only is None or number in self.names:
                self.files += len(sizes)
                yield from absences(self.names.get(number, ""), sizes)

    def running(self) -> Iterator[Problem]:
        """Look for who died, and for what they left."""
        is_all = self.only is None
        try:
            with self.state.store.read() as connection:
                self.notes += dead(connection, clock.now()).notes(self.names, all_tables=is_all)
                if is_all:
                    yield from check_rollups.settled_too_late(connection, self.names)
                abandoned, released = left_jobs(connection, self.names, all_tables=is_all)
            self.notes += released
            yield from abandoned
        except ShelduckError as error:
            yield Problem("", "job", "the list of jobs", _told(error), _LOOK)

    def orphans(self, others: Iterable[Problem]) -> Iterator[Problem]:
        """Find files that no row of the catalog names."""
        try:
            lake = LakeUpkeep(self.state, None)
            found = lake.remove_orphans(table=self.only, dry_run=True)
        except ShelduckError as error:
            yield Problem("", "orphan", "the list of orphans", _told(error), _LOOK)
            return
        # The row of a file may be what the catalog has lost; only a look at all rows can tell.
        is_whole = self.only is None and all(p.is_repairable or p.kind in _HARMLESS for p in others)
        repair = _DELETES if is_whole else ""
        for path in found.files:
            wrong = "no row of the catalog names it"
            yield Problem("", "orphan", path, wrong, "remove_orphans()", repair)


def check_lake(
    state: LakeState, table: str | None = None, *, rows: bool = False, repair: bool = False
) -> LakeCheck:
    """Return what is wrong in a lake, or in one table; only with ``rows``, its rows are read.

    With ``repair``, repair what needs no decision, and check again. Raises NotFound for a table
    that does not exist.
    """
    if not repair:
        return _Checker(state, table).look(rows=rows)
    checker = _Checker(state, table, every=True)
    before = checker.look(rows=False)
    wanted = [p for p in (*before.problems, *before.notes) if p.is_repairable]
    if wanted:
        _repair(checker, wanted)
    elif not rows:
        return before
    after = _Checker(state, table).look(rows=rows)
    left = {replace(p, repair="") for p in (*after.problems, *after.notes)}
    mended = tuple(p for p in wanted if replace(p, repair="") not in left)
    return replace(after, repaired=mended)


def _repair(checker: _Checker, wanted: Iterable[Problem]) -> None:
    """Mend what needs no decision: the catalog first, in one commit, then files."""
    state, kinds = checker.state, {p.kind for p in wanted}
    if kinds & {"writer", "maintainer"}:
        forget_dead(state)
    if "rollup" in kinds:
        check_rollups.forget_settled_too_late(state)
    rows = bool(kinds & {"row", "number", "names"})
    if rows or checker.corrected:
        base = state.store.ask(read.snapshot).id
        change = RepairCatalog(rows, tuple(checker.corrected))
        commit(state.store, state.info, [change], base=base, info=state.commit_info("repair"))
    if "orphan" in kinds:
        LakeUpkeep(state, None).remove_orphans(table=checker.only)


@dataclass(frozen=True, slots=True)
class Dead:
    """The writers and maintainers that gave no sign of life for a minute, or whose process ended.

    They do no harm: nobody waits for them any more. What the writers wrote is orphans.
    """

    writers: tuple[Registered, ...]
    claims: tuple[HeldClaim, ...]

    def notes(self, names: Mapping[int, str], *, all_tables: bool) -> Iterator[Problem]:
        """Return what is worth knowing of them; ``names`` are those of the tables looked at."""
        for one in self.writers:
            if all_tables or one.table_id in names:
                where = names.get(one.table_id, "")
                told = where or f"table {one.table_id}"
                wrong = f"it died while it wrote to {told}: its lease ends {one.expires}"
                yield Problem(where, "writer", one.writer, wrong, _IDLE, _REMOVES)
        for claim in self.claims if all_tables else ():
            wrong = f"it died during maintenance of {claim.subject}"
            remedy = "nobody waits for it; maintain() goes on with its work"
            yield Problem("", "maintainer", claim.worker, wrong, remedy, "releases its claim")


def dead(connection: Connection, now: datetime) -> Dead:
    """Return who is dead at ``now``; four statements at most."""
    writers = (w for w in registered_writers(connection) if w.expires <= now or is_gone(w.writer))
    claims = (c for c in held_claims(connection) if c.is_dead(now) or is_gone(c.worker))
    return Dead(tuple(writers), tuple(claims))


def forget_dead(state: LakeState) -> None:
    """Remove the registrations of writers and the claims of maintainers that died."""

    def forget(connection: Connection) -> None:
        now = clock.now()
        found = dead(connection, now)
        if found.writers:
            remove_dead(connection, now, [w.writer for w in found.writers])
        drop_claims(connection, found.claims)

    write_with_retries(state.store, forget)


def left_jobs(
    connection: Connection, names: Mapping[int, str], *, all_tables: bool
) -> tuple[list[Problem], list[Problem]]:
    """Find open jobs that began and that nobody runs any more; two statements at most.

    Whether to go on with them is for you to say. The worker of the first ones died a minute ago.
    That of the others stopped, or somebody has noticed since that it died.
    """
    now = clock.now()
    abandoned, released = list[Problem](), list[Problem]()
    for job in jobs(connection):
        is_meant = all_tables or job.table_id in names
        if not is_meant or not job.is_open or job.is_held(now):
            continue
        remedy = f"continue it with lake.job({job.id}).wait(), or cancel it"
        where, name = names.get(job.table_id, ""), f"job {job.id}"
        if job.worker is not None:
            wrong = f"its worker {job.worker} has given no sign of life since {job.heartbeat}"
            abandoned.append(Problem(where, "job", name, wrong, remedy))
        elif job.state is JobState.RUNNING:
            released.append(Problem(where, "job", name, "it began, and nobody runs it", remedy))
    return abandoned, released
