"""Snapshots that expire, and everything that only they could see, lot by lot."""

from __future__ import annotations

from dataclasses import dataclass

from shelduck.catalog.databases.store import Store
from shelduck.catalog.schema.create import LakeInfo
from shelduck.catalog.upkeep.expire import ExpiryRequest, choose, remove_snapshots
from shelduck.catalog.upkeep.few_rows import Pace
from shelduck.catalog.upkeep.older_inlined import remove_empty_tables
from shelduck.catalog.upkeep.sweep import Sweep
from shelduck.operations.progress import counted


@dataclass(frozen=True, slots=True)
class Expiry:
    """The expired snapshots, and how many files wait for deletion because of this."""

    snapshots: tuple[int, ...]
    files: int


def expire_snapshots(
    store: Store,
    lake: LakeInfo,
    request: ExpiryRequest,
    *,
    dry_run: bool = False,
    show: bool | None = False,
) -> Expiry:
    """Expire snapshots; the work is done in many short transactions.

    After each of them the lake is sound: first snapshots go, then what no snapshot sees. What is
    left after an interruption is removed by the next call.

    Raises NotFound for a version that does not exist, InvalidRequest for the newest.
    """
    choice, pace = choose(store, request), Pace()
    if not dry_run:
        told = counted(
            choice.expired,
            "expiring snapshots",
            len(choice.expired),
            unit="snapshot(s)",
            show=show,
        )
        remove_snapshots(store, told, pace)
    sweep = Sweep(store, lake, choice.remaining, pace, removes=not dry_run)
    pages = counted(
        sweep.files(),
        "removing files of expired snapshots",
        sweep.count_files(),
        size=lambda page: page.rows,
        show=show,
    )
    files = sum(page.gone for page in pages)
    if not dry_run:
        sweep.tables()
        sweep.objects()
        remove_empty_tables(store, pace)
    return Expiry(tuple(choice.expired), files)
