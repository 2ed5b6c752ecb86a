"""Schemas that a transaction created or dropped, on top of its base snapshot; no I/O."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from shelduck.model.changes.change import CreateSchema, DropSchema
from shelduck.model.tables.schema import SchemaId
from shelduck.model.tables.table import SchemaInfo
from shelduck.model.text.names import directory
from shelduck.model.text.quoting import INSIDE


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

    def create(self, name: str, parent: SchemaInfo | None, number: int, data_path: str) -> None:
        """Stage a new schema under a provisional id, inside ``parent`` if that is not None."""
        unique = str(uuid.uuid4())
        word = name if parent is None else f"{parent.name}{INSIDE}{name}"
        path = data_path + directory(word, unique)
        schema = SchemaInfo(SchemaId(number), word, path, None if parent is None else parent.id)
        self._by_name[word.lower()] = schema
        self.created.append(CreateSchema(schema, unique))

    def drop(self, schema: SchemaInfo) -> None:
        """Stage the drop of a schema; one of the transaction itself leaves no trace."""
        self._by_name[schema.name.lower()] = None
        if schema.id < 0:
            self.created = [c for c in self.created if c.schema is not schema]
        else:
            self.dropped.append(DropSchema(schema))
