"""Results of `Lake.maintain`, done or planned: plain values that print well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rich.filesize import decimal

from shelduck.work.results import TableName

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
