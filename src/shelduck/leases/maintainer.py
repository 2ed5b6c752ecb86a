"""A maintainer: it claims what it works on, so that another one does something else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from shelduck.catalog.databases.store import Store
from shelduck.catalog.running.upkeep import claim_upkeep, forget_upkeep, maintainer, release_upkeep
from shelduck.errors import ShelduckError
from shelduck.leases.identity import is_gone, new_identity
from shelduck.leases.leases import Leases


@dataclass
class Claim:
    """The claim of a maintainer; set ``is_done`` once it is maintained."""

    is_mine: bool
    is_done: bool = False


class Maintainer:
    """Does maintenance on behalf of one call; dead ones lose their claims with their lease."""

    def __init__(self, store: Store, leases: Leases) -> None:
        self._store = store
        self._leases = leases
        self._id = new_identity()

    @contextmanager
    def claim(self, subject: str, *, ends: bool = False) -> Iterator[Claim]:
        """Claim a subject inside a ``with`` block; ``is_mine`` is False if somebody else has it.

        With ``ends``, the subject is forgotten when it is released.
        """
        holder = maintainer(self._store, subject)
        gone = holder if is_gone(holder) else None
        claim = Claim(claim_upkeep(self._store, subject, self._id, gone))
        if not claim.is_mine:
            yield claim
            return
        with self._leases.maintainer(self._id):
            try:
                yield claim
            finally:
                # If the catalog is unavailable, the earlier error says more.
                with suppress(ShelduckError):
                    if ends:
                        forget_upkeep(self._store, subject, self._id)
                    else:
                        release_upkeep(self._store, subject, self._id, is_done=claim.is_done)
