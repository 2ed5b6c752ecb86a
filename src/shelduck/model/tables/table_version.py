"""A table as one snapshot sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from shelduck.model.tables.options import TableOptions
from shelduck.model.tables.schema import FieldId, Schema, SchemaId, SnapshotId, TableId
from shelduck.model.tables.writable import Conversion
from shelduck.model.text.names import Shown, quote_name, schema_names, schema_text, shown_schema

DEFAULT_SCHEMA = "main"
"""The schema that every lake has."""


Mark = tuple[int, datetime, int, int, int]
"""The id, the time and the counters of a snapshot."""


@dataclass(frozen=True, slots=True, repr=False)
class Snapshot(Shown):
    """One commit. ``changes_made`` is the catalog's text, None if there was nothing to record."""

    id: SnapshotId
    time: datetime
    schema_version: int
    next_catalog_id: int
    next_file_id: int
    changes_made: str | None = None
    author: str | None = None
    commit_message: str | None = None
    commit_extra_info: str | None = None

    @property
    def mark(self) -> Mark:
        """A mark that no other snapshot has, even of the same id in a copy of the catalog."""
        counters = (self.schema_version, self.next_catalog_id, self.next_file_id)
        return (self.id, self.time, *counters)


def is_later(number: int, at: Snapshot) -> bool:
    """Return whether a data file or delete file of that id was written after a snapshot."""
    return number >= at.next_file_id


@dataclass(frozen=True, slots=True)
class SchemaInfo:
    """A schema (namespace) of the lake; ``path`` is its absolute directory, ending in '/'.

    ``name`` is one word: of a schema inside another one, `schema_word` of all names. ``parent`` is
    the other one.
    """

    id: SchemaId
    name: str
    path: str
    parent: SchemaId | None = None

    @property
    def own_name(self) -> str:
        """Return its name without those of the schemas around it."""
        return schema_names(self.name)[-1]

    @property
    def text(self) -> str:
        """Return its name as people write it."""
        return shown_schema(self.name)


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """One key of a partition spec: the column's id and DuckLake's text of the transform."""

    column_id: FieldId
    transform: str


class Feature(Enum):
    """A subject that takes part in calls on a table, by the property that tells."""

    KEYS = "shelduck.keys"
    IS_ROLLUP = "shelduck.rollup"
    HAS_ROLLUPS = "shelduck.rollups"
    CONSTRAINTS = "shelduck.constraints"
    COMPUTED = "shelduck.computed"


@dataclass(frozen=True, slots=True)
class TableVersion:
    """One table at one snapshot: identity, path and columns.

    ``path`` is the absolute directory of its files, ending in '/'. ``first_names`` maps a field id
    to the first name that it ever had, which is the name in our files. ``max_column_id`` includes
    ended columns, so that ids are never used again. Comments are by field id; the table's own
    comment is under None.
    """

    id: TableId
    uuid: str
    schema: SchemaInfo
    name: str
    path: str
    columns: Schema
    snapshot: Snapshot
    begin_snapshot: SnapshotId
    max_column_id: int
    first_names: dict[FieldId, str]
    comments: dict[FieldId | None, str]
    partition_id: int | None = None
    partition: tuple[PartitionColumn, ...] = ()
    sort: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
    options: TableOptions = field(default_factory=TableOptions)
    """The options that apply to writes; they have no history."""
    conversions: tuple[Conversion, ...] = ()
    """The conversions of an open job: new files contain its columns too."""
    has_reserved: bool = False
    """False if no job has ever reserved a column, so that there is no job to look up."""
    roots: tuple[str, ...] | None = None
    """The directories below which its files may be, None for any."""

    @property
    def features(self) -> tuple[Feature, ...]:
        """The subjects that have a part in what happens to the table."""
        return tuple(each for each in Feature if each.value in self.properties)

    @property
    def full_name(self) -> str:
        """Return the table's name with its schema, quoted if necessary."""
        return f"{schema_text(self.schema.name)}.{quote_name(self.name)}"


def known_first(
    first_names: Mapping[FieldId, str], names: Mapping[FieldId, str]
) -> dict[FieldId, str]:
    """Return the first names of fields, given those so far and the present ``names`` of some."""
    found = dict(first_names)
    for number, name in names.items():
        found.setdefault(number, name)
    return found
