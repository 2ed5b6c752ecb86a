"""The changes of one table in a transaction, reduced to what a commit must contain."""

from __future__ import annotations

from dataclasses import dataclass, field

from shelduck.model.changes.change import AlterTable, Change, CreateTable, DropTable, RenameTable
from shelduck.model.changes.staged import StagedRows
from shelduck.model.tables.schema import spent
from shelduck.model.tables.table import TableVersion
from shelduck.work.results import TableName


@dataclass
class TableWork:
    """The changes of one table in the transaction; ``original`` is None if it was created here."""

    original: TableVersion | None
    current: TableVersion
    excludes_inserts: bool = False
    rows: StagedRows = field(default_factory=StagedRows)
    dropped: bool = False

    def is_called(self, name: TableName) -> bool:
        """Return whether the table has this name now, in any case."""
        now = (self.current.schema.name.lower(), self.current.name.lower())
        return not self.dropped and now == (name.home.lower(), name.name.lower())

    def changes(self) -> list[Change]:
        """Return what a commit must contain for the table."""
        found: list[Change] = []
        now = self.current
        if self.original is None:
            if self.dropped:
                return []
            found.append(
                CreateTable(
                    *(now.id, now.schema, now.name, now.uuid),
                    # A rename keeps the directory: it may already contain files.
                    now.path.removeprefix(now.schema.path),
                    *(now.columns, now.comments),
                    partition=now.partition,
                    partition_id=now.partition_id,
                    sort=now.sort,
                    properties=now.properties,
                    reserved=spent(now.columns, now.max_column_id),
                )
            )
        elif self.dropped:
            return [DropTable(self.original)]
        else:
            found.extend(self._changes_of(self.original))
        return [*found, *self.rows.changes(now.id, now.columns)]

    def _changes_of(self, original: TableVersion) -> list[Change]:
        found: list[Change] = []
        now = self.current
        if now.name != original.name:
            found.append(RenameTable(original, now.name))
        same_layout = now.partition == original.partition and now.sort == original.sort
        same_columns = now.columns == original.columns and now.comments == original.comments
        same_properties = now.properties == original.properties
        reserved = spent(now.columns, now.max_column_id, original.max_column_id)
        if reserved or not (same_layout and same_columns and same_properties):
            found.append(
                AlterTable(
                    original,
                    now.columns,
                    now.comments,
                    self.rows.unsafe_bounds,
                    self.excludes_inserts,
                    partition=None if now.partition == original.partition else now.partition,
                    partition_id=now.partition_id,
                    sort=None if now.sort == original.sort else now.sort,
                    properties=None if same_properties else now.properties,
                    reserved=reserved,
                )
            )
        return found
