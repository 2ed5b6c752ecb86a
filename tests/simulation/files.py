"""The file store: names, sizes and rows in memory, behind the interface of ``pyarrow.fs``."""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyarrow import fs

if TYPE_CHECKING:
    from datetime import datetime

    from tests.simulation.run import Simulation
    from tests.simulation.world import Process

SCHEME = "sim://"


@dataclass(frozen=True, slots=True)
class StandIn:
    """What stands in for a Parquet file: rows by the ids of their fields, or dead positions.

    ``row_ids`` and ``snapshots`` are those that the file embeds. ``dead`` are positions with the
    snapshot of their death, None if the file does not say.
    """

    rows: tuple[dict[int, Any], ...] = ()
    row_ids: tuple[int, ...] | None = None
    snapshots: tuple[int, ...] | None = None
    dead: dict[int, int | None] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return 100 + 10 * (len(self.rows) + len(self.dead))


@dataclass(slots=True)
class Kept:
    """A file in the store: who wrote it, and when it changed last."""

    content: StandIn
    changed: datetime
    writer: Process | None
    size: int


class FileStore:
    """All files of one run; it has the methods of a file system that the product calls."""

    type_name = "simulated"

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self.files: dict[str, Kept] = {}

    def put(self, path: str, content: StandIn) -> int:
        """Write a file and return its size; a full disk leaves a part of it."""
        path = path.removeprefix(SCHEME)
        self._step(f"write {path}")
        if self._simulation.faults.is_full():
            self._keep(path, StandIn(), 7)
            raise OSError(errno.ENOSPC, "No space left on device", path)
        self._keep(path, content, content.size)
        return content.size

    def read(self, path: str) -> StandIn:
        path = path.removeprefix(SCHEME)
        self._step(f"read {path}")
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path].content

    def get_file_info(self, what: Any) -> Any:
        if isinstance(what, fs.FileSelector):
            return self._listed(what)
        self._step(f"look at {what}")
        return self._info(what)

    def delete_file(self, path: str) -> None:
        self._step(f"delete {path}")
        self._fails()
        if path not in self.files:
            raise FileNotFoundError(path)
        self._remove(path)

    def delete_dir(self, path: str) -> None:
        self._step(f"delete {path}/")
        inside = [p for p in self.files if p.startswith(f"{path}/")]
        if not inside:
            raise FileNotFoundError(path)
        for name in inside:
            self._fails()
            if name in self.files:
                self._remove(name)
            self._step(f"deleted {name}")

    def copy_file(self, source: str, target: str) -> None:
        self.put(target, self.read(source))

    def create_dir(self, path: str, *, recursive: bool) -> None:
        """Directories are what the paths of files imply."""

    def _keep(self, path: str, content: StandIn, size: int) -> None:
        task = self._simulation.world.task
        process = None if task is None else task.process
        self.files[path] = Kept(content, self._simulation.now(), process, size)
        if process is not None and process.is_registered:
            process.writes.add(path)

    def _remove(self, path: str) -> None:
        if self._simulation.is_on:
            self._simulation.removing(path, self.files[path])
        del self.files[path]

    def _listed(self, what: fs.FileSelector) -> list[fs.FileInfo]:
        """List a directory slowly: others go on in between; pages of a listing may repeat files."""
        base = f"{what.base_dir.rstrip('/')}/"
        names = [p for p in self.files if p.startswith(base)]
        page = max(1, len(names) // 2)
        found: list[fs.FileInfo] = []
        seen: set[str] = set()
        for start in range(0, max(1, len(names)), page):
            self._step(f"list {base} from {start}")
            self._fails()
            for path in names[start : start + page]:
                if path in self.files:
                    found += self._with_directory(path, base, seen)
        if not names and not what.allow_not_found:
            raise FileNotFoundError(base)
        if found and self._simulation.faults.repeats():
            found.append(found[0])
        return found

    def _with_directory(self, path: str, base: str, seen: set[str]) -> list[fs.FileInfo]:
        directory = path.rpartition("/")[0]
        found = []
        if directory + "/" != base and directory not in seen:
            seen.add(directory)
            changed = self.files[path].changed
            found.append(fs.FileInfo(directory, type=fs.FileType.Directory, mtime=changed))
        return [*found, self._info(path)]

    def _info(self, path: str) -> fs.FileInfo:
        kept = self.files.get(path)
        if kept is None:
            return fs.FileInfo(path, type=fs.FileType.NotFound)
        return fs.FileInfo(path, type=fs.FileType.File, size=kept.size, mtime=kept.changed)

    def _step(self, what: str) -> None:
        if self._simulation.is_on:
            self._simulation.world.step(what)

    def _fails(self) -> None:
        faults = self._simulation.faults
        if (seconds := faults.delay()) and self._simulation.is_on:
            self._simulation.world.sleep(seconds)
        if faults.storage_fails():
            raise OSError(errno.EIO, "the storage does not answer")
