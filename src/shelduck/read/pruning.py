"""Skipping files by the catalog's statistics, with the filters that Spark pushes down."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from shelduck.catalog.databases.store import Store
from shelduck.catalog.read import read
from shelduck.catalog.read.files.data_files import identity_values
from shelduck.catalog.read.files.outside import bucketed_by, files_in_other_buckets, files_outside
from shelduck.catalog.read.metadata_rows import null_counts, table_bounds
from shelduck.errors import CorruptLake
from shelduck.model.files.data_file import ColumnStats, DataFile, live_rows
from shelduck.model.files.predicate import And, Or, Predicate, Unknown
from shelduck.model.tables.partition import parse_transform
from shelduck.model.tables.properties import analyzed_columns
from shelduck.model.tables.schema import Field, FieldId, Kind, Path
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.types.buckets import has_same_buckets
from shelduck.model.types.literals import Comparable, bound
from shelduck.read.plan.answers import (
    WHERE,
    Measure,
    Value,
    buckets_of,
    combined,
    equal_values,
    measured,
    measured_columns,
    whole_number_ranges,
)
from shelduck.read.plan.prune import certain_files, is_checked, matching_files
from shelduck.read.plan.scan import FileSource, ScanGroup, is_plain
from shelduck.text.query.predicates import parse_filter

# Up to this many files are looked up by id; for more, whole columns are read once.
_FEW = 500
# The time zone in which the bridge writes instants, whatever the session's time zone is.
_TIME_ZONE = "UTC"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of filters: a predicate, the ids of its columns, and the integers that it allows.

    A column without an id proves nothing.
    """

    predicate: Predicate
    ids: Mapping[Path, FieldId | None]
    ranges: Mapping[FieldId, tuple[int | None, int | None]]

    @property
    def columns(self) -> set[FieldId]:
        """Return the columns whose statistics matter."""
        return {i for i in self.ids.values() if i is not None}


