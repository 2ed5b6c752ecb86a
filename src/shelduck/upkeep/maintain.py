"""Maintenance that decides by itself what is worth doing, within bytes and time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum
from math import inf
from typing import Literal

from rich.filesize import decimal

from shelduck import clock
from shelduck.catalog.upkeep.lake_counts import files_of_layouts, lake_facts, table_facts
from shelduck.engine.named_errors import first_line
from shelduck.errors import CatalogUnavailable, Conflict, NotFound, Unsupported
from shelduck.files.verb import bytes_of
from shelduck.lake.lookup import seconds_of
from shelduck.lake.results import Committed, Compacted, Expired, FilesDeleted, Staged, TableName
from shelduck.lake.state import LakeState, Maintainer
from shelduck.model.files.lake_facts import LAYOUTS, LakeFacts, LayoutFiles, TableFacts
from shelduck.model.tables.schema import TableId
from shelduck.objects.catalog_verbs import Table
from shelduck.upkeep.lake_upkeep import LakeUpkeep

MAX_BYTES, MAX_TIME = "8GB", "10 minutes"
_log = logging.getLogger("shelduck.maintain")
_NO_BYTES = "the bytes of this run are used up"
_NO_TIME = "the time of this run is over"
_TAKEN = "another process maintains it now"
StepState = Literal["planned", "done", "left", "failed"]


@dataclass(frozen=True, slots=True)
class MaintenanceStep:
    """One step of `Lake.maintain`: what it is, why it is worth it, and what became of it.

    ``work`` is the name of the call that does it, ``table`` None for the whole lake. ``files`` and
    ``bytes`` are what it read; if it is ``planned``, what the catalog expects. ``told`` says what
    it did, why it was ``left`` for later, or why it ``failed``.
    """

    work: str
    table: TableName | None
    reason: str
    state: StepState
    files: int = 0
    bytes: int = 0
    told: str = ""
    snapshots: tuple[int, ...] = ()
    seconds: float = 0.0

    def __str__(self) -> str:
        size = f" ({decimal(self.bytes)})" if self.bytes else ""
        counts = f", {self.files} file(s){size}" if self.files else ""
        told = {
            "planned": f"{self.reason}{counts}",
            "done": self.told,
            "left": f"left for later: {self.told}",
            "failed": f"failed: {self.told}",
        }
        return f"{self.table or 'lake'}: {self.work}: {told[self.state]}"


@dataclass(frozen=True, slots=True)
class Maintained:
    """All steps of one `Lake.maintain`, in order; print it."""

    steps: tuple[MaintenanceStep, ...] = ()
    dry_run: bool = False

    @property
    def done(self) -> tuple[MaintenanceStep, ...]:
        """The steps that were done."""
        return self._in("done")

    @property
    def left(self) -> tuple[MaintenanceStep, ...]:
        """The steps that are left for later, such as the next run."""
        return self._in("left")

    @property
    def failed(self) -> tuple[MaintenanceStep, ...]:
        """The steps that failed; ``told`` says why."""
        return self._in("failed")

    def _in(self, state: StepState) -> tuple[MaintenanceStep, ...]:
        return tuple(step for step in self.steps if step.state == state)

    def __str__(self) -> str:
        return "\n".join(map(str, self.steps)) or "nothing is worth doing"


Report = Callable[[MaintenanceStep], None]


@dataclass
class Budget:
    """The rest of what one run may use: ``bytes`` to rewrite, and the time until ``end``."""

    bytes: float = inf
    end: float = inf

    @classmethod
    def of(cls, max_bytes: int | str | None, max_time: str | timedelta | None) -> Budget:
        """Return the budget that arguments give, None for no limit; the time begins now."""
        size = inf if max_bytes is None else bytes_of("max_bytes", max_bytes)
        span = inf if max_time is None else seconds_of("max_time", max_time)
        return cls(size, clock.monotonic() + span)

    @property
    def limit(self) -> int | None:
        """The bytes that are left, None without a limit."""
        return None if self.bytes == inf else int(self.bytes)

    def refuses(self, step: DueStep) -> str:
        """Return why a step does not begin, empty if it does."""
        if clock.monotonic() >= self.end:
            return _NO_TIME
        return _NO_BYTES if step.bytes and self.bytes < 1 else ""


def maintain_lake(state: LakeState, budget: Budget, report: Report, *, dry_run: bool) -> Maintained:
    """Do what is worth doing, or tell; ``report`` is called after each step."""
    run = _Run(state, budget, report)
    try:
        if dry_run:
            run.plan()
        else:
            run.all()
    except KeyboardInterrupt:
        done = len(Maintained(tuple(run.steps)).done)
        raise KeyboardInterrupt(f"interrupted; {done} step(s) are done, and stay") from None
    return Maintained(tuple(run.steps), dry_run)


@dataclass
class _Run:
    state: LakeState
    budget: Budget
    report: Report
    steps: list[MaintenanceStep] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._maintainer = Maintainer(self.state.store, self.state.leases)

    def plan(self) -> None:
        """Note the steps that would be done; nothing is written, to the catalog neither."""
        for step in self._of_lake():
            self._note(_noted(step, None), self.budget.refuses(step))
        for table, steps in self._of_tables():
            for step in steps:
                self._note(_noted(step, table), self.budget.refuses(step))
                self.budget.bytes -= step.bytes

    def all(self) -> None:
        """Do the steps, each only if it is still worth it when its turn comes."""
        for step in self._of_lake():
            why = self.budget.refuses(step)
            if why:
                self._note(_noted(step, None), why)
            else:
                self._lake_step(step)
        for table, steps in self._of_tables():
            why = next(filter(None, map(self.budget.refuses, steps)), "")
            if why == _NO_TIME:
                for step in steps:
                    self._note(_noted(step, table), why)
            else:
                self._table(table, steps)

    def _of_lake(self) -> list[DueStep]:
        now = clock.now()
        facts = self.state.store.ask(lake_facts, now, DueWork.REMOVE_ORPHANS.value)
        return steps_of_lake(facts, now)

    def _of_tables(self) -> list[tuple[TableFacts, list[DueStep]]]:
        return by_worth(self.state.store.ask(table_facts))

    def _lake_step(self, step: DueStep) -> None:
        with self._maintainer.claim(step.work.value) as claim:
            if not claim.is_mine:
                self._note(_noted(step, None), _TAKEN)
            elif any(one.work is step.work for one in self._of_lake()):
                claim.is_done = self._do(step, None)

    def _table(self, table: TableFacts, planned: list[DueStep]) -> None:
        with self._maintainer.claim(f"table {table.id}") as claim:
            if not claim.is_mine:
                for step in planned:
                    self._note(_noted(step, table), _TAKEN)
                return
            claim.is_done = all(self._do(step, now) for now, step in self._still(table.id))

    def _still(self, number: TableId) -> Iterator[tuple[TableFacts, DueStep]]:
        """Yield what a table needs, looking again after each step; no kind of step twice."""
        tried = set()
        while True:
            found = self.state.store.ask(table_facts, number)
            steps = [s for one in found for s in steps_of_table(one) if s.key not in tried]
            if not steps:
                return
            tried.add(steps[0].key)
            yield found[0], steps[0]

    def _do(self, step: DueStep, table: TableFacts | None) -> bool:
        """Do a step; False if it failed, which ends the work on its table."""
        noted = _noted(step, table)
        why = self.budget.refuses(step)
        if why:
            self._note(noted, why)
            return True
        began = clock.monotonic()
        try:
            done = _act(self.state, step, noted, self.budget.limit)
        except CatalogUnavailable:
            raise
        except (Conflict, NotFound, Unsupported) as error:
            if not (isinstance(error, NotFound) and error.about == "table"):
                self._note(noted, str(error))
            return True
        except Exception as error:  # noqa: BLE001 - one table does not stop the others
            self._note(replace(noted, state="failed", told=first_line(error)))
            return False
        if step.bytes:
            self.budget.bytes -= done.bytes
        self._note(replace(done, seconds=clock.monotonic() - began))
        return True

    def _note(self, step: MaintenanceStep, why: str = "") -> None:
        """Note a step in the report and in the log, with ``why`` as left for later."""
        if why:
            step = replace(step, state="left", told=why)
        self.steps.append(step)
        _log.log(logging.ERROR if step.state == "failed" else logging.INFO, "%s", step)
        self.report(step)


def _noted(step: DueStep, table: TableFacts | None) -> MaintenanceStep:
    name = None if table is None else TableName(table.schema, table.name)
    return MaintenanceStep(
        step.work.value, name, step.reason, "planned", files=step.files, bytes=step.bytes
    )


def _act(
    state: LakeState, step: DueStep, noted: MaintenanceStep, limit: int | None
) -> MaintenanceStep:
    """Do one step by the call that has its name; rewrite at most ``limit`` bytes."""
    lake = LakeUpkeep(state, None)
    if noted.table is None:
        acts: dict[DueWork, Callable[[], Expired | FilesDeleted]] = {
            DueWork.EXPIRE: lake.expire_snapshots,
            DueWork.CLEAN_UP: lake.cleanup_old_files,
            DueWork.REMOVE_ORPHANS: lake.remove_orphans,
        }
        return _of_lake(noted, acts[step.work]())
    table = Table(state, noted.table)
    if step.work is DueWork.FLUSH:
        return _flushed(noted, table)
    if step.work is DueWork.COMPACT:
        done = table.compact(max_file_size=step.below, max_bytes=limit)
    elif step.work is DueWork.REWRITE:
        done = table.rewrite(_files(state, step, limit))
    else:
        threshold = None if step.below is None else 0.0
        done = table.rewrite_deletes(threshold, max_file_size=step.below, max_bytes=limit)
    return _rewritten(noted, done, step, limit)


def _files(state: LakeState, step: DueStep, limit: int | None) -> list[int]:
    """Return the files of a step's layouts whose bytes are within the limit."""
    assert step.table is not None
    left = inf if limit is None else limit
    found = []
    with state.store.read() as connection:
        for number, size in files_of_layouts(connection, step.table, step.layouts):
            if size <= left:
                left -= size
                found.append(number)
    return found


