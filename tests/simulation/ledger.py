"""What clients asked for, and what they were told about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Told(Enum):
    """What the client knows of a request; only the first two say how it ended."""

    LANDED = "landed"
    FAILED = "failed"
    OPEN = "open"
    UNKNOWN = "unknown"


@dataclass
class Write:
    """Rows that a client adds to tables, all at once; they carry the number of the write."""

    number: int
    tables: tuple[str, ...]
    rows: int
    added: Told = Told.OPEN
    deleted: Told | None = None

    @property
    def counts(self) -> set[int]:
        """How many of its rows each of its tables may have now."""
        if self.added is Told.FAILED or self.deleted is Told.LANDED:
            return {0}
        if self.added is Told.LANDED and self.deleted in (None, Told.FAILED):
            return {self.rows}
        return {0, self.rows}


@dataclass
class Ledger:
    """All writes by their numbers."""

    writes: dict[int, Write] = field(default_factory=dict)

    def begin(self, tables: tuple[str, ...], rows: int) -> Write:
        made = Write(len(self.writes) + 1, tables, rows)
        self.writes[made.number] = made
        return made

    def deletable(self) -> list[Write]:
        return [
            w
            for w in self.writes.values()
            if w.tables == ("t",) and w.added is Told.LANDED and w.deleted in (None, Told.FAILED)
        ]


def row_of(number: int, place: int) -> dict[str, int]:
    """The row of a write with that number, in a table of appends."""
    return {"op": number, "k": (number + place) % 3, "v": number * 10 + place, "w": number + place}