class Pruner(FileSource):
    """Says which files of a scan group may hold rows that pass Spark's filters.

    Statistics of a column are read from the catalog when a filter first needs them, and kept for
    the life of the DataFrame: files and their statistics belong to one snapshot.
    """

    by_id_up_to = _FEW

    def __init__(
        self,
        store: Store,
        table: TableVersion,
        unsafe_bounds: frozenset[FieldId] = frozenset(),
        *,
        knows_values: bool = True,
    ) -> None:
        self.knows_values = knows_values
        self._unsafe = unsafe_bounds
        self._store = store
        self._table = table
        self._lock = threading.Lock()
        self._stats: dict[int, Mapping[int, ColumnStats]] = {}
        self._few: dict[int, dict[int, ColumnStats | None]] = {}

    def __call__(self, group: ScanGroup, filters: list[str]) -> set[int] | None:
        """Return the ids of the files that may match all filters, None if all files may."""
        asked = self.asked(group, filters)
        if not asked.columns:
            return None
        # The statistics of a few files say the same.
        ranges = {} if len(group.files) <= self.by_id_up_to else asked.ranges
        with self._store.read() as connection:
            outside = files_outside(connection, self._table, ranges)
            return self._matching(connection, group, asked, outside)

    def exactly(self, group: ScanGroup, filters: list[str]) -> set[int]:
        """Return the ids of those of a few files that may match all filters."""
        return self._store.ask(self._matching, group, self.asked(group, filters), set())

    def asked(self, group: ScanGroup, filters: list[str]) -> Asked:
        """Return what filters ask of the columns of a group."""
        names = [column.name for column in group.read]
        checked = {n.name for n in group.nodes if n.name is not None and is_checked(n)}
        parts = tuple(parse_filter(text, names, _TIME_ZONE, checked=checked) for text in filters)
        predicate = And(tuple(p for p in parts if not isinstance(p, Unknown)))
        found = {path: _field_id(group, path) for path in _paths(predicate)}
        # If an open transaction changed the type of a column, the catalog will clear its bounds.
        ids = {path: None if i in self._unsafe else i for path, i in found.items()}
        ranges = {
            column: span
            for path, span in whole_number_ranges(predicate).items()
            if (column := ids[path]) is not None
        }
        return Asked(predicate, ids, ranges)

    def certain(self, group: ScanGroup, filters: list[str], files: list[DataFile]) -> set[int]:
        """Return the ids of files of which every row passes all filters."""
        names = [column.name for column in group.read]
        negated = [parse_filter(text, names, _TIME_ZONE, negated=True) for text in filters]
        found = {_field_id(group, path) for predicate in negated for path in _paths(predicate)}
        columns = {i for i in found if i is not None}
        if columns & self._unsafe:
            return set()
        stats = self._store.ask(self._stats_of, columns, files)
        return certain_files(negated, group, stats, files)

    def values(
        self, group: ScanGroup, files: Sequence[DataFile]
    ) -> Mapping[int, tuple[Comparable | None, ...]]:
        """Return the value that each file has in each of the group's keys, by data file id.

        Dates are days since 1970. Raises CorruptLake for a file without a value.
        """
        fields = {n.name: n.field for n in group.nodes if n.is_read}
        columns = [fields[name] for name in group.keys]
        with self._store.read() as connection:
            wanted = [f.id for f in files] if len(files) <= self.by_id_up_to else None
            found = identity_values(connection, self._table, wanted)
        return {file.id: tuple(_value(found, file, column) for column in columns) for file in files}

    def measured(self, group: ScanGroup, measures: list[list[str]]) -> list[str | None] | None:
        """Return COUNT, MIN and MAX of a group's files as texts, None if they are not certain.

        A measure ``WHERE`` is a filter: it must choose all or no rows of each file.
        """
        filters = [text for word, *rest in measures if word == WHERE for text in rest]
        wanted: list[Measure] = [
            (word, rest[0] if rest else None) for word, *rest in measures if word != WHERE
        ]
        columns = measured_columns(group, wanted)
        if columns is None or columns & self._unsafe:
            return None
        answers = []
        for part in self.parts(group, filters):
            answer = self._measured(part, wanted, columns, filters)
            if answer is None:
                return None
            answers.append(answer)
        return [None if n is None else str(n) for n in combined(wanted, answers)]

    def statistics(self, group: ScanGroup) -> list[list[str | None]]:
        """Return what the optimizer wants to know of a group; see `FileSource.statistics`.

        Its values are those of the whole table. Of a table that nobody analyzed, no statement.
        """
        rows = self.rows(group)
        if rows is None:
            return []
        known = analyzed_columns(self._table.properties, self._table.columns)
        nodes = [n for n in group.nodes if n.field.id in known and is_plain(n)]
        if not nodes or self._table.id < 0:
            return [[str(rows)]]
        with self._store.read() as connection:
            bounds = table_bounds(connection, self._table)
            counted = self.null_counts(connection, known)
        found: list[list[str | None]] = [[str(rows)]]
        for node in nodes:
            one = known[node.field.id]
            leaf = node.read
            assert leaf is not None
            nulls = min(rows, counted.get(one.column, one.nulls_of(rows)))
            ends = [bound(leaf, text) for text in bounds.get(one.column, (None, None))[:2]]
            numbers = (one.distinct_of(rows), nulls, *ends, one.average, one.longest)
            found.append([node.name, *(None if n is None else str(n) for n in numbers)])
        return found

    def rows(self, group: ScanGroup) -> int | None:
        """Return how many rows of a group are not deleted; None if that is not known."""
        return live_rows(group.files)

    def null_counts(
        self, connection: read.Connection, columns: Collection[FieldId]
    ) -> dict[int, int]:
        """Return how many NULLs columns have, as far as it is worth to count them."""
        return null_counts(connection, self._table, columns)

    def parts(self, group: ScanGroup, filters: list[str]) -> Iterator[ScanGroup]:
        """Yield the files that may match all filters, as parts of the group."""
        kept = self(group, filters) if filters else None
        yield group if kept is None else part_of(group, kept)

    def _measured(
        self, part: ScanGroup, wanted: list[Measure], columns: set[FieldId], filters: list[str]
    ) -> list[Value | None] | None:
        files = list(part.files)
        if filters and self.certain(part, filters, files) != {f.id for f in files}:
            return None
        stats: Mapping[int, Mapping[int, ColumnStats]] = {}
        if columns:
            stats = self._store.ask(self._stats_of, columns, files)
        return measured(part, wanted, stats)

    def _matching(
        self, connection: read.Connection, group: ScanGroup, asked: Asked, outside: set[int]
    ) -> set[int]:
        outside |= self._in_other_buckets(connection, group, asked)
        files = [f for f in group.files if f.id not in outside]
        stats = self._stats_of(connection, asked.columns, files)
        return matching_files(asked.predicate, group, stats, files)

    def _in_other_buckets(
        self, connection: read.Connection, group: ScanGroup, asked: Asked
    ) -> set[int]:
        """Return files whose buckets hold no value that the filter asks for."""
        literals = equal_values(asked.predicate)
        wanted = {asked.ids[path]: values for path, values in literals.items()}
        columns = [c for i in wanted if i is not None and (c := self._leaf(i)) is not None]
        outside: set[int] = set()
        if not columns or all(f.partition_id is None for f in group.files):
            return outside
        few = len(group.files) <= self.by_id_up_to
        among = {f.id for f in group.files} if few else None
        keys = bucketed_by(connection, self._table, [c.id for c in columns])
        for column in columns:
            for transform in keys.get(column.id, ()):
                count = parse_transform(transform).buckets
                buckets = buckets_of(column.leaf, wanted[column.id], count)
                if buckets is not None:
                    found = files_in_other_buckets(
                        connection, self._table, column.id, transform, buckets, among=among
                    )
                    outside |= {f.id for f in group.files if f.id in found and _hashes(f, column)}
        return outside

    def _leaf(self, column: FieldId) -> Field | None:
        found = self._table.columns.by_id(column)
        return found if found is not None and found.is_leaf else None

    def _stats_of(
        self, connection: read.Connection, columns: set[FieldId], files: list[DataFile]
    ) -> Mapping[int, Mapping[int, ColumnStats]]:
        if len(files) <= self.by_id_up_to:
            return self._stats_of_few(connection, columns, {f.id for f in files})
        with self._lock:
            missing = {c for c in columns if c not in self._stats}
            self._stats.update(read.file_bounds(connection, self._table, missing))
            return dict(self._stats)

    def _stats_of_few(
        self, connection: read.Connection, columns: set[FieldId], files: set[int]
    ) -> Mapping[int, Mapping[int, ColumnStats]]:
        """Return the statistics of files, each of which is looked up once for a column."""
        with self._lock:
            asked = {c: self._few.setdefault(c, {}) for c in columns}
            new = {f for f in files if any(f not in known for known in asked.values())}
            if new:
                found = read.file_bounds(connection, self._table, columns, new)
                for column, known in asked.items():
                    known.update({f: found[column].get(f) for f in new})
            return {
                c: {f: stats for f in files if (stats := known[f]) is not None}
                for c, known in asked.items()
            }


