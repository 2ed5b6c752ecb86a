"""Faults that are put into the product on purpose: the simulation must find each of them.

`MENDED` are faults that the history of the repository mended, by the commit that mended them.
`BROKEN` breaks one invariant each.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from shelduck.catalog.commit import commit as committing
from shelduck.catalog.commit.rows import table_stats
from shelduck.catalog.running import job_rows, writers
from shelduck.errors import OutcomeUnknown
from shelduck.files import compact, verb
from shelduck.jobs import worker
from shelduck.jobs.convert import OlderValues
from shelduck.jobs.worker import Renewal
from shelduck.lake import state as leases
from shelduck.lake import unit
from shelduck.lake.done import Done
from shelduck.lake.state import Writer
from shelduck.model.changes.change import PostponedRewrites
from shelduck.rollups import following
from shelduck.upkeep import orphans
from shelduck.write import appending

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shelduck.model.tables.table_version import TableVersion

Patch = tuple[Any, str, Any]


@dataclass(frozen=True)
class Fault:
    """What it does, how it is put back, and how the violation that it causes begins or ends."""

    what: str
    patches: Callable[[], list[Patch]]
    found_as: str
    within: int = 300
    """The number of seeds, from 1 on, of which one finds it."""

    @contextmanager
    def present(self) -> Iterator[None]:
        """Have the fault inside a ``with`` block."""
        with ExitStack() as stack:
            for owner, name, new in self.patches():
                stack.enter_context(patch.object(owner, name, new, create=True))
            yield


def _interrupted_commit() -> list[Patch]:
    real = unit.UnitOfWork._landed

    def landed(mine: unit.UnitOfWork, *given: Any) -> Any:
        try:
            return real(mine, *given)
        except OutcomeUnknown:
            mine.may_have_landed, mine.is_open = False, True
            mine.rollback()
            raise

    return [(unit.UnitOfWork, "_landed", landed)]


def _early_files() -> list[Patch]:
    nothing = PostponedRewrites(frozenset(), 0, frozenset())
    return [(worker, "renew", lambda _, found, __: Renewal(nothing, Done(found.table)))]


def _overlooked_rollup() -> list[Patch]:
    real = appending._fitted

    def fitted(*given: Any) -> Any:
        with patch.object(appending, "is_plain", lambda _: True):
            return real(*given)

    return [(appending, "_fitted", fitted)]


MENDED = {
    "2af6dc1": Fault(
        "remove_orphans takes files of registered writers",
        lambda: [(orphans, "_may_be_at_work", lambda *_: False)],
        "is at work on it",
    ),
    "3e2fb86": Fault(
        "the files of an interrupted COMMIT are removed",
        _interrupted_commit,
        "which is not there as it says|and a snapshot names it",
    ),
    "e3f97df": Fault(
        "converted files begin before the snapshot that shows their columns",
        _early_files,
        "begins before the snapshot that shows its columns",
    ),
    "0265296": Fault(
        "an append that meets a new rollup leaves it stale",
        _overlooked_rollup,
        "the rollup is stale",
    ),
    "e66edf9": Fault(
        "a process in another container is taken for dead",
        lambda: [(leases, "_place", lambda: "host")],
        "writes without it",
    ),
}


def _half_a_transaction() -> list[Patch]:
    real = unit.commit

    def commit(store: Any, lake: Any, changes: Any, **more: Any) -> Any:
        if len(changes) < 2 or more.get("job") or more.get("settlings"):
            return real(store, lake, changes, **more)
        alone = {"base": more["base"], "info": more["info"]}
        real(store, lake, changes[:1], **alone)
        return real(store, lake, changes[1:], **more)

    return [(unit, "commit", commit)]


def _no_guards() -> list[Patch]:
    real = job_rows.step_job
    anything = frozenset(job_rows.JobState)

    def step(connection: Any, wanted: Any, *rest: Any) -> None:
        real(connection, replace(wanted, expected=anything, worker=None), *rest)

    return [(committing, "step_job", step), (job_rows, "step_job", step)]


def _row_ids_again() -> list[Patch]:
    real = table_stats.Growth.of

    def of(*given: Any) -> Any:
        found = real(*given)
        return replace(found, row_ids=max(0, found.row_ids - 1))

    return [(table_stats.Growth, "of", staticmethod(of))]


def _one_beat() -> list[Patch]:
    def run(mine: leases.Leases, rest: Any) -> None:
        rest.wait(mine._beat)

    return [(leases.Leases, "_run", run)]


class _Unregistered(Writer):
    """A writer that the catalog does not know."""

    def register(self, table: TableVersion) -> TableVersion:
        return table


_GONE = "which is not there as it says|files are missing"

BROKEN = {
    "unseen compaction": Fault(
        "a compaction does not register", lambda: [(verb, "Writer", _Unregistered)], _GONE
    ),
    "unseen workers": Fault(
        "remove_orphans takes files of jobs at work",
        lambda: [(writers, "working_since", lambda *_: ())],
        _GONE,
    ),
    "written twice": Fault(
        "a batch that has landed lands again",
        lambda: [(committing, "landed_in", lambda *_: None), (unit, "landed_in", lambda *_: None)],
        "of its 1 rows",
    ),
    "half a transaction": Fault(
        "two tables of one transaction change in two snapshots",
        _half_a_transaction,
        "the sum over both tables is",
        within=5,
    ),
    "two publications": Fault(
        "a job's steps do not look at its state and worker", _no_guards, "job"
    ),
    "row ids again": Fault("rows get ids that others have", _row_ids_again, "have the id|gives"),
    "rollup forgotten": Fault(
        "a write does not reach the rollup",
        lambda: [(following, "added", lambda _, rows, *__: Done(rows.table))],
        "the rollup has",
        within=5,
    ),
    "history rewritten": Fault(
        "compacted rows lose their snapshots",
        lambda: [(compact, "_keeps_snapshots", lambda _: False)],
        "shows other rows",
        within=28,
    ),
    "values forgotten": Fault(
        "an undo does not look for the values that its job lost",
        lambda: [(OlderValues, "may_have", lambda *_: False)],
        "before the job",
    ),
    "one beat": Fault("a lease is never renewed", _one_beat, "is at work on it|writes without it"),
    "nothing is cleaned": Fault(
        "cleanup deletes no file",
        lambda: [(orphans, f"delete_{w}", lambda _: None) for w in ("files", "directory")],
        "orphans are left",
        within=20,
    ),
}
FAULTS = MENDED | BROKEN