def _of_lake(noted: MaintenanceStep, done: Expired | FilesDeleted) -> MaintenanceStep:
    size = done.bytes if isinstance(done, FilesDeleted) else 0
    files = len(done.files) if isinstance(done, FilesDeleted) else done.files
    return replace(noted, state="done", files=files, bytes=size, told=str(done))


def _flushed(noted: MaintenanceStep, table: Table) -> MaintenanceStep:
    done = table.flush_inlined_data()
    assert not isinstance(done, Staged)
    if done.note:
        return replace(noted, state="left", told=done.note)
    snapshots = (done.snapshot,) if isinstance(done, Committed) else ()
    told = f"moved into {done.files} file(s)"
    return replace(
        noted, state="done", files=done.files, bytes=done.bytes, told=told, snapshots=snapshots
    )


def _rewritten(
    noted: MaintenanceStep, done: Compacted, step: DueStep, limit: int | None
) -> MaintenanceStep:
    if done.note or not done.files:
        over = limit is not None and step.bytes > limit
        told = done.note or (_NO_BYTES if over else "others changed them, or none can be combined")
        return replace(noted, state="left", files=0, bytes=0, told=told)
    told = str(done).removeprefix(f"{done.table}: ")
    return replace(
        noted, state="done", files=done.files, bytes=done.bytes, told=told, snapshots=done.snapshots
    )


