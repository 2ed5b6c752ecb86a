"""Where somebody who follows a table has come to: a few small files in a directory.

``<n>.json`` says which snapshots batch n has, and is there before anybody sees the batch;
``<n>.done`` is there when it is worked up. After a crash the batch that was begun comes again, with
the same number and the same snapshots. ``passed.json`` says up to where nothing more concerned the
table: these snapshots may expire.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from shelduck.errors import CorruptLake, InvalidRequest
from shelduck.model.place import place_below
from shelduck.spark.storage import delete_file, list_names, read_text, write_text


@dataclass(frozen=True, slots=True)
class FollowedBatch:
    """Batch ``number``: the snapshots ``first`` to ``last``."""

    number: int
    first: int
    last: int


class Cursor:
    """The durable place of one follower of one table."""

    def __init__(self, directory: str, table_uuid: str) -> None:
        self._place = directory.rstrip("/") + "/"
        self._uuid = table_uuid
        names = list_names(self._place)
        self.passed = self._numbers("passed", "to")[0] if "passed.json" in names else -1
        """The last snapshot that was seen to be of no concern, -1 when none was."""
        numbers = sorted(int(n[:-5]) for n in names if n.endswith(".json") and n[:-5].isdigit())
        self._newest = self._read(numbers[-1]) if numbers else None
        is_done = self._newest is not None and f"{self._newest.number}.done" in names
        self.begun = None if is_done else self._newest
        """The batch that was begun and not worked up."""

    @property
    def last(self) -> int | None:
        """The last snapshot that was handed out, None when none was."""
        return None if self._newest is None else self._newest.last

    def pass_over(self, last: int) -> None:
        """Keep in mind that there is nothing up to a snapshot besides what was handed out."""
        write_text(f"{self._place}passed.json", json.dumps({"table": self._uuid, "to": last}))
        self.passed = last

    def begin(self, first: int, last: int) -> FollowedBatch:
        """Make the next batch, of these snapshots, known to all that come after a crash."""
        number = 0 if self._newest is None else self._newest.number + 1
        batch = FollowedBatch(number, first, last)
        content = {"table": self._uuid, "first": first, "last": last}
        write_text(f"{self._place}{number}.json", json.dumps(content))
        self._newest = self.begun = batch
        return batch

    def finish(self, batch: FollowedBatch) -> None:
        """Say that a batch is worked up, and forget those before it."""
        write_text(f"{self._place}{batch.number}.done", "")
        self.begun = None
        for suffix in ("json", "done"):
            delete_file(place_below(self._place, f"{batch.number - 1}.{suffix}"))

    def _read(self, number: int) -> FollowedBatch:
        return FollowedBatch(number, *self._numbers(str(number), "first", "last"))

    def _numbers(self, name: str, *keys: str) -> list[int]:
        path = f"{self._place}{name}.json"
        try:
            found = json.loads(read_text(path))
            numbers, uuid = [int(found[key]) for key in keys], found["table"]
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptLake(f"{path} is no checkpoint of a followed table") from error
        if uuid != self._uuid:
            raise InvalidRequest(f"{self._place} is the checkpoint of another table: take another")
        return numbers
