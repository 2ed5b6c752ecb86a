"""Results of maintenance, done or planned: plain values that print well."""

from __future__ import annotations

from dataclasses import dataclass

from rich.filesize import decimal

from shelduck.catalog.upkeep.migrate import MigrationStep
from shelduck.work.results import TableName


@dataclass(frozen=True, slots=True)
class Compacted:
    """Files of one table that were rewritten.

    ``files`` became ``new_files``; sizes are in bytes, and ``new_bytes`` is None if nothing was
    written. ``snapshots`` are those that were made: several for a large table, none for a dry run.
    ``skipped`` files were changed by other commits in the meantime and left as they are; with a
    ``note``, the whole table was left alone for that reason.
    """

    table: TableName
    files: int = 0
    bytes: int = 0
    new_files: int = 0
    new_bytes: int | None = None
    snapshots: tuple[int, ...] = ()
    skipped: int = 0
    dry_run: bool = False
    note: str = ""

    @property
    def is_nothing(self) -> bool:
        """True if there was no file to rewrite."""
        return not (self.files or self.skipped)

    def __str__(self) -> str:
        if self.note:
            return f"{self.table}: {self.skipped} file(s) left alone: {self.note}"
        done = "would become" if self.dry_run else "became"
        size = "" if self.new_bytes is None else f" ({decimal(self.new_bytes)})"
        text = f"{self.table}: {self.files} file(s) ({decimal(self.bytes)}) {done}"
        left = f"; {self.skipped} skipped: others changed them" if self.skipped else ""
        return f"{text} {self.new_files} file(s){size}{left}"


@dataclass(frozen=True, slots=True)
class Expired:
    """Expired snapshots, and how many files only they used, which now wait for deletion."""

    snapshots: tuple[int, ...] = ()
    files: int = 0
    dry_run: bool = False

    def __str__(self) -> str:
        done = "would expire" if self.dry_run else "expired"
        return f"{len(self.snapshots)} snapshot(s) {done}; {self.files} file(s) to delete"


@dataclass(frozen=True, slots=True)
class FilesDeleted:
    """Files that were deleted, by absolute path; ``bytes`` counts those whose size is known.

    ``kept`` were scheduled for deletion but left alone: the lake did not write them, or a remaining
    snapshot uses them.
    """

    files: tuple[str, ...] = ()
    bytes: int = 0
    kept: tuple[str, ...] = ()
    dry_run: bool = False

    def __str__(self) -> str:
        done = "would be deleted" if self.dry_run else "deleted"
        kept = f"; {len(self.kept)} kept" if self.kept else ""
        return f"{len(self.files)} file(s) {done}{kept}"


@dataclass(frozen=True, slots=True)
class Migrated:
    """The steps of a migration, planned with ``is_plan``: its steps, none if there was nothing.

    ``was`` and ``version`` are those of DuckLake, before and after it.
    """

    was: str
    version: str
    steps: tuple[MigrationStep, ...] = ()
    is_plan: bool = False

    @property
    def is_refused(self) -> bool:
        """True if the plan has steps that a migration refuses."""
        return any(step.action == "refuse" for step in self.steps)

    def __str__(self) -> str:
        if not self.steps:
            return f"the lake already has DuckLake {self.version}"
        done = "would be" if self.is_plan else "is"
        last = f"the lake {done} migrated from DuckLake {self.was} to {self.version}"
        if self.is_refused:
            last = f"the lake cannot be migrated to DuckLake {self.version}: see refuse"
        return "\n".join([*map(str, self.steps), last])


@dataclass(frozen=True, slots=True)
class Checkpointed:
    """All that one checkpoint did, in order; None for what the options leave out.

    ``notes`` say which tables still have rows in the catalog, and why.
    """

    flushed: tuple[TableName, ...] = ()
    expired: Expired | None = None
    compacted: tuple[Compacted, ...] = ()
    rewritten: tuple[Compacted, ...] = ()
    cleaned: FilesDeleted | None = None
    orphans: FilesDeleted | None = None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts: list[object] = [f"{name}: inlined rows flushed" for name in self.flushed]
        parts += self.notes
        parts += [self.expired, *self.compacted, *self.rewritten, self.cleaned, self.orphans]
        return "\n".join(str(part) for part in parts if part is not None)
