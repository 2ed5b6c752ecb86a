"""The changes of one commit, folded into what happens to each schema and table; no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from shelduck.errors import InvalidRequest
from shelduck.model.changes.change import (
    AlterTable,
    Change,
    CreateTable,
    FlushInlined,
    RewriteFiles,
)
from shelduck.model.tables.schema import Schema, TableId
from shelduck.model.tables.table_version import TableVersion

C = TypeVar("C")


@dataclass(kw_only=True)
class _Changes:
    """Changes that are written one by one, in order."""

    changes: list[Change] = field(default_factory=list)

    def of(self, kind: type[C]) -> list[C]:
        """Return the changes of one class."""
        return [change for change in self.changes if isinstance(change, kind)]


@dataclass
class TableWork(_Changes):
    """Everything that a commit does to one table.

    ``seen`` is a version that a change names, for messages. ``old`` is the version before the first
    change of its columns or name, None for a new table and if only rows change. ``made`` says what
    describes the table from now on, None if that stays; ``changes`` are those of its rows, in
    order.
    """

    id: TableId
    seen: TableVersion | None = None
    old: TableVersion | None = None
    made: CreateTable | AlterTable | None = None
    dropped: bool = False
    new_name: str | None = None

    @property
    def created(self) -> CreateTable | None:
        """How the commit makes the table, None if it exists."""
        return self.made if isinstance(self.made, CreateTable) else None

    @property
    def altered(self) -> AlterTable | None:
        """How the commit alters a table that exists."""
        return self.made if isinstance(self.made, AlterTable) else None

    @property
    def columns(self) -> Schema | None:
        """The columns from now on, None if they stay."""
        return None if self.made is None else self.made.columns

    def alter(self, change: AlterTable) -> None:
        """Set the change of the table; staging joins several into one."""
        if self.made is not None:
            raise InvalidRequest(f"table {self.name} is changed twice in one commit")
        self.made = change

    def drop(self) -> None:
        """End the table; it then has no columns or rows to write."""
        self.dropped, self.new_name, self.changes = True, None, []
        if self.altered is not None:
            self.made = None

    @property
    def is_idle(self) -> bool:
        """True if rows were read and nothing is written."""
        is_same = self.made is None and self.new_name is None
        return is_same and not (self.dropped or self.changes)

    @property
    def name(self) -> str:
        """Return the table's name for messages, the new one of a new table."""
        if self.created is not None:
            return f"{self.created.schema.text}.{self.new_name or self.created.name}"
        known = self.old or self.seen
        return known.full_name if known else f"with id {self.id}"


@dataclass
class Work(_Changes):
    """Everything that a commit does: to tables, and the ``changes`` that belong to none."""

    tables: dict[TableId, TableWork] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """True if no snapshot is needed."""
        return not self.changes and all(table.is_idle for table in self.tables.values())

    def keep(self, change: Change) -> None:
        """Keep a change that belongs to no table."""
        self.changes.append(change)

    def keep_of_rows(self, change: FlushInlined | RewriteFiles) -> None:
        """Keep a change of a table's rows."""
        self.table_of(change.table).changes.append(change)

    def existing(self) -> Iterator[TableWork]:
        """Yield the work on tables that the catalog already knows."""
        return (t for t in self.tables.values() if t.created is None)

    def table(self, table_id: TableId) -> TableWork:
        """Return the work on a table; InvalidRequest for a new one that no earlier change makes."""
        if table_id < 0 and table_id not in self.tables:
            raise InvalidRequest(
                f"table {table_id} is provisional, and no change before creates it"
            )
        return self.tables.setdefault(table_id, TableWork(table_id))

    def table_of(self, version: TableVersion) -> TableWork:
        """Return the work on a table, given a version that a change names."""
        table = self.table(version.id)
        table.seen = table.seen or version
        return table

    def changed(self, version: TableVersion) -> TableWork:
        """Return the work on a table whose columns or name change."""
        table = self.table_of(version)
        if table.dropped:
            raise InvalidRequest(f"table {table.name} is changed after it was dropped")
        if table.created is None and table.old is None:
            table.old = version
        return table


def versions(changes: Iterable[Change]) -> Iterator[TableVersion]:
    """Yield the table versions on which the changes were made, without new tables."""
    for change in changes:
        table = getattr(change, "table", None)
        if isinstance(table, TableVersion) and table.id >= 0:
            yield table
