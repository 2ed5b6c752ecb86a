"""A table as one snapshot sees it, its conversions, and whether Spark can write files of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from shelduck.errors import Unsupported
from shelduck.model.tables.options import TableOptions
from shelduck.model.tables.schema import (
    Field,
    FieldId,
    Path,
    Schema,
    SchemaId,
    SnapshotId,
    TableId,
    path_text,
)
from shelduck.model.text.names import Shown, quote_name, schema_names, schema_text, shown_schema
from shelduck.model.types.data_types import DataType, Leaf, Map, Primitive, members_of
from shelduck.model.types.promotions import NOT_WRITTEN

DEFAULT_SCHEMA = "main"
"""The schema that every lake has."""
_MOST_TOLD = 3


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
    MATERIALIZED = "shelduck.hint.materialized"


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


@dataclass(frozen=True, slots=True)
class Conversion:
    """One top-level column that gets another type: ``shadow_id`` is the id of its replacement.

    ``source`` is the current type of the column, ``target`` the new one as people write it.
    ``using`` is a Spark SQL expression over the table's columns, None for the conversion by the
    types. ``on_error_null``: values that cannot be converted become NULL instead of an error.
    ``clause`` is the index of the clause of the job that asks for it.

    ``parts`` are the ids of the column and of everything in it. ``named`` is what names meant when
    the job began, as paths with ids, for everything that ``using`` may name. ``may_be_null``:
    values that are not NULL may become NULL, and the column accepts this.

    An undo gives a column its older ids back: ``shadow_parts`` are those of the replacement and of
    everything in it, empty if they count from ``shadow_id``. ``recalls``: rows whose files hold no
    older value get that of an older snapshot, by their row ids.
    """

    column_id: FieldId
    shadow_id: FieldId
    source: str
    target: str
    using: str | None = None
    on_error_null: bool = False
    clause: int = 0
    parts: tuple[FieldId, ...] = ()
    named: tuple[tuple[Path, FieldId], ...] = ()
    may_be_null: bool = False
    shadow_parts: tuple[FieldId, ...] = ()
    recalls: bool = False


def shadow_name(field: Field) -> str:
    """Return the name of a replacement in rows that are being written, by its id."""
    return f"__shelduck_shadow_{field.id}"


def is_shadow(field: Field) -> bool:
    """Return whether a column of rows that are being written is a replacement."""
    return field.name == shadow_name(field)


def is_writable(leaf: Leaf) -> bool:
    """Return whether Spark can store the type so that every DuckLake reader can read it."""
    return str(leaf) not in NOT_WRITTEN


def unwritable_parts(data_type: DataType, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yield the parts of a type whose values Spark cannot write, and why."""
    if isinstance(data_type, Primitive):
        if str(data_type) == "null":
            yield path, "Spark writes no VOID; give the column a type (ALTER COLUMN … TYPE)"
        elif not is_writable(data_type):
            yield path, f"Spark has no data type that preserves the values of {data_type}"
        return
    if isinstance(data_type, Map) and holds_map(data_type.key):
        yield (*path, "key"), "Spark does not support maps in the keys of a map"
    for member in members_of(data_type):
        yield from unwritable_parts(member.type, (*path, member.name))


def why_not_written(columns: Iterable[Field], table: str) -> str | None:
    """Return why files of these columns cannot be written, naming columns; None if they can."""
    found = [part for f in columns for part in unwritable_parts(f.type, (f.name,))]
    if not found:
        return None
    told = "; ".join(f"{path_text(path)}: {reason}" for path, reason in found[:_MOST_TOLD])
    more = f"; and {len(found) - _MOST_TOLD} more" if len(found) > _MOST_TOLD else ""
    return (
        f"Shelduck cannot write files of {table}: {told}{more}; drop the column, or write to this"
        " table with DuckDB"
    )


def require_writable(columns: Iterable[Field], table: str, what: str) -> None:
    """Raise Unsupported, saying ``what`` it is for, if files of the columns cannot be written."""
    why = why_not_written(columns, table)
    if why is not None:
        raise Unsupported(f"{what}: {why}")


def holds_map(data_type: DataType) -> bool:
    """Return whether a type is a map, or contains one."""
    return isinstance(data_type, Map) or any(holds_map(m.type) for m in members_of(data_type))
