"""Schemas that a transaction created or dropped, on top of its base snapshot; no I/O."""

from __future__ import annotations

from collections.abc import Sequence

from shelduck.model.changes.change import CreateSchema, DropSchema
from shelduck.model.tables.table import SchemaInfo


class StagedSchemas:
    """The schemas that a transaction changed; ids of new ones are below 0."""

    def __init__(self) -> None:
        self._by_name: dict[str, SchemaInfo | None] = {}
        self.created: list[CreateSchema] = []
        self.dropped: list[DropSchema] = []

    def copied(self) -> StagedSchemas:
        """Return a copy that later changes do not affect."""
        other = StagedSchemas()
        other._by_name = dict(self._by_name)
        other.created, other.dropped = list(self.created), list(self.dropped)
        return other

    def over(self, present: Sequence[SchemaInfo]) -> list[SchemaInfo]:
        """Return all schemas, new ones last; ``present`` are the base snapshot's."""
        own = [s for s in self._by_name.values() if s is not None]
        return [s for s in present if s.name.lower() not in self._by_name] + own

    def has_made(self, name: str) -> bool:
        """Return whether the transaction itself created the schema of this name."""
        return self._by_name.get(name.lower()) is not None

    def create(self, schema: SchemaInfo, unique: str) -> None:
        """Stage a new schema; ``unique`` is its UUID."""
        self._by_name[schema.name.lower()] = schema
        self.created.append(CreateSchema(schema, unique))

    def drop(self, schema: SchemaInfo) -> None:
        """Stage the drop of a schema; one of the transaction itself leaves no trace."""
        self._by_name[schema.name.lower()] = None
        if schema.id < 0:
            self.created = [c for c in self.created if c.schema is not schema]
        else:
            self.dropped.append(DropSchema(schema))
