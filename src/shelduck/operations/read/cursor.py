"""How far a follower of a table has read: a few small files in a directory.

``<n>.json`` has the snapshots of batch n, and exists before anybody sees the batch; ``<n>.done``
exists when the batch is done. After a crash, the batch that was begun comes again, with the same
number and the same snapshots. ``passed.json`` says up to which snapshot nothing else concerned the
table; these snapshots may expire.
"""

from __future__ import annotations

from dataclasses import dataclass

from shelduck.errors import InvalidRequest
from shelduck.model.files.place import place_below
from shelduck.model.text.stored import NUMBER, TEXT, Stored, record
from shelduck.spark.files.storage import delete_file, list_names, read_text, write_text


@dataclass(frozen=True, slots=True)
class FollowedBatch:
    """Batch ``number``: the snapshots ``first`` to ``last``."""

    number: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class _Begun:
    """The content of a batch's file."""

    table: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class _Passed:
    """The content of ``passed.json``."""

    table: str
    to: int


_BEGUN: Stored[_Begun] = Stored("content", record(_Begun, table=TEXT, first=NUMBER, last=NUMBER))
_PASSED: Stored[_Passed] = Stored("content", record(_Passed, table=TEXT, to=NUMBER))


class Cursor:
    """The durable position of one follower of one table."""

    def __init__(self, directory: str, table_uuid: str) -> None:
        self._place = directory.rstrip("/") + "/"
        self._uuid = table_uuid
        names = list_names(self._place)
        self._said = self._text("passed") if "passed.json" in names else None
        self.passed = -1 if self._said is None else self._passed_in(self._said)
        """The last snapshot without changes of the table, -1 if there is none."""
        numbers = sorted(int(n[:-5]) for n in names if n.endswith(".json") and n[:-5].isdigit())
        self._newest = self._read(numbers[-1]) if numbers else None
        is_done = self._newest is not None and f"{self._newest.number}.done" in names
        self.begun = None if is_done else self._newest
        """The batch that was begun and is not done."""

    @property
    def last(self) -> int | None:
        """The last snapshot that was passed to the follower, None if there is none."""
        return None if self._newest is None else self._newest.last

    def pass_over(self, last: int) -> None:
        """Record that there are no changes up to a snapshot except those already passed on."""
        self._said = _PASSED.write(_Passed(self._uuid, last), self._said)
        write_text(self._path("passed"), self._said)
        self.passed = last

    def begin(self, first: int, last: int) -> FollowedBatch:
        """Record the next batch, of these snapshots, so that it survives a crash."""
        number = 0 if self._newest is None else self._newest.number + 1
        batch = FollowedBatch(number, first, last)
        content = _BEGUN.write(_Begun(self._uuid, first, last))
        write_text(self._path(str(number)), content)
        self._newest = self.begun = batch
        return batch

    def finish(self, batch: FollowedBatch) -> None:
        """Record that a batch is done, and remove those before it."""
        write_text(f"{self._place}{batch.number}.done", "")
        self.begun = None
        for suffix in ("json", "done"):
            delete_file(place_below(self._place, f"{batch.number - 1}.{suffix}"))

    def _read(self, number: int) -> FollowedBatch:
        found = _BEGUN.read(self._text(str(number)), self._path(str(number)))
        self._require_own(found.table)
        return FollowedBatch(number, found.first, found.last)

    def _passed_in(self, text: str) -> int:
        found = _PASSED.read(text, self._path("passed"))
        self._require_own(found.table)
        return found.to

    def _require_own(self, table: str) -> None:
        if table != self._uuid:
            raise InvalidRequest(
                f"{self._place} is the checkpoint of another table; give this one its own directory"
            )

    def _text(self, name: str) -> str:
        return read_text(self._path(name))

    def _path(self, name: str) -> str:
        return f"{self._place}{name}.json"
