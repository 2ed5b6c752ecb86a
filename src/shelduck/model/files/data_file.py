"""Files of a table and what is known about them: their numbers, and their physical contents.

For files that other writers made, merged or adopted, the catalog does not know the names, field ids
and types of every node, but the footer does. `shelduck.engine.files.layouts` reads it,
`shelduck_layout` keeps it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from shelduck.model.tables.schema import FieldId, Kind, Schema
from shelduck.model.types.data_types import Leaf, Primitive, ducklake_type

ROW_ID_COLUMN = "_ducklake_internal_row_id"
SNAPSHOT_COLUMN = "_ducklake_internal_snapshot_id"
ROW_ID_FIELD = 2147483540
SNAPSHOT_FIELD = 2147483539


@dataclass(frozen=True, slots=True)
class PhysicalField:
    """One column or nested node of a file.

    ``shape`` is the DuckLake leaf type that corresponds to the physical and logical type, the
    nested kind, or a Primitive named ``parquet:...`` if no DuckLake type corresponds. If one
    DuckLake type can be stored in several ways that readers treat differently, ``encoding`` tells
    them apart (``fixed`` for UUID bytes, ``int96``, ``utf8``, ``float64`` for DuckDB's int128 ...);
    it is empty for the usual one. ``group`` is the name of a list's or map's repeated group, needed
    for paths in the footer. ``is_annotated`` is True for an int32 or int64 with an annotation in
    the footer. DuckDB's integers have one and Spark's do not; some readers refuse to widen it.
    """

    name: str
    id: int | None
    shape: Leaf | Kind
    children: tuple[PhysicalField, ...] = ()
    encoding: str = ""
    group: str = ""
    is_annotated: bool = False

    @property
    def stored_as(self) -> str:
        """How the file holds it, in words for people."""
        return f"{self.shape} ({self.encoding})" if self.encoding else str(self.shape)

    def walk(self) -> Iterator[PhysicalField]:
        """Yield this node and all below it in pre-order."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class Layout:
    """The top-level nodes of a file, in file order."""

    fields: tuple[PhysicalField, ...]

    def has_field(self, field_id: int) -> bool:
        """Return whether a top-level node has this field id."""
        return any(f.id == field_id for f in self.fields)

    def walk(self) -> Iterator[PhysicalField]:
        """Yield every node, nested ones included, in pre-order."""
        return (f for top in self.fields for f in top.walk())

    def to_json(self) -> str:
        """Return a stable text form."""
        return json.dumps([_dump(f) for f in self.fields], separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Layout | None:
        """Read back `to_json`; None for any other text, such as a newer Shelduck's.

        The footer contains the same information.
        """
        try:
            return cls(tuple(_load(f) for f in _list(json.loads(text))))
        except (TypeError, ValueError):
            return None

    def digest(self) -> str:
        """Return a short name of the layout: equal layouts have equal digests."""
        return text_digest(self.to_json())


def text_digest(text: str) -> str:
    """Return a short name of a text: equal texts have equal digests."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


# The positions in a row are the stored format. New positions come last. If older code must not
# ignore a change, the text is anything other than a list of rows (docs/decisions/0034).
def _dump(f: PhysicalField) -> list[Any]:
    shape = str(f.shape)
    made = [f.name, f.id, shape, f.encoding, f.group, [_dump(c) for c in f.children]]
    # A text without the mark belongs to a file without it.
    return [*made, True] if f.is_annotated else made


def _list(found: Any) -> list[Any]:
    if not isinstance(found, list):
        raise TypeError(f"{found!r} is not a list")
    return found


def _load(row: Any) -> PhysicalField:
    name, number, text, encoding, group, children, *marks = _list(row)
    shape: Leaf | Kind
    if text in ("struct", "list", "map"):
        shape = Kind(text)
    elif str(text).startswith("parquet:"):
        shape = Primitive(text)
    else:
        shape = ducklake_type(str(text))
    parts = tuple(_load(c) for c in _list(children))
    return PhysicalField(name, number, shape, parts, encoding, group, marks[:1] == [True])


class ColumnStats(NamedTuple):
    """Statistics of one leaf column in one file, bounds as DuckLake writes them.

    ``value_count`` counts the non-null values; ``contains_nan`` is None except for floats. A
    bound is exact if it is a value, not a truncated one; None if that is unknown. This is
    a named tuple for the reason that `DataFile` is one.
    """

    column_id: FieldId
    column_size_bytes: int
    value_count: int
    null_count: int
    min_value: str | None = None
    max_value: str | None = None
    contains_nan: bool | None = None
    min_is_exact: bool | None = None
    max_is_exact: bool | None = None

    @property
    def without_bounds(self) -> ColumnStats:
        """The statistics without bounds."""
        return self._replace(min_value=None, max_value=None, min_is_exact=None, max_is_exact=None)


@dataclass(frozen=True, slots=True)
class NewDeleteFile:
    """A delete file that is written but not yet committed.

    It names every deleted position of one data file, including those of older delete files.
    ``path`` is relative to the table's directory. If it contains the snapshot of each position, it
    begins at the first of them, ``begin_snapshot``, and not at the commit.
    """

    path: str
    delete_count: int
    file_size_bytes: int
    footer_size: int | None
    begin_snapshot: int | None = None
    partial_max: int | None = None
    row_group_count: int | None = None


@dataclass(frozen=True, slots=True)
class NewDataFile:
    """A Parquet file that is written but not yet committed.

    ``path`` is relative to the table's directory. ``layout`` is what the file physically holds.
    ``partition_values`` are texts by the keys of the spec ``partition_id``. ``deletes`` are rows of
    the file that were deleted before anybody saw them. The last three are for files with older
    rows: the snapshot where the file begins (instead of the commit), the newest snapshot in it, and
    the first row id. Rows that store their own ids need no first row id, but count when ids are
    assigned.

    A foreign file that the table adopts has ``names``, its name mapping. Its path is absolute then,
    and ``path_values`` are the values of the mapping's partition names, in their order.
    """

    path: str
    record_count: int
    file_size_bytes: int
    footer_size: int | None
    stats: tuple[ColumnStats, ...]
    layout: Layout
    partition_id: int | None = None
    partition_values: tuple[str | None, ...] = ()
    deletes: NewDeleteFile | None = None
    begin_snapshot: int | None = None
    partial_max: int | None = None
    row_id_start: int | None = None
    names: tuple[MappedName, ...] | None = None
    path_values: tuple[str | None, ...] = ()
    row_group_count: int | None = None


def without_bounds(file: NewDataFile, columns: Collection[FieldId]) -> NewDataFile:
    """Return the file without bounds of ``columns``, which were written in another type."""
    if not columns:
        return file
    stats = tuple(s.without_bounds if s.column_id in columns else s for s in file.stats)
    return replace(file, stats=stats)


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """The positions that are deleted from one data file; ``path`` is absolute.

    ``id`` is None if no snapshot has the delete file yet. ``is_later``: a later commit than the
    snapshot that sees it wrote it, in place of older ones, so it may count later deletes too.
    """

    path: str
    format: str
    delete_count: int
    id: int | None = None
    is_later: bool = False


class DataFile(NamedTuple):
    """A data file as one snapshot sees it; ``path`` is absolute, sizes are bytes.

    This is a named tuple, because tables have hundreds of thousands of files and a frozen dataclass
    takes several times as long to make.
    """

    id: int
    path: str
    file_size_bytes: int
    record_count: int | None
    row_id_start: int | None
    begin_snapshot: int
    mapping_id: int | None = None
    partial_max: int | None = None
    delete_file: DeleteFile | None = None
    inlined_deletes: tuple[int, ...] = ()
    partition_values: tuple[str | None, ...] = ()
    layout: Layout | None = None
    partition_id: int | None = None

    @property
    def live_rows(self) -> int | None:
        """Return how many rows are not deleted; None if the catalog does not tell."""
        if self.record_count is None or (self.delete_file and self.delete_file.is_later):
            return None
        return self.record_count - self.dead_rows

    @property
    def dead_rows(self) -> int:
        """Return how many rows are deleted, at most: see ``is_later`` of `DeleteFile`."""
        stored = self.delete_file.delete_count if self.delete_file is not None else 0
        return stored + len(self.inlined_deletes)

    @property
    def paths(self) -> tuple[str, ...]:
        """Return the paths of the file and of its delete file."""
        return (self.path,) if self.delete_file is None else (self.path, self.delete_file.path)


@dataclass(frozen=True, slots=True)
class DeletesSeen:
    """The deletes of a data file as a reader saw them.

    A commit that depends on it compares it with the current deletes, inside its lock. An id is
    negative, so that no delete file has it, if the file has deletes that the reader may not see.
    """

    delete_file_id: int | None = None
    inlined: int = 0


def live_rows(files: Iterable[DataFile]) -> int | None:
    """Return how many rows of files are not deleted; None if the catalog does not tell."""
    return _total([f.live_rows for f in files])


def seen_id(number: int | None, *, is_later: bool) -> int | None:
    """Return a delete file's id as `DeletesSeen` has it."""
    return ~number if is_later and number is not None else number


def counted_rows(files: Sequence[DataFile]) -> int | None:
    """Return how many rows files hold, including deleted rows; None if a file does not say."""
    return _total([f.record_count for f in files])


def _total(counts: Sequence[int | None]) -> int | None:
    known = [n for n in counts if n is not None]
    return sum(known) if len(known) == len(counts) else None


def deletes_seen(file: DataFile) -> DeletesSeen:
    """Return what is deleted from a data file as its snapshot sees it."""
    stored = file.delete_file
    number = None if stored is None else seen_id(stored.id, is_later=stored.is_later)
    return DeletesSeen(number, len(file.inlined_deletes))


@dataclass(frozen=True, slots=True)
class MappedName:
    """One node of a name mapping: the name that a file uses for a field id.

    A partition name is not in the file: its value is the file's partition value for that key.
    """

    source_name: str
    field_id: FieldId
    is_partition: bool
    children: tuple[MappedName, ...] = ()


@dataclass(frozen=True, slots=True)
class NameMapping:
    """How columns are found in files that DuckLake adopted (``add_data_files``): by name."""

    id: int
    names: tuple[MappedName, ...]


@dataclass(frozen=True, slots=True)
class InlinedHistory:
    """All rows of one of the catalog's tables of inlined rows at a snapshot, with deleted rows.

    ``end_snapshots`` has one entry for each row, None for live rows.
    """

    table_name: str
    rows: InlinedRows
    end_snapshots: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class InlinedRows:
    """Rows of a table that are in the catalog, in the columns with which they were written.

    Each row holds one value per column of ``columns``: None, ``bytes`` for blobs, DuckDB text (str)
    for every other leaf, a dict by field name for structs, a list for lists, a list of (key, value)
    pairs for maps. ``row_ids`` and ``begin_snapshots`` have one entry for each row.
    """

    columns: Schema
    rows: tuple[tuple[object, ...], ...]
    row_ids: tuple[int, ...]
    begin_snapshots: tuple[int, ...]

    def at(self, places: Collection[int]) -> InlinedRows:
        """Return the rows at these indexes, in order."""
        return InlinedRows(
            self.columns,
            tuple(self.rows[n] for n in places),
            tuple(self.row_ids[n] for n in places),
            tuple(self.begin_snapshots[n] for n in places),
        )