def part_of(group: ScanGroup, kept: Collection[int]) -> ScanGroup:
    """Return the files of a group with these ids, as a part of it."""
    pairs = zip(group.files, group.values, strict=True)
    chosen = [(file, texts) for file, texts in pairs if file.id in kept]
    files, values = tuple(file for file, _ in chosen), tuple(texts for _, texts in chosen)
    return replace(group, files=files, values=values)


def _value(
    found: Mapping[tuple[int, int], str | None], file: DataFile, column: Field
) -> Comparable | None:
    """Return the value of a column in all rows of a file."""
    text = found.get((file.id, column.id), "")
    value = bound(column.leaf, text)
    if (value is None and text is not None) or (file.id, column.id) not in found:
        raise CorruptLake(
            f"data file {file.path}: its partition value of column {column.name!r} is {text!r},"
            f" which is not a value of type {column.leaf}; correct it in"
            " ducklake_file_partition_value"
        )
    return value


def _hashes(file: DataFile, column: Field) -> bool:
    """Return whether a file holds a column in a type with the same hashes as the current type."""
    fields = file.layout.fields if file.layout is not None else ()
    stored = next((f.shape for f in fields if f.id == column.id), None)
    if stored is None or isinstance(stored, Kind) or isinstance(column.shape, Kind):
        return False
    return has_same_buckets(stored, column.shape)


def _paths(predicate: Predicate) -> Iterator[Path]:
    if isinstance(predicate, And | Or):
        for part in predicate.parts:
            yield from _paths(part)
    elif not isinstance(predicate, Unknown):
        yield predicate.path


def _field_id(group: ScanGroup, path: Path) -> FieldId | None:
    """Return the id of the field for a path of the group's read schema."""
    nodes = group.nodes
    found = None
    for name in path:
        found = next((n for n in nodes if n.is_read and n.name == name), None)
        if found is None:
            return None
        nodes = found.children
    return found.field.id if found is not None else None