SEARCH_EVERY = timedelta(days=1)
"""How often somebody looks for orphans: this lists the storage."""
# Statements whose rows may stay in the catalog: a flush makes a file, and a read of them none.
_KEPT_STATEMENTS = 10


class DueWork(Enum):
    """A kind of maintenance; the value is the name of the call that does it."""

    EXPIRE = "expire_snapshots"
    CLEAN_UP = "cleanup_old_files"
    REMOVE_ORPHANS = "remove_orphans"
    FLUSH = "flush_inlined_data"
    REWRITE_DELETES = "rewrite_deletes"
    COMPACT = "compact"
    REWRITE = "rewrite"


@dataclass(frozen=True, slots=True)
class DueStep:
    """One thing worth doing, and why.

    ``files`` and ``bytes`` are what it reads, as far as the catalog tells. Of COMPACT and
    REWRITE_DELETES, ``below`` limits the size of the files; of REWRITE, ``layouts`` chooses them.
    """

    work: DueWork
    reason: str
    table: TableId | None = None
    files: int = 0
    bytes: int = 0
    below: int | None = None
    layouts: tuple[int, ...] = ()

    @property
    def key(self) -> tuple[DueWork, bool]:
        """A key that tells two steps of one table apart."""
        return self.work, self.below is None


def steps_of_lake(facts: LakeFacts, now: datetime) -> list[DueStep]:
    """Return the steps that belong to no table; they rewrite nothing."""
    found = []
    if facts.expired:
        why = f"{facts.expired} snapshot(s) are older than expire_older_than"
        found.append(DueStep(DueWork.EXPIRE, why))
    if facts.scheduled:
        why = "no snapshot has shown them for delete_older_than"
        found.append(DueStep(DueWork.CLEAN_UP, why, files=facts.scheduled))
    if facts.searched is None or now - facts.searched >= SEARCH_EVERY:
        why = "nobody has looked for a day" if facts.searched else "nobody has looked yet"
        found.append(DueStep(DueWork.REMOVE_ORPHANS, why))
    return found


