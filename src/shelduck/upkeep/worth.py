"""Which maintenance is worth its cost now: facts become steps.

Rows are rewritten only together with rows of similar files, so that each row is rewritten a few
times in its life, however many loads there are. What is left alone is bounded: less than `FULL`
files for each tier and partition, and less than ten statements' rows in the catalog.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from shelduck.model.files.lake_facts import LAYOUTS, LakeFacts, LayoutFiles, TableFacts, Tier
from shelduck.model.tables.schema import TableId

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
        tier = _full(tiers)
        if tier is not None:
            yield DueStep(work, why, facts.id, tier.files, tier.bytes, tier.below)
    if len(facts.layouts) > LAYOUTS:
        chosen = _outdated(facts.layouts)
        why = f"files have {len(facts.layouts)} different layouts"
        files, size = sum(one.files for one in chosen), sum(one.bytes for one in chosen)
        ids = tuple(one.id for one in chosen)
        yield DueStep(DueWork.REWRITE, why, facts.id, files, size, layouts=ids)


def _full(tiers: Sequence[Tier]) -> Tier | None:
    """Return the largest tier that is full; smaller files go along, because they cost little."""
    return max((t for t in tiers if t.full), key=lambda t: t.below, default=None)


def _outdated(layouts: Sequence[LayoutFiles]) -> list[LayoutFiles]:
    """Return the layouts with the fewest bytes, but for the newest one, until half may stay."""
    newest = max(layouts, key=lambda one: one.newest)
    others = sorted((one for one in layouts if one is not newest), key=lambda one: one.bytes)
    return others[: len(layouts) - LAYOUTS // 2]
