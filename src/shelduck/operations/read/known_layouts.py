"""The known physical layouts of files that other writers made.

Footers are read once per process and kept here; the next commit of this process records them in the
catalog. Readers never write to the catalog (docs/decisions/0003).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

from shelduck.model.files.data_files import DataFile
from shelduck.model.files.layout import Layout


class LayoutMemory:
    """Layouts by data file id, for one lake; threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[int, Layout] = {}
        self._unrecorded: dict[int, Layout] = {}

    def fill(
        self,
        files: Sequence[DataFile],
        read_footers: Callable[[list[str], list[int]], list[Layout]],
    ) -> list[DataFile]:
        """Return the files with their layouts; read the footers of files with unknown layouts."""
        missing = [f for f in files if f.layout is None and f.id not in self._known]
        if missing:
            found = read_footers([f.path for f in missing], [f.file_size_bytes for f in missing])
            learned = {f.id: layout for f, layout in zip(missing, found, strict=True)}
            with self._lock:
                self._known.update(learned)
                self._unrecorded.update(learned)
        return [f if f.layout is not None else f._replace(layout=self._known[f.id]) for f in files]

    def unrecorded(self) -> Mapping[int, Layout]:
        """Return the layouts that the catalog does not have yet."""
        with self._lock:
            return dict(self._unrecorded)

    def mark_recorded(self, learned: Mapping[int, Layout]) -> None:
        """Remove these from the layouts to record."""
        with self._lock:
            for file_id in learned:
                self._unrecorded.pop(file_id, None)