def steps_of_table(facts: TableFacts) -> list[DueStep]:
    """Return the steps of a table, in the order in which they are done.

    With the option auto_compact false, its files are left alone. So is a table while a job of a
    schema change runs: the job rewrites the files itself, and would have to do it again.
    """
    if facts.is_changing:
        return []
    rewrites = [] if not facts.options.auto_compact else list(_rewrites(facts))
    limit = max(1, _KEPT_STATEMENTS * facts.options.data_inlining_row_limit)
    kept = facts.kept + facts.kept_deletes
    flush = []
    if kept >= limit:
        flush = [DueStep(DueWork.FLUSH, f"{kept} rows and deletes are in the catalog", facts.id)]
    elif facts.kept_deletes and rewrites:
        why = f"{facts.kept_deletes} deletes in the catalog keep files from being combined"
        flush = [DueStep(DueWork.FLUSH, why, facts.id)]
    return flush + rewrites


def by_worth(facts: Iterable[TableFacts]) -> list[tuple[TableFacts, list[DueStep]]]:
    """Return the tables that need something, with their steps; the best for its bytes first."""
    found = [(table, steps) for table in facts if (steps := steps_of_table(table))]
    return sorted(found, key=lambda one: (-_worth(one[1]), one[0].schema, one[0].name))


def _worth(steps: Sequence[DueStep]) -> float:
    if steps[0].work is DueWork.FLUSH:
        return float("inf")
    return max(step.files / max(1, step.bytes) for step in steps)


def _rewrites(facts: TableFacts) -> Iterable[DueStep]:
    if facts.worn:
        share = facts.options.rewrite_delete_threshold
        why = f"{share:.0%} or more of their rows are deleted"
        yield DueStep(DueWork.REWRITE_DELETES, why, facts.id, facts.worn, facts.worn_bytes)
    for work, tiers, why in (
        (
            DueWork.REWRITE_DELETES,
            facts.small_with_deletes,
            "many small files of similar size, with deleted rows",
        ),
        (DueWork.COMPACT, facts.small, "many small files of similar size"),
    ):
        # The largest tier that is full; smaller files go along, because they cost little.
        tier = max((t for t in tiers if t.full), key=lambda t: t.below, default=None)
        if tier is not None:
            yield DueStep(work, why, facts.id, tier.files, tier.bytes, tier.below)
    if len(facts.layouts) > LAYOUTS:
        chosen = _outdated(facts.layouts)
        why = f"files have {len(facts.layouts)} different layouts"
        files, size = sum(one.files for one in chosen), sum(one.bytes for one in chosen)
        ids = tuple(one.id for one in chosen)
        yield DueStep(DueWork.REWRITE, why, facts.id, files, size, layouts=ids)


def _outdated(layouts: Sequence[LayoutFiles]) -> list[LayoutFiles]:
    """Return the layouts with the fewest bytes, but for the newest one, until half may stay."""
    newest = max(layouts, key=lambda one: one.newest)
    others = sorted((one for one in layouts if one is not newest), key=lambda one: one.bytes)
    return others[: len(layouts) - LAYOUTS // 2]
