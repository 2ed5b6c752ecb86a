"""What a commit makes of a table version: what a read would return, without reading it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace

from shelduck.catalog.read.column_rows import rows_of, schema_of, with_parents
from shelduck.model.tables.column_index import changed_part, walk
from shelduck.model.tables.lengths import limited
from shelduck.model.tables.schema import Field, FieldId, Schema, TableId
from shelduck.model.tables.table import PartitionColumn, Snapshot, TableVersion, known_first


@dataclass(frozen=True, slots=True)
class Altered:
    """What a commit wrote about a table that was there before, None for what stays."""

    id: TableId
    columns: Schema | None
    comments: Mapping[FieldId | None, str] | None
    properties: Mapping[str, str] | None
    partition: tuple[PartitionColumn, ...] | None
    partition_id: int | None
    sort: tuple[str, ...] | None
    new_name: str | None
    reserved: tuple[Field, ...]

    def version(self, before: TableVersion, at: Snapshot) -> TableVersion:
        """Return the table at the snapshot of the commit, given the version just before it."""
        after = replace(before, snapshot=at)
        if self.properties is not None:
            after = replace(after, properties=dict(self.properties))
        if self.columns is not None:
            after = self._with_columns(after, self.columns)
        if self.partition is not None:
            number = self.partition_id if self.partition else None
            after = replace(after, partition=self.partition, partition_id=number)
        if self.sort is not None:
            after = replace(after, sort=self.sort)
        if self.new_name is not None:
            after = replace(after, name=self.new_name, begin_snapshot=at.id)
        return after

    def _with_columns(self, before: TableVersion, new: Schema) -> TableVersion:
        old = before.columns
        was, now = changed_part(old.fields, new.fields)
        written = self._as_read(new.fields[now], before)
        names = {f.id: f.name for f in [*walk(written), *walk(self.reserved)]}
        columns = new
        if written != new.fields[now]:
            columns = old.with_fields((*old.fields[: was.start], *written, *old.fields[was.stop :]))
        return replace(
            before,
            columns=columns,
            comments=dict(self.comments or {}),
            max_column_id=max([before.max_column_id, *names]),
            first_names=known_first(before.first_names, names),
            has_reserved=before.has_reserved or bool(self.reserved),
        )

    def _as_read(self, fields: Sequence[Field], table: TableVersion) -> tuple[Field, ...]:
        """Return fields as a read finds them in the rows that are written for them."""
        rows = rows_of(self.id, 0, with_parents(fields))
        found = schema_of((SimpleNamespace(**row) for row in rows), table.full_name)
        return limited(found, table.properties, table.full_name).fields
